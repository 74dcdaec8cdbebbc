// SPDX-License-Identifier: Apache-2.0
//
// Filling and copying the GPU's memory from the host: done when the call returns, so that a kernel
// in any stream that is launched afterwards sees it. The CUDA runtime's plain cudaMemset() promises
// no such thing, nor does cudaMemcpy() of a little pageable memory: both may still be under way in
// the default stream, which ours do not wait for. Nor do these calls wait for a kernel that the
// program runs in the default stream, and which may be waiting for us. Host only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "gpu/own_calls.h"

namespace gofs::gpu {

class CopyStream {
 public:
  CopyStream() {
    const OwnCalls own;
    error_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  ~CopyStream() {
    const OwnCalls own;
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  cudaError_t zero(void* target, size_t bytes) {
    return finish([&] { return cudaMemsetAsync(target, 0, bytes, stream_); });
  }
  /// Between any two of the host's memory and the GPU's.
  cudaError_t copy(void* target, const void* source, size_t bytes) {
    return finish(
        [&] { return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_); });
  }

 private:
  template <typename Start>
  cudaError_t finish(Start start) {
    if (error_ != cudaSuccess) return error_;
    const OwnCalls own;
    const cudaError_t started = start();
    return started != cudaSuccess ? started : cudaStreamSynchronize(stream_);
  }

  cudaStream_t stream_ = nullptr;
  cudaError_t error_ = cudaSuccess;  // of making the stream
};

}  // namespace gofs::gpu
