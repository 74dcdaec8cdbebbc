// SPDX-License-Identifier: Apache-2.0
#include "bodies.hpp"

#include "block_map.h"
#include "companion.h"
#include "kernels.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench::bodies {

constinit const work::Body kBlockMap{"block map", work::run_on_cpu<BlockMapParams, block_map_body>,
                                     GOFS_KERNEL(kernels::kBlockMap)};
constinit const work::Body kCompanionRead{"companion read",
                                          work::run_on_cpu<CompanionRead, companion_read_body>,
                                          GOFS_KERNEL(kernels::kCompanionRead)};
constinit const work::Body kCompanionWrite{"companion write",
                                           work::run_on_cpu<CompanionWrite, companion_write_body>,
                                           GOFS_KERNEL(kernels::kCompanionWrite)};
constinit const work::Body kRpc{"rpc", work::run_on_cpu<RpcJob, rpc_body>,
                                GOFS_KERNEL(kernels::kRpc)};
constinit const work::Body kStampSlots{"stamp slots",
                                       work::run_on_cpu<SlotParams, stamp_slots_body>,
                                       GOFS_KERNEL(kernels::kStampSlots)};
constinit const work::Body kCheckSlots{"check slots",
                                       work::run_on_cpu<SlotParams, check_slots_body>,
                                       GOFS_KERNEL(kernels::kCheckSlots)};

}  // namespace gofs::bench::bodies
