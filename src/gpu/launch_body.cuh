// SPDX-License-Identifier: Apache-2.0
//
// The kernel of a body (kernels/body.h), and its launch: for .cu files, here and of programs that
// have bodies of their own.
#pragma once

#include <cuda_runtime.h>

#include "kernels/body.h"
#include "simt/warp.h"

namespace gofs::gpu {

template <typename Params, void (*kBody)(simt::Warp, uint32_t, uint32_t, Params&)>
__global__ void body_kernel(Params* params) {
  const uint32_t warps_per_block = blockDim.x / 32;
  const uint32_t warp_index = blockIdx.x * warps_per_block + threadIdx.x / 32;
  kBody(simt::Warp::full(), warp_index, gridDim.x * warps_per_block, *params);
}

/// Blocks of a kernel that the GPU can run at the same time, at most `wanted`.
template <typename Kernel>
cudaError_t fit_blocks(Kernel kernel, uint32_t threads_per_block, uint32_t& wanted) {
  int device = 0;
  int processors = 0;
  int blocks_each = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, kernel,
                                                        static_cast<int>(threads_per_block), 0);
  wanted = simt::min(wanted, static_cast<uint32_t>(processors * blocks_each));
  return error;
}

template <typename Params, void (*kBody)(simt::Warp, uint32_t, uint32_t, Params&)>
int load_body() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, body_kernel<Params, kBody>);
}

template <typename Params, void (*kBody)(simt::Warp, uint32_t, uint32_t, Params&)>
int launch_body(const kernels::Grid& grid, void* params, cudaStream_t stream) {
  void* arguments[] = {&params};
  if (grid.cooperative) {
    uint32_t blocks = grid.blocks;
    const cudaError_t error =
        fit_blocks(body_kernel<Params, kBody>, grid.threads_per_block, blocks);
    if (error != cudaSuccess) return error;
    return cudaLaunchCooperativeKernel(body_kernel<Params, kBody>, dim3(blocks),
                                       dim3(grid.threads_per_block), arguments, 0, stream);
  }
  // Says what became of this launch. cudaGetLastError() would also say what the program has not
  // asked about: that some cudaMalloc() of its own had failed.
  return cudaLaunchKernel(body_kernel<Params, kBody>, dim3(grid.blocks),
                          dim3(grid.threads_per_block), arguments, 0, stream);
}

template <typename Params, void (*kBody)(simt::Warp, uint32_t, uint32_t, Params&)>
constexpr kernels::GpuKernel kernel_of() {
  return {launch_body<Params, kBody>, load_body<Params, kBody>};
}

}  // namespace gofs::gpu
