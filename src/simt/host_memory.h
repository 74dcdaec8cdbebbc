// SPDX-License-Identifier: Apache-2.0
//
// Ordinary memory as a MemorySpace, for the CPU backend and for tests.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "simt/atomic.h"
#include "simt/memory.h"

#if defined(GOFS_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace gofs::simt {

/// Large arenas are mappings of their own, so that they cost what is used of them and not what they
/// reserve. AddressSanitizer reports who goes beyond the end of an arena.
class HostMemorySpace final : public MemorySpace {
 public:
  uint64_t bytes_taken() const override { return bytes_taken_.load(std::memory_order_relaxed); }
  void write(void* target, const void* host_source, size_t bytes) override {
    // A word is written as one: warps may look at it.
    if (bytes == 4 && reinterpret_cast<uintptr_t>(target) % 4 == 0) {
      uint32_t word = 0;
      std::memcpy(&word, host_source, bytes);
      store_relaxed(*static_cast<uint32_t*>(target), word);
    } else {
      std::memcpy(target, host_source, bytes);
    }
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

 protected:
  Taken take(size_t bytes) override {
    // In front of the aligned memory is what release_taken() wants to know.
    constexpr size_t kSlack = 2 * kBlockBytes;
    if (bytes > SIZE_MAX - kSlack) throw std::bad_alloc();
    Block block{nullptr, bytes + kSlack, bytes + kSlack >= kMappedBytes};
    if (block.mapped) {
      block.begin =
          ::mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (block.begin == MAP_FAILED) throw std::bad_alloc();
    } else {
      block.begin = std::calloc(1, block.bytes);
      if (block.begin == nullptr) throw std::bad_alloc();
    }
    const auto begin = reinterpret_cast<uintptr_t>(block.begin);
    const uintptr_t aligned = align_up(begin + sizeof(Block), kBlockBytes);
    auto* const memory = reinterpret_cast<uint8_t*>(aligned);
    std::memcpy(memory - sizeof(Block), &block, sizeof(Block));
    forbid_access(memory + bytes, begin + block.bytes - (aligned + bytes));
    bytes_taken_.fetch_add(block.bytes, std::memory_order_relaxed);
    return {memory, block.bytes};
  }
  void release_taken(void* memory) override {
    Block block;
    std::memcpy(&block, static_cast<uint8_t*>(memory) - sizeof(Block), sizeof(Block));
    bytes_taken_.fetch_sub(block.bytes, std::memory_order_relaxed);
    if (!block.mapped) {
      std::free(block.begin);
      return;
    }
    allow_access(block.begin, block.bytes);  // to whoever is mapped there next
    ::munmap(block.begin, block.bytes);
  }

 private:
  static constexpr size_t kMappedBytes = size_t{128} << 10;

  /// What was asked for: of calloc(), or of mmap().
  struct Block {
    void* begin;
    size_t bytes;
    bool mapped;
  };

  static void forbid_access([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(GOFS_ADDRESS_SANITIZER)
    ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
  }
  static void allow_access([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(GOFS_ADDRESS_SANITIZER)
    ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
  }

  std::atomic<uint64_t> bytes_taken_{0};
};

}  // namespace gofs::simt
