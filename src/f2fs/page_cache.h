// SPDX-License-Identifier: Apache-2.0
//
// Metadata blocks in memory: a fixed number of frames in sets of eight, found by a 64-bit key. A
// pinned frame stays; of the others the clock of a set takes the one not used lately.
//
// No thread holds a pin while it waits for a frame (with_pages in pages.h keeps to that), so
// however small the cache, all get on. The states of a frame:
//
//   empty ──claim──> loading ──publish──> valid ──claim──> loading ...
//                       └─────abandon────> empty
//
// Pins are counted in the low bits of the state word, so that one fetch_add both takes a pin and
// tells whether the page is valid. A key changes only while its frame is loading [C1].
//
// A thread that changes a page takes it exclusively: it is loading again, under the same key, until
// it is published. While others look at the page the thread marks it as wanted, and those that come
// to look then give way, though not for ever, should it not be taken. A changed page is dirty and
// stays until it is written. Where all frames of a set are dirty, its pages go to the sets after
// it. Of a dirty page that is not data-dirty only times are newer than the disk: fdatasync can
// leave it.
#pragma once

#include "simt/atomic.h"

namespace gofs::f2fs {

inline constexpr uint32_t kWays = 8;
inline constexpr uint32_t kPinMask = (1u << 20) - 1;
inline constexpr uint32_t kFrameValid = 1u << 20;
inline constexpr uint32_t kFrameLoading = 1u << 21;
inline constexpr uint32_t kFrameReferenced = 1u << 22;
inline constexpr uint32_t kFrameDirty = 1u << 23;
inline constexpr uint32_t kFrameWanted = 1u << 24;
inline constexpr uint32_t kFrameDataDirty = 1u << 25;
inline constexpr uint32_t kNoFrame = 0xffffffffu;

/// What was changed in a page.
enum class PageChange : uint32_t { kNothing, kTimes, kContents };
/// `true`: whatever it was.
GOFS_HD constexpr PageChange as_change(bool changed) {
  return changed ? PageChange::kContents : PageChange::kNothing;
}
GOFS_HD constexpr PageChange as_change(PageChange change) { return change; }

/// What a key's page is; the upper bits of the key, so that no key is a small number.
enum class PageKind : uint64_t { kNone = 0, kNode = 1, kBlock = 2, kNat = 3, kDirectory = 4 };
inline constexpr uint32_t kPageKinds = 5;

inline constexpr uint32_t kPageKindShift = 61;
inline constexpr uint32_t kDirectoryIndexBits = 29;
/// Blocks of a directory that have a key. Linux ends earlier: its hash levels double, and a level
/// of that size would have more entries than there are nids.
inline constexpr uint64_t kDirectoryBlocksMax = uint64_t{1} << kDirectoryIndexBits;

/// `id` is a nid for kNode, a block address for kBlock, for kNat the number of a block of the NAT,
/// whichever of its copies is current. Never 0.
GOFS_HD constexpr uint64_t page_key(PageKind kind, uint32_t id) {
  return static_cast<uint64_t>(kind) << kPageKindShift | id;
}
GOFS_HD constexpr PageKind kind_of(uint64_t key) {
  return static_cast<PageKind>(key >> kPageKindShift);
}
GOFS_HD constexpr uint32_t id_of(uint64_t key) { return static_cast<uint32_t>(key); }

/// Block `index` < kDirectoryBlocksMax of the directory `ino`, wherever it lies: it gets a new
/// address each time it is written.
GOFS_HD constexpr uint64_t directory_key(uint32_t ino, uint64_t index) {
  return static_cast<uint64_t>(PageKind::kDirectory) << kPageKindShift |
         uint64_t{ino} << kDirectoryIndexBits | index;
}
GOFS_HD constexpr uint32_t directory_of(uint64_t key) {
  return static_cast<uint32_t>(key >> kDirectoryIndexBits);
}
GOFS_HD constexpr uint64_t directory_index_of(uint64_t key) {
  return key & (kDirectoryBlocksMax - 1);
}

struct alignas(128) FrameSet {
  uint64_t keys[kWays];
  uint32_t states[kWays];
  uint32_t lock;  // held while a frame of the set is claimed
  uint32_t hand;
  uint32_t overflow;  // pages of this set may lie in so many sets after it
  uint32_t cleaned;   // pages of this set that were written or given up; wraps around
};
static_assert(sizeof(FrameSet) == 128);

struct PageCache {
  FrameSet* sets;
  uint8_t* pages;
  uint32_t* dirty_maps;   // kPageKinds of map_words(): a bit for each frame whose page is dirty
  uint32_t set_mask;      // number of sets - 1; a power of two of sets
  uint32_t single_walks;  // not 0: lanes walk the tree of nodes one after the other (map.h), for
                          // which they load this line
  alignas(128) uint32_t dirty;  // pages that are newer than the disk

