// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in kernels/bodies.h, in builds with CUDA. Host only.
#pragma once

#include "kernels/body.h"

namespace gofs::gpu::gpu_kernels {

extern const kernels::GpuKernel kMount;
extern const kernels::GpuKernel kReadSegments;
extern const kernels::GpuKernel kBeginWriting;
extern const kernels::GpuKernel kUnmount;
extern const kernels::GpuKernel kCall;
extern const kernels::GpuKernel kCalls;
extern const kernels::GpuKernel kHashFiles;
extern const kernels::GpuKernel kBatch;
extern const kernels::GpuKernel kRanges;
extern const kernels::GpuKernel kInodes;
extern const kernels::GpuKernel kClean;
extern const kernels::GpuKernel kClock;
extern const kernels::GpuKernel kHold;

}  // namespace gofs::gpu::gpu_kernels
