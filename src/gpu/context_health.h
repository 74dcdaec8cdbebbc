// SPDX-License-Identifier: Apache-2.0
//
// Whether this process can use its GPU still. A fault of any kernel ends the CUDA context: every
// call fails from then on, with the same error, and what the GPU's memory held is lost. Whichever
// call of the backend meets it first notes it here. Host only; from any thread.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <mutex>
#include <string>

#include "gpu/cuda_error.h"

namespace gofs::gpu {

/// Whether it is the context that has failed, and not the one call: nothing helps then. Those that
/// are listed say something of the call, or of memory that may be had another time.
inline bool ends_context(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
    case cudaErrorNotReady:
    case cudaErrorMemoryAllocation:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorNotSupported:
    case cudaErrorNotPermitted:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent:
      return false;
    default:
      return true;
  }
}

/// Whether it is what a kernel did that has ended the context, as far as the error shows.
inline bool is_fault(cudaError_t error) {
  switch (error) {
    case cudaErrorLaunchTimeout:
    case cudaErrorIllegalAddress:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
      return true;
    default:
      return false;
  }
}

class ContextHealth {
 public:
  /// Gives `error`, of which it keeps the first that ends the context.
  cudaError_t note(cudaError_t error, const char* what) {
    if (ends_context(error)) keep(error, what);
    return error;
  }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// Empty: it works.
  std::string words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

 private:
  void keep(cudaError_t error, const char* what) {
    const std::lock_guard lock(mutex_);
    if (words_.empty()) words_ = cuda_error_text(error, what);
    lost_.store(true, std::memory_order_release);
  }

  mutable std::mutex mutex_;
  std::string words_;
  std::atomic<bool> lost_{false};
};

}  // namespace gofs::gpu
