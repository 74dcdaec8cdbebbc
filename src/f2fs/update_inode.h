// SPDX-License-Identifier: Apache-2.0
//
// What changes in an inode when its contents do: size, count of blocks, times. Warps that write
// different ranges of one file do so at the same time, so all is changed relative to what the page
// says, and what memory keeps of it (Inode) is brought up to date while the page is the caller's
// alone: the two always agree.
//
// A write of several rounds makes its file longer with each of them, and takes that back where it
// cannot go on. Others may have made the file longer still, and fail as well, or not. So each says
// at its end what stays (settle_growth()), and one that fails cuts the file no shorter than that.
// Who is under way then finds out at the end, too.
#pragma once

#include "f2fs/capability_looks.h"
#include "f2fs/change_pages.h"
#include "f2fs/inode.h"
#include "f2fs/inode_words.h"
#include "simt/warp_lock.h"

namespace gofs::f2fs {

/// Of what an operation makes of a file behind its end.
enum class Growth : uint32_t {
  kStays,
  kTentative,  // it may be taken back, unless settle_growth() says that it stays
};

struct InodeUpdate {
  int64_t blocks;       // added to i_blocks
  uint64_t size_least;  // i_size grows to this
  uint64_t size_most;   // and is cut to this
  TimeStamp now;        // the new mtime and ctime
  Growth growth;        // to size_least
};

/// One that leaves the size as it is.
GOFS_HD constexpr InodeUpdate update_of_times(const TimeStamp& now) {
  return InodeUpdate{0, 0, ~uint64_t{0}, now, Growth::kStays};
}

/// `time` in nanoseconds since 1970.
GOFS_HD constexpr int64_t nanoseconds_of(const TimeStamp& time) {
  return time.seconds * 1'000'000'000 + time.nanoseconds;
}

namespace detail {

/// Whether an inode whose `times_set_ns` this is had its times set in the moment `now_ns`, of which
/// time stamps are the multiple of `granularity_ns` before, or by a thread that was a little
/// quicker: then none has to look at the page, nor at the set-ID bits that go when a file is
/// written to.
GOFS_HD constexpr bool are_times_set(int64_t times_set_ns, int64_t now_ns, int64_t granularity_ns) {
  constexpr int64_t kQuickerNs = 1'000'000'000;
  const int64_t ahead = times_set_ns - now_ns;
  return times_set_ns != 0 && ahead > -granularity_ns && ahead < kQuickerNs;
}
/// The same for the time stamp of now.
GOFS_HD inline bool are_times_set(const Inode& inode, const TimeStamp& now) {
  return are_times_set(simt::load_relaxed(inode.times_set_ns), nanoseconds_of(now), 1);
}

/// Whether the inode of a file lets others act as its owner or his group, if they run it: who
/// writes to it may have to take that away.
GOFS_HD inline bool has_setid(const format::Inode& raw) {
  return (raw.i_mode.value() & (format::kModeSetUserId | format::kModeSetGroupId)) != 0;
}

/// What a file has up to `end` stays. By one lane that has its inode's page pinned or exclusively.
GOFS_HD inline void settle(Inode& inode, uint64_t end) {
  if (simt::load_relaxed(inode.settled_bytes) >= end) return;
  simt::AtomicRef<uint64_t>(inode.settled_bytes).fetch_max(end, simt::memory_order_relaxed);
}

/// Brings `inode` up to date. By a caller that holds the page exclusively. Others look at the words
/// meanwhile; what kind of inline contents there are changes only under an exclusive hold of the
/// file.
GOFS_HD inline void refresh_inode(const format::Inode& raw, Inode& inode) {
  simt::store_relaxed(inode.size_bytes, raw.i_size.value());
  if (simt::load_relaxed(inode.settled_bytes) > raw.i_size.value()) {
    simt::store_relaxed(inode.settled_bytes, raw.i_size.value());
  }
  simt::store_relaxed(inode.block_count, raw.i_blocks.value());
  simt::store_relaxed(inode.modified.seconds, raw.i_mtime.value());
  simt::store_relaxed(inode.modified.nanoseconds, raw.i_mtime_nsec.value());
  simt::store_relaxed(inode.changed.seconds, raw.i_ctime.value());
  simt::store_relaxed(inode.changed.nanoseconds, raw.i_ctime_nsec.value());
  simt::store_relaxed(inode.inline_flags, uint32_t{raw.i_inline});
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
/// look at the page meanwhile: they find one of the times old, or both. By a caller that holds
/// `inode.times_lock`.
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

/// Sets the times of `update`, which changes nothing else, where that does not take the inode's
/// page exclusively: it says so already, since of many that write to one file only the first in
/// each moment has something to change, or only nanoseconds are to be set. Collective, uniform. 1
/// if it is so, 0 if not, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int note_times(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                            const InodeUpdate& update) {
  bool noted = warp.thread_rank() == 0 && detail::are_times_set(inode, update.now);
  if (warp.any(noted)) return 1;
  const int error = change_words(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
    format::Inode& raw = node.inode;
    if (!detail::is_of_times(raw, update)) return PageChange::kNothing;
    noted = detail::is_modified_since(raw, update.now);
    // By a caller that has pinned the page: what sets other times, or set-ID bits, resets it after
    // that.
    const auto note = [&] {
      if (detail::has_setid(raw) || !is_known_without_capability(inode)) return;
      simt::store_relaxed(inode.times_set_ns, nanoseconds_of(detail::modified_of(raw)));
    };
    if (noted) note();
    if (noted || !detail::has_seconds_of(raw, update.now) || !simt::try_lock(inode.times_lock)) {
      return PageChange::kNothing;
    }
    noted = true;
    const PageChange change = detail::set_nanoseconds(raw, inode, update.now);
    note();
    simt::unlock(inode.times_lock);
    return change;
  });
  return detail::done_by_leader(warp, error, noted);
}

/// Changes the page of `inode` and `inode` itself, which is one object for all lanes.
/// `also(format::Inode&)` may change more, and say what (PageChange). Collective, uniform; `also`
/// is called by one lane. 0 or a negative errno.
template <typename Also>
GOFS_HD int update_inode(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                         const InodeUpdate& update, Also also) {
  const int error = change_nodes(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
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
    if (update.growth == Growth::kStays) {
      detail::settle(inode, simt::min(update.size_least, raw.i_size.value()));
    }
    const bool same = size == raw.i_size && update.blocks == 0 && !hinted;
    return same ? more : PageChange::kContents;
  });
  warp.sync();  // the other lanes may look at it
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}
GOFS_NOINLINE GOFS_HD inline int update_inode(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                              const InodeUpdate& update) {
  return update_inode(warp, op, inode, update, [](format::Inode&) { return PageChange::kTimes; });
}

