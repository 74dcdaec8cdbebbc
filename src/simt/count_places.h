// SPDX-License-Identifier: Apache-2.0
//
// Counts that many warps add to: a place for each of some processors, so that these do not meet
// there. Who looks adds the places up. Relaxed: a count orders nothing.
#pragma once

#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::simt {

inline constexpr uint32_t kCountPlaces = 128;  // a power of two, about as many as a GPU's SMs

/// The place of the calling processor; `places` are kCountPlaces.
template <typename Counts>
GOFS_HD Counts& own_counts(Counts* places) {
  return places[processor_id() & (kCountPlaces - 1)];
}

/// The sum of a count over all places: `count_of(place)` says which. Collective.
template <typename Counts, typename CountOf>
GOFS_HD uint64_t sum_counts(AnyWarp auto warp, const Counts* places, CountOf count_of) {
  uint64_t sum = 0;
  for (uint32_t i = warp.thread_rank(); i < kCountPlaces; i += warp.size()) {
    sum += load_relaxed(count_of(places[i]));
  }
  return reduce_add(warp, sum);
}

}  // namespace gofs::simt
