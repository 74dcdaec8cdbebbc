// SPDX-License-Identifier: Apache-2.0
//
// The kernels: each is one body of this folder.
#include "block_map.h"
#include "companion.h"
#include "gpu/launch_body.cuh"
#include "kernels.hpp"
#include "rpc.h"
#include "slots.h"

namespace gofs::bench::gpu_kernels {

const kernels::GpuKernel kBlockMap = gpu::kernel_of<BlockMapParams, block_map_body>();
const kernels::GpuKernel kCompanionRead = gpu::kernel_of<CompanionRead, companion_read_body>();
const kernels::GpuKernel kCompanionWrite = gpu::kernel_of<CompanionWrite, companion_write_body>();
const kernels::GpuKernel kRpc = gpu::kernel_of<RpcJob, rpc_body>();
const kernels::GpuKernel kStampSlots = gpu::kernel_of<SlotParams, stamp_slots_body>();
const kernels::GpuKernel kCheckSlots = gpu::kernel_of<SlotParams, check_slots_body>();

}  // namespace gofs::bench::gpu_kernels
