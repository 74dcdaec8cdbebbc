// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the benchmark of writing, as kernels.cu.
#include "gpu/kernels.h"
#include "gpu/launch_body.cuh"
#include "work/bench_names.h"
#include "work/bench_pauses.h"

namespace gofs::gpu {

cudaError_t launch_write_bench(work::Body body, const work::Grid& grid, void* params,
                               cudaStream_t stream) {
  using namespace work;
  switch (body) {
    case Body::kRawWrite:
      return launch_body<WriteJob, raw_write_body>(grid, params, stream);
    case Body::kFileWrite:
      return launch_body<WriteJob, file_write_body>(grid, params, stream);
    case Body::kWriteAndSync:
      return launch_body<WriteAndSyncParams, write_and_sync_body>(grid, params, stream);
    case Body::kNames:
      return launch_body<NamesJob, names_body>(grid, params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace gofs::gpu
