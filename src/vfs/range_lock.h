// SPDX-License-Identifier: Apache-2.0
//
// Who may touch which bytes of a file at once. Readers of a file that is not being written only
// count themselves: one atomic a warp. So do block writers, which write single blocks, or a few, of
// a file that is not being read, and queue up for each block then (block_queue.h, block_span.h). As
// soon as the two meet, or a thread writes more at once, all of them queue in a line. The first one
// has an entry in the lock itself, and needs no more where it is alone. Those that come meanwhile
// append their ranges to a ring, which the lock has borrowed for that (range_rings.h), and wait for
// the first one, and for the earlier entries that overlap theirs, compared 32 at a time; a later
// request never overtakes an earlier one that it overlaps (GoFS, SOSP'25, section 3.3). Only where
// all rings are in use, any of those that wait for the first one comes next.
//
// One word decides between these: it counts readers and block writers outside the line, and writers
// that want it used. Another one has the next ticket of the ring, and which it is.
//
// A write that stays under way when its call has returned (async_write.h) does not keep an entry of
// the ring, since the request a lap later waits for that, and may be the one that is to end the
// write: its range is detached, in a table of its own, through which each request looks after its
// turn. One that finds a part of its range there leaves the ring as well, waits, and queues up
// anew: it may be overtaken.
//
// A lock may be set up as one for the whole file (hold_whole_files): to it any two ranges overlap.
// Detached ranges are what they are there too, since the thread that has one may go on writing
// elsewhere before it ends it.
#pragma once

#include "simt/warp.h"
#include "vfs/range_rings.h"

namespace gofs::vfs {

struct ByteRange {
  uint64_t offset;
  uint64_t bytes;
};

/// From the first to the last byte that one of `lanes`, which are not none, asks for. Collective,
/// uniform.
GOFS_HD inline ByteRange range_of_lanes(simt::AnyWarp auto warp, uint32_t lanes, uint64_t offset,
                                        uint64_t bytes) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint64_t first = simt::reduce_min(warp, mine ? offset : ~uint64_t{0});
  const uint64_t end = simt::reduce_max(warp, mine ? offset + bytes : 0);
  return {first, end - first};
}

/// Of RangeLock::growing.
inline constexpr uint32_t kEndLocked = 1;
inline constexpr uint32_t kOneGrower = 2;

/// What unlock needs to know.
struct RangeHold {
  uint64_t place;   // in the line: `turns` of who came there; 0: as the first
  RangeRing* ring;  // null: as the first
  bool in_ring;     // in the line at all
};

