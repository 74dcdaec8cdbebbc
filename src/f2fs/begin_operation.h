// SPDX-License-Identifier: Apache-2.0
//
// The frame of everything that changes a volume: an operation holds the checkpoint lock, which it
// shares with others, so a checkpoint has all of it or nothing, and has room in the page cache for
// what it changes, which stays there until it is written. Where there is too little room, who wants
// to begin makes a checkpoint.
#pragma once

#include "f2fs/write_checkpoint.h"

namespace gofs::f2fs {

/// What an operation works with and for whom. Without pool and caller where it is one that asks for
/// neither.
struct OperationContext {
  Volume& volume;
  Writer& writer;
  const PagePool* pool = nullptr;
  const Credentials* caller = nullptr;
};

namespace detail {

/// Pages that may be dirty between checkpoints. Each may make a page of the NAT dirty while one is
/// made, if there are so many, and something is to be left for readers.
GOFS_HD inline uint32_t dirty_pages_max(const Volume& volume) {
  const uint32_t third = volume.cache.frame_count() / 3;
  return nat_blocks(volume) < third ? volume.cache.frame_count() / 2 : third;
}

/// What there was of dirty pages and of room for more that operations had taken, at a look.
struct RoomSeen {
  uint32_t dirty;
  uint32_t reserved;
  uint32_t most;  // of both

  GOFS_HD constexpr bool is_enough(uint32_t pages) const {
    return dirty + reserved + pages <= most;
  }
};

/// One lane.
GOFS_HD inline RoomSeen look_for_room(const Volume& volume, const Writer& writer) {
  return {simt::load_relaxed(volume.cache.dirty), simt::load_relaxed(writer.reserved),
          dirty_pages_max(volume)};
}

/// Releases what reserve_pages() took. One lane.
GOFS_HD inline void release_pages(Writer& writer, uint32_t pages) {
  const uint32_t before = simt::add_relaxed(writer.reserved, ~pages + 1);
  GOFS_DEBUG_ASSERT(before >= pages);
}

/// Takes room for `pages` more dirty pages, if `seen` says that there is some: what those who do
/// not get it add for a moment, others would miss. One lane.
GOFS_HD inline bool reserve_pages(const Volume& volume, Writer& writer, uint32_t pages,
                                  const RoomSeen& seen) {
  if (!seen.is_enough(pages)) return false;
  const uint32_t before = simt::add_relaxed(writer.reserved, pages);
  const uint32_t dirty = simt::load_relaxed(volume.cache.dirty);
  if (RoomSeen{dirty, before, seen.most}.is_enough(pages)) return true;
  release_pages(writer, pages);
  return false;
}
GOFS_HD inline bool reserve_pages(const Volume& volume, Writer& writer, uint32_t pages) {
  return reserve_pages(volume, writer, pages, look_for_room(volume, writer));
}

/// Takes the checkpoint lock for an operation, with room for `pages` pages, which the caller may
/// have already. Collective, uniform. 0; or, without lock and room: -EAGAIN (there is too little),
/// -EROFS (no checkpoint can be made any more), -EBUSY.
GOFS_NOINLINE GOFS_HD inline int enter_with_room(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, uint32_t pages, bool has_it,
                                                 OpHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  int entered = lock_op(warp, writer.checkpoint_lock, hold,
                        [&] { return help_writeback(warp, volume, writer); });
  const bool inside = entered == 0;
  if (inside && leader) {
    // Loaded together: a GPU would wait for one after the other.
    const int failed = simt::load_relaxed(writer.failed);
    const uint32_t changed = simt::load_relaxed(writer.changed);
    const RoomSeen seen = look_for_room(volume, writer);
    if (failed < 0) {
      entered = -EROFS;
    } else if (!has_it && !reserve_pages(volume, writer, pages, seen)) {
      entered = -EAGAIN;
    } else if (changed == 0) {
      simt::store_relaxed(writer.changed, 1u);
    }
  }
  entered = warp.shfl(entered, 0);
  if (entered == 0) return 0;
  if (has_it && leader) release_pages(writer, pages);
  if (inside) unlock_op(warp, writer.checkpoint_lock, hold);
  return entered;
}

/// Whether a checkpoint is due where there is no room for `pages` more: it alone makes some, or so
/// much is dirty that few operations would have room at a time. They reserve more than they come to
/// change, so those that share the rest would become fewer and fewer.
GOFS_HD inline bool checkpoint_due(const Volume& volume, uint32_t pages) {
  const uint32_t dirty = simt::load_relaxed(volume.cache.dirty);
  return dirty + pages > dirty_pages_max(volume) || 2 * dirty >= dirty_pages_max(volume);
}

/// How long an operation waits for others to end, which have taken more than they come to change,
/// before it keeps them out to have its turn.
inline constexpr uint64_t kRoomTimeoutNs = 100'000'000;

/// Takes room for `pages` pages, under the exclusive checkpoint lock: by a checkpoint, where one is
/// due. Collective, uniform, outside operations. 0; -EAGAIN: there may be room now; or a negative
/// errno.
GOFS_NOINLINE GOFS_HD inline int make_room(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                           uint32_t pages) {
  const simt::Deadline patience = simt::Deadline::after_ns(kRoomTimeoutNs);
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    // What one lane sees: it changes meanwhile.
    uint32_t room = 0;
    uint32_t crowded = 0;
    if (warp.thread_rank() == 0) {
      room = look_for_room(volume, writer).is_enough(pages) ? 1 : 0;
      crowded = checkpoint_due(volume, pages) ? 1 : 0;
    }
    room = warp.shfl(room, 0);
    crowded = warp.shfl(crowded, 0);
    if (room != 0) return -EAGAIN;
    if (crowded != 0 || warp.any(patience.passed())) {
      const int closed = try_lock_for_checkpoint(warp, writer.checkpoint_lock);
      if (closed == 0) break;
      if (closed != -EAGAIN) return closed;
    }
    if (warp.any(deadline.passed())) return -EBUSY;
    if (!help_writeback(warp, volume, writer)) backoff.pause();
  }
  int error = 0;
  if (warp.any(warp.thread_rank() == 0 && checkpoint_due(volume, pages))) {
    Operation op = Operation::under_checkpoint_lock(volume, writer);
    error = write_all(warp, op, false);
  }
  // What others have now is theirs alike: they held the checkpoint lock exclusively before, and are
  // about to share it.
  if (error == 0 && warp.thread_rank() == 0) {
    error = reserve_pages(volume, writer, pages) ? 0 : -EAGAIN;
  }
  error = warp.shfl(error, 0);
  unlock_after_checkpoint(warp, writer.checkpoint_lock);
  return error;
}

}  // namespace detail

