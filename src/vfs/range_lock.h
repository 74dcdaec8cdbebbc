// SPDX-License-Identifier: Apache-2.0
//
// Who may touch which bytes of a file at once. Readers of a file that nobody writes only count
// themselves: one atomic a warp. So do those who write single blocks, or a few, of a file that
// nobody reads, and queue up for each block then (block_queue.h, block_span.h). As soon as the two
// meet, or somebody writes more at once, everybody appends his range to a ring and waits for the
// earlier entries that overlap it, compared 32 at a time; a later request never overtakes an
// earlier one that it overlaps (GoFS, SOSP'25, section 3.3).
//
// One word decides between these: it counts readers and writers of single blocks outside the ring,
// and writers that want it used.
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

#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::vfs {

inline constexpr uint32_t kRangeRingEntries = 64;
/// Ranges of one file that writes under way may keep at a time.
inline constexpr uint32_t kKeptRanges = 64;

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

struct RangeEntry {
  uint64_t offset;
  uint64_t bytes;
  uint32_t state;  // lap * 2, + 1 while held; low 32 bits [V2]
  uint32_t exclusive;
};

struct KeptRange {
  uint64_t offset;
  uint64_t bytes;
  uint32_t state;  // 1: somebody keeps it [V10]
  uint32_t unused;
};

struct alignas(128) RangeLock {
  uint64_t gate;  // 21 bits of readers outside the ring, 21 of block writers, 22 of writers [V5]
  uint64_t next_ticket;
  uint64_t left;          // tickets that have let go [V2]
  uint32_t kept_count;    // of `kept` [V10]
  uint32_t ring_readers;  // readers in the ring, and those who want to be there [V11]
  uint32_t whole_file;    // not 0: ranges in the ring overlap wherever they lie
  uint32_t appending;     // 1: a block writer has the file's end for himself [V16]
  RangeEntry ring[kRangeRingEntries];
  KeptRange kept[kKeptRanges];
};

/// What unlock needs to know.
struct RangeHold {
  uint64_t ticket;
  bool in_ring;
};

