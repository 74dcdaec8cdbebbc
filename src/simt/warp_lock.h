// SPDX-License-Identifier: Apache-2.0
//
// Waiting with a whole warp for a lock that is only ever tried (atomic.h).
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::simt {

/// Takes `word` for the warp if it is free. Collective, uniform.
GOFS_HD inline bool try_lock_for_warp(AnyWarp auto warp, uint32_t& word) {
  uint32_t taken = 0;
  if (warp.thread_rank() == 0) taken = try_lock(word) ? 1 : 0;
  taken = warp.shfl(taken, 0);
  warp.sync();
  return taken != 0;
}

/// Takes `word` for the warp. Collective, uniform. False: others had it until `deadline`.
GOFS_HD inline bool wait_for_lock(AnyWarp auto warp, uint32_t& word, const Deadline& deadline) {
  Backoff backoff;
  while (!try_lock_for_warp(warp, word)) {
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
  return true;
}

/// Releases what wait_for_lock() took. Collective.
GOFS_HD inline void release_lock(AnyWarp auto warp, uint32_t& word) {
  warp.sync();
  if (warp.thread_rank() == 0) unlock(word);
}

}  // namespace gofs::simt
