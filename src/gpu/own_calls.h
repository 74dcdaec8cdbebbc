// SPDX-License-Identifier: Apache-2.0
//
// Calls of CUDA that are ours and not the program's: it does not find their errors as its thread's
// last one, and a graph that another of its threads captures neither forbids them nor is ended by
// them. Host only.
#pragma once

#include <cuda_runtime.h>

namespace gofs::gpu {

/// Around calls that name no stream which could be captured. They may be one in the other.
class OwnCalls {
 public:
  OwnCalls() : error_before_(cudaPeekAtLastError()) {
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~OwnCalls() {
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    // One that the program has not asked for yet is left.
    if (error_before_ == cudaSuccess) (void)cudaGetLastError();
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  const cudaError_t error_before_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // and then that of the program
};

}  // namespace gofs::gpu