  GOFS_HD uint32_t frame_count() const { return (set_mask + 1) * kWays; }
  GOFS_HD uint32_t map_words() const { return (frame_count() + 31) / 32; }
  /// The word of a map of dirty pages that frames 32 * `word` to 32 * `word` + 31 are in.
  GOFS_HD uint32_t& dirty_word(PageKind kind, uint32_t word) const {
    return dirty_maps[static_cast<uint64_t>(kind) * map_words() + word];
  }
  GOFS_HD uint8_t* page(uint32_t frame) const {
    return pages + static_cast<uint64_t>(frame) * kBlockBytes;
  }
  /// The frame whose page that is.
  GOFS_HD uint32_t frame_of(const void* page) const {
    return static_cast<uint32_t>((static_cast<const uint8_t*>(page) - pages) / kBlockBytes);
  }
  GOFS_HD uint32_t& state(uint32_t frame) const {
    return sets[frame / kWays].states[frame % kWays];
  }
  GOFS_HD uint64_t& key(uint32_t frame) const { return sets[frame / kWays].keys[frame % kWays]; }
  GOFS_HD uint32_t set_of(uint64_t key) const {
    // Multiplicative hash; neighbours in the volume fall into different sets.
    return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 40) & set_mask;
  }
};

namespace detail {

GOFS_HD inline uint32_t find_in_set(const PageCache& cache, uint32_t index, uint64_t key) {
  const FrameSet& set = cache.sets[index];
  // All are loaded before one is looked at: a GPU would wait for each of them.
  uint64_t keys[kWays];
  for (uint32_t way = 0; way < kWays; ++way) keys[way] = simt::load_relaxed(set.keys[way]);
  uint32_t found = kNoFrame;
  for (uint32_t way = 0; way < kWays; ++way) {
    if (keys[way] == key) found = index * kWays + way;
  }
  return found;
}

GOFS_NOINLINE GOFS_HD inline uint32_t find_elsewhere(const PageCache& cache, uint32_t home,
                                                     uint32_t overflow, uint64_t key) {
  for (uint32_t distance = 1; distance <= overflow; ++distance) {
    const uint32_t frame = find_in_set(cache, (home + distance) & cache.set_mask, key);
    if (frame != kNoFrame) return frame;
  }
  return kNoFrame;
}

}  // namespace detail

/// The frame that holds or is getting `key`, or kNoFrame. A look only: it may be evicted at once.
GOFS_HD inline uint32_t find_frame(const PageCache& cache, uint64_t key) {
  const uint32_t home = cache.set_of(key);
  const uint32_t frame = detail::find_in_set(cache, home, key);
  if (frame != kNoFrame) return frame;
  const uint32_t overflow = simt::load_relaxed(cache.sets[home].overflow);
  return overflow == 0 ? kNoFrame : detail::find_elsewhere(cache, home, overflow, key);
}

GOFS_HD inline void unpin(const PageCache& cache, uint32_t frame) {
  // Release: our reads of the page come before the next owner's load of another one. [C2]
  simt::AtomicRef<uint32_t>(cache.state(frame)).fetch_sub(1, simt::memory_order_release);
}

