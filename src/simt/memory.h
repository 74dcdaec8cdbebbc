// SPDX-License-Identifier: Apache-2.0
//
// Where a backend keeps its state. The host lays out structures in a MemorySpace and fills them
// through write(); it never dereferences what allocate() gave it, which may be GPU memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "simt/platform.h"

namespace gofs::simt {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  /// Zeroed memory aligned to a block, as whatever runs afterwards sees it. Throws std::bad_alloc.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  /// Whatever runs afterwards sees what was written.
  virtual void write(void* target, const void* host_source, size_t bytes) = 0;
  virtual void read(void* host_target, const void* source, size_t bytes) = 0;

  template <typename T>
  T* allocate_array(size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kBlockBytes);
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
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

/// Arrays in one memory space that go together, also when the last of them cannot be had.
class Allocations {
 public:
  explicit Allocations(MemorySpace& memory) : memory_(memory) {}
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;
  ~Allocations() {
    for (void* allocation : allocations_) memory_.release(allocation);
  }

  /// Zeroed. Throws std::bad_alloc.
  template <typename T>
  T* take(uint64_t count) {
    allocations_.push_back(nullptr);
    T* const array = memory_.allocate_array<T>(count);
    allocations_.back() = array;
    return array;
  }

 private:
  MemorySpace& memory_;
  std::vector<void*> allocations_;
};

}  // namespace gofs::simt
