// SPDX-License-Identifier: Apache-2.0
//
// Time for deadlines and device models: nanoseconds since an arbitrary start, monotonic, comparable
// between all threads of one backend (the GPU's global timer, or the host's steady clock).
#pragma once

#include "simt/platform.h"

#if !defined(__CUDA_ARCH__)
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

/// The end of a wait. Every wait in this project has one.
struct Deadline {
  uint64_t end_ns;

  GOFS_HD static Deadline after_ns(uint64_t ns) {
    const uint64_t now = now_ns();
    return Deadline{ns > ~uint64_t{0} - now ? ~uint64_t{0} : now + ns};
  }
  GOFS_HD bool passed() const { return now_ns() >= end_ns; }
};

/// One turn of a polling loop. Doubles its pause on the GPU up to a bound; yields the core on the
/// CPU, since a two-core machine must make progress.
class Backoff {
 public:
  GOFS_HD void pause() {
#if GOFS_ON_GPU
    __nanosleep(pause_ns_);
    if (pause_ns_ < kPauseNsMax) pause_ns_ *= 2;
#else
    std::this_thread::yield();
#endif
  }
  GOFS_HD void reset() { pause_ns_ = kPauseNsMin; }

 private:
  static constexpr uint32_t kPauseNsMin = 16;
  static constexpr uint32_t kPauseNsMax = 256;
  uint32_t pause_ns_ = kPauseNsMin;
};

}  // namespace gofs::simt
