// SPDX-License-Identifier: Apache-2.0
//
// The kernels: each is one body of this folder.
#include "block_map.h"
#include "companion.h"
#include "gpu/launch_body.cuh"
#include "kernels.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench::kernels {

const work::GpuKernel kBlockMap = gpu::kernel_of<BlockMapParams, block_map_body>();
const work::GpuKernel kCompanionRead = gpu::kernel_of<CompanionRead, companion_read_body>();
const work::GpuKernel kCompanionWrite = gpu::kernel_of<CompanionWrite, companion_write_body>();
const work::GpuKernel kRpc = gpu::kernel_of<RpcJob, rpc_body>();
const work::GpuKernel kStampSlots = gpu::kernel_of<SlotParams, stamp_slots_body>();
const work::GpuKernel kCheckSlots = gpu::kernel_of<SlotParams, check_slots_body>();

}  // namespace gofs::bench::kernels
