// SPDX-License-Identifier: Apache-2.0
#include "kernels/bodies.h"

#include "gpu/kernels.h"
#include "kernels/batch.h"
#include "kernels/call.h"
#include "kernels/calls.h"
#include "kernels/clean.h"
#include "kernels/clock.h"
#include "kernels/hash.h"
#include "kernels/hold.h"
#include "kernels/inodes.h"
#include "kernels/mount.h"
#include "kernels/ranges.h"

namespace gofs::kernels::bodies {

constinit const Body kMount{"mount", run_on_cpu<MountParams, mount_body>,
                            GOFS_KERNEL(gpu::gpu_kernels::kMount)};
constinit const Body kReadSegments{"read segments",
                                   run_on_cpu<BeginWritingParams, read_segments_body>,
                                   GOFS_KERNEL(gpu::gpu_kernels::kReadSegments)};
constinit const Body kBeginWriting{"begin writing",
                                   run_on_cpu<BeginWritingParams, begin_writing_body>,
                                   GOFS_KERNEL(gpu::gpu_kernels::kBeginWriting)};
constinit const Body kUnmount{"unmount", run_on_cpu<UnmountParams, unmount_body>,
                              GOFS_KERNEL(gpu::gpu_kernels::kUnmount)};
constinit const Body kCall{"call", run_on_cpu<CallParams, call_body>,
                           GOFS_KERNEL(gpu::gpu_kernels::kCall)};
constinit const Body kCalls{"calls", run_on_cpu<CallsParams, calls_body>,
                            GOFS_KERNEL(gpu::gpu_kernels::kCalls)};
constinit const Body kHashFiles{"hash files", run_on_cpu<HashParams, hash_body>,
                                GOFS_KERNEL(gpu::gpu_kernels::kHashFiles)};
constinit const Body kBatch{"batch", run_on_cpu<BatchParams, batch_body>,
                            GOFS_KERNEL(gpu::gpu_kernels::kBatch)};
constinit const Body kRanges{"ranges", run_on_cpu<RangesParams, ranges_body>,
                             GOFS_KERNEL(gpu::gpu_kernels::kRanges)};
constinit const Body kInodes{"inodes", run_on_cpu<InodesParams, inodes_body>,
                             GOFS_KERNEL(gpu::gpu_kernels::kInodes)};
constinit const Body kClean{"clean", run_on_cpu<CleanParams, clean_body>,
                            GOFS_KERNEL(gpu::gpu_kernels::kClean)};
constinit const Body kClock{"clock", run_on_cpu<ClockParams, clock_body>,
                            GOFS_KERNEL(gpu::gpu_kernels::kClock)};
constinit const Body kHold{"hold", run_on_cpu<HoldParams, hold_body>,
                           GOFS_KERNEL(gpu::gpu_kernels::kHold)};

}  // namespace gofs::kernels::bodies
