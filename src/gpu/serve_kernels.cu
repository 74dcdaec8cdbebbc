// SPDX-License-Identifier: Apache-2.0
//
// The kernels of servers, for programs that serve.
#include "gpu/launch_body.cuh"
#include "gpu/serve_kernels.h"
#include "kernels/channel.h"
#include "kernels/serve.h"

namespace gofs::gpu::gpu_kernels {

using namespace kernels;

const GpuKernel kServeTurn = kernel_of<ServeTurnParams, serve_turn_body>();
const GpuKernel kChannel = kernel_of<ChannelParams, channel_body>();

}  // namespace gofs::gpu::gpu_kernels
