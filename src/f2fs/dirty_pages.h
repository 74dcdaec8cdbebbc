// SPDX-License-Identifier: Apache-2.0
//
// Going through the changed pages of a kind, as many at a time as the warp has lanes, wherever in
// the cache they lie: by the maps of dirty pages, since they are few of many frames.
#pragma once

#include "f2fs/page_cache.h"
#include "simt/warp.h"

namespace gofs::f2fs {

/// Part of a map of dirty pages.
struct MapRange {
  uint32_t first;  // word
  uint32_t end;
};

GOFS_HD inline MapRange whole_map(const PageCache& cache) { return {0, cache.map_words()}; }

namespace detail {

/// Frames that a warp has found and not yet been given, one a lane.
struct FoundFrames {
  uint32_t count;
  uint32_t frame;
};

/// Calls `use(lanes, frame, key)` for what was found, unless it is evicted by now.
template <typename Use>
GOFS_HD int use_found(simt::AnyWarp auto warp, const PageCache& cache, PageKind kind,
                      FoundFrames& found, Use use) {
  uint64_t key = 0;
  const bool mine =
      warp.thread_rank() < found.count && is_dirty_page(cache, found.frame, kind, key);
  found.count = 0;
  const uint32_t lanes = warp.ballot(mine);
  return lanes == 0 ? 0 : use(lanes, found.frame, key);
}

}  // namespace detail

/// Calls `use(lanes, frame, key)` collectively until each dirty page of a kind in `range` was a
/// lane's once, as long as it returns 0 (uniformly); it may clean them. Those that others make
/// dirty meanwhile may be left out. Collective, uniform. What the last `use` returned.
template <typename Use>
GOFS_HD int for_dirty_pages(simt::AnyWarp auto warp, const PageCache& cache, PageKind kind,
                            const MapRange& range, Use use) {
  const uint32_t rank = warp.thread_rank();
  detail::FoundFrames found{0, kNoFrame};
  for (uint32_t first = range.first; first < range.end; first += warp.size()) {
    const uint32_t mine = first + rank;
    const uint32_t word = mine < range.end ? simt::load_relaxed(cache.dirty_word(kind, mine)) : 0;
    for (uint32_t owners = warp.ballot(word != 0); owners != 0; owners &= owners - 1) {
      const uint32_t owner = simt::lowest_bit(owners);
      for (uint32_t bits = warp.shfl(word, owner); bits != 0;) {
        const uint32_t here = simt::popcount(bits);
        const uint32_t taken = simt::min(here, warp.size() - found.count);
        if (rank >= found.count && rank < found.count + taken) {
          found.frame = 32 * (first + owner) + simt::nth_bit(bits, rank - found.count);
        }
        found.count += taken;
        bits = taken == here ? 0 : bits & ~0u << simt::nth_bit(bits, taken);
        if (found.count < warp.size()) continue;
        const int error = detail::use_found(warp, cache, kind, found, use);
        if (error < 0) return error;
      }
    }
  }
  return detail::use_found(warp, cache, kind, found, use);
}

}  // namespace gofs::f2fs
