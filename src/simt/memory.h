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
#include <vector>

#include "simt/atomic.h"

#if defined(GOFS_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

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

namespace detail {

/// Makes AddressSanitizer report accesses to a range; nothing without it.
inline void forbid_access([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(GOFS_ADDRESS_SANITIZER)
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

}  // namespace detail

/// Ordinary memory, for the CPU backend. Large arenas come from calloc as untouched zero pages, so
/// that mounting costs what it uses and not what it reserves.
class HostMemorySpace final : public MemorySpace {
 public:
  void* allocate(size_t bytes) override {
    constexpr size_t kSlack = kBlockBytes + sizeof(void*);
    if (bytes > SIZE_MAX - kSlack) throw std::bad_alloc();
    void* const raw = std::calloc(1, bytes + kSlack);
    if (raw == nullptr) throw std::bad_alloc();
    // The aligned memory, and right before it what free() wants to have back.
    const uintptr_t begin = align_up(reinterpret_cast<uintptr_t>(raw) + sizeof(void*), kBlockBytes);
    auto* const memory = reinterpret_cast<uint8_t*>(begin);
    std::memcpy(memory - sizeof(void*), &raw, sizeof(void*));
    const uintptr_t end = reinterpret_cast<uintptr_t>(raw) + bytes + kSlack;
    detail::forbid_access(memory + bytes, end - (begin + bytes));
    return memory;
  }
  void release(void* memory) override {
    if (memory == nullptr) return;
    void* raw;
    std::memcpy(&raw, static_cast<uint8_t*>(memory) - sizeof(void*), sizeof(void*));
    std::free(raw);
  }
  void write(void* target, const void* host_source, size_t bytes) override {
    std::memcpy(target, host_source, bytes);
  }
  void read(void* host_target, const void* source, size_t bytes) override {
    // A word is read as one: warps may be at it.
    if (bytes == 8 && reinterpret_cast<uintptr_t>(source) % 8 == 0) {
      const uint64_t word = load_relaxed(*static_cast<const uint64_t*>(source));
      std::memcpy(host_target, &word, bytes);
    } else if (bytes == 4 && reinterpret_cast<uintptr_t>(source) % 4 == 0) {
      const uint32_t word = load_relaxed(*static_cast<const uint32_t*>(source));
      std::memcpy(host_target, &word, bytes);
    } else {
      std::memcpy(host_target, source, bytes);
    }
  }
};

}  // namespace gofs::simt
