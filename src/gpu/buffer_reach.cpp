// SPDX-License-Identifier: Apache-2.0
#include "gpu/buffer_reach.h"

#include <cuda_runtime.h>

#include <string>

#include "gpu/allocation.h"

namespace gofs::gpu {

namespace {

/// One byte: one of a GPU's, or one of the host's that kernels reach by the same address.
bool reaches(int device, const void* byte, bool& is_device_memory, std::string& problem) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, byte) != cudaSuccess) return false;
  is_device_memory = attributes.type == cudaMemoryTypeDevice;
  if (is_device_memory && attributes.device != device) {
    problem = "the buffer is memory of GPU " + std::to_string(attributes.device) +
              ", and the volume is on GPU " + std::to_string(device);
    return false;
  }
  return attributes.type != cudaMemoryTypeUnregistered && attributes.devicePointer == byte;
}

}  // namespace

kernels::BufferReach reach_of(int device, const void* memory, uint64_t bytes) {
  const auto* const first = static_cast<const uint8_t*>(memory);
  kernels::BufferReach reach{false, {}, first, first + bytes};
  bool is_device_memory = false;
  reach.reached = reaches(device, first, is_device_memory, reach.problem);
  const uint8_t* begin = nullptr;
  size_t whole = 0;
  if (reach.reached && is_device_memory && allocation_of(first, begin, whole) &&
      bytes <= static_cast<size_t>(begin + whole - first)) {
    reach.begin = begin;
    reach.end = begin + whole;
    return reach;
  }
  if (bytes < 2) return reach;
  // It may go on in the next allocation, where memory was reserved and mapped piece by piece.
  bool end_is_device_memory = false;
  const bool end_reached = reaches(device, first + bytes - 1, end_is_device_memory, reach.problem);
  if (end_reached == reach.reached && end_is_device_memory == is_device_memory) return reach;
  reach.reached = false;
  if (reach.problem.empty()) reach.problem = "the buffer ends before the range does";
  return reach;
}

}  // namespace gofs::gpu
