// SPDX-License-Identifier: Apache-2.0
//
// Room for what is about to be written: a writer that finds too few segments free cleans some
// first. One at a time does so; others go on as long as there are free ones at all, and else wait
// for it.
//
// This comes before all locks, so the cleaner may wait for those of any file, and none that holds
// one waits for the cleaner. Where it cannot make enough room, logs go on in holes
// (f2fs/allocate.h) and what is written is no longer contiguous.
#pragma once

#include "vfs/clean.h"

namespace gofs::vfs {

namespace detail {

/// Free segments below which those who write clean: what was wished, or, if that is more, what data
/// leaves to checkpoints and one for each log. 0: they do not.
GOFS_HD inline uint32_t free_segments_low(const Filesystem& fs) {
  const uint32_t wanted = fs.writer->cleaning.free_wanted;
  if (wanted == 0) return 0;
  return simt::max(wanted,
                   f2fs::detail::segments_for_checkpoint(fs.volume) + format::kDataLogCount);
}

/// A number of free segments with which a closer look is not needed. One lane.
GOFS_HD inline bool has_plenty(const Filesystem& fs, uint64_t more) {
  const f2fs::Writer& writer = *fs.writer;
  const uint64_t pages = uint64_t{2} * fs.volume.cache.frame_count();
  const uint64_t low = simt::max<uint64_t>(
      writer.cleaning.free_wanted, pages / format::kBlocksPerSegment + 2 * format::kLogCount);
  return simt::load_relaxed(writer.free_count) >= low + more;
}

/// Whether cleaning would do no more than when it was tried last. One lane.
GOFS_HD inline bool gc_is_futile(const Filesystem& fs, uint32_t free) {
  const f2fs::Cleaning& cleaning = fs.writer->cleaning;
  return simt::load_relaxed(cleaning.tried) == simt::load_relaxed(fs.volume.checkpoint_version) &&
         free >= simt::load_relaxed(cleaning.retry_below);
}

/// Cleans for `wanted` free segments. Collective, by a caller that holds the lock.
GOFS_NOINLINE GOFS_HD inline void clean_for(simt::AnyWarp auto warp, Filesystem& fs,
                                            uint32_t wanted) {
  f2fs::Writer& writer = *fs.writer;
  const uint32_t before = warp.shfl(simt::load_relaxed(writer.free_count), 0);
  if (before >= wanted) return;
  const CleanWish wish{{f2fs::VictimPolicy::kGreedy, kWorthCleaning}, wanted, wanted};
  (void)clean_segments(warp, fs, wish);
  if (warp.thread_rank() == 0) {
    const uint32_t free = simt::load_relaxed(writer.free_count);
    simt::store_relaxed(writer.cleaning.retry_below, free);
    simt::store_relaxed(writer.cleaning.tried, simt::load_relaxed(fs.volume.checkpoint_version));
  }
  warp.sync();
}

/// As run_foreground_gc(), where there is too little.
GOFS_NOINLINE GOFS_HD inline void wait_for_free_segments(simt::AnyWarp auto warp, Filesystem& fs,
                                                         uint32_t wanted) {
  f2fs::Writer& writer = *fs.writer;
  const bool leader = warp.thread_rank() == 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    uint32_t locked = 0;
    uint32_t go_on = 0;
    if (leader) {
      const uint32_t free = simt::load_relaxed(writer.free_count);
      go_on = free >= wanted || gc_is_futile(fs, free) ? 1 : 0;
      locked = go_on == 0 && simt::try_lock(writer.cleaning.lock) ? 1 : 0;
      if (locked == 0 && free > f2fs::detail::segments_for_checkpoint(fs.volume)) go_on = 1;
    }
    if (warp.shfl(locked, 0) != 0) {
      warp.sync();
      clean_for(warp, fs, wanted);
      warp.sync();
      if (leader) simt::unlock(writer.cleaning.lock);
      return;
    }
    if (warp.shfl(go_on, 0) != 0 || warp.any(deadline.passed())) return;
    backoff.pause();
  }
}

}  // namespace detail

/// Sees to it that there is room for `bytes` more than there should always be, as far as cleaning
/// can make some. Collective, uniform, by one warp that holds no locks. What goes wrong is no
/// failure of the caller's: who then writes finds out whether there is room.
GOFS_HD inline void run_foreground_gc(simt::AnyWarp auto warp, Filesystem& fs, uint64_t bytes) {
  if (fs.writer == nullptr) return;
  uint32_t wanted = 0;
  if (warp.thread_rank() == 0) {
    const uint64_t more =
        simt::min<uint64_t>(bytes / format::kSegmentBytes, fs.volume.geometry.main_segments);
    const uint32_t low = detail::has_plenty(fs, more) ? 0 : detail::free_segments_low(fs);
    const auto all = static_cast<uint32_t>(low + more);
    if (low != 0 && simt::load_relaxed(fs.writer->free_count) < all) wanted = all;
  }
  wanted = warp.shfl(wanted, 0);
  if (wanted != 0) detail::wait_for_free_segments(warp, fs, wanted);
}

}  // namespace gofs::vfs
