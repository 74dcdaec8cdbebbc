// SPDX-License-Identifier: Apache-2.0
//
// The two memories of the CUDA backend: the GPU's own, and pinned host memory that both sides reach
// by the same pointer. After a fault of the context nothing can be freed, or only by the end of the
// process; what is pinned stays where it is, and the host may read it. Host only.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstring>
#include <new>
#include <unordered_map>

#include "gpu/context_health.h"
#include "gpu/copy_stream.h"
#include "gpu/late_frees.h"
#include "gpu/own_calls.h"
#include "simt/memory.h"

namespace gofs::gpu {

class DeviceMemorySpace final : public simt::MemorySpace {
 public:
  DeviceMemorySpace(ContextHealth& health, LaunchCount& launches)
      : health_(health), frees_(launches, [](void* memory) {
          const OwnCalls own;
          (void)cudaFree(memory);
        }) {}
  /// What was released while launches were under way.
  void free_late() { frees_.free_all(); }
  uint64_t bytes_taken() const override { return bytes_taken_.load(std::memory_order_relaxed); }
  void write(void* target, const void* host_source, size_t bytes) override {
    if (health_.lost()) return;
    health_.note(copies_.copy(target, host_source, bytes), "copy to the GPU");
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    const bool copied = !health_.lost() && health_.note(copies_.copy(host_target, source, bytes),
                                                        "copy from the GPU") == cudaSuccess;
    if (!copied) std::memset(host_target, 0, bytes);
  }
  /// Of any memory of the GPU. Whether it was done.
  bool zero(void* target, size_t bytes) {
    return !health_.lost() &&
           health_.note(copies_.zero(target, bytes), "memory on the GPU") == cudaSuccess;
  }

 protected:
  Taken take(size_t bytes) override {
    // cudaMalloc aligns to 256 bytes; NVMe queues begin on a page.
    if (bytes > SIZE_MAX - kBlockBytes) throw std::bad_alloc();
    Whole whole{nullptr, bytes + kBlockBytes};
    const OwnCalls own;
    whole.begin = frees_.take_back(whole.bytes);
    if (whole.begin == nullptr &&
        (health_.lost() ||
         health_.note(cudaMalloc(&whole.begin, whole.bytes), "memory on the GPU") != cudaSuccess)) {
      throw std::bad_alloc();
    }
    if (!zero(whole.begin, whole.bytes)) {
      frees_.free(whole.begin, whole.bytes);
      throw std::bad_alloc();
    }
    void* const aligned = reinterpret_cast<void*>(
        simt::align_up(reinterpret_cast<uint64_t>(whole.begin), kBlockBytes));
    whole_[aligned] = whole;
    bytes_taken_.fetch_add(whole.bytes, std::memory_order_relaxed);
    return {aligned, whole.bytes};
  }
  void release_taken(void* memory) override {
    const auto found = whole_.find(memory);
    if (found == whole_.end()) return;
    bytes_taken_.fetch_sub(found->second.bytes, std::memory_order_relaxed);
    frees_.free(found->second.begin, found->second.bytes);
    whole_.erase(found);
  }

 private:
  /// What cudaMalloc gave.
  struct Whole {
    void* begin;
    uint64_t bytes;
  };

  ContextHealth& health_;
  CopyStream copies_;
  LateFrees frees_;
  std::unordered_map<void*, Whole> whole_;  // of each allocation
  std::atomic<uint64_t> bytes_taken_{0};
};

class PinnedMemorySpace final : public simt::MemorySpace {
 public:
  PinnedMemorySpace(ContextHealth& health, LaunchCount& launches)
      : health_(health), frees_(launches, [](void* memory) {
          const OwnCalls own;
          (void)cudaFreeHost(memory);
        }) {}
  /// What was released while launches were under way.
  void free_late() { frees_.free_all(); }
  uint64_t bytes_taken() const override { return bytes_taken_.load(std::memory_order_relaxed); }
  void write(void* target, const void* host_source, size_t bytes) override {
    std::memcpy(target, host_source, bytes);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    std::memcpy(host_target, source, bytes);
  }

 protected:
  Taken take(size_t bytes) override {
    void* memory = nullptr;
    if (bytes == 0) bytes = 1;
    constexpr unsigned int kFlags = cudaHostAllocMapped | cudaHostAllocPortable;
    const OwnCalls own;
    memory = frees_.take_back(bytes);
    if (memory == nullptr && (health_.lost() || health_.note(cudaHostAlloc(&memory, bytes, kFlags),
                                                             "pinned memory") != cudaSuccess)) {
      throw std::bad_alloc();
    }
    std::memset(memory, 0, bytes);
    sizes_[memory] = bytes;
    bytes_taken_.fetch_add(bytes, std::memory_order_relaxed);
    return {memory, bytes};
  }
  void release_taken(void* memory) override {
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    bytes_taken_.fetch_sub(found->second, std::memory_order_relaxed);
    frees_.free(memory, found->second);
    sizes_.erase(found);
  }

 private:
  ContextHealth& health_;
  LateFrees frees_;
  std::unordered_map<void*, uint64_t> sizes_;
  std::atomic<uint64_t> bytes_taken_{0};
};

}  // namespace gofs::gpu
