// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU that another process has for its kernels. Host only.
#pragma once

#include <memory>

#include "gpu/late_frees.h"
#include "kernels/backend.h"

namespace gofs::gpu {

/// Lets go what cudaIpcOpenMemHandle gave, which CUDA does only while no kernel runs.
void close_foreign_memory(void* memory);

/// As Backend::reach_foreign(), on GPU `device`. `closes`: by close_foreign_memory(), outlives it.
std::unique_ptr<kernels::WarpMemory> reach_foreign_memory(int device, kernels::ForeignMemory memory,
                                                          LateFrees& closes);

}  // namespace gofs::gpu
