// SPDX-License-Identifier: Apache-2.0
//
// A host group of several threads that plays a warp in tests. Values are exchanged by relaxed
// accesses and a relaxed barrier, so that an exchange does not order other memory and
// ThreadSanitizer still sees what a missing sync() would break on a GPU. sync() does order memory.
#pragma once

#include "simt/clock.h"

#if !defined(__CUDA_ARCH__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <climits>
#endif

namespace gofs::simt {

#if !defined(__CUDA_ARCH__)

class Team {
 public:
  explicit Team(uint32_t size) : size_(size) { GOFS_ASSERT(size >= 1 && size <= kSizeMax); }
  uint32_t size() const { return size_; }

  /// Orders all memory accesses of the team before it with all after it.
  void sync() { arrive(std::memory_order_acq_rel, std::memory_order_acquire); }

  uint64_t read_from(uint32_t self, uint64_t value, uint32_t rank) {
    publish(self, value);
    const uint64_t theirs = words_[rank].value.load(std::memory_order_relaxed);
    arrive(std::memory_order_relaxed, std::memory_order_relaxed);
    return theirs;
  }

  template <typename Predicate>
  uint32_t gather_mask(uint32_t self, uint64_t value, Predicate predicate) {
    publish(self, value);
    uint32_t mask = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      if (predicate(words_[rank].value.load(std::memory_order_relaxed))) mask |= 1u << rank;
    }
    arrive(std::memory_order_relaxed, std::memory_order_relaxed);
    return mask;
  }

 private:
  static constexpr uint32_t kSizeMax = 32;
  struct alignas(64) Word {
    std::atomic<uint64_t> value{0};
  };

  void publish(uint32_t self, uint64_t value) {
    words_[self].value.store(value, std::memory_order_relaxed);
    arrive(std::memory_order_relaxed, std::memory_order_relaxed);
  }

  /// Who waits yields for a while, or sleeps at once where that would put it behind other programs.
  /// ThreadSanitizer does not see the system call, so it orders nothing for it.
  void arrive(std::memory_order arrival, std::memory_order waiting) {
    constexpr uint32_t kYields = 64;
    const uint64_t before = arrived_.fetch_add(1, arrival);
    const uint64_t all = (before / size_ + 1) * size_;
    if (before + 1 == all) {
      if (sleepers_.load(std::memory_order_relaxed) != 0) futex(FUTEX_WAKE_PRIVATE, INT_MAX);
      return;
    }
    uint32_t yields = 0;
    for (uint64_t seen = arrived_.load(waiting); seen < all; seen = arrived_.load(waiting)) {
      if (host_sleeps_left == 0 && yields++ < kYields) {
        yield_host_thread();
        continue;
      }
      if (host_sleeps_left != 0) --host_sleeps_left;
      sleepers_.fetch_add(1, std::memory_order_relaxed);
      futex(FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(seen));
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  /// On the low half of `arrived_`: only the last to arrive wakes the others. A sleep ends by
  /// itself soon, should the last have missed that there is a sleeper.
  void futex(int operation, uint32_t value) {
    const timespec bound{0, 10'000'000};
    syscall(SYS_futex, &arrived_, operation, value, &bound, nullptr, 0);
  }
  static_assert(std::endian::native == std::endian::little);

  const uint32_t size_;
  std::array<Word, kSizeMax> words_;
  std::atomic<uint64_t> arrived_{0};
  std::atomic<uint32_t> sleepers_{0};
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
