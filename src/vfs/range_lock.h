// SPDX-License-Identifier: Apache-2.0
//
// Who may touch which bytes of a file at once. Readers of a file that nobody writes only count
// themselves: one atomic a warp. So do those who write single blocks, or a few, of a file that
// nobody reads, and queue up for each block then (block_queue.h, block_span.h). As soon as the two
// meet, or somebody writes more at once, everybody stands in a line. The first one has an entry in
// the lock itself, and needs no more where he is by himself. Those who come meanwhile append their
// ranges to a ring, which the lock has borrowed for that (range_rings.h), and wait for the first
// one, and for the earlier entries that overlap theirs, compared 32 at a time; a later request
// never overtakes an earlier one that it overlaps (GoFS, SOSP'25, section 3.3). Only where all
// rings are in use, any of those who wait for the first one comes next.
//
// One word decides between these: it counts readers and writers of single blocks outside the line,
// and writers that want it used. Another one has the next ticket of the ring, and which it is.
//
// A write that stays under way when its call has returned (async_write.h) does not keep an entry of
// the ring, since who comes a lap later waits for that, and may be the one who is to end the write:
// it keeps its range in a table of its own, through which everybody looks after his turn. Who finds
// a part of his range there leaves the ring as well, waits, and queues up anew: it may be
// overtaken.
//
// A lock may be set up as one for the whole file (hold_whole_files): to it any two ranges overlap.
// Ranges that are kept are what they are there too, since who keeps one may go on writing elsewhere
// before he ends it.
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
    // Tickets that are counted where there is no ring are nobody's.
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
  uint64_t now = kOneTicket;  // where nobody has come since
  while (ring_of(now) == 0) {
    if (turns.compare_exchange_strong(now, 0, simt::memory_order_release,
                                      simt::memory_order_relaxed)) {  // [V19]
      return;
    }
  }
  turns.fetch_sub(kFirst, simt::memory_order_release);  // [V19]
}

/// Gives a place to who comes next: the entry of a ring to the next lap's user. One lane.
GOFS_HD inline void let_go(RangeLock& lock, const RangeHold& hold) {
  if (hold.ring == nullptr) return leave_first(lock);
  simt::store_release(entry_of(lock, hold).state, free_state(ticket_of(hold.place)));   // [V2]
  simt::AtomicRef<uint64_t>(hold.ring->left).fetch_add(1, simt::memory_order_release);  // [V2]
}

/// Whether nobody stands before who is in the ring at `hold`, as far as two words tell: not where
/// another one has come since, who may have let go as well. What those before have done is seen
/// then; `turns` are what the lock says. One lane.
GOFS_HD inline bool has_line_alone(const RangeLock& lock, const RangeHold& hold, uint64_t& turns) {
  turns = simt::load_acquire(lock.turns);     // [V19]
  return turns == hold.place + kOneTicket &&  // and nobody is the first
         (simt::load_acquire(hold.ring->left) & kTicketMask) == ticket_of(hold.place);  // [V2]
}

/// Whether somebody keeps a part of `range` there. What he has done is seen where it is not so.
GOFS_HD inline bool is_kept_here(const KeptRange& entry, const ByteRange& range) {
  // All three, since the next one who keeps something here may be writing them: his offset must
  // not be seen without what the one before him has done. [V10]
  return simt::load_acquire(entry.state) != 0 &&
         overlap(range, simt::load_acquire(entry.offset), simt::load_acquire(entry.bytes));
}

}  // namespace detail

/// Makes a lock that nobody uses yet one for the whole file. A writer who never leaves keeps all
/// others in the ring, so those outside of it have nothing more to look at.
GOFS_HD inline void hold_whole_files(RangeLock& lock) {
  lock.gate = detail::kOneWriter;
  lock.whole_file = 1;
}

