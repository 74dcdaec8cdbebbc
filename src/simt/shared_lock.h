// SPDX-License-Identifier: Apache-2.0
//
// A lock that many share or one has alone, for whole warps. To share it where no thread wants it
// alone is one atomic. Neither kind starves the other: a warp that wants it alone waits for those
// that share it by then, and those that come later to share it wait for that one, but for no other
// that comes later. (Phase-fair locks: Brandenburg and Anderson, "Spin-based reader-writer
// synchronization for multiprocessor real-time systems", 2010.) Of those that want it alone, any is
// next.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::simt {

/// Zeros: free.
struct SharedLock {
  /// In the upper half how many have come to share it. In the lower one whether another thread has
  /// it alone, or waits for those that share it, and the turn, which changes whenever it leaves. It
  /// has 31 bits, since turns in which a thread gave up do not wait for those that come to share
  /// it: a thread that has not looked for long must not take a later turn for the one that it waits
  /// for.
  uint64_t in;
  uint32_t out;  // how many of them have left again
};

namespace detail {

inline constexpr uint32_t kAlone = 1;
inline constexpr uint64_t kOneSharer = uint64_t{1} << 32;

GOFS_HD constexpr uint32_t turn_of(uint64_t in) { return static_cast<uint32_t>(in); }
GOFS_HD constexpr uint32_t sharers_of(uint64_t in) { return static_cast<uint32_t>(in >> 32); }

/// Takes back that the caller has come to share it, unless the one that he waits for has left: then
/// he shares it. One lane.
GOFS_HD inline bool withdraw_sharer(SharedLock& lock, uint32_t turn) {
  uint64_t now = load_acquire(lock.in);  // [V13]
  // The one whose turn it is has counted those before the caller; the next one counts again.
  while (turn_of(now) == turn) {
    if (AtomicRef<uint64_t>(lock.in).compare_exchange_strong(
            now, now - kOneSharer, memory_order_acquire, memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

/// Calls `attempt()` on one lane until it says that it was successful. Collective, uniform. False:
/// it was not, until `deadline`.
template <typename Attempt>
GOFS_HD bool attempt_until(AnyWarp auto warp, const Deadline& deadline, Attempt attempt) {
  Backoff backoff;
  for (;;) {
    uint32_t done = 0;
    if (warp.thread_rank() == 0) done = attempt() ? 1 : 0;
    if (warp.shfl(done, 0) != 0) break;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
  warp.sync();
  return true;
}

}  // namespace detail

/// How many share the lock, those who wait to share it included. A look only, by one lane.
GOFS_HD inline uint32_t count_sharers(const SharedLock& lock) {
  const uint32_t out = load_relaxed(lock.out);
  const uint32_t count = detail::sharers_of(load_relaxed(lock.in)) - out;
  // Who looks in between may find more that have left than have come.
  return count <= uint32_t{INT32_MAX} ? count : 0;
}

/// Shares the lock. Collective, uniform. False: another had it alone until `deadline`; then it is
/// not shared.
GOFS_HD inline bool lock_shared(AnyWarp auto warp, SharedLock& lock, const Deadline& deadline) {
  uint32_t turn = 0;
  if (warp.thread_rank() == 0) {
    turn = detail::turn_of(
        AtomicRef<uint64_t>(lock.in).fetch_add(detail::kOneSharer, memory_order_acquire));  // [V13]
  }
  turn = warp.shfl(turn, 0);
  warp.sync();
  if ((turn & detail::kAlone) == 0) return true;
  if (detail::attempt_until(warp, deadline, [&] {
        return detail::turn_of(load_acquire(lock.in)) != turn;  // [V13]
      })) {
    return true;
  }
  uint32_t withdrawn = 0;
  if (warp.thread_rank() == 0) withdrawn = detail::withdraw_sharer(lock, turn) ? 1 : 0;
  withdrawn = warp.shfl(withdrawn, 0);
  warp.sync();
  return withdrawn == 0;
}

/// Releases what lock_shared() took. Collective.
GOFS_HD inline void unlock_shared(AnyWarp auto warp, SharedLock& lock) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  AtomicRef<uint32_t>(lock.out).fetch_add(1, memory_order_release);  // [V13]
}

/// Releases what lock_alone() took. Collective.
GOFS_HD inline void unlock_alone(AnyWarp auto warp, SharedLock& lock) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  // To the next turn, without a carry into the upper half. No other thread changes it now.
  const uint32_t turn = detail::turn_of(load_relaxed(lock.in));
  const uint64_t change = uint64_t{turn + detail::kAlone} - turn;
  AtomicRef<uint64_t>(lock.in).fetch_add(change, memory_order_release);  // [V13]
}

/// Has the lock alone. Collective, uniform. False: others had it until `deadline`; then the caller
/// has not.
GOFS_HD inline bool lock_alone(AnyWarp auto warp, SharedLock& lock, const Deadline& deadline) {
  uint32_t sharers = 0;  // that have come so far
  const bool first = detail::attempt_until(warp, deadline, [&] {
    if ((load_relaxed(lock.in) & detail::kAlone) != 0) return false;
    const uint64_t before =
        AtomicRef<uint64_t>(lock.in).fetch_or(detail::kAlone, memory_order_acquire);  // [V13]
    sharers = detail::sharers_of(before);
    return (before & detail::kAlone) == 0;
  });
  if (!first) return false;
  if (detail::attempt_until(warp, deadline,
                            [&] { return load_acquire(lock.out) == sharers; })) {  // [V13]
    return true;
  }
  unlock_alone(warp, lock);
  return false;
}

}  // namespace gofs::simt
