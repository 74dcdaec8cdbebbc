// SPDX-License-Identifier: Apache-2.0
//
// Where a backend keeps its state. The host lays out structures in a MemorySpace and fills them
// through write(); it never dereferences what allocate() gave it, which may be GPU memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "simt/platform.h"

namespace gofs::simt {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  /// Zeroed memory aligned to a block. Throws std::bad_alloc.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void write(void* target, const void* host_source, size_t bytes) = 0;
  virtual void read(void* host_target, const void* source, size_t bytes) = 0;

  template <typename T>
  T* allocate_array(size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kBlockBytes);
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  template <typename T>
  void write_object(T* target, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(target, &value, sizeof(T));
  }
  template <typename T>
  T read_object(const T* source) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    read(&value, source, sizeof(T));
    return value;
  }
};

/// Ordinary memory, for the CPU backend.
class HostMemorySpace final : public MemorySpace {
 public:
  void* allocate(size_t bytes) override {
    const size_t rounded = align_up(bytes == 0 ? 1 : bytes, kBlockBytes);
    void* memory = std::aligned_alloc(kBlockBytes, rounded);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, rounded);
    return memory;
  }
  void release(void* memory) override { std::free(memory); }
  void write(void* target, const void* host_source, size_t bytes) override {
    std::memcpy(target, host_source, bytes);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    std::memcpy(host_target, source, bytes);
  }
};

}  // namespace gofs::simt