namespace detail {

inline constexpr uint64_t kOneBlockWriter = uint64_t{1} << 21;
inline constexpr uint64_t kOneWriter = uint64_t{1} << 42;
inline constexpr uint64_t kAllReaders = kOneBlockWriter - 1;
inline constexpr uint64_t kAllBlockWriters = kOneWriter - kOneBlockWriter;

GOFS_HD inline bool overlap(const ByteRange& a, uint64_t offset, uint64_t bytes) {
  return a.offset < offset + bytes && offset < a.offset + a.bytes;
}

/// What try_to_stand() says where it has found no place.
inline constexpr uint64_t kNowhere = ~uint64_t{0};

/// Takes the next place in the line, unless the lock has no ring and can get none. One lane.
/// `turns` of the place, 0 of the first one, or kNowhere.
GOFS_HD inline uint64_t try_to_stand(RangeLock& lock) {
  for (;;) {
    const uint64_t turns = simt::AtomicRef<uint64_t>(lock.turns)
                               .fetch_add(kOneTicket, simt::memory_order_acquire);  // [V19]
    // Tickets that are counted where there is no ring belong to none.
    if (turns == 0 || ring_of(turns) != 0) return turns & ~kFirst;
    if (!give_ring(lock)) return kNowhere;
  }
}

GOFS_HD inline RangeEntry& entry_of(RangeLock& lock, const RangeHold& hold) {
  if (hold.ring == nullptr) return lock.first;
  return hold.ring->entries[ticket_of(hold.place) % kRangeRingEntries];
}

/// Leaves the place of the first. One lane.
GOFS_HD inline void leave_first(RangeLock& lock) {
  simt::AtomicRef<uint64_t> turns(lock.turns);
  simt::store_relaxed(lock.first.state, 0u);
  uint64_t now = kOneTicket;  // where none has come since
  while (ring_of(now) == 0) {
    if (turns.compare_exchange_strong(now, 0, simt::memory_order_release,
                                      simt::memory_order_relaxed)) {  // [V19]
      return;
    }
  }
  turns.fetch_sub(kFirst, simt::memory_order_release);  // [V19]
}

/// Gives a place to who comes next: the entry of a ring to the next lap's user. One lane.
GOFS_HD inline void release_place(RangeLock& lock, const RangeHold& hold) {
  if (hold.ring == nullptr) return leave_first(lock);
  simt::store_release(entry_of(lock, hold).state, free_state(ticket_of(hold.place)));   // [V2]
  simt::AtomicRef<uint64_t>(hold.ring->left).fetch_add(1, simt::memory_order_release);  // [V2]
}

/// Whether none queues before the one that is in the ring at `hold`, as far as two words tell: not
/// where another one has come since. What those before have done is seen then; `turns` are what the
/// lock says. One lane.
GOFS_HD inline bool has_line_alone(const RangeLock& lock, const RangeHold& hold, uint64_t& turns) {
  // First the number of those that have left: who comes later may have left too, while one before
  // us has not. None was among them if none has come until we look for that.
  const uint64_t left = simt::load_acquire(hold.ring->left) & kTicketMask;  // [V2]
  turns = simt::load_acquire(lock.turns);                                   // [V19]
  const bool is_last = turns == hold.place + kOneTicket;                    // and none is the first
  return is_last && left == ticket_of(hold.place);
}

/// Whether a part of `range` is detached there. What the write has done is seen where it is not so.
GOFS_HD inline bool overlaps_detached(const DetachedRange& entry, const ByteRange& range) {
  // All three, since the next write that detaches a range here may be writing them: its offset must
  // not be seen without what the one before it has done. [V10]
  return simt::load_acquire(entry.state) != 0 &&
         overlap(range, simt::load_acquire(entry.offset), simt::load_acquire(entry.bytes));
}

}  // namespace detail

/// Makes a lock that is not used yet one for the whole file. A writer that never leaves keeps all
/// others in the ring, so those outside of it have nothing more to look at.
GOFS_HD inline void hold_whole_files(RangeLock& lock) {
  lock.holder_counts = detail::kOneWriter;
  lock.whole_file = 1;
}

/// Whether a part of `range` is detached now: a caller that need not have it had better not wait
/// for that. Collective, uniform; for sure by a caller that holds the range in the ring, since no
/// part of it is detached then.
GOFS_HD inline bool is_detached(simt::AnyWarp auto warp, const RangeLock& lock,
                                const ByteRange& range) {
  if (!warp.any(simt::load_acquire(lock.detached_count) != 0)) return false;  // [V10]
  // As long as one is detached, the lock keeps its ring. A caller that does not hold the range may
  // look at one that has become another lock's.
  const uint32_t number = warp.shfl(detail::ring_of(simt::load_relaxed(lock.turns)), 0);
  if (number == 0) return false;
  const RangeRing& ring = lock.rings->ring(number);
  bool found = false;
  for (uint32_t i = warp.thread_rank(); i < kDetachedRanges; i += warp.size()) {
    found = found || detail::overlaps_detached(ring.detached[i], range);
  }
  return warp.any(found);
}

