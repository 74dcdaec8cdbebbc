// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.hpp, in builds with CUDA.
#pragma once

#include "work/body.h"

namespace gofs::bench::kernels {

extern const work::GpuKernel kBlockMap;
extern const work::GpuKernel kCompanionRead;
extern const work::GpuKernel kCompanionWrite;
extern const work::GpuKernel kRpc;
extern const work::GpuKernel kStampSlots;
extern const work::GpuKernel kCheckSlots;

}  // namespace gofs::bench::kernels
