// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.hpp, in builds with CUDA.
#pragma once

#include "kernels/body.h"

namespace gofs::bench::gpu_kernels {

extern const kernels::GpuKernel kBlockMap;
extern const kernels::GpuKernel kCompanionRead;
extern const kernels::GpuKernel kCompanionWrite;
extern const kernels::GpuKernel kRpc;
extern const kernels::GpuKernel kStampSlots;
extern const kernels::GpuKernel kCheckSlots;

}  // namespace gofs::bench::gpu_kernels
