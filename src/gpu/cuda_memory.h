// SPDX-License-Identifier: Apache-2.0
//
// The two memories of the CUDA backend: the GPU's own, and pinned host memory that both sides reach
// by the same pointer. Host only.
#pragma once

#include <cuda_runtime.h>

#include <new>
#include <unordered_map>

#include "gpu/copy_stream.h"
#include "simt/memory.h"

namespace gofs::gpu {

class DeviceMemorySpace final : public simt::MemorySpace {
 public:
  void* allocate(size_t bytes) override {
    // cudaMalloc aligns to 256 bytes; NVMe queues begin on a page.
    void* whole = nullptr;
    const size_t padded = bytes + kBlockBytes;
    if (cudaMalloc(&whole, padded) != cudaSuccess) throw std::bad_alloc();
    if (copies_.zero(whole, padded) != cudaSuccess) {
      cudaFree(whole);
      throw std::bad_alloc();
    }
    void* const aligned =
        reinterpret_cast<void*>(simt::align_up(reinterpret_cast<uint64_t>(whole), kBlockBytes));
    whole_[aligned] = whole;
    return aligned;
  }
  void release(void* memory) override {
    const auto found = whole_.find(memory);
    if (found == whole_.end()) return;
    cudaFree(found->second);
    whole_.erase(found);
  }
  void write(void* target, const void* host_source, size_t bytes) override {
    copies_.copy(target, host_source, bytes);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    copies_.copy(host_target, source, bytes);
  }

 private:
  CopyStream copies_;
  std::unordered_map<void*, void*> whole_;  // what cudaMalloc gave for each allocation
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