/// Pins `frame` if it holds the valid page `key` and, where the caller `gives_way`, no thread wants
/// it exclusively. The page's bytes are then visible. [C1]
GOFS_HD inline bool pin_frame(const PageCache& cache, uint32_t frame, uint64_t key,
                              bool gives_way = true) {
  uint32_t& state = cache.state(frame);
  const uint32_t before = simt::AtomicRef<uint32_t>(state).fetch_add(1, simt::memory_order_acquire);
  GOFS_ASSERT((before & kPinMask) != kPinMask);
  const uint64_t held = simt::load_relaxed(cache.key(frame));
  const bool wanted = (before & kFrameWanted) != 0;
  if ((before & kFrameValid) != 0 && held == key && !(wanted && gives_way)) {
    if ((before & kFrameReferenced) == 0) {
      simt::AtomicRef<uint32_t>(state).fetch_or(kFrameReferenced, simt::memory_order_relaxed);
    }
    if (wanted)
      simt::AtomicRef<uint32_t>(state).fetch_and(~kFrameWanted, simt::memory_order_relaxed);
    return true;
  }
  unpin(cache, frame);
  return false;
}

namespace detail {

/// Takes a frame of set `index`, whose lock the caller holds, for `key`; kNoFrame where all are in
/// use.
GOFS_HD inline uint32_t claim_in_set(const PageCache& cache, uint32_t index, uint64_t key) {
  FrameSet& set = cache.sets[index];
  // Twice round: the first turn takes the references away.
  for (uint32_t step = 0; step < 2 * kWays; ++step) {
    const uint32_t way = set.hand;
    set.hand = (way + 1) % kWays;
    simt::AtomicRef<uint32_t> state(set.states[way]);
    uint32_t seen = state.load(simt::memory_order_relaxed);
    if ((seen & (kPinMask | kFrameLoading | kFrameDirty)) != 0) continue;
    if ((seen & kFrameReferenced) != 0) {
      state.fetch_and(~kFrameReferenced, simt::memory_order_relaxed);
      continue;
    }
    // Acquire: the former readers' pins are released, and their reads are done. [C2]
    if (state.compare_exchange_strong(seen, kFrameLoading | 1u, simt::memory_order_acquire,
                                      simt::memory_order_relaxed)) {
      simt::store_relaxed(set.keys[way], key);
      return index * kWays + way;
    }
  }
  return kNoFrame;
}

GOFS_HD inline bool all_dirty(const FrameSet& set) {
  uint32_t states = kFrameDirty;
  for (uint32_t way = 0; way < kWays; ++way) states &= simt::load_relaxed(set.states[way]);
  return states != 0;
}

/// The same in the sets after `home`, whose lock the caller holds and which is all dirty.
GOFS_NOINLINE GOFS_HD inline uint32_t claim_elsewhere(const PageCache& cache, uint32_t home,
                                                      uint64_t key) {
  for (uint32_t distance = 1; distance <= cache.set_mask; ++distance) {
    const uint32_t index = (home + distance) & cache.set_mask;
    FrameSet& set = cache.sets[index];
    if (!simt::try_lock(set.lock)) return kNoFrame;
    const uint32_t taken = claim_in_set(cache, index, key);
    simt::unlock(set.lock);
    if (taken != kNoFrame) {
      uint32_t& overflow = cache.sets[home].overflow;
      if (simt::load_relaxed(overflow) < distance) simt::store_relaxed(overflow, distance);
      return taken;
    }
  }
  return kNoFrame;
}

}  // namespace detail

/// Takes a frame for `key`, pinned and loading, for the caller to fill and then publish or abandon.
/// kNoFrame when the key is there already, the set is busy or all of its frames are in use: the
/// caller releases what it holds and tries again.
GOFS_HD inline uint32_t claim_frame(const PageCache& cache, uint64_t key) {
  const uint32_t index = cache.set_of(key);
  FrameSet& set = cache.sets[index];
  if (!simt::try_lock(set.lock)) return kNoFrame;
  uint32_t taken = kNoFrame;
  // All claims of a key are made under the lock of its own set, wherever its page goes.
  if (find_frame(cache, key) == kNoFrame) {
    taken = detail::claim_in_set(cache, index, key);
    if (taken == kNoFrame && detail::all_dirty(set)) {
      taken = detail::claim_elsewhere(cache, index, key);
    }
  }
  simt::unlock(set.lock);
  return taken;
}