namespace detail {

inline constexpr uint64_t kOneBlockWriter = uint64_t{1} << 21;
inline constexpr uint64_t kOneWriter = uint64_t{1} << 42;
inline constexpr uint64_t kAllReaders = kOneBlockWriter - 1;
inline constexpr uint64_t kAllBlockWriters = kOneWriter - kOneBlockWriter;

/// The state word of a ring entry before `ticket` has it, in its hands, and after it has let go,
/// which is what the next lap's user waits for.
GOFS_HD constexpr uint32_t ready_state(uint64_t ticket) {
  return static_cast<uint32_t>(ticket / kRangeRingEntries * 2);
}
GOFS_HD constexpr uint32_t held_state(uint64_t ticket) { return ready_state(ticket) + 1; }
GOFS_HD constexpr uint32_t free_state(uint64_t ticket) { return ready_state(ticket) + 2; }

GOFS_HD inline bool overlap(const ByteRange& a, uint64_t offset, uint64_t bytes) {
  return a.offset < offset + bytes && offset < a.offset + a.bytes;
}

/// Gives the ring entry of `ticket` to the next lap's user. One lane.
GOFS_HD inline void let_go(RangeLock& lock, uint64_t ticket) {
  simt::store_release(lock.ring[ticket % kRangeRingEntries].state, free_state(ticket));  // [V2]
  simt::AtomicRef<uint64_t>(lock.left).fetch_add(1, simt::memory_order_release);         // [V2]
}

/// Whether all tickets before `ticket` have let go, as far as two words tell: not where a later one
/// has been given out, which may have let go as well. What they have done is seen then. One lane.
GOFS_HD inline bool has_ring_alone(const RangeLock& lock, uint64_t ticket) {
  return simt::load_acquire(lock.left) == ticket &&  // [V2]
         simt::load_relaxed(lock.next_ticket) == ticket + 1;
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
  bool found = false;
  for (uint32_t i = warp.thread_rank(); i < kKeptRanges; i += warp.size()) {
    found = found || detail::is_kept_here(lock.kept[i], range);
  }
  return warp.any(found);
}

namespace detail {

/// Appends `range` to the ring and waits for its turn: for earlier entries that overlap it, for the
/// writers of single blocks and, if it is exclusive, for the readers outside the ring, who came
/// earlier than any entry that is still waited for. Collective, uniform. 0, or -ETIMEDOUT when an
/// earlier holder did not let go before the deadline; then nothing is held.
GOFS_NOINLINE GOFS_HD inline int take_turn(simt::AnyWarp auto warp, RangeLock& lock,
                                           const ByteRange& range, bool exclusive,
                                           const simt::Deadline& deadline, RangeHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  const bool whole = lock.whole_file != 0;
  uint64_t ticket = 0;
  if (leader) ticket = simt::add_relaxed(lock.next_ticket, uint64_t{1});
  ticket = warp.shfl(ticket, 0);
  RangeEntry& mine = lock.ring[ticket % kRangeRingEntries];
  simt::Backoff backoff;
  // The entry's former user, a lap ago, must have left it. A ticket cannot be handed back, so this
  // wait ends only with that user, who has a deadline of his own.
  while (warp.any(simt::load_acquire(mine.state) != detail::ready_state(ticket))) {
    backoff.pause();
  }
  if (leader) {
    simt::store_relaxed(mine.offset, range.offset);
    simt::store_relaxed(mine.bytes, range.bytes);
    simt::store_relaxed(mine.exclusive, exclusive ? 1u : 0u);
    simt::store_release(mine.state, detail::held_state(ticket));  // [V2]
  }
  warp.sync();
  hold = RangeHold{ticket, true};
  const auto withdraw = [&] {
    warp.sync();
    if (leader) let_go(lock, ticket);
    return -ETIMEDOUT;
  };
  // Who came before us and stays outside the ring is waited for wherever he reads or writes. Our
  // entry stands already: who comes now queues up behind it.
  const uint64_t outside = exclusive ? kAllReaders | kAllBlockWriters : kAllBlockWriters;
  simt::AtomicRef<uint64_t> gate(lock.gate);
  while (warp.any((gate.load(simt::memory_order_seq_cst) & outside) != 0)) {  // [V5] [V11]
    if (warp.any(deadline.passed())) return withdraw();
    backoff.pause();
  }
  // Who writes a file by himself need not look at each.
  const uint32_t alone = leader && has_ring_alone(lock, ticket) ? 1 : 0;
  if (warp.shfl(alone, 0) != 0) {
    warp.sync();
    return 0;
  }
  // All earlier tickets that can still be in the ring, a lane each.
  for (uint32_t back = 1; back < kRangeRingEntries; back += warp.size()) {
    const uint32_t distance = back + warp.thread_rank();
    bool waiting = distance < kRangeRingEntries && distance <= ticket;
    const uint64_t other = waiting ? ticket - distance : ticket;
    const RangeEntry& entry = lock.ring[other % kRangeRingEntries];
    backoff.reset();
    for (;;) {
      if (waiting) {
        const uint32_t state = simt::load_acquire(entry.state);  // [V2]
        const auto behind = static_cast<int32_t>(state - detail::held_state(other));
        if (behind > 0) {
          waiting = false;  // it has let go
        } else if (behind == 0) {
          const bool conflict = (exclusive || simt::load_relaxed(entry.exclusive) != 0) &&
                                (whole || detail::overlap(range, simt::load_relaxed(entry.offset),
                                                          simt::load_relaxed(entry.bytes)));
          if (!conflict) waiting = false;
        }  // else: its owner has yet to write it
      }
      if (!warp.any(waiting)) break;
      if (warp.any(waiting && deadline.passed())) return withdraw();
      backoff.pause();
    }
  }
  warp.sync();
  return 0;
}

/// Leaves the ring. Collective.
GOFS_HD inline void leave_ring(simt::AnyWarp auto warp, RangeLock& lock, const RangeHold& hold) {
  warp.sync();
  if (warp.thread_rank() == 0) let_go(lock, hold.ticket);
}

}  // namespace detail

/// Holds `range` in the ring when its turn has come and nobody keeps a part of it. Collective,
/// uniform. 0, or -ETIMEDOUT when somebody did not let go before the deadline; then nothing is
/// held.
GOFS_NOINLINE GOFS_HD inline int lock_in_ring(simt::AnyWarp auto warp, RangeLock& lock,
                                              const ByteRange& range, bool exclusive,
                                              const simt::Deadline& deadline, RangeHold& hold) {
  simt::Backoff backoff;
  for (;;) {
    const int error = detail::take_turn(warp, lock, range, exclusive, deadline, hold);
    if (error < 0) return error;
    // Who keeps a range has entered it before he left the ring.
    if (!is_kept(warp, lock, range)) break;
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
  hold = RangeHold{0, false};
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
  detail::let_go(lock, hold.ticket);
  simt::AtomicRef<uint64_t>(lock.gate).fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

/// Keeps a range that is held for writing after its entry of the ring was given back, as this does:
/// until unlock_kept(). Collective, uniform; `hold` is over then. False, and it is not, where
/// kKeptRanges are kept already.
GOFS_NOINLINE GOFS_HD inline bool keep_exclusive(simt::AnyWarp auto warp, RangeLock& lock,
                                                 const RangeHold& hold, uint32_t& kept) {
  kept = kKeptRanges;
  RangeEntry& mine = lock.ring[hold.ticket % kRangeRingEntries];
  warp.sync();
  if (warp.thread_rank() == 0) {
    for (uint32_t i = 0; i < kKeptRanges; ++i) {
      KeptRange& entry = lock.kept[(hold.ticket + i) % kKeptRanges];
      if (!simt::try_lock(entry.state)) continue;
      simt::store_release(entry.offset, simt::load_relaxed(mine.offset));  // [V10]
      simt::store_release(entry.bytes, simt::load_relaxed(mine.bytes));
      simt::add_relaxed(lock.kept_count, 1u);
      detail::let_go(lock, hold.ticket);
      kept = static_cast<uint32_t>((hold.ticket + i) % kKeptRanges);
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
  simt::unlock(lock.kept[kept].state);  // [V10]
  simt::AtomicRef<uint32_t>(lock.kept_count).fetch_sub(1, simt::memory_order_release);
  simt::AtomicRef<uint64_t>(lock.gate).fetch_sub(detail::kOneWriter, simt::memory_order_release);
}

}  // namespace gofs::vfs
