// SPDX-License-Identifier: Apache-2.0
//
// Metadata blocks in memory: a fixed number of frames in sets of eight, found by a 64-bit key. A
// frame that somebody pins stays; of the others the clock of a set takes the one not used lately.
//
// Nobody holds a pin while he waits for a frame (with_pages in pages.h keeps to that), so however
// small the cache, everybody gets on. The states of a frame:
//
//   empty ──claim──> loading ──publish──> valid ──claim──> loading ...
//                       └─────abandon────> empty
//
// Pins are counted in the low bits of the state word, so that one fetch_add both takes a pin and
// tells whether the page is valid. A key changes only while its frame is loading [C1].
#pragma once

#include "simt/atomic.h"

namespace gofs::f2fs {

inline constexpr uint32_t kWays = 8;
inline constexpr uint32_t kPinMask = (1u << 20) - 1;
inline constexpr uint32_t kFrameValid = 1u << 20;
inline constexpr uint32_t kFrameLoading = 1u << 21;
inline constexpr uint32_t kFrameReferenced = 1u << 22;
inline constexpr uint32_t kNoFrame = 0xffffffffu;

/// What a key's page is; part of the key.
enum class PageKind : uint64_t { kNone = 0, kNode = 1, kBlock = 2 };

/// `id` is a nid for kNode, a block address for kBlock. Never 0.
GOFS_HD constexpr uint64_t page_key(PageKind kind, uint32_t id) {
  return static_cast<uint64_t>(kind) << 32 | id;
}

struct alignas(128) FrameSet {
  uint64_t keys[kWays];
  uint32_t states[kWays];
  uint32_t lock;  // held while a frame of the set is claimed
  uint32_t hand;
};
static_assert(sizeof(FrameSet) == 128);

struct PageCache {
  FrameSet* sets;
  uint8_t* pages;
  uint32_t set_mask;  // number of sets - 1; a power of two of sets
  uint32_t unused;
  alignas(128) uint64_t loads;

  GOFS_HD uint32_t frame_count() const { return (set_mask + 1) * kWays; }
  GOFS_HD uint8_t* page(uint32_t frame) const {
    return pages + static_cast<uint64_t>(frame) * kBlockBytes;
  }
  GOFS_HD uint32_t& state(uint32_t frame) const {
    return sets[frame / kWays].states[frame % kWays];
  }
  GOFS_HD uint32_t set_of(uint64_t key) const {
    // Multiplicative hash; neighbours in the volume fall into different sets.
    return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 40) & set_mask;
  }
};

/// The frame that holds or is getting `key`, or kNoFrame. A look only: it may be gone at once.
GOFS_HD inline uint32_t find_frame(const PageCache& cache, uint64_t key) {
  const uint32_t index = cache.set_of(key);
  const FrameSet& set = cache.sets[index];
  for (uint32_t way = 0; way < kWays; ++way) {
    if (simt::load_relaxed(set.keys[way]) == key) return index * kWays + way;
  }
  return kNoFrame;
}

GOFS_HD inline void unpin(const PageCache& cache, uint32_t frame) {
  // Release: our reads of the page come before the next owner's load of another one. [C2]
  simt::AtomicRef<uint32_t>(cache.state(frame)).fetch_sub(1, simt::memory_order_release);
}

/// Pins `frame` if it holds the valid page `key`. The page's bytes are then visible. [C1]
GOFS_HD inline bool pin_frame(const PageCache& cache, uint32_t frame, uint64_t key) {
  uint32_t& state = cache.state(frame);
  const uint32_t before = simt::AtomicRef<uint32_t>(state).fetch_add(1, simt::memory_order_acquire);
  GOFS_ASSERT((before & kPinMask) != kPinMask);
  const uint64_t held = simt::load_relaxed(cache.sets[frame / kWays].keys[frame % kWays]);
  if ((before & kFrameValid) != 0 && held == key) {
    if ((before & kFrameReferenced) == 0) {
      simt::AtomicRef<uint32_t>(state).fetch_or(kFrameReferenced, simt::memory_order_relaxed);
    }
    return true;
  }
  unpin(cache, frame);
  return false;
}

/// Takes a frame for `key`, pinned and loading, for the caller to fill and then publish or abandon.
/// kNoFrame when the key is there already, the set is busy or all of its frames are in use: the
/// caller lets go of what it holds and tries again.
GOFS_HD inline uint32_t claim_frame(const PageCache& cache, uint64_t key) {
  const uint32_t index = cache.set_of(key);
  FrameSet& set = cache.sets[index];
  if (!simt::try_lock(set.lock)) return kNoFrame;
  uint32_t taken = kNoFrame;
  if (find_frame(cache, key) == kNoFrame) {
    // Twice round: the first turn takes the references away.
    for (uint32_t step = 0; step < 2 * kWays && taken == kNoFrame; ++step) {
      const uint32_t way = set.hand;
      set.hand = (way + 1) % kWays;
      simt::AtomicRef<uint32_t> state(set.states[way]);
      uint32_t seen = state.load(simt::memory_order_relaxed);
      if ((seen & (kPinMask | kFrameLoading)) != 0) continue;
      if ((seen & kFrameReferenced) != 0) {
        state.fetch_and(~kFrameReferenced, simt::memory_order_relaxed);
        continue;
      }
      // Acquire: the former readers' pins are gone, and with them their reads. [C2]
      if (state.compare_exchange_strong(seen, kFrameLoading | 1u, simt::memory_order_acquire,
                                        simt::memory_order_relaxed)) {
        taken = index * kWays + way;
        simt::store_relaxed(set.keys[way], key);
      }
    }
  }
  simt::unlock(set.lock);
  return taken;
}

/// The page is there and right: everybody may have it. The caller keeps his pin.
GOFS_HD inline void publish_frame(const PageCache& cache, uint32_t frame) {
  simt::AtomicRef<uint32_t>(cache.state(frame))
      .fetch_add(kFrameValid - kFrameLoading, simt::memory_order_release);  // [C1]
}

/// The page could not be had. The caller's pin goes too.
GOFS_HD inline void abandon_frame(const PageCache& cache, uint32_t frame) {
  simt::store_relaxed(cache.sets[frame / kWays].keys[frame % kWays], uint64_t{0});
  simt::AtomicRef<uint32_t>(cache.state(frame))
      .fetch_sub(kFrameLoading + 1, simt::memory_order_release);
}

/// Forgets the page `key`, whose block was written behind the cache's back. One lane; nobody else
/// asks for it meanwhile.
GOFS_HD inline void drop_page(const PageCache& cache, uint64_t key) {
  const uint32_t frame = find_frame(cache, key);
  if (frame == kNoFrame) return;
  simt::AtomicRef<uint32_t> state(cache.state(frame));
  uint32_t seen = state.load(simt::memory_order_relaxed);
  if ((seen & (kPinMask | kFrameLoading)) == 0 &&
      state.compare_exchange_strong(seen, kFrameLoading | 1u, simt::memory_order_acquire,
                                    simt::memory_order_relaxed)) {
    abandon_frame(cache, frame);
  }
}

}  // namespace gofs::f2fs