/// The page is there and right: all may use it. The caller keeps its pin.
GOFS_HD inline void publish_frame(const PageCache& cache, uint32_t frame) {
  simt::AtomicRef<uint32_t>(cache.state(frame))
      .fetch_add(kFrameValid - kFrameLoading, simt::memory_order_release);  // [C1]
}

/// The page could not be had. The caller's pin goes too.
GOFS_HD inline void abandon_frame(const PageCache& cache, uint32_t frame) {
  simt::store_relaxed(cache.key(frame), uint64_t{0});
  simt::AtomicRef<uint32_t>(cache.state(frame))
      .fetch_sub(kFrameLoading + 1, simt::memory_order_release);
}

/// Takes `frame`, if it holds the valid page `key`, for the caller alone, pinned and loading, until
/// it is released. False while others look at it or change it; it is marked as wanted then.
GOFS_HD inline bool take_frame(const PageCache& cache, uint32_t frame, uint64_t key) {
  simt::AtomicRef<uint32_t> state(cache.state(frame));
  uint32_t seen = state.load(simt::memory_order_relaxed);
  if ((seen & kFrameLoading) != 0 || (seen & kFrameValid) == 0) return false;
  if ((seen & kPinMask) != 0) {
    if ((seen & kFrameWanted) == 0) state.fetch_or(kFrameWanted, simt::memory_order_relaxed);
    return false;
  }
  // Acquire: the readers' pins are released, and their reads are done [C2]; the page is there [C1].
  const uint32_t taken = ((seen & ~(kFrameValid | kFrameWanted)) | kFrameLoading) + 1;
  if (!state.compare_exchange_strong(seen, taken, simt::memory_order_acquire,
                                     simt::memory_order_relaxed)) {
    return false;
  }
  if (simt::load_relaxed(cache.key(frame)) == key) return true;
  publish_frame(cache, frame);
  unpin(cache, frame);
  return false;
}

namespace detail {

/// The place of the page `key` in `frame` in the map of dirty pages.
GOFS_HD inline simt::AtomicRef<uint32_t> dirty_word_of(const PageCache& cache, uint32_t frame,
                                                       uint64_t key) {
  return simt::AtomicRef<uint32_t>(cache.dirty_word(kind_of(key), frame / 32));
}
GOFS_HD constexpr uint32_t dirty_bit_of(uint32_t frame) { return 1u << frame % 32; }

/// Notes that the page `key` in `frame`, which the caller holds exclusively, is no longer dirty.
GOFS_HD inline void note_clean(PageCache& cache, uint32_t frame, uint64_t key) {
  dirty_word_of(cache, frame, key).fetch_and(~dirty_bit_of(frame), simt::memory_order_relaxed);
  simt::add_relaxed(cache.dirty, ~0u);
}

}  // namespace detail

/// The dirty page `key` in `frame` was written as it is; the caller keeps others from changing it.
GOFS_HD inline void clean_frame(PageCache& cache, uint32_t frame, uint64_t key) {
  // Before the page may go: who misses it then learns that he may have looked too early where it
  // lies. [C3]
  simt::AtomicRef<uint32_t>(cache.sets[cache.set_of(key)].cleaned)
      .fetch_add(1, simt::memory_order_release);
  detail::note_clean(cache, frame, key);
  simt::AtomicRef<uint32_t>(cache.state(frame))
      .fetch_and(~(kFrameDirty | kFrameDataDirty), simt::memory_order_release);
}

/// The valid page in `frame`, which the caller has pinned or holds exclusively, counts as newer
/// than the disk from now on. No thread writes it to the disk meanwhile. `change` is not kNothing.
/// Whether it did not before.
GOFS_HD inline bool mark_dirty(PageCache& cache, uint32_t frame,
                               PageChange change = PageChange::kContents) {
  const uint32_t bits =
      kFrameDirty | (change == PageChange::kContents ? uint32_t{kFrameDataDirty} : 0);
  simt::AtomicRef<uint32_t> state(cache.state(frame));
  const uint32_t seen = state.load(simt::memory_order_acquire);  // [C6]
  if ((seen & bits) == bits) return false;
  // In the map first: who finds the page dirty relies on its being found there.
  if ((seen & kFrameDirty) == 0) {
    detail::dirty_word_of(cache, frame, simt::load_relaxed(cache.key(frame)))
        .fetch_or(detail::dirty_bit_of(frame), simt::memory_order_relaxed);
  }
  if ((state.fetch_or(bits, simt::memory_order_release) & kFrameDirty) != 0) return false;  // [C6]
  simt::add_relaxed(cache.dirty, 1u);
  return true;
}