namespace detail {

/// Takes a place in the line. Collective, uniform. False: the first one was not released before the
/// deadline, and all rings were in use.
GOFS_HD inline bool take_place(simt::AnyWarp auto warp, RangeLock& lock,
                               const simt::Deadline& deadline, RangeHold& hold) {
  RangeRings* const rings = simt::load_here(lock.rings);  // not a wait of its own
  simt::Backoff backoff;
  for (bool waited = false;; waited = true) {
    uint64_t place = 0;
    if (warp.thread_rank() == 0) {
      // A waiter looks first: the first one leaves by a word that must not change meanwhile
      // (leave_first), and never would if thousands counted themselves at each try.
      place = waited && !give_ring(lock) ? kNowhere : try_to_stand(lock);
    }
    place = warp.shfl(place, 0);
    if (place != kNowhere) {
      hold = RangeHold{place, place == 0 ? nullptr : &rings->ring(ring_of(place)), true};
      return true;
    }
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

/// Enters a range at a place of the line. Collective.
GOFS_HD inline void enter_range(simt::AnyWarp auto warp, RangeLock& lock, const RangeHold& hold,
                                const ByteRange& range, bool exclusive) {
  RangeEntry& mine = entry_of(lock, hold);
  const uint64_t ticket = ticket_of(hold.place);
  const bool is_first = hold.ring == nullptr;
  if (!is_first) {
    // The entry's former user, a lap ago, must have left it. A ticket cannot be handed back, so
    // this wait ends only with that user, who has a deadline of his own.
    simt::Backoff backoff;
    while (warp.any(simt::load_acquire(mine.state) != ready_state(ticket))) backoff.pause();
  }
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(mine.offset, range.offset);
    simt::store_relaxed(mine.bytes, range.bytes);
    simt::store_relaxed(mine.exclusive, exclusive ? 1u : 0u);
    simt::store_release(mine.state, is_first ? 1u : held_state(ticket));  // [V2] [V19]
  }
  warp.sync();
}

/// What a request compares with those before it.
struct RangeRequest {
  ByteRange range;
  bool exclusive;
  bool whole;  // it overlaps all others
};

GOFS_HD inline bool is_in_the_way(const RangeEntry& entry, const RangeRequest& request) {
  return (request.exclusive || simt::load_relaxed(entry.exclusive) != 0) &&
         (request.whole || overlap(request.range, simt::load_relaxed(entry.offset),
                                   simt::load_relaxed(entry.bytes)));
}

/// Waits for the request in the lock itself, on behalf of the first in its ring: no other comes
/// there meanwhile. Collective, uniform. False: it is in the way until the deadline.
GOFS_NOINLINE GOFS_HD inline bool wait_for_first(simt::AnyWarp auto warp, const RangeLock& lock,
                                                 const RangeRequest& request,
                                                 const simt::Deadline& deadline) {
  simt::Backoff backoff;
  for (;;) {
    bool waiting = false;
    if (warp.thread_rank() == 0 && (simt::load_acquire(lock.turns) & kFirst) != 0) {  // [V19]
      // Or he has yet to write his entry.
      waiting = simt::load_acquire(lock.first.state) == 0 ||  // [V19]
                is_in_the_way(lock.first, request);
    }
    if (!warp.any(waiting)) return true;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

/// Waits for all earlier tickets that can still be in the ring, a lane each. Collective, uniform.
/// False: one is in the way until the deadline.
GOFS_HD inline bool wait_for_tickets(simt::AnyWarp auto warp, const RangeHold& hold,
                                     const RangeRequest& request, const simt::Deadline& deadline) {
  simt::Backoff backoff;
  for (uint32_t back = 1; back < kRangeRingEntries; back += warp.size()) {
    const uint32_t distance = back + warp.thread_rank();
    bool waiting = distance < kRangeRingEntries;
    // Those before the first one that there was were released as well.
    const uint64_t other = ticket_of(hold.place) - distance;
    const RangeEntry& entry = hold.ring->entries[other % kRangeRingEntries];
    backoff.reset();
    for (;;) {
      if (waiting) {
        const uint32_t state = simt::load_acquire(entry.state);  // [V2]
        const auto behind = static_cast<int32_t>(state - held_state(other));
        // Below 0 its owner has yet to write it, above it was released.
        waiting = behind < 0 || (behind == 0 && is_in_the_way(entry, request));
      }
      if (!warp.any(waiting)) break;
      if (warp.any(waiting && deadline.passed())) return false;
      backoff.pause();
    }
  }
  return true;
}

/// How long requests that come to the line let those go first that wait for it to become empty.
inline constexpr uint64_t kYieldNs = 5'000'000;

/// Before the caller comes to the line. Without it, writers of blocks that have once gone to the
/// line would keep all others there: some of them always stands in it. Collective.
GOFS_HD inline void let_block_writers_go(simt::AnyWarp auto warp, const RangeLock& lock) {
  if (!warp.any(warp.thread_rank() == 0 && simt::load_relaxed(lock.waiting_outside) != 0)) return;
  const simt::Deadline patience = simt::Deadline::after_ns(kYieldNs);
  simt::Backoff backoff;
  do {
    backoff.pause();
  } while (warp.any(warp.thread_rank() == 0 && simt::load_relaxed(lock.waiting_outside) != 0) &&
           !warp.any(patience.passed()));
}

/// Queues in the line with `range` and waits for its turn: for those before it that overlap it, for
/// the block writers and, if it is exclusive, for the readers outside the line, which came earlier
/// than any that is still waited for. Collective, uniform. 0, or -ETIMEDOUT when an earlier holder
/// did not release it before the deadline; then nothing is held.
GOFS_NOINLINE GOFS_HD inline int take_turn(simt::AnyWarp auto warp, RangeLock& lock,
                                           const ByteRange& range, bool exclusive,
                                           const simt::Deadline& deadline, RangeHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  const RangeRequest request{range, exclusive, lock.whole_file != 0};
  if (!take_place(warp, lock, deadline, hold)) return -ETIMEDOUT;
  enter_range(warp, lock, hold, range, exclusive);
  const auto withdraw = [&] {
    warp.sync();
    if (leader) release_place(lock, hold);
    return -ETIMEDOUT;
  };
  // Who came before us and stays outside the line is waited for wherever he reads or writes. Our
  // entry stands already: who comes now queues up behind it.
  const uint64_t outside = exclusive ? kAllReaders | kAllBlockWriters : kAllBlockWriters;
  simt::AtomicRef<uint64_t> counts(lock.holder_counts);
  simt::Backoff backoff;
  while (warp.any((counts.load(simt::memory_order_seq_cst) & outside) != 0)) {  // [V5] [V11]
    if (warp.any(deadline.passed())) return withdraw();
    backoff.pause();
  }
  if (hold.ring != nullptr) {
    // Who writes a file by himself need not look at each.
    uint64_t turns = 0;
    const uint32_t alone = leader && has_line_alone(lock, hold, turns) ? 1 : 0;
    const bool has_first = warp.shfl(static_cast<uint32_t>(turns & kFirst), 0) != 0;
    if (warp.shfl(alone, 0) == 0) {
      if (has_first && !wait_for_first(warp, lock, request, deadline)) return withdraw();
      if (!wait_for_tickets(warp, hold, request, deadline)) return withdraw();
    }
  }
  warp.sync();
  return 0;
}

/// Leaves the line. Collective.
GOFS_HD inline void leave_ring(simt::AnyWarp auto warp, RangeLock& lock, const RangeHold& hold) {
  warp.sync();
  if (warp.thread_rank() == 0) release_place(lock, hold);
}

}  // namespace detail

/// Holds `range` in the line when its turn has come and no part of it is detached. Collective,
/// uniform. 0, or -ETIMEDOUT when another thread did not release it before the deadline; then
/// nothing is held.
GOFS_NOINLINE GOFS_HD inline int lock_in_ring(simt::AnyWarp auto warp, RangeLock& lock,
                                              const ByteRange& range, bool exclusive,
                                              const simt::Deadline& deadline, RangeHold& hold) {
  simt::Backoff backoff;
  for (;;) {
    const int error = detail::take_turn(warp, lock, range, exclusive, deadline, hold);
    if (error < 0) return error;
    // A range is detached before its entry leaves the line; where we are the first, none is.
    if (hold.ring == nullptr || !is_detached(warp, lock, range)) break;
    detail::leave_ring(warp, lock, hold);
    while (is_detached(warp, lock, range)) {
      if (warp.any(deadline.passed())) return -ETIMEDOUT;
      backoff.pause();
    }
  }
  warp.sync();
  return 0;
}

/// Lets the readers outside the ring go on without this warp, which is one of them. Collective.
GOFS_HD inline void leave_readers(simt::AnyWarp auto warp, RangeLock& lock) {
  warp.sync();
  if (warp.thread_rank() == 0) simt::count_release(lock.holder_counts, ~uint64_t{0});  // [V5]
}

/// The same for who writes single blocks. What the warp had written before `release` is seen by who
/// comes next; it has synchronised then.
GOFS_HD inline void leave_block_writers(simt::AnyWarp auto warp, RangeLock& lock,
                                        const simt::Release& release) {
  if (warp.thread_rank() == 0)
    release.add(lock.holder_counts, ~detail::kOneBlockWriter + 1);  // [V5]
}
GOFS_HD inline void leave_block_writers(simt::AnyWarp auto warp, RangeLock& lock) {
  warp.sync();
  leave_block_writers(warp, lock, simt::Release());
}

/// Joins the readers outside the ring, which hold the whole file, unless it is being written.
/// Collective, uniform.
GOFS_HD inline bool try_join_readers(simt::AnyWarp auto warp, RangeLock& lock) {
  uint32_t written = 0;
  if (warp.thread_rank() == 0) {
    const uint64_t counts =
        simt::AtomicRef<uint64_t>(lock.holder_counts).fetch_add(1, simt::memory_order_acquire);
    written = counts > detail::kAllReaders ? 1 : 0;
  }
  const bool joined = warp.shfl(written, 0) == 0;
  warp.sync();
  if (!joined) leave_readers(warp, lock);
  return joined;
}

/// try_join_block_writers() in two steps, between which, or beside the second, a warp may look at
/// other things: counts the warp as one of them. Collective. The counts before, for lane 0.
GOFS_HD inline uint64_t enter_block_writers(simt::AnyWarp auto warp, RangeLock& lock) {
  uint64_t counts = 0;
  // Readers in the ring write their word before they look at ours, so one of us sees the other, in
  // one order for all. [V11]
  if (warp.thread_rank() == 0) {
    counts = simt::add_before_look(lock.holder_counts, detail::kOneBlockWriter);
  }
  warp.sync();
  return counts;
}
/// The second: whether it may stay; if not, it is to leave. Each lane gets what it would be if
/// `counts` is what it returned; lane 0 knows.
GOFS_HD inline bool may_write_blocks(const RangeLock& lock, uint64_t counts,
                                     const uint32_t& awaited) {
  const uint32_t waiting = simt::load_relaxed(awaited);
  const uint32_t readers = simt::look_after_add(lock.ring_readers);  // [V11]
  return (counts & ~detail::kAllBlockWriters) == 0 && readers == 0 && waiting == 0;
}

/// Joins those who write single blocks outside the ring, and queue up for each of them: unless
/// another thread reads the file, or writes it otherwise, or `awaited` is not 0: a thread waits for
/// the block writers (has_block_writers). Collective, uniform.
GOFS_HD inline bool try_join_block_writers(simt::AnyWarp auto warp, RangeLock& lock,
                                           const uint32_t& awaited) {
  const uint64_t counts = enter_block_writers(warp, lock);
  const bool joined = warp.shfl(may_write_blocks(lock, counts, awaited) ? 1u : 0u, 0) != 0;
  warp.sync();
  if (!joined) leave_block_writers(warp, lock);
  return joined;
}

/// Holds the file's end exclusively for a warp that joins the block writers next: none of them
/// makes the file longer then. One lane: false, others do.
GOFS_HD inline bool try_lock_end(RangeLock& lock) {
  uint32_t free = 0;
  return simt::AtomicRef<uint32_t>(lock.growing)
      .compare_exchange_strong(free, kEndLocked, simt::kAcquiredByNextLook,
                               simt::memory_order_relaxed);  // [V16]
}

/// Releases it. What the warp had written before `release`, and synchronised, is seen by the next
/// one. One lane.
GOFS_HD inline void unlock_end(RangeLock& lock, const simt::Release& release) {
  release.add(lock.growing, ~kEndLocked + 1);  // [V16]
}

/// Counts the warp, which is one of the block writers, among those who make the file longer side by
/// side. Collective, uniform. False: another warp holds the end exclusively.
GOFS_HD inline bool try_share_end(simt::AnyWarp auto warp, RangeLock& lock) {
  uint32_t shared = 0;
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t> growing(lock.growing);
    const uint32_t before = growing.fetch_add(kOneGrower, simt::memory_order_acquire);  // [V16]
    shared = (before & kEndLocked) == 0 ? 1 : 0;
    if (shared == 0) growing.fetch_sub(kOneGrower, simt::memory_order_relaxed);
  }
  shared = warp.shfl(shared, 0);
  warp.sync();
  return shared != 0;
}

/// Collective; what the warp had written before `release` is seen by the next thread that holds the
/// end.
GOFS_HD inline void unshare_end(simt::AnyWarp auto warp, RangeLock& lock,
                                const simt::Release& release) {
  if (warp.thread_rank() == 0) release.add(lock.growing, ~kOneGrower + 1);  // [V16]
}

/// Whether writers stand in the line, or wait there. One lane; a look only.
GOFS_HD inline bool has_range_writers(const RangeLock& lock) {
  return simt::load_relaxed(lock.holder_counts) >= detail::kOneWriter;
}

/// Whether none reads the file, and locks are not those of whole files: all that keeps a block
/// writer out are other writers. One lane; a look only.
GOFS_HD inline bool only_writers_there(const RangeLock& lock) {
  const uint64_t counts = simt::load_relaxed(lock.holder_counts);
  return (counts & detail::kAllReaders) == 0 && simt::load_relaxed(lock.ring_readers) == 0 &&
         simt::load_relaxed(lock.detached_count) == 0 && lock.whole_file == 0;
}

/// Says that the warp waits until the line is empty, to join the block writers; those who come to
/// the line now let it go first, as far as they are patient. Collective.
GOFS_HD inline void wait_for_line(simt::AnyWarp auto warp, RangeLock& lock) {
  if (warp.thread_rank() == 0) simt::add_relaxed(lock.waiting_outside, 1u);
}
GOFS_HD inline void stop_waiting_for_line(simt::AnyWarp auto warp, RangeLock& lock) {
  if (warp.thread_rank() == 0) simt::add_relaxed(lock.waiting_outside, ~0u);
}

/// Whether there are block writers. Who joins them afterwards has seen what the caller did before,
/// `awaited` too; what those have written who are done is seen then.
GOFS_HD inline bool has_block_writers(RangeLock& lock) {
  // Changed, though by nothing, so that it is one after the other with who joins. [V15]
  const uint64_t counts =
      simt::AtomicRef<uint64_t>(lock.holder_counts).fetch_add(0, simt::memory_order_acq_rel);
  return (counts & detail::kAllBlockWriters) != 0;
}

namespace detail {

/// The reader in the ring releases it, or gives up. Collective.
GOFS_HD inline void leave_ring_readers(simt::AnyWarp auto warp, RangeLock& lock) {
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint32_t>(lock.ring_readers).fetch_sub(1, simt::memory_order_release);  // [V11]
}

/// lock_in_ring() for a reader, which keeps block writers away as long as it is there.
GOFS_NOINLINE GOFS_HD inline int read_in_ring(simt::AnyWarp auto warp, RangeLock& lock,
                                              const ByteRange& range,
                                              const simt::Deadline& deadline, RangeHold& hold) {
  let_block_writers_go(warp, lock);
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(lock.ring_readers).fetch_add(1, simt::memory_order_seq_cst);  // [V11]
  }
  const int error = lock_in_ring(warp, lock, range, false, deadline, hold);
  if (error < 0) leave_ring_readers(warp, lock);
  return error;
}

}  // namespace detail

/// Holds `range` for reading. Collective, uniform. As lock_in_ring.
GOFS_HD inline int lock_shared(simt::AnyWarp auto warp, RangeLock& lock, const ByteRange& range,
                               const simt::Deadline& deadline, RangeHold& hold) {
  hold = RangeHold{0, nullptr, false};
  return try_join_readers(warp, lock) ? 0 : detail::read_in_ring(warp, lock, range, deadline, hold);
}

GOFS_HD inline void unlock_shared(simt::AnyWarp auto warp, RangeLock& lock, const RangeHold& hold) {
  if (!hold.in_ring) return leave_readers(warp, lock);
  detail::leave_ring(warp, lock, hold);
  detail::leave_ring_readers(warp, lock);
}

/// Holds `range` for writing. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int lock_exclusive(simt::AnyWarp auto warp, RangeLock& lock,
                                                const ByteRange& range,
                                                const simt::Deadline& deadline, RangeHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  detail::let_block_writers_go(warp, lock);
  if (leader) {
    simt::AtomicRef<uint64_t>(lock.holder_counts)
        .fetch_add(detail::kOneWriter, simt::memory_order_acq_rel);
  }
  const int error = lock_in_ring(warp, lock, range, true, deadline, hold);
  if (error < 0) {
    warp.sync();
    if (leader) {
      simt::AtomicRef<uint64_t>(lock.holder_counts)
          .fetch_sub(detail::kOneWriter, simt::memory_order_release);
    }
    return error;
  }
  // Not before the range is held: what its next holder finds here is what others have come to hold
  // since. [V5]
  if (leader) simt::add_relaxed(lock.holds, 1u);
  return 0;
}

