// SPDX-License-Identifier: Apache-2.0
//
// A host group of several lanes that plays a warp in tests. The lanes take turns on one thread, but
// ThreadSanitizer takes each for a thread of its own. Values are exchanged by relaxed accesses and
// waiting orders nothing, so that it still sees what a missing sync() would break on a GPU. sync()
// does order memory.
#pragma once

#include "simt/turns.h"

#if !defined(__CUDA_ARCH__)
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

  /// Bit i: the lane of rank i votes with true. All have read the votes before one votes again.
  uint32_t vote(uint32_t self, bool yes) {
    const uint32_t bit = 1u << self;
    if (yes) {
      votes_.fetch_or(bit, std::memory_order_relaxed);
    } else {
      votes_.fetch_and(~bit, std::memory_order_relaxed);
    }
    arrive();
    const uint32_t votes = votes_.load(std::memory_order_relaxed);
    arrive();
    return votes;
  }

  /// Bit i: the lane of rank i has the same value.
  uint32_t match(uint32_t self, uint64_t value) {
    publish(self, value);
    uint32_t mask = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      if (words_[rank].load(std::memory_order_relaxed) == value) mask |= 1u << rank;
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
  std::atomic<uint64_t> words_[kSizeMax]{};
  std::atomic<uint32_t> votes_{0};
  std::atomic<uint64_t> arrived_{0};  // at all barriers so far
  std::atomic<uint32_t> order_[2]{};
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