/// Publishes a frame that take_frame() or claim_frame() took. Where `change` says so, its page is
/// newer than the disk. Whether it was not before.
GOFS_HD inline bool release_frame(PageCache& cache, uint32_t frame, PageChange change) {
  const bool newly = change != PageChange::kNothing && mark_dirty(cache, frame, change);
  publish_frame(cache, frame);
  unpin(cache, frame);
  return newly;
}
GOFS_HD inline bool release_frame(PageCache& cache, uint32_t frame, bool changed) {
  return release_frame(cache, frame, as_change(changed));
}

/// Empties a frame that take_frame() took, whatever its page holds.
GOFS_HD inline void invalidate_frame(PageCache& cache, uint32_t frame) {
  const uint32_t before = simt::AtomicRef<uint32_t>(cache.state(frame))
                              .fetch_and(~(kFrameDirty | kFrameDataDirty | kFrameReferenced),
                                         simt::memory_order_relaxed);
  if ((before & kFrameDirty) != 0) {
    const uint64_t key = simt::load_relaxed(cache.key(frame));
    detail::note_clean(cache, frame, key);
  }
  abandon_frame(cache, frame);
}

/// Says that nothing lies any more where another thread may have looked up the page `key`, so that
/// it does not bring it back, and finds the frame if one has done so already, or kNoFrame. False
/// while the set is busy.
GOFS_HD inline bool outdate_key(const PageCache& cache, uint64_t key, uint32_t& frame) {
  FrameSet& set = cache.sets[cache.set_of(key)];
  if (!simt::try_lock(set.lock)) return false;
  // Under the lock of all claims of the key: one that was made before is found here, and one that
  // comes later sees the count. [C3]
  simt::AtomicRef<uint32_t>(set.cleaned).fetch_add(1, simt::memory_order_release);
  frame = find_frame(cache, key);
  simt::unlock(set.lock);
  return true;
}

/// Whether `frame`, which may be past the last one, holds a changed page of a kind, and its `key`.
GOFS_HD inline bool is_dirty_page(const PageCache& cache, uint32_t frame, PageKind kind,
                                  uint64_t& key) {
  if (frame >= cache.frame_count()) return false;
  key = simt::load_relaxed(cache.key(frame));
  return kind_of(key) == kind && (simt::load_acquire(cache.state(frame)) & kFrameDirty) != 0;
}

/// Whether the page `key` is in memory and newer than the disk: it then stays until the operation
/// of the caller ends.
GOFS_HD inline bool is_kept(const PageCache& cache, uint64_t key) {
  const uint32_t frame = find_frame(cache, key);
  return frame != kNoFrame && (simt::load_acquire(cache.state(frame)) & kFrameDirty) != 0 &&
         simt::load_relaxed(cache.key(frame)) == key;
}

/// Whether more than times of the page `key` is newer than the disk; `false` also where it is not
/// in memory. A look only, as is_kept().
GOFS_HD inline bool is_urgent(const PageCache& cache, uint64_t key) {
  const uint32_t frame = find_frame(cache, key);
  constexpr uint32_t kBoth = kFrameDirty | kFrameDataDirty;
  return frame != kNoFrame && (simt::load_acquire(cache.state(frame)) & kBoth) == kBoth &&
         simt::load_relaxed(cache.key(frame)) == key;
}

/// How often a page of the set of `key` was written or given up. If this is the same before its
/// place on disk is looked up and after a frame was claimed for it, it still lies there. [C3]
GOFS_HD inline uint32_t cleaned_count(const PageCache& cache, uint64_t key) {
  return simt::load_acquire(cache.sets[cache.set_of(key)].cleaned);
}

}  // namespace gofs::f2fs
