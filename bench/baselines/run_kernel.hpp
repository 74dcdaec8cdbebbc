// SPDX-License-Identifier: Apache-2.0
//
// The bodies of this folder as a host thread runs them; kernels.cu has the same table for a GPU.
#pragma once

#include "block_map.h"
#include "companion.h"
#include "device.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench {

inline void run_kernel(const simt::Warp& warp, uint32_t index, uint32_t count, Kernel kernel,
                       void* params) {
  switch (kernel) {
    case Kernel::kBlockMap:
      return block_map_body(warp, index, count, *static_cast<BlockMapParams*>(params));
    case Kernel::kCompanionRead:
      return companion_read_body(warp, index, count, *static_cast<CompanionRead*>(params));
    case Kernel::kCompanionWrite:
      return companion_write_body(warp, index, count, *static_cast<CompanionWrite*>(params));
    case Kernel::kRpc:
      return rpc_body(warp, index, count, *static_cast<RpcJob*>(params));
    case Kernel::kStampSlots:
      return stamp_slots_body(warp, index, count, *static_cast<SlotParams*>(params));
    case Kernel::kCheckSlots:
      return check_slots_body(warp, index, count, *static_cast<SlotParams*>(params));
  }
}

}  // namespace gofs::bench