/// Whether somebody keeps a part of `range` now: who need not have it had better not wait for him.
/// Collective, uniform; for sure by who holds the range in the ring, since nobody comes to keep a
/// part of it then.
GOFS_HD inline bool is_kept(simt::AnyWarp auto warp, const RangeLock& lock,
                            const ByteRange& range) {
  if (!warp.any(simt::load_acquire(lock.kept_count) != 0)) return false;  // [V10]
  // As long as somebody keeps one, the lock keeps its ring. Who does not hold the range may look at
  // one that has become another's.
  const uint32_t number = warp.shfl(detail::ring_of(simt::load_relaxed(lock.turns)), 0);
  if (number == 0) return false;
  const RangeRing& ring = lock.rings->ring(number);
  bool found = false;
  for (uint32_t i = warp.thread_rank(); i < kKeptRanges; i += warp.size()) {
    found = found || detail::is_kept_here(ring.kept[i], range);
  }
  return warp.any(found);
}

namespace detail {

/// Takes a place in the line. Collective, uniform. False: the first one did not let go before the
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

/// Waits for who stands in the lock itself, by who stands in its ring: nobody else comes there
/// meanwhile. Collective, uniform. False: he is in the way until the deadline.
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
    // Those before the first one that there was have let go as well.
    const uint64_t other = ticket_of(hold.place) - distance;
    const RangeEntry& entry = hold.ring->entries[other % kRangeRingEntries];
    backoff.reset();
    for (;;) {
      if (waiting) {
        const uint32_t state = simt::load_acquire(entry.state);  // [V2]
        const auto behind = static_cast<int32_t>(state - held_state(other));
        // Below 0 its owner has yet to write it, above it has let go.
        waiting = behind < 0 || (behind == 0 && is_in_the_way(entry, request));
      }
      if (!warp.any(waiting)) break;
      if (warp.any(waiting && deadline.passed())) return false;
      backoff.pause();
    }
  }
  return true;
}

/// Stands in the line with `range` and waits for its turn: for those before it that overlap it, for
/// the writers of single blocks and, if it is exclusive, for the readers outside the line, who came
/// earlier than anybody that is still waited for. Collective, uniform. 0, or -ETIMEDOUT when an
/// earlier holder did not let go before the deadline; then nothing is held.
GOFS_NOINLINE GOFS_HD inline int take_turn(simt::AnyWarp auto warp, RangeLock& lock,
                                           const ByteRange& range, bool exclusive,
                                           const simt::Deadline& deadline, RangeHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  const RangeRequest request{range, exclusive, lock.whole_file != 0};
  if (!take_place(warp, lock, deadline, hold)) return -ETIMEDOUT;
  enter_range(warp, lock, hold, range, exclusive);
  const auto withdraw = [&] {
    warp.sync();
    if (leader) let_go(lock, hold);
    return -ETIMEDOUT;
  };
  // Who came before us and stays outside the line is waited for wherever he reads or writes. Our
  // entry stands already: who comes now queues up behind it.
  const uint64_t outside = exclusive ? kAllReaders | kAllBlockWriters : kAllBlockWriters;
  simt::AtomicRef<uint64_t> gate(lock.gate);
  simt::Backoff backoff;
  while (warp.any((gate.load(simt::memory_order_seq_cst) & outside) != 0)) {  // [V5] [V11]
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
  if (warp.thread_rank() == 0) let_go(lock, hold);
}

}  // namespace detail

