// SPDX-License-Identifier: Apache-2.0
//
// A host group of several lanes that plays a warp in tests. The lanes take turns on one thread, but
// ThreadSanitizer takes each for a thread of its own. Values are exchanged by relaxed accesses and
// waiting orders nothing, so that it still sees what a missing sync() would break on a GPU. sync()
// does order memory.
#pragma once

#include "simt/turns.h"

#if !defined(__CUDA_ARCH__)
#include <array>
#include <atomic>
#endif

namespace gofs::simt {

#if !defined(__CUDA_ARCH__)

class Team {
 public:
  Team(uint32_t size, LaneTurns& turns) : size_(size), turns_(turns) {
    GOFS_ASSERT(size >= 1 && size <= kSizeMax);
  }
  uint32_t size() const { return size_; }

  /// Orders all memory accesses of the team before it with all after it.
  void sync() {
    // A lane may be at the next barrier when another one goes on behind this. Each has a word of
    // its own, or the other would be ordered behind what the first did in between, which hides
    // that a sync() is missing there.
    std::atomic<uint32_t>& order = order_[arrived_.load(std::memory_order_relaxed) / size_ % 2];
    order.fetch_add(1, std::memory_order_release);  // [T2]
    arrive();
    order.load(std::memory_order_acquire);  // [T2]
  }

  uint64_t read_from(uint32_t self, uint64_t value, uint32_t rank) {
    publish(self, value);
    const uint64_t theirs = words_[rank].load(std::memory_order_relaxed);
    arrive();
    return theirs;
  }

  template <typename Predicate>
  uint32_t gather_mask(uint32_t self, uint64_t value, Predicate predicate) {
    publish(self, value);
    uint32_t mask = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      if (predicate(words_[rank].load(std::memory_order_relaxed))) mask |= 1u << rank;
    }
    arrive();
    return mask;
  }

  static constexpr uint32_t kSizeMax = 32;

 private:
  void publish(uint32_t self, uint64_t value) {
    words_[self].store(value, std::memory_order_relaxed);
    arrive();
  }

  void arrive() {
    const uint64_t arrived = arrived_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (arrived % size_ == 0) {
      turns_.release_all();
    } else {
      turns_.wait();
    }
  }

  const uint32_t size_;
  LaneTurns& turns_;
  std::array<std::atomic<uint64_t>, kSizeMax> words_{};
  std::atomic<uint64_t> arrived_{0};  // at all barriers so far
  std::array<std::atomic<uint32_t>, 2> order_{};
};

#else
class Team;
#endif

/// The number of the calling worker, set by run_workers; 0 elsewhere.
#if !defined(__CUDA_ARCH__)
inline thread_local uint32_t host_worker = 0;
inline uint32_t host_worker_index() { return host_worker; }
#endif

}  // namespace gofs::simt
