// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.h, in builds with CUDA. Host only.
#pragma once

#include "kernels/body.h"

namespace gofs::bench::gpu_kernels {

extern const kernels::GpuKernel kRawRead;
extern const kernels::GpuKernel kFileRead;
extern const kernels::GpuKernel kWideRead;
extern const kernels::GpuKernel kRawWrite;
extern const kernels::GpuKernel kFileWrite;
extern const kernels::GpuKernel kWriteAndSync;
extern const kernels::GpuKernel kNames;
extern const kernels::GpuKernel kStream;
extern const kernels::GpuKernel kRecords;
extern const kernels::GpuKernel kFiles;

}  // namespace gofs::bench::gpu_kernels
