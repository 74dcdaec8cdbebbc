// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the CUDA backend: each is one body of work/, which a reader who wants to know what
// the file system does should open instead.
#include "gpu/kernels.h"
#include "gpu/launch_body.cuh"
#include "work/batch.h"
#include "work/bench.h"
#include "work/bench_files.h"
#include "work/call.h"
#include "work/clean.h"
#include "work/clock.h"
#include "work/hash.h"
#include "work/hold.h"
#include "work/inodes.h"
#include "work/mount.h"

namespace gofs::gpu {

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
      return launch_body<BenchJob, raw_read_body>(grid, params, stream);
    case Body::kFileRead:
      return launch_body<BenchJob, file_read_body>(grid, params, stream);
    case Body::kWideRead:
      return launch_body<BenchJob, wide_read_body>(grid, params, stream);
    case Body::kRawWrite:
    case Body::kFileWrite:
    case Body::kWriteAndSync:
    case Body::kNames:
      return launch_write_bench(body, grid, params, stream);
    case Body::kBatch:
      return launch_body<BatchParams, batch_body>(grid, params, stream);
    case Body::kFiles:
      return launch_body<FilesParams, files_body>(grid, params, stream);
    case Body::kInodes:
      return launch_body<InodesParams, inodes_body>(grid, params, stream);
    case Body::kClean:
      return launch_body<CleanParams, clean_body>(grid, params, stream);
    case Body::kClock:
      return launch_body<ClockParams, clock_body>(grid, params, stream);
    case Body::kHold:
      return launch_body<HoldParams, hold_body>(grid, params, stream);
    case Body::kUnmount:
      return launch_body<UnmountParams, unmount_body>(grid, params, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t load(work::Body body) {
  using namespace work;
  switch (body) {
    case Body::kCall:
      return load_body<CallParams, call_body>();
    case Body::kHold:
      return load_body<HoldParams, hold_body>();
    case Body::kUnmount:
      return load_body<UnmountParams, unmount_body>();
    default:
      return cudaSuccess;
  }
}

}  // namespace gofs::gpu
