// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt/clock.h"

namespace gofs::simt {

/// One turn of a polling loop of one among `crowd` that look at the same words: together they look
/// every few nanoseconds, however many they are, and do not keep those words from who changes them.
GOFS_HD inline void pause_in_crowd(uint32_t crowd) {
#if GOFS_ON_GPU
  constexpr uint32_t kNsEach = 16;
  constexpr uint32_t kNsMin = 256;
  constexpr uint32_t kNsMax = 1'000'000;  // what the instruction can
  __nanosleep(min(max(crowd * kNsEach, kNsMin), kNsMax));
#else
  (void)crowd;
  pause_host_thread();
#endif
}

}  // namespace gofs::simt
