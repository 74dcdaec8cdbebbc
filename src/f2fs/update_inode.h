// SPDX-License-Identifier: Apache-2.0
//
// What changes in an inode when its contents do: size, count of blocks, times. Warps that write
// different ranges of one file do so at the same time, so all is changed relative to what the page
// says, and what memory keeps of it (Inode) is brought up to date while the page is the caller's
// alone: the two always agree.
#pragma once

#include "f2fs/change_pages.h"
#include "f2fs/inode.h"
#include "simt/warp_lock.h"

namespace gofs::f2fs {

struct InodeUpdate {
  int64_t blocks;       // added to i_blocks
  uint64_t size_least;  // i_size grows to this
  uint64_t size_most;   // and is cut to this
  TimeStamp now;        // the new mtime and ctime
};

/// One that leaves the size as it is.
GOFS_HD constexpr InodeUpdate update_of_times(const TimeStamp& now) {
  return InodeUpdate{0, 0, ~uint64_t{0}, now};
}

/// `time` in nanoseconds since 1970.
GOFS_HD constexpr int64_t nanoseconds_of(const TimeStamp& time) {
  return time.seconds * 1'000'000'000 + time.nanoseconds;
}

namespace detail {

/// Whether an inode whose `noted_ns` this is had its times set in the moment `now_ns`, of which
/// time stamps are the multiple of `granularity_ns` before, or by who was a little quicker: then
/// nobody has to look at the page, nor at the powers that go when a file is written to.
GOFS_HD constexpr bool is_noted(int64_t noted_ns, int64_t now_ns, int64_t granularity_ns) {
  constexpr int64_t kQuickerNs = 1'000'000'000;
  const int64_t ahead = noted_ns - now_ns;
  return noted_ns != 0 && ahead > -granularity_ns && ahead < kQuickerNs;
}
/// The same for the time stamp of now.
GOFS_HD inline bool is_noted(const Inode& inode, const TimeStamp& now) {
  return is_noted(simt::load_relaxed(inode.noted_ns), nanoseconds_of(now), 1);
}

/// Whether the inode of a file lets others act as its owner or his group, if they run it: who
/// writes to it may have to take that away.
GOFS_HD inline bool gives_powers(const format::Inode& raw) {
  return (raw.i_mode.value() & (format::kModeSetUserId | format::kModeSetGroupId)) != 0;
}

/// Brings `inode` up to date. By who has the page for himself. Others look at the words meanwhile;
/// what kind of inline contents there are changes only for who has the file for himself.
GOFS_HD inline void refresh_inode(const format::Inode& raw, Inode& inode) {
  simt::store_relaxed(inode.size_bytes, raw.i_size.value());
  simt::store_relaxed(inode.block_count, raw.i_blocks.value());
  simt::store_relaxed(inode.modified.seconds, raw.i_mtime.value());
  simt::store_relaxed(inode.modified.nanoseconds, raw.i_mtime_nsec.value());
  simt::store_relaxed(inode.changed.seconds, raw.i_ctime.value());
  simt::store_relaxed(inode.changed.nanoseconds, raw.i_ctime_nsec.value());
  if (inode.inline_flags != raw.i_inline) inode.inline_flags = raw.i_inline;
}

/// Whether an inode with these times was changed with its contents at `now`, or since: of those who
/// write at the same time some are late with what they took for now, and the others' times stay.
GOFS_HD inline bool is_modified_since(const TimeStamp& modified, const TimeStamp& changed,
                                      const TimeStamp& now) {
  const bool together =
      modified.seconds == changed.seconds && modified.nanoseconds == changed.nanoseconds;
  const int64_t ahead = changed.seconds - now.seconds;
  // Seconds ahead is another clock.
  return together && (ahead == 1 || (ahead == 0 && changed.nanoseconds >= now.nanoseconds));
}
GOFS_HD inline bool is_modified_since(const format::Inode& raw, const TimeStamp& now) {
  return is_modified_since(modified_of(raw), changed_of(raw), now);
}

/// Whether `update`, which adds no blocks, leaves everything in the inode as it is but its times.
GOFS_HD inline bool is_of_times(const format::Inode& raw, const InodeUpdate& update) {
  const uint64_t size = simt::load_relaxed(size_word(raw));
  return size >= update.size_least && size <= update.size_most && raw.i_ext.len == 0;
}

/// Whether both times of an inode have the seconds of `now`, so that only words are to be set.
GOFS_HD inline bool has_seconds_of(const format::Inode& raw, const TimeStamp& now) {
  return raw.i_mtime.value() == now.seconds && raw.i_ctime.value() == now.seconds;
}

/// Sets the times of an inode that have the seconds of `now` already, and are older. Others may
/// look at the page meanwhile: they find one of the times old, or both. By who has
/// `inode.updating`.
GOFS_HD inline void store_nanoseconds(format::Inode& raw, Inode& inode, const TimeStamp& now) {
  simt::store_relaxed(mtime_nsec_word(raw), now.nanoseconds);
  simt::store_relaxed(ctime_nsec_word(raw), now.nanoseconds);
  simt::store_relaxed(inode.modified.nanoseconds, now.nanoseconds);
  simt::store_relaxed(inode.changed.nanoseconds, now.nanoseconds);
}
/// The same where they may not be older.
GOFS_HD inline PageChange set_nanoseconds(format::Inode& raw, Inode& inode, const TimeStamp& now) {
  if (is_modified_since(raw, now)) return PageChange::kNothing;
  store_nanoseconds(raw, inode, now);
  return PageChange::kTimes;
}

/// 1 if lane 0 has done it, 0 if not, or its negative errno. Collective, uniform.
GOFS_HD inline int done_by_leader(simt::AnyWarp auto warp, int error, bool done) {
  const int failed = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  return failed < 0 ? failed : static_cast<int>(warp.shfl(done ? 1u : 0u, 0));
}

/// Adds `blocks` to those that the inode counts, and `inode` says. One lane.
GOFS_HD inline void count_in_words(format::Inode& raw, Inode& inode, int64_t blocks) {
  const auto more = static_cast<uint64_t>(blocks);
  const uint64_t before = simt::add_relaxed(blocks_word(raw), more);
  // The page also counts nodes that were made, and others may have added since.
  simt::AtomicRef<uint64_t>(inode.block_count).fetch_max(before + more, simt::memory_order_relaxed);
}

}  // namespace detail

/// Sees to it that the inode says what `update` would make it say, where nobody has to have its
/// page for himself for that: it says so already, since of many that write to one file only the
/// first in each moment has something to change, or only nanoseconds are to be set. Collective,
/// uniform, inside the gate. 1 if it is so, 0 if not, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int note_times(simt::AnyWarp auto warp, Volume& volume, Inode& inode,
                                            const InodeUpdate& update) {
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  if (update.blocks != 0 || update.size_least > size) return 0;
  bool noted = warp.thread_rank() == 0 && detail::is_noted(inode, update.now);
  if (warp.any(noted)) return 1;
  const int error =
      change_words(warp, volume, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
        format::Inode& raw = node.inode;
        if (!detail::is_of_times(raw, update)) return PageChange::kNothing;
        noted = detail::is_modified_since(raw, update.now);
        // By who has the page pinned: who sets other times, or gives powers, forgets it after that.
        const auto note = [&] {
          if (detail::gives_powers(raw) || simt::load_relaxed(inode.no_capability) == 0) return;
          simt::store_relaxed(inode.noted_ns, nanoseconds_of(detail::modified_of(raw)));
        };
        if (noted) note();
        if (noted || !detail::has_seconds_of(raw, update.now) || !simt::try_lock(inode.updating)) {
          return PageChange::kNothing;
        }
        noted = true;
        const PageChange change = detail::set_nanoseconds(raw, inode, update.now);
        note();
        simt::unlock(inode.updating);
        return change;
      });
  return detail::done_by_leader(warp, error, noted);
}

