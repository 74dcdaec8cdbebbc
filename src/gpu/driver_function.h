// SPDX-License-Identifier: Apache-2.0
//
// Functions of libcuda, which comes with the driver and is not linked.
#pragma once

#include <cuda_runtime.h>

namespace gofs::gpu {

/// The driver's function of this name, as CUDA had it first in version `since`; null where the
/// driver is older. By a thread that has OwnCalls.
template <typename Function>
Function find_driver_function(const char* name, unsigned int since) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
  const bool there = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return there ? reinterpret_cast<Function>(function) : nullptr;
}

}  // namespace gofs::gpu
