// SPDX-License-Identifier: Apache-2.0
//
// What a range lock is made of (range_lock.h): a few words of its own, and a ring of 128 entries
// that it borrows. Most files are locked by one request at a time, whose range fits into the lock.
// Who comes while another one stands there gives the lock a ring of a pool. The lock keeps it,
// since what was contended once is likely to be so again, until the pool has no other left for some
// lock: then a ring that is idle, in which no request stands, goes from its lock to that one.
//
// A lock may find no ring: then its requests have it one at a time, whatever their ranges.
#pragma once

#include "simt/atomic.h"

namespace gofs::vfs {

inline constexpr uint32_t kRangeRingEntries = 128;
/// Detached ranges of one file at a time, of writes under way.
inline constexpr uint32_t kDetachedRanges = 64;

struct RangeEntry {
  uint64_t offset;
  uint64_t bytes;
  uint32_t state;  // in a ring lap * 2, + 1 while held; low 32 bits [V2]. In a lock 1: held [V19]
  uint32_t exclusive;
};

struct DetachedRange {
  uint64_t offset;
  uint64_t bytes;
  uint32_t state;  // 1: in use [V10]
  uint32_t unused;
};

struct RangeLock;

/// Zeros: idle, and of no lock.
struct alignas(128) RangeRing {
  uint64_t left;     // tickets that were released [V2]
  RangeLock* lock;   // that has the ring, or had it; changed by the thread that has `claimed`
  uint32_t claimed;  // 1: it is being given to another lock [V20]
  RangeEntry entries[kRangeRingEntries];
  DetachedRange detached[kDetachedRanges];
};

/// The pool: rings lie behind it in memory, and are numbered from 1 on.
struct alignas(128) RangeRings {
  uint32_t count;
  uint32_t hand;  // where the next search begins