GOFS_HD inline void unlock_exclusive(simt::AnyWarp auto warp, RangeLock& lock,
                                     const RangeHold& hold) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  detail::release_place(lock, hold);
  simt::AtomicRef<uint64_t>(lock.holder_counts)
      .fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

/// Detaches a range that is held for writing: it gives up its place in the line, and stays held
/// until unlock_detached(). Collective, uniform; `hold` is over then. False, and it is not, where
/// kDetachedRanges are detached already, or the lock has no ring and gets none.
GOFS_NOINLINE GOFS_HD inline bool detach_lock(simt::AnyWarp auto warp, RangeLock& lock,
                                              const RangeHold& hold, uint32_t& detached) {
  detached = kDetachedRanges;
  RangeEntry& mine = detail::entry_of(lock, hold);
  const uint64_t ticket = detail::ticket_of(hold.place);
  warp.sync();
  if (warp.thread_rank() == 0) {
    if (hold.ring == nullptr) (void)detail::give_ring(lock);
    const uint32_t number = detail::ring_of(simt::load_relaxed(lock.turns));
    for (uint32_t i = 0; number != 0 && i < kDetachedRanges; ++i) {
      DetachedRange& entry = lock.rings->ring(number).detached[(ticket + i) % kDetachedRanges];
      if (!simt::try_lock(entry.state)) continue;
      simt::store_release(entry.offset, simt::load_relaxed(mine.offset));  // [V10]
      simt::store_release(entry.bytes, simt::load_relaxed(mine.bytes));
      simt::add_relaxed(lock.detached_count, 1u);
      detail::release_place(lock, hold);
      detached = static_cast<uint32_t>((ticket + i) % kDetachedRanges);
      break;
    }
  }
  detached = warp.shfl(detached, 0);
  warp.sync();
  return detached != kDetachedRanges;
}

GOFS_HD inline void unlock_detached(simt::AnyWarp auto warp, RangeLock& lock, uint32_t detached) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  const uint32_t number = detail::ring_of(simt::load_relaxed(lock.turns));
  simt::unlock(lock.rings->ring(number).detached[detached].state);  // [V10]
  simt::AtomicRef<uint32_t>(lock.detached_count).fetch_sub(1, simt::memory_order_release);
  simt::AtomicRef<uint64_t>(lock.holder_counts)
      .fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

}  // namespace gofs::vfs