/// Changes the page of `inode` and `inode` itself, which is one object for all lanes.
/// `also(format::Inode&)` may change more, and say what (PageChange). Collective, uniform, inside
/// the gate; `also` is called by one lane. 0 or a negative errno.
template <typename Also>
GOFS_HD int update_inode(simt::AnyWarp auto warp, Volume& volume, Inode& inode,
                         const InodeUpdate& update, Also also) {
  const int error =
      change_nodes(warp, volume, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
        format::Inode& raw = node.inode;
        const uint64_t size = raw.i_size;
        const bool hinted = raw.i_ext.len != 0;
        raw.i_ext.len = 0;  // Linux would read through a hint that is out of date
        raw.i_blocks = raw.i_blocks + static_cast<uint64_t>(update.blocks);
        raw.i_size = simt::min(simt::max(raw.i_size.value(), update.size_least), update.size_most);
        raw.i_mtime = update.now.seconds;
        raw.i_mtime_nsec = update.now.nanoseconds;
        raw.i_ctime = update.now.seconds;
        raw.i_ctime_nsec = update.now.nanoseconds;
        const PageChange more = detail::change_by(also, raw);
        detail::refresh_inode(raw, inode);
        const bool same = size == raw.i_size && update.blocks == 0 && !hinted;
        return same ? more : PageChange::kContents;
      });
  warp.sync();  // the other lanes may look at it
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}
GOFS_NOINLINE GOFS_HD inline int update_inode(simt::AnyWarp auto warp, Volume& volume, Inode& inode,
                                              const InodeUpdate& update) {
  return update_inode(warp, volume, inode, update,
                      [](format::Inode&) { return PageChange::kTimes; });
}