/// Makes a file at least `update.size_least` bytes long and counts `update.blocks` more, there and
/// in `inode`, which is one object for all lanes. Only words change: others may look at the page
/// meanwhile, and do the same. Collective, uniform, by a caller that has called keep_inode(). 1 if
/// it was done, 0 if more would have to change, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int try_to_grow(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                             const InodeUpdate& update) {
  bool done = false;
  const int error = change_words(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
    format::Inode& raw = node.inode;
    if (format::load_u32(&raw.i_ext.len) != 0) return PageChange::kNothing;
    done = true;
    // Whoever writes a file's last block puts zeros behind its end.
    if (update.size_least > simt::load_relaxed(inode.size_bytes))
      simt::store_relaxed(inode.clean_tail, 1u);
    if (update.blocks != 0) detail::count_in_words(raw, inode, update.blocks);
    // Of those who make it longer at the same time, the longest counts.
    simt::AtomicRef<uint64_t>(detail::size_word(raw))
        .fetch_max(update.size_least, simt::memory_order_relaxed);
    simt::AtomicRef<uint64_t>(inode.size_bytes)
        .fetch_max(update.size_least, simt::memory_order_relaxed);
    if (update.growth == Growth::kStays) detail::settle(inode, update.size_least);
    return PageChange::kContents;
  });
  return detail::done_by_leader(warp, error, done);
}

/// Update_inode() of times alone, unless another thread is about to do it. Collective, uniform. 1
/// if it was done, 0 if not, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int try_to_update(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                               const InodeUpdate& update) {
  if (!simt::try_lock_for_warp(warp, inode.times_lock)) return 0;
  const int error = update_inode(warp, op, inode, update);
  simt::release_lock(warp, inode.times_lock);
  return error < 0 ? error : 1;
}

