// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU for kernels of several processes: CUDA's virtual memory management, handed over
// as a file descriptor. Host only.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "ssd/descriptor.h"

namespace gofs::gpu {

/// As Backend::share_memory(), on GPU `device`.
std::unique_ptr<kernels::SharedWarpMemory> share_gpu_memory(int device, uint64_t bytes);

/// As Backend::map_shared_memory().
std::unique_ptr<kernels::SharedWarpMemory> map_gpu_memory(int device, ssd::Descriptor descriptor,
                                                          uint64_t bytes);

/// The same of memory in which kernels of two processes do not wait for each other.
std::unique_ptr<kernels::SharedWarpMemory> import_gpu_memory(int device, ssd::Descriptor descriptor,
                                                             uint64_t bytes);

}  // namespace gofs::gpu
