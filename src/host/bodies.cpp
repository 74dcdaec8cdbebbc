// SPDX-License-Identifier: Apache-2.0
#include "work/bodies.h"

#include "gpu/kernels.h"
#include "work/batch.h"
#include "work/call.h"
#include "work/clean.h"
#include "work/clock.h"
#include "work/hash.h"
#include "work/hold.h"
#include "work/inodes.h"
#include "work/mount.h"

namespace gofs::work::bodies {

constinit const Body kMount{"mount", run_on_cpu<MountParams, mount_body>,
                            GOFS_KERNEL(gpu::kernels::kMount)};
constinit const Body kBeginWriting{"begin writing",
                                   run_on_cpu<BeginWritingParams, begin_writing_body>,
                                   GOFS_KERNEL(gpu::kernels::kBeginWriting)};
constinit const Body kUnmount{"unmount", run_on_cpu<UnmountParams, unmount_body>,
                              GOFS_KERNEL(gpu::kernels::kUnmount)};
constinit const Body kCall{"call", run_on_cpu<CallParams, call_body>,
                           GOFS_KERNEL(gpu::kernels::kCall)};
constinit const Body kHashFiles{"hash files", run_on_cpu<HashParams, hash_body>,
                                GOFS_KERNEL(gpu::kernels::kHashFiles)};
constinit const Body kBatch{"batch", run_on_cpu<BatchParams, batch_body>,
                            GOFS_KERNEL(gpu::kernels::kBatch)};
constinit const Body kInodes{"inodes", run_on_cpu<InodesParams, inodes_body>,
                             GOFS_KERNEL(gpu::kernels::kInodes)};
constinit const Body kClean{"clean", run_on_cpu<CleanParams, clean_body>,
                            GOFS_KERNEL(gpu::kernels::kClean)};
constinit const Body kClock{"clock", run_on_cpu<ClockParams, clock_body>,
                            GOFS_KERNEL(gpu::kernels::kClock)};
constinit const Body kHold{"hold", run_on_cpu<HoldParams, hold_body>,
                           GOFS_KERNEL(gpu::kernels::kHold)};

}  // namespace gofs::work::bodies
