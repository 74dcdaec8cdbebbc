// SPDX-License-Identifier: Apache-2.0
//
// The two memories of the CUDA backend: the GPU's own, and pinned host memory that both sides reach by
// the same pointer. Host only.
#pragma once

#include <cuda_runtime.h>

#include <new>

#include "simt/memory.h"

namespace gofs::gpu {

class DeviceMemorySpace final : public simt::MemorySpace {
 public:
  void* allocate(size_t bytes) override {
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes == 0 ? 1 : bytes) != cudaSuccess) throw std::bad_alloc();
    if (cudaMemset(memory, 0, bytes) != cudaSuccess) {
      cudaFree(memory);
      throw std::bad_alloc();
    }
    return memory;
  }
  void release(void* memory) override { cudaFree(memory); }
  void write(void* target, const void* host_source, size_t bytes) override {
    cudaMemcpy(target, host_source, bytes, cudaMemcpyHostToDevice);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    cudaMemcpy(host_target, source, bytes, cudaMemcpyDeviceToHost);
  }
};

class PinnedMemorySpace final : public simt::MemorySpace {
 public:
  void* allocate(size_t bytes) override {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes == 0 ? 1 : bytes,
                      cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess) {
      throw std::bad_alloc();
    }
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release(void* memory) override { cudaFreeHost(memory); }
  void write(void* target, const void* host_source, size_t bytes) override {
    std::memcpy(target, host_source, bytes);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    std::memcpy(host_target, source, bytes);
  }
};

}  // namespace gofs::gpu
