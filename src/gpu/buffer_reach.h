// SPDX-License-Identifier: Apache-2.0
//
// How kernels reach a buffer of the program, as CUDA knows it.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace gofs::gpu {

/// From kernels on GPU `device`. By a thread that has OwnCalls.
kernels::BufferReach reach_of(int device, const void* memory, uint64_t bytes);

}  // namespace gofs::gpu
