// SPDX-License-Identifier: Apache-2.0
//
// The kernels: each is one body of this folder.
#include "block_map.h"
#include "companion.h"
#include "gpu/launch_body.cuh"
#include "kernels.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench {

cudaError_t launch_kernel(Kernel kernel, const work::Grid& grid, void* params,
                          cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kBlockMap:
      return gpu::launch_body<BlockMapParams, block_map_body>(grid, params, stream);
    case Kernel::kCompanionRead:
      return gpu::launch_body<CompanionRead, companion_read_body>(grid, params, stream);
    case Kernel::kCompanionWrite:
      return gpu::launch_body<CompanionWrite, companion_write_body>(grid, params, stream);
    case Kernel::kRpc:
      return gpu::launch_body<RpcJob, rpc_body>(grid, params, stream);
    case Kernel::kStampSlots:
      return gpu::launch_body<SlotParams, stamp_slots_body>(grid, params, stream);
    case Kernel::kCheckSlots:
      return gpu::launch_body<SlotParams, check_slots_body>(grid, params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gofs::bench
