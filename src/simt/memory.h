// SPDX-License-Identifier: Apache-2.0
//
// Where a backend keeps its state. The host lays out structures in a MemorySpace and fills them
// through write(); it never dereferences what allocate() gave it, which may be GPU memory.
//
// What is freed is known here and not looked up in that memory, which kernels of a program may have
// written over, and which cannot be read from a GPU that has failed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "simt/memory_part.h"
#include "simt/platform.h"

namespace gofs::simt {

/// Bytes of each MemoryPart.
using MemoryBytes = std::array<uint64_t, kMemoryParts>;

/// Allocates from several threads; what for is kept with each allocation.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  /// Zeroed memory aligned to a block, as whatever runs afterwards sees it. Throws std::bad_alloc.
  void* allocate(size_t bytes, MemoryPart part = MemoryPart::kCalls) {
    const std::lock_guard lock(mutex_);
    const Taken taken = take(bytes);
    try {
      records_.emplace(taken.memory, Record{part, part, taken.bytes, 0});
    } catch (...) {
      release_taken(taken.memory);
      throw;
    }
    bytes_[index_of(part)] += taken.bytes;
    return taken.memory;
  }
  /// Nothing happens where it is null.
  void release(void* memory) {
    if (memory == nullptr) return;
    const std::lock_guard lock(mutex_);
    release_locked(memory);
  }
  /// Has `memory`, which allocate() gave and no other thread releases, go with `owner`, whatever
  /// that is. Gives `memory`. Throws std::bad_alloc, and then has released it.
  void* give_to(const void* owner, void* memory) {
    const std::lock_guard lock(mutex_);
    try {
      belongings_[owner].push_back(memory);
    } catch (...) {
      release_locked(memory);
      throw;
    }
    return memory;
  }
  /// Allocates an array that goes with `owner`. Throws std::bad_alloc.
  template <typename T>
  T* allocate_for(const void* owner, size_t count, MemoryPart part) {
    return static_cast<T*>(give_to(owner, allocate_array<T>(count, part)));
  }
  /// Releases what was given to `owner`.
  void release_belongings(const void* owner) {
    const std::lock_guard lock(mutex_);
    const auto found = belongings_.find(owner);
    if (found == belongings_.end()) return;
    for (void* memory : found->second) release_locked(memory);
    belongings_.erase(found);
  }
  /// Counts `bytes` of `memory`, which allocate() gave, as another part's: an array may hold what
  /// belongs to two. Once for each.
  void count_as(void* memory, MemoryPart other, size_t bytes) {
    const std::lock_guard lock(mutex_);
    Record& record = records_.at(memory);
    record.other = other;
    record.other_bytes = bytes;
    bytes_[index_of(record.part)] -= bytes;
    bytes_[index_of(other)] += bytes;
  }
  /// What is allocated now, with what the allocator adds to be aligned.
  MemoryBytes bytes_by_part() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  /// The same in all, by the allocator's own account.
  virtual uint64_t bytes_taken() const = 0;

  /// Whatever runs afterwards sees what was written. Where the memory's contents are lost, since
  /// the GPU has failed, nothing is written, and zeros are read.
  virtual void write(void* target, const void* host_source, size_t bytes) = 0;
  virtual void read(void* host_target, const void* source, size_t bytes) = 0;

  template <typename T>
  T* allocate_array(size_t count, MemoryPart part = MemoryPart::kCalls) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kBlockBytes);
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate(count * sizeof(T), part));
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

 protected:
  struct Taken {
    void* memory;
    uint64_t bytes;  // all that it costs
  };
  /// One at a time.
  virtual Taken take(size_t bytes) = 0;
  virtual void release_taken(void* memory) = 0;

 private:
  struct Record {
    MemoryPart part;
    MemoryPart other;  // whose `other_bytes` of `bytes` are
    uint64_t bytes;
    uint64_t other_bytes;
  };
  static size_t index_of(MemoryPart part) { return static_cast<size_t>(part); }
  void release_locked(void* memory) {
    const auto found = records_.find(memory);
    GOFS_ASSERT(found != records_.end());
    const Record& record = found->second;
    bytes_[index_of(record.part)] -= record.bytes - record.other_bytes;
    bytes_[index_of(record.other)] -= record.other_bytes;
    records_.erase(found);
    release_taken(memory);
  }

  mutable std::mutex mutex_;
  std::unordered_map<void*, Record> records_;
  std::unordered_map<const void*, std::vector<void*>> belongings_;
  MemoryBytes bytes_{};
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
  T* take(uint64_t count, MemoryPart part) {
    allocations_.push_back(nullptr);
    T* const array = memory_.allocate_array<T>(count, part);
    allocations_.back() = array;
    return array;
  }

 private:
  MemorySpace& memory_;
  std::vector<void*> allocations_;
};

}  // namespace gofs::simt