  GOFS_HD RangeRing& ring(uint32_t number) {
    return reinterpret_cast<RangeRing*>(this + 1)[number - 1];
  }
  static constexpr uint64_t bytes_for(uint32_t count) {
    return sizeof(RangeRings) + uint64_t{count} * sizeof(RangeRing);
  }
};

/// Zeros, but for `rings`: free.
struct alignas(128) RangeLock {
  uint64_t holder_counts;  // 21 bits of readers outside the line, 21 of block writers, 22 of
                           // writers [V5]
  uint64_t turns;  // 44 bits of the next ticket, one of `first`, 19 of the ring; 0: all free [V19]
  RangeRings* rings;         // of all locks
  uint32_t detached_count;   // of the ring's `detached` [V10]
  uint32_t ring_readers;     // readers in the line, and those who want to be there [V11]
  uint32_t whole_file;       // not 0: ranges overlap wherever they lie
  uint32_t growing;          // block writers that make the file longer: kOneGrower each, or
                             // kEndLocked, of one that does so alone [V16]
  uint32_t holds;            // how often a range was locked for writing; wraps around
  uint32_t waiting_outside;  // block writers that wait until the line is empty; a hint
  RangeEntry first;          // of who came when all was free
};

namespace detail {

inline constexpr uint32_t kRingBits = 19;
inline constexpr uint32_t kRingsMax = (1u << kRingBits) - 2;
/// There is a request in `first`. Without a ring that is so whenever `turns` is not 0.
inline constexpr uint64_t kFirst = uint64_t{1} << kRingBits;
inline constexpr uint64_t kOneTicket = kFirst << 1;
inline constexpr uint64_t kTicketMask = ~uint64_t{0} / kOneTicket;

GOFS_HD constexpr uint32_t ring_of(uint64_t turns) {
  return static_cast<uint32_t>(turns & (kFirst - 1));
}
GOFS_HD constexpr uint64_t ticket_of(uint64_t turns) { return turns / kOneTicket; }

/// The state word of a ring's entry before `ticket` has it, while it has it, and after it has
/// released it, which is what the next lap's user waits for.
GOFS_HD constexpr uint32_t ready_state(uint64_t ticket) {
  return static_cast<uint32_t>(ticket / kRangeRingEntries * 2);
}
GOFS_HD constexpr uint32_t held_state(uint64_t ticket) { return ready_state(ticket) + 1; }
GOFS_HD constexpr uint32_t free_state(uint64_t ticket) { return ready_state(ticket) + 2; }

/// Whether no request is in ring `number`, and no range is detached there. `lock` is that of the
/// ring, or null; `turns` becomes what it says: as long as it says so, it is still so. One lane.
GOFS_HD inline bool is_idle(const RangeRing& ring, uint32_t number, const RangeLock* lock,
                            uint64_t& turns) {
  turns = 0;
  if (lock == nullptr) return true;
  turns = simt::load_acquire(lock->turns);  // [V19]
  if (ring_of(turns) != number) return true;
  return (turns & kFirst) == 0 &&
         ticket_of(turns) == (simt::load_acquire(ring.left) & kTicketMask) &&  // [V2]
         simt::load_acquire(lock->detached_count) == 0;                        // [V10]
}

/// Takes an idle ring from the lock that has it. By the thread that has claimed it: whether the
/// lock has none now.
GOFS_HD inline bool take_from_lock(RangeRing& ring, uint32_t number) {
  RangeLock* const lock = simt::load_relaxed(ring.lock);
  uint64_t turns = 0;
  if (!is_idle(ring, number, lock, turns)) return false;
  // Who comes next to that lock sees what those have done who stood in the ring.
  if (ring_of(turns) == number &&
      !simt::AtomicRef<uint64_t>(lock->turns)
           .compare_exchange_strong(turns, 0, simt::memory_order_acq_rel,
                                    simt::memory_order_relaxed)) {
    return false;  // another request has come
  }
  simt::store_relaxed(ring.lock, static_cast<RangeLock*>(nullptr));
  return true;
}

/// Claims a ring that no lock has. One lane. Its number, or 0 where none was found.
GOFS_HD inline uint32_t claim_ring(RangeRings& rings) {
  constexpr uint32_t kLooks = 16;  // who waits for one comes back soon
  for (uint32_t looks = simt::min(rings.count, kLooks); looks != 0; --looks) {
    const uint32_t number = simt::add_relaxed(rings.hand, 1u) % rings.count + 1;
    RangeRing& ring = rings.ring(number);
    if (!simt::try_lock(ring.claimed)) continue;  // [V20]
    if (take_from_lock(ring, number)) return number;
    simt::unlock(ring.claimed);  // [V20]
  }
  return 0;
}

/// Gives a ring to a lock with a request in `first`, if it has none. One lane. False: it has none,
/// since all are in use.
GOFS_HD inline bool give_ring(RangeLock& lock) {
  const auto wants = [](uint64_t turns) { return turns != 0 && ring_of(turns) == 0; };
  uint64_t turns = simt::load_relaxed(lock.turns);
  if (!wants(turns)) return true;
  const uint32_t number = claim_ring(*lock.rings);
  if (number == 0) return !wants(simt::load_relaxed(lock.turns));
  RangeRing& ring = lock.rings->ring(number);
  // The first ticket is not used: so `turns` are never again what they were when this lock had the
  // same ring before, to who looked then and has yet to take it (take_from_lock).
  const uint64_t ticket = simt::load_relaxed(ring.left);
  simt::store_release(ring.entries[ticket % kRangeRingEntries].state, free_state(ticket));  // [V2]
  simt::store_release(ring.left, ticket + 1);                                               // [V2]
  simt::store_relaxed(ring.lock, &lock);
  const uint64_t with_ring = (ticket + 1) * kOneTicket | kFirst | number;
  bool given = false;
  while (!given && wants(turns)) {
    given = simt::AtomicRef<uint64_t>(lock.turns)
                .compare_exchange_strong(turns, with_ring, simt::memory_order_acq_rel,
                                         simt::memory_order_relaxed);  // [V19]
  }
  if (!given) simt::store_relaxed(ring.lock, static_cast<RangeLock*>(nullptr));
  simt::unlock(ring.claimed);  // [V20]
  return true;
}

}  // namespace detail

/// Bytes of rings in which there are requests or detached ranges. By one lane, of some of the
/// rings; others go on meanwhile.
GOFS_HD inline uint64_t ring_bytes_used(RangeRings& rings, uint32_t first, uint32_t step) {
  uint64_t bytes = 0;
  for (uint32_t i = first; i < rings.count; i += step) {
    const RangeRing& ring = rings.ring(i + 1);
    uint64_t turns = 0;
    if (!detail::is_idle(ring, i + 1, simt::load_relaxed(ring.lock), turns)) {
      bytes += sizeof(RangeRing);
    }
  }
  return bytes;
}

}  // namespace gofs::vfs
