// SPDX-License-Identifier: Apache-2.0
//
// Which allocation an address of a GPU is in. Host only.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "gpu/driver_function.h"

namespace gofs::gpu {

/// False: the driver knows of none. By a thread that has OwnCalls.
inline bool allocation_of(const void* address, const uint8_t*& begin, size_t& bytes) {
  using GetAddressRange = CUresult (*)(CUdeviceptr*, size_t*, CUdeviceptr);
  static const auto get_range = find_driver_function<GetAddressRange>("cuMemGetAddressRange", 3020);
  CUdeviceptr base = 0;
  if (get_range == nullptr ||
      get_range(&base, &bytes, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS) {
    return false;
  }
  begin = reinterpret_cast<const uint8_t*>(base);
  return true;
}

}  // namespace gofs::gpu
