// SPDX-License-Identifier: Apache-2.0
//
// Launches of the bodies of this folder on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "device.hpp"

namespace gofs::bench {

/// Launches on `stream`; does not wait. `params` is the body's parameter struct, in memory that the
/// GPU reaches; `grid` has whole warps.
cudaError_t launch_kernel(Kernel kernel, const work::Grid& grid, void* params, cudaStream_t stream);

}  // namespace gofs::bench
