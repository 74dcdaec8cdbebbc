// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.h, in builds with CUDA. Host only.
#pragma once

#include "work/body.h"

namespace gofs::bench::kernels {

extern const work::GpuKernel kRawRead;
extern const work::GpuKernel kFileRead;
extern const work::GpuKernel kWideRead;
extern const work::GpuKernel kRawWrite;
extern const work::GpuKernel kFileWrite;
extern const work::GpuKernel kWriteAndSync;
extern const work::GpuKernel kNames;
extern const work::GpuKernel kFiles;

}  // namespace gofs::bench::kernels
