// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the CUDA backend: each is one body of work/, which a reader who wants to know what
// the file system does should open instead.
#include "gpu/kernels.h"
#include "work/batch.h"
#include "work/bench.h"
#include "work/call.h"
#include "work/hash.h"
#include "work/inodes.h"
#include "work/mount.h"

namespace gofs::gpu {

namespace {

template <typename Params, void (*kBody)(const simt::Warp&, uint32_t, uint32_t, Params&)>
__global__ void body_kernel(Params* params) {
  const uint32_t warps_per_block = blockDim.x / 32;
  const uint32_t warp_index = blockIdx.x * warps_per_block + threadIdx.x / 32;
  kBody(simt::Warp::full(), warp_index, gridDim.x * warps_per_block, *params);
}

template <typename Params, void (*kBody)(const simt::Warp&, uint32_t, uint32_t, Params&)>
cudaError_t launch_body(const work::Grid& grid, void* params, cudaStream_t stream) {
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
    case Body::kCall:
      return launch_body<CallParams, call_body>(grid, params, stream);
    case Body::kHashFiles:
      return launch_body<HashParams, hash_body>(grid, params, stream);
    case Body::kRawRead:
      return launch_body<BenchParams, raw_read_body>(grid, params, stream);
    case Body::kFileRead:
      return launch_body<BenchParams, file_read_body>(grid, params, stream);
    case Body::kBatch:
      return launch_body<BatchParams, batch_body>(grid, params, stream);
    case Body::kInodes:
      return launch_body<InodesParams, inodes_body>(grid, params, stream);
    case Body::kUnmount:
      return launch_body<UnmountParams, unmount_body>(grid, params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gofs::gpu
