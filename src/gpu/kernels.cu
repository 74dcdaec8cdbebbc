// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the CUDA backend: each is one body of work/, which a reader who wants to know what
// the file system does should open instead.
#include "gpu/kernels.h"
#include "work/batch.h"
#include "work/bench.h"
#include "work/call.h"
#include "work/clean.h"
#include "work/hash.h"
#include "work/inodes.h"
#include "work/mount.h"

namespace gofs::gpu {

namespace {

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
cudaError_t launch_body(const work::Grid& grid, void* params, cudaStream_t stream) {
  if (grid.cooperative) {
    uint32_t blocks = grid.blocks;
    const cudaError_t error =
        fit_blocks(body_kernel<Params, kBody>, grid.threads_per_block, blocks);
    if (error != cudaSuccess) return error;
    void* arguments[] = {&params};
    return cudaLaunchCooperativeKernel(body_kernel<Params, kBody>, dim3(blocks),
                                       dim3(grid.threads_per_block), arguments, 0, stream);
  }
  body_kernel<Params, kBody>
      <<<grid.blocks, grid.threads_per_block, 0, stream>>>(static_cast<Params*>(params));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch(work::Body body, const work::Grid& grid, void* params, cudaStream_t stream) {
  using namespace work;
  switch (body) {
    case Body::kMount:
      return launch_body<MountParams, mount_body>(grid, params, stream);
    case Body::kBeginWriting:
      return launch_body<BeginWritingParams, begin_writing_body>(grid, params, stream);
    case Body::kCall:
      return launch_body<CallParams, call_body>(grid, params, stream);
    case Body::kHashFiles:
      return launch_body<HashParams, hash_body>(grid, params, stream);
    case Body::kRawRead:
      return launch_body<BenchParams, raw_read_body>(grid, params, stream);
    case Body::kFileRead:
      return launch_body<BenchParams, file_read_body>(grid, params, stream);
    case Body::kWideRead:
      return launch_body<BenchParams, wide_read_body>(grid, params, stream);
    case Body::kBatch:
      return launch_body<BatchParams, batch_body>(grid, params, stream);
    case Body::kInodes:
      return launch_body<InodesParams, inodes_body>(grid, params, stream);
    case Body::kClean:
      return launch_body<CleanParams, clean_body>(grid, params, stream);
    case Body::kUnmount:
      return launch_body<UnmountParams, unmount_body>(grid, params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gofs::gpu
