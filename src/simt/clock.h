// SPDX-License-Identifier: Apache-2.0
//
// Time for deadlines and device models: nanoseconds since an arbitrary start, monotonic, comparable
// between all threads of one backend (the GPU's global timer, or the host's steady clock).
#pragma once

#include "simt/platform.h"
#include "simt/turns.h"

#if !defined(__CUDA_ARCH__)
#include <atomic>
#include <chrono>
#include <thread>
#endif

namespace gofs::simt {

GOFS_HD inline uint64_t now_ns() {
#if GOFS_ON_GPU
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
#else
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
#endif
}

/// The end of a wait. Every wait in this project has one. Time runs from the first look, which is
/// the first turn of a loop that found nothing: reading the clock costs a GPU more than a wait that
/// turns out to be none.
class Deadline {
 public:
  GOFS_HD static Deadline after_ns(uint64_t timeout_ns) { return Deadline(timeout_ns); }

  GOFS_HD bool passed() const {
    const uint64_t now = now_ns();
    if (end_ns_ == 0) end_ns_ = timeout_ns_ > ~uint64_t{0} - now ? ~uint64_t{0} : now + timeout_ns_;
    return now >= end_ns_;
  }

 private:
  GOFS_HD explicit Deadline(uint64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  uint64_t timeout_ns_;
  mutable uint64_t end_ns_ = 0;  // 0: not looked at yet
};

#if !defined(__CUDA_ARCH__)
/// Waits that this thread still sleeps through, since it shares its core with other programs. A
/// yield is cheapest where the core is free for us, but puts us behind every program that wants it,
/// milliseconds each time; who sleeps comes back in front of them. Atomic for ThreadSanitizer,
/// which takes lanes that share a thread for threads.
inline thread_local std::atomic<uint32_t> host_sleeps_left = 0;

/// Lets other threads run, and finds out whether they are other programs'.
inline void yield_host_thread() {
  constexpr uint64_t kOthersRanNs = 200'000;
  constexpr uint32_t kSleeps = 512;  // until the next look
  const uint64_t before = now_ns();
  std::this_thread::yield();
  if (now_ns() - before > kOthersRanNs) {
    host_sleeps_left.store(kSleeps, std::memory_order_relaxed);
  }
}

/// Where the thread plays several lanes, the other ones run first.
inline void pause_host_thread() {
  if (host_turns != nullptr && host_turns->pause()) return;
  const uint32_t sleeps_left = host_sleeps_left.load(std::memory_order_relaxed);
  if (sleeps_left == 0) {
    yield_host_thread();
  } else {
    host_sleeps_left.store(sleeps_left - 1, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}
#endif

/// One turn of a polling loop; gives the core away on the CPU, since a two-core machine must make
/// progress. On the GPU pauses double up to a bound that delays an SSD's answer little. Threads of
/// a warp that have diverged may wait for each other, and who is waited for gets only the turns
/// that the others leave him: their pauses grow again, to a part of the time that they have waited.
class Backoff {
 public:
  GOFS_HD void pause() {
#if GOFS_ON_GPU
    __nanosleep(kPauseNsMin << doublings());
    ++turns_;
#else
    pause_host_thread();
#endif
  }
  GOFS_HD void reset() { turns_ = 0; }

 private:
  static constexpr uint32_t kPauseNsMin = 16;
  static constexpr uint32_t kFirstDoublings = 4;  // to 256 ns, one a turn
  static constexpr uint32_t kTurnsOfThose = 256;  // which take about 0.1 ms
  static constexpr uint32_t kTurnsToDoubleAgain = 16;
  static constexpr uint32_t kDoublingsMax = 12;  // to 64 us

#if GOFS_ON_GPU
  __device__ uint32_t doublings() const {
    if (turns_ < kFirstDoublings) return turns_;
    if (turns_ < kTurnsOfThose || __activemask() == 0xffffffffu) return kFirstDoublings;
    return min(kFirstDoublings + (turns_ - kTurnsOfThose) / kTurnsToDoubleAgain, kDoublingsMax);
  }
#endif

  uint32_t turns_ = 0;
};

}  // namespace gofs::simt