/// Sets the times of a file whose contents change. Of many that write to one file, one at a time
/// takes its page for that, and the others find it done. Collective, uniform, by a caller that has
/// called keep_inode(). 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int bring_times_up_to_date(simt::AnyWarp auto warp, Operation& op,
                                                        Inode& inode, const TimeStamp& now) {
  const InodeUpdate update = update_of_times(now);
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    // Who looks has the page pinned, and keeps the other one waiting.
    if (!warp.any(simt::load_relaxed(inode.times_lock) != 0)) {
      int done = note_times(warp, op, inode, update);
      if (done == 0) done = try_to_update(warp, op, inode, update);
      if (done != 0) return simt::min(done, 0);
    }
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
}

/// update_inode() of a file that many may be writing to, making it longer or not: none takes its
/// page exclusively but once in a while to set the times. Collective, uniform, by a caller that has
/// called keep_inode(). As update_inode().
GOFS_NOINLINE GOFS_HD inline int bring_up_to_date(simt::AnyWarp auto warp, Operation& op,
                                                  Inode& inode, const InodeUpdate& update) {
  const int error = bring_times_up_to_date(warp, op, inode, update.now);
  if (error < 0) return error;
  const bool stays = update.growth == Growth::kStays;
  const uint64_t size = simt::load_relaxed(stays ? inode.settled_bytes : inode.size_bytes);
  const bool grows = update.blocks != 0 || update.size_least > size;
  if (!warp.any(grows)) return 0;
  const int grown = try_to_grow(warp, op, inode, update);
  if (grown != 0) return simt::min(grown, 0);
  return update_inode(warp, op, inode, update);
}

/// Has a file stay as long as a write has made it that has ended, up to `end`. Collective, uniform:
/// false where it is shorter now, since another write was taken back, or that cannot be said.
GOFS_NOINLINE GOFS_HD inline bool settle_growth(simt::AnyWarp auto warp, Volume& volume,
                                                Inode& inode, uint64_t end) {
  bool stands = false;
  (void)with_nodes(warp, volume, 1u, inode.ino, inode.ino, [&](const format::NodeBlock& node) {
    stands = simt::load_relaxed(detail::size_word(node.inode)) >= end;
    if (stands) detail::settle(inode, end);
  });
  return warp.any(warp.thread_rank() == 0 && stands);
}

/// Takes back what a write has made of a file behind the `good` first bytes, up to `end`, where
/// that is not settled; others that have made it longer still see to it then. Collective, uniform.
/// 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int take_back_growth(simt::AnyWarp auto warp, Operation& op,
                                                  Inode& inode, uint64_t good, uint64_t end) {
  const int error = change_nodes(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
    format::Inode& raw = node.inode;
    const uint64_t size = simt::max(good, simt::load_relaxed(inode.settled_bytes));
    if (raw.i_size <= size || raw.i_size > end) return PageChange::kNothing;
    raw.i_size = size;
    simt::store_relaxed(inode.clean_tail, 0u);
    detail::refresh_inode(raw, inode);
    return PageChange::kContents;
  });
  warp.sync();
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// Sees to it that the page of inode `ino` stays in memory until the caller ends its operation:
/// what it changes there later cannot fail for the disk. Of many that begin to write to one file at
/// once, none takes the page exclusively for that, but where a hint is to go. Collective, uniform.
/// 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int keep_inode(simt::AnyWarp auto warp, Operation& op, uint32_t ino) {
  const bool kept =
      warp.thread_rank() == 0 && is_kept(op.volume.cache, page_key(PageKind::kNode, ino));
  if (warp.any(kept)) return 0;
  bool hinted = false;
  int error = change_words(warp, op, 1u, ino, ino, [&](format::NodeBlock& node) {
    hinted = format::load_u32(&node.inode.i_ext.len) != 0;
    return hinted ? PageChange::kNothing : PageChange::kTimes;
  });
  const int done = detail::done_by_leader(warp, error, !hinted);
  if (done != 0) return simt::min(done, 0);
  error = change_nodes(warp, op, 1u, ino, ino, [](format::NodeBlock& node) {
    node.inode.i_ext.len = 0;
    return PageChange::kContents;
  });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

}  // namespace gofs::f2fs
