// SPDX-License-Identifier: Apache-2.0
#include "bodies.hpp"

#include "block_map.h"
#include "companion.h"
#include "kernels.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench::bodies {

constinit const kernels::Body kBlockMap{"block map",
                                        kernels::run_on_cpu<BlockMapParams, block_map_body>,
                                        GOFS_KERNEL(gpu_kernels::kBlockMap)};
constinit const kernels::Body kCompanionRead{
    "companion read", kernels::run_on_cpu<CompanionRead, companion_read_body>,
    GOFS_KERNEL(gpu_kernels::kCompanionRead)};
constinit const kernels::Body kCompanionWrite{
    "companion write", kernels::run_on_cpu<CompanionWrite, companion_write_body>,
    GOFS_KERNEL(gpu_kernels::kCompanionWrite)};
constinit const kernels::Body kRpc{"rpc", kernels::run_on_cpu<RpcJob, rpc_body>,
                                   GOFS_KERNEL(gpu_kernels::kRpc)};
constinit const kernels::Body kStampSlots{"stamp slots",
                                          kernels::run_on_cpu<SlotParams, stamp_slots_body>,
                                          GOFS_KERNEL(gpu_kernels::kStampSlots)};
constinit const kernels::Body kCheckSlots{"check slots",
                                          kernels::run_on_cpu<SlotParams, check_slots_body>,
                                          GOFS_KERNEL(gpu_kernels::kCheckSlots)};

}  // namespace gofs::bench::bodies
