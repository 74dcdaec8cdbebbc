// SPDX-License-Identifier: Apache-2.0
//
// CUDA runtime errors as text. Host only.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace gofs::gpu {

/// Empty for success, else "what: CUDA's words".
inline std::string cuda_error_text(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) +
         ")";
}

}  // namespace gofs::gpu