/// Adds `blocks` > 0 to those that the inode counts, there and in `inode`, which is one object for
/// all lanes. Others may look at the page meanwhile, and add as well. Collective, uniform, inside
/// the gate, by who has called keep_inode(). 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int add_to_block_count(simt::AnyWarp auto warp, Volume& volume,
                                                    Inode& inode, int64_t blocks) {
  const int error = change_words(
      warp, volume, 1u, inode.ino, inode.ino,
      [&](format::NodeBlock& node) { detail::count_in_words(node.inode, inode, blocks); });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// update_inode() of a file that becomes longer, by who has its end for himself or shares it with
/// others who do this, where its times have the seconds of `update.now` already: then nobody has to
/// have its page for himself. Collective, uniform, inside the gate. 1 if it was done, 0 if not, or
/// a negative errno.
GOFS_NOINLINE GOFS_HD inline int try_to_lengthen(simt::AnyWarp auto warp, Volume& volume,
                                                 Inode& inode, const InodeUpdate& update) {
  bool done = false;
  const int error =
      change_words(warp, volume, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
        format::Inode& raw = node.inode;
        if (!detail::has_seconds_of(raw, update.now) || raw.i_ext.len != 0 ||
            !simt::try_lock(inode.updating)) {
          return PageChange::kNothing;
        }
        done = true;
        detail::count_in_words(raw, inode, update.blocks);
        // Several warps may share one write.
        const uint64_t size = simt::load_relaxed(detail::size_word(raw));
        const uint64_t longer = simt::max(size, update.size_least);
        simt::store_relaxed(detail::size_word(raw), longer);
        simt::store_relaxed(inode.size_bytes, longer);
        (void)detail::set_nanoseconds(raw, inode, update.now);
        simt::unlock(inode.updating);
        return PageChange::kContents;
      });
  return detail::done_by_leader(warp, error, done);
}

/// update_inode() of times alone, unless somebody else is about to do it. Collective, uniform,
/// inside the gate. 1 if it was done, 0 if not, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int try_to_update(simt::AnyWarp auto warp, Volume& volume,
                                               Inode& inode, const InodeUpdate& update) {
  if (!simt::try_lock_for_warp(warp, inode.updating)) return 0;
  const int error = update_inode(warp, volume, inode, update);
  simt::release_lock(warp, inode.updating);
  return error < 0 ? error : 1;
}

/// update_inode() where it is not up to date. Of many that write to one file without making it
/// longer, one at a time takes its page to set the times, and the others find it done; those who
/// only add blocks do not take it. Collective, uniform, inside the gate, by who has called
/// keep_inode(). As update_inode().
GOFS_NOINLINE GOFS_HD inline int bring_up_to_date(simt::AnyWarp auto warp, Volume& volume,
                                                  Inode& inode, InodeUpdate update) {
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  if (update.size_least > size) {
    const int longer = try_to_lengthen(warp, volume, inode, update);
    if (longer != 0) return simt::min(longer, 0);
    return update_inode(warp, volume, inode, update);
  }
  const int64_t blocks = update.blocks;
  update.blocks = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    // Who looks has the page pinned, and keeps the other one waiting.
    if (!warp.any(simt::load_relaxed(inode.updating) != 0)) {
      int done = note_times(warp, volume, inode, update);
      if (done == 0) done = try_to_update(warp, volume, inode, update);
      if (done < 0) return done;
      if (done != 0) break;
    }
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  return blocks == 0 ? 0 : add_to_block_count(warp, volume, inode, blocks);
}

/// Sees to it that the page of inode `ino` stays in memory until the caller leaves the gate: what
/// he changes there later cannot fail for the disk. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int keep_inode(simt::AnyWarp auto warp, Volume& volume, uint32_t ino) {
  const bool kept =
      warp.thread_rank() == 0 && is_kept(volume.cache, page_key(PageKind::kNode, ino));
  if (warp.any(kept)) return 0;
  const int error = change_nodes(warp, volume, 1u, ino, ino, [](format::NodeBlock& node) {
    const bool hinted = node.inode.i_ext.len != 0;
    node.inode.i_ext.len = 0;
    return hinted ? PageChange::kContents : PageChange::kTimes;
  });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

}  // namespace gofs::f2fs