namespace detail {

/// Takes the checkpoint lock for an operation, with room for `pages` more dirty pages. Collective,
/// uniform. 0 or a negative errno, as begin_operation().
GOFS_NOINLINE GOFS_HD inline int enter_operation(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, uint32_t pages, OpHold& hold) {
  if (pages > dirty_pages_max(volume)) return -ENOBUFS;
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  bool has_it = false;
  for (;;) {
    int error = enter_with_room(warp, volume, writer, pages, has_it, hold);
    if (error != -EAGAIN) return error;
    error = make_room(warp, volume, writer, pages);
    if (error < 0 && error != -EAGAIN) return error;
    has_it = error == 0;
    if (!has_it && warp.any(deadline.passed())) return -EBUSY;
  }
}

/// What begins and ends operations: the only one who may make them and look into them.
struct OperationFrame {
  GOFS_HD static void begin(OperationSlot& slot, const OperationContext& context,
                            const TimeStamp& now, const OpHold& hold, const PageBudget& pages) {
    new (&slot.operation_) Operation(context.volume, context.writer, context.pool, context.caller,
                                     now, hold, pages.own);
    if constexpr (simt::kDebugChecks) {
      slot.operation_.dirtied_.begin(pages, simt::load_relaxed(context.writer.fsync_log.written));
    }
    slot.begun_ = true;
  }
  GOFS_HD static void check_begun(const OperationSlot& slot, bool begun) {
    GOFS_ASSERT(slot.begun_ == begun);
  }
  GOFS_HD static void end(simt::AnyWarp auto warp, OperationSlot& slot) {
    Operation& op = *slot;
    if constexpr (simt::kDebugChecks) {
      op.dirtied_.check(warp, simt::load_relaxed(op.writer.fsync_log.issued));
    }
    if (warp.thread_rank() == 0) release_pages(op.writer, op.pages_);
    unlock_op(warp, op.writer.checkpoint_lock, op.hold_);
    slot.begun_ = false;
  }
};

}  // namespace detail

/// Begins an operation of the calling warp that changes at most `pages` pages, in `slot`, which has
/// none under way; nor has the warp elsewhere. `clock()`, asked within an operation, is its time.
/// Collective, uniform. 0 or a negative errno: -ENOBUFS (the cache is too small for it), -EROFS (no
/// checkpoint can be made any more), and those of write_checkpoint().
template <typename Clock>
GOFS_HD int begin_operation(simt::AnyWarp auto warp, const OperationContext& context,
                            const PageBudget& pages, Clock clock, OperationSlot& slot) {
  detail::OperationFrame::check_begun(slot, false);
  OpHold hold{};
  const int error = detail::enter_operation(warp, context.volume, context.writer, pages.own, hold);
  if (error == 0) detail::OperationFrame::begin(slot, context, clock(), hold, pages);
  return error;
}
/// The same of one that sets no times.
GOFS_HD inline int begin_operation(simt::AnyWarp auto warp, const OperationContext& context,
                                   const PageBudget& pages, OperationSlot& slot) {
  return begin_operation(
      warp, context, pages, [] { return TimeStamp{}; }, slot);
}

/// Ends it: what it changed is seen by others at once, and durable after the next checkpoint.
/// Collective.
GOFS_HD inline void end_operation(simt::AnyWarp auto warp, OperationSlot& slot) {
  detail::OperationFrame::end(warp, slot);
}

/// Makes durable what was written over blocks where they lie (write_over.h), where nothing else of
/// what is made durable takes a flush. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int flush_overwrites(simt::AnyWarp auto warp, Volume& volume, const Writer& writer) {
  return warp.shfl(simt::load_relaxed(writer.written_over), 0) == 0 ? 0
                                                                    : flush_device(warp, volume);
}

/// Makes all that was done durable: a checkpoint, if operations have left anything to write or,
/// when `unmounting`, to say. Collective, by one warp with no operation under way. As
/// write_checkpoint().
GOFS_HD inline int sync_volume(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                               bool unmounting) {
  const bool changed = simt::load_relaxed(writer.changed) != 0;
  const bool told = !unmounting || volume.cleanly_unmounted();
  // What one lane has seen, since others begin operations meanwhile.
  const uint32_t needed = warp.shfl(changed || !told ? 1u : 0u, 0);
  return needed == 0 ? flush_overwrites(warp, volume, writer)
                     : write_checkpoint(warp, volume, writer, unmounting);
}

}  // namespace gofs::f2fs
