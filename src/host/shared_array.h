// SPDX-License-Identifier: Apache-2.0
//
// Memory of a backend that lives as long as its object.
#pragma once

#include <cstddef>
#include <utility>

#include "simt/memory.h"

namespace gofs::host {

/// Memory of the backend that host and warps share; freed when it goes.
template <typename T>
class SharedArray {
 public:
  /// Throws std::bad_alloc. Zeroed.
  SharedArray(simt::MemorySpace& memory, size_t count)
      : memory_(&memory), data_(memory.allocate_array<T>(count)), count_(count) {}
  ~SharedArray() {
    if (data_ != nullptr) memory_->release(data_);
  }
  SharedArray(SharedArray&& other) noexcept
      : memory_(other.memory_), data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  SharedArray& operator=(SharedArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  /// Only of memory that the host reaches.
  T& operator[](size_t index) const { return data_[index]; }

 private:
  simt::MemorySpace* memory_;
  T* data_;
  size_t count_;
};

}  // namespace gofs::host
