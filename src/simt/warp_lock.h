// SPDX-License-Identifier: Apache-2.0
//
// Waiting with a whole warp for a lock that is only ever tried (atomic.h).
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::simt {

/// Takes `word` for the warp. Collective, uniform. False: others had it until `deadline`.
GOFS_HD inline bool wait_for_lock(AnyWarp auto warp, uint32_t& word, const Deadline& deadline) {
  Backoff backoff;
  for (;;) {
    uint32_t taken = 0;
    if (warp.thread_rank() == 0) taken = try_lock(word) ? 1 : 0;
    if (warp.shfl(taken, 0) != 0) break;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
  warp.sync();
  return true;
}

/// Gives back what wait_for_lock() took. Collective.
GOFS_HD inline void release_lock(AnyWarp auto warp, uint32_t& word) {
  warp.sync();
  if (warp.thread_rank() == 0) unlock(word);
}

}  // namespace gofs::simt
