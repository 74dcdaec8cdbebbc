// SPDX-License-Identifier: Apache-2.0
//
// Readers who look up where blocks lie and read there without a lock: symbolic links, batches,
// reads that are waited for later. What lies at such a place may be moved, replaced or removed
// meanwhile, and the reader then gets what was there before; but nothing else is written there, or
// he would get what belongs to another file. So a checkpoint at which somebody holds places lets
// nothing go that was given up before it; the next one may.
#pragma once

#include "f2fs/free_segments.h"

namespace gofs::f2fs {

/// How long a checkpoint that has few free segments waits until nobody holds a place. Who wants to
/// hold one waits for it as long, and no longer: he may be holding another one.
inline constexpr uint64_t kPlacesTimeoutNs = 50'000'000;

/// Says that the caller keeps where blocks lie and will read there without a lock, until
/// let_go_places(). Before it looks them up. One lane.
GOFS_HD inline void hold_places(Writer& writer) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kPlacesTimeoutNs);
  simt::Backoff backoff;
  while (simt::load_relaxed(writer.cleaning.places_wanted) != 0 && !deadline.passed()) {
    backoff.pause();
  }
  // Either the next checkpoint sees us, or we see all that was given up before it. [C4]
  simt::AtomicRef<uint32_t>(writer.cleaning.places_held).fetch_add(1, simt::memory_order_acquire);
}
GOFS_HD inline void let_go_places(Writer& writer) {
  simt::AtomicRef<uint32_t>(writer.cleaning.places_held)
      .fetch_sub(1, simt::memory_order_release);  // [C4]
}

namespace detail {

/// Whether somebody holds a place, at a checkpoint. Where few segments are free it waits a little
/// for the answer to be no. Collective, uniform, behind the closed gate.
GOFS_NOINLINE GOFS_HD inline bool are_places_held(simt::AnyWarp auto warp, const Volume& volume,
                                                  Writer& writer) {
  uint32_t holders = 0;
  if (warp.thread_rank() == 0) {
    const bool waits = simt::load_relaxed(writer.free_count) <= few_segments(volume, writer);
    if (waits) simt::store_relaxed(writer.cleaning.places_wanted, 1u);
    const simt::Deadline deadline = simt::Deadline::after_ns(kPlacesTimeoutNs);
    simt::Backoff backoff;
    for (;;) {
      // Changed, though by nothing, so that it is one after the other with who holds a place from
      // now on; who held one until now has read what was there. [C4]
      holders = simt::AtomicRef<uint32_t>(writer.cleaning.places_held)
                    .fetch_add(0, simt::memory_order_acq_rel);
      if (holders == 0 || !waits || deadline.passed()) break;
      backoff.pause();
    }
    if (waits) simt::store_relaxed(writer.cleaning.places_wanted, 0u);
  }
  return warp.shfl(holders, 0) != 0;
}

}  // namespace detail

}  // namespace gofs::f2fs
