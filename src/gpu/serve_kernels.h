// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in host/serve/serve_bodies.h, in builds with CUDA. Host only.
#pragma once

#include "kernels/body.h"

namespace gofs::gpu::gpu_kernels {

extern const kernels::GpuKernel kServeTurn;
extern const kernels::GpuKernel kChannel;

}  // namespace gofs::gpu::gpu_kernels
