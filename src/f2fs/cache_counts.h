// SPDX-License-Identifier: Apache-2.0
//
// How often what is looked up was in memory. Pages are counted once for all lanes of a warp that
// want the same one.
#pragma once

#include "f2fs/page_cache.h"
#include "gofs/types.h"
#include "simt/count_places.h"

namespace gofs::f2fs {

struct alignas(128) CacheCounts {
  LookupCounts lookups[kCacheKinds];
};

/// As what a page counts.
GOFS_HD constexpr CacheKind cache_kind_of(PageKind kind) {
  switch (kind) {
    case PageKind::kNode:
      return CacheKind::kNodes;
    case PageKind::kDirectory:
      return CacheKind::kDirectories;
    case PageKind::kNat:
      return CacheKind::kNat;
    case PageKind::kBlock:
    case PageKind::kNone:
      break;
  }
  return CacheKind::kOthers;
}

/// `count` look-ups of one kind. One lane.
GOFS_HD inline void count_lookups(CacheCounts* places, CacheKind kind, bool found,
                                  uint32_t count = 1) {
  LookupCounts& counts = simt::own_counts(places).lookups[static_cast<uint32_t>(kind)];
  simt::count_relaxed(found ? counts.hits : counts.misses, count);
}

/// The pages that the lanes have `found`, or not, all of one kind. Collective; `key` is that of
/// each of these lanes.
GOFS_HD inline void count_pages_found(simt::AnyWarp auto warp, CacheCounts* places, uint64_t key,
                                      bool found, bool missed) {
  const uint32_t hits = warp.ballot(found);
  const uint32_t misses = warp.ballot(missed);
  const uint32_t rank = warp.thread_rank();
  const CacheKind kind = cache_kind_of(kind_of(key));
  if (hits != 0 && simt::lowest_bit(hits) == rank) {
    count_lookups(places, kind, true, simt::popcount(hits));
  }
  if (misses != 0 && simt::lowest_bit(misses) == rank) {
    count_lookups(places, kind, false, simt::popcount(misses));
  }
}

}  // namespace gofs::f2fs
