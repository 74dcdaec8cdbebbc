// SPDX-License-Identifier: Apache-2.0
//
// Launches of the bodies in work/. Host only.
#pragma once

#include <cuda_runtime.h>

#include "work/backend.h"

namespace gofs::gpu {

/// Launches `body` on `stream`; does not wait for it. `params` is the body's parameter struct, in
/// memory that the GPU reaches; `grid` has whole warps.
cudaError_t launch(work::Body body, const work::Grid& grid, void* params, cudaStream_t stream);

/// Loads the code of a body that a volume cannot do without, which CUDA would do when it is first
/// launched; of others, nothing.
cudaError_t load(work::Body body);

/// As launch(), for the bodies that measure writing: most of their code is for single lanes, which
/// no other body needs, and takes the compiler as long as all others.
cudaError_t launch_write_bench(work::Body body, const work::Grid& grid, void* params,
                               cudaStream_t stream);

}  // namespace gofs::gpu
