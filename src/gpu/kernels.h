// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in work/bodies.h, in builds with CUDA. Host only.
#pragma once

#include "work/body.h"

namespace gofs::gpu::kernels {

extern const work::GpuKernel kMount;
extern const work::GpuKernel kBeginWriting;
extern const work::GpuKernel kUnmount;
extern const work::GpuKernel kCall;
extern const work::GpuKernel kHashFiles;
extern const work::GpuKernel kBatch;
extern const work::GpuKernel kInodes;
extern const work::GpuKernel kClean;
extern const work::GpuKernel kClock;
extern const work::GpuKernel kHold;

}  // namespace gofs::gpu::kernels