/// Holds `range` in the line when its turn has come and nobody keeps a part of it. Collective,
/// uniform. 0, or -ETIMEDOUT when somebody did not let go before the deadline; then nothing is
/// held.
GOFS_NOINLINE GOFS_HD inline int lock_in_ring(simt::AnyWarp auto warp, RangeLock& lock,
                                              const ByteRange& range, bool exclusive,
                                              const simt::Deadline& deadline, RangeHold& hold) {
  simt::Backoff backoff;
  for (;;) {
    const int error = detail::take_turn(warp, lock, range, exclusive, deadline, hold);
    if (error < 0) return error;
    // Who keeps a range has entered it before he left the line; where we are the first, nobody
    // does.
    if (hold.ring == nullptr || !is_kept(warp, lock, range)) break;
    detail::leave_ring(warp, lock, hold);
    while (is_kept(warp, lock, range)) {
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
  if (warp.thread_rank() == 0) simt::count_release(lock.gate, ~uint64_t{0});  // [V5]
}

/// The same for who writes single blocks. What the warp had written before `release` is seen by who
/// comes next; it has synchronised then.
GOFS_HD inline void leave_block_writers(simt::AnyWarp auto warp, RangeLock& lock,
                                        const simt::Release& release) {
  if (warp.thread_rank() == 0) release.add(lock.gate, ~detail::kOneBlockWriter + 1);  // [V5]
}
GOFS_HD inline void leave_block_writers(simt::AnyWarp auto warp, RangeLock& lock) {
  warp.sync();
  leave_block_writers(warp, lock, simt::Release());
}

/// Joins the readers outside the ring, who hold the whole file, unless somebody writes it.
/// Collective, uniform.
GOFS_HD inline bool try_join_readers(simt::AnyWarp auto warp, RangeLock& lock) {
  uint32_t written = 0;
  if (warp.thread_rank() == 0) {
    const uint64_t gate =
        simt::AtomicRef<uint64_t>(lock.gate).fetch_add(1, simt::memory_order_acquire);
    written = gate > detail::kAllReaders ? 1 : 0;
  }
  const bool joined = warp.shfl(written, 0) == 0;
  warp.sync();
  if (!joined) leave_readers(warp, lock);
  return joined;
}

/// try_join_block_writers() in two steps, between which, or beside the second, a warp may look at
/// other things: counts the warp as one of them. Collective. What the gate was before, for lane 0.
GOFS_HD inline uint64_t enter_block_writers(simt::AnyWarp auto warp, RangeLock& lock) {
  uint64_t gate = 0;
  // Readers in the ring write their word before they look at ours, so one of us sees the other, in
  // one order for all. [V11]
  if (warp.thread_rank() == 0) {
    gate = simt::add_before_look(lock.gate, detail::kOneBlockWriter);
  }
  warp.sync();
  return gate;
}
/// The second: whether it may stay; if not, it is to leave. Each lane is told what it would be if
/// `gate` was what it says; lane 0 knows.
GOFS_HD inline bool may_write_blocks(const RangeLock& lock, uint64_t gate,
                                     const uint32_t& awaited) {
  const uint32_t waiting = simt::load_relaxed(awaited);
  const uint32_t readers = simt::look_after_add(lock.ring_readers);  // [V11]
  return (gate & ~detail::kAllBlockWriters) == 0 && readers == 0 && waiting == 0;
}

/// Joins those who write single blocks outside the ring, and queue up for each of them: unless
/// somebody reads the file, or writes it otherwise, or `awaited` is not 0: somebody waits for those
/// who do this (has_block_writers). Collective, uniform.
GOFS_HD inline bool try_join_block_writers(simt::AnyWarp auto warp, RangeLock& lock,
                                           const uint32_t& awaited) {
  const uint64_t gate = enter_block_writers(warp, lock);
  const bool joined = warp.shfl(may_write_blocks(lock, gate, awaited) ? 1u : 0u, 0) != 0;
  warp.sync();
  if (!joined) leave_block_writers(warp, lock);
  return joined;
}

/// Has the file's end for the caller's warp, which joins those who write single blocks next: then
/// nobody else makes the file longer. One lane: false, another has.
GOFS_HD inline bool try_lock_end(RangeLock& lock) {
  return simt::AtomicRef<uint32_t>(lock.appending).exchange(1u, simt::kAcquiredByNextLook) ==
         0;  // [V16]
}

/// Gives it back. What the warp had written before `release`, and synchronised, is seen by the next
/// one. One lane.
GOFS_HD inline void unlock_end(RangeLock& lock, const simt::Release& release) {
  release.store(lock.appending, 0u);  // [V16]
}

/// Whether somebody writes single blocks outside the ring. Who joins them afterwards has seen what
/// the caller did before, `awaited` too; what those have written who are done is seen then.
GOFS_HD inline bool has_block_writers(RangeLock& lock) {
  // Changed, though by nothing, so that it is one after the other with who joins. [V15]
  const uint64_t gate =
      simt::AtomicRef<uint64_t>(lock.gate).fetch_add(0, simt::memory_order_acq_rel);
  return (gate & detail::kAllBlockWriters) != 0;
}

namespace detail {

/// The reader in the ring has let go, or gives up. Collective.
GOFS_HD inline void leave_ring_readers(simt::AnyWarp auto warp, RangeLock& lock) {
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint32_t>(lock.ring_readers).fetch_sub(1, simt::memory_order_release);  // [V11]
}

/// lock_in_ring() for a reader, who keeps the writers of single blocks away as long as he is there.
GOFS_NOINLINE GOFS_HD inline int read_in_ring(simt::AnyWarp auto warp, RangeLock& lock,
                                              const ByteRange& range,
                                              const simt::Deadline& deadline, RangeHold& hold) {
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
  if (leader) {
    simt::AtomicRef<uint64_t>(lock.gate).fetch_add(detail::kOneWriter, simt::memory_order_acq_rel);
  }
  const int error = lock_in_ring(warp, lock, range, true, deadline, hold);
  if (error < 0) {
    warp.sync();
    if (leader) {
      simt::AtomicRef<uint64_t>(lock.gate).fetch_sub(detail::kOneWriter,
                                                     simt::memory_order_release);
    }
  }
  return error;
}

GOFS_HD inline void unlock_exclusive(simt::AnyWarp auto warp, RangeLock& lock,
                                     const RangeHold& hold) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  detail::let_go(lock, hold);
  simt::AtomicRef<uint64_t>(lock.gate).fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

/// Keeps a range that is held for writing after its place in the line was given back, as this does:
/// until unlock_kept(). Collective, uniform; `hold` is over then. False, and it is not, where
/// kKeptRanges are kept already, or the lock has no ring and gets none.
GOFS_NOINLINE GOFS_HD inline bool keep_exclusive(simt::AnyWarp auto warp, RangeLock& lock,
                                                 const RangeHold& hold, uint32_t& kept) {
  kept = kKeptRanges;
  RangeEntry& mine = detail::entry_of(lock, hold);
  const uint64_t ticket = detail::ticket_of(hold.place);
  warp.sync();
  if (warp.thread_rank() == 0) {
    if (hold.ring == nullptr) (void)detail::give_ring(lock);
    const uint32_t number = detail::ring_of(simt::load_relaxed(lock.turns));
    for (uint32_t i = 0; number != 0 && i < kKeptRanges; ++i) {
      KeptRange& entry = lock.rings->ring(number).kept[(ticket + i) % kKeptRanges];
      if (!simt::try_lock(entry.state)) continue;
      simt::store_release(entry.offset, simt::load_relaxed(mine.offset));  // [V10]
      simt::store_release(entry.bytes, simt::load_relaxed(mine.bytes));
      simt::add_relaxed(lock.kept_count, 1u);
      detail::let_go(lock, hold);
      kept = static_cast<uint32_t>((ticket + i) % kKeptRanges);
      break;
    }
  }
  kept = warp.shfl(kept, 0);
  warp.sync();
  return kept != kKeptRanges;
}

GOFS_HD inline void unlock_kept(simt::AnyWarp auto warp, RangeLock& lock, uint32_t kept) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  const uint32_t number = detail::ring_of(simt::load_relaxed(lock.turns));
  simt::unlock(lock.rings->ring(number).kept[kept].state);  // [V10]
  simt::AtomicRef<uint32_t>(lock.kept_count).fetch_sub(1, simt::memory_order_release);
  simt::AtomicRef<uint64_t>(lock.gate).fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

}  // namespace gofs::vfs
