// SPDX-License-Identifier: Apache-2.0
//
// Host threads that sleep until a word in memory changes, also one of another process (Linux's
// futex). Stores of a GPU wake nobody: who waits for one sleeps for short times.
#pragma once

#include <cstdint>

#include "simt/platform.h"

#if !defined(__CUDA_ARCH__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>
#endif

namespace gofs::simt {

#if !defined(__CUDA_ARCH__)
/// Sleeps while `word` is `value`, at most `timeout_ns`, or for no time at all. Wakes where another
/// thread calls wake_sleepers() for it, and may do so for other reasons.
inline void sleep_while(const uint32_t& word, uint32_t value, uint64_t timeout_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec timeout{static_cast<time_t>(timeout_ns / kSecond),
                         static_cast<long>(timeout_ns % kSecond)};
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}
#endif

/// Wakes the threads that sleep while `word` is what it was, if `sleepers` says that any may. They
/// have counted themselves there before they looked at the word, and the caller has changed it.
GOFS_HD inline void wake_sleepers(uint32_t& word, const uint32_t& sleepers) {
#if GOFS_ON_GPU
  (void)word;
  (void)sleepers;
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::atomic_ref<uint32_t> count(const_cast<uint32_t&>(sleepers));
  if (count.load(std::memory_order_relaxed) == 0) return;
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

}  // namespace gofs::simt
