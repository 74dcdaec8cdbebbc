// SPDX-License-Identifier: Apache-2.0
//
// Those who walk paths, and use what they have found, hold no locks: a name may be removed while
// they are on their way from it to its inode. So who removes a name frees the inode only when all
// who were walking at that time have finished; who comes later does not find the name any more.
//
// Walkers are counted in two phases, by processors as at the gate of operations (f2fs/gate.h). Who
// waits for them lets newcomers count in the other phase, and waits until nobody is left in this
// one. (Read-copy update; the two phases are those of its sleepable form.)
//
// A walker may wait for locks, the gate and the device, so who waits for walkers holds nothing.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

struct Walkers {
  struct alignas(128) Side {
    uint32_t inside[2];  // of each phase
  };
  static constexpr uint32_t kSides = 64;

  Side sides[kSides];
  alignas(128) uint32_t phase;
  uint32_t lock;    // of who waits for walkers on behalf of all who asked
  uint64_t asked;   // how often somebody had to wait
  uint64_t served;  // of those, the first so many need not any more
};

/// Where a walker is counted.
struct WalkPass {
  uint32_t side;
  uint32_t phase;
};

/// Begins a walk. Collective, one pass for the warp.
GOFS_NOINLINE GOFS_HD inline WalkPass enter_walk(simt::AnyWarp auto warp, Walkers& walkers) {
  WalkPass pass{0, 0};
  if (warp.thread_rank() == 0) {
    pass.side = simt::processor_id() % Walkers::kSides;
    pass.phase = simt::load_relaxed(walkers.phase);
    for (;;) {
      uint32_t& inside = walkers.sides[pass.side].inside[pass.phase];
      // Either we see the other phase, or who changed it sees us. [V7]
      (void)simt::add_before_look(inside, 1u);
      const uint32_t now = simt::look_after_add(walkers.phase);
      if (now == pass.phase) break;
      simt::add_relaxed(inside, ~0u);
      pass.phase = now;
    }
  }
  warp.sync();
  return pass;  // only the first lane's counts
}

/// Ends it. Collective.
GOFS_HD inline void leave_walk(simt::AnyWarp auto warp, Walkers& walkers, const WalkPass& pass) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(walkers.sides[pass.side].inside[pass.phase])
        .fetch_sub(1, simt::memory_order_release);  // [V8]
  }
}

namespace detail {

/// Waits until nobody walks in `phase`, in which nobody begins. Collective, uniform.
GOFS_HD inline bool drain_phase(simt::AnyWarp auto warp, Walkers& walkers, uint32_t phase,
                                const simt::Deadline& deadline) {
  simt::Backoff backoff;
  for (;;) {
    bool inside = false;
    for (uint32_t side = warp.thread_rank(); side < Walkers::kSides; side += warp.size()) {
      simt::AtomicRef<uint32_t> count(walkers.sides[side].inside[phase]);
      inside = inside || count.load(simt::memory_order_seq_cst) != 0;  // [V7] [V8]
    }
    if (!warp.any(inside)) break;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
  warp.sync();
  return true;
}

/// Waits for all walkers, on behalf of all who have asked so far. Collective, uniform, under the
/// lock.
GOFS_NOINLINE GOFS_HD inline bool serve_waiting(simt::AnyWarp auto warp, Walkers& walkers,
                                                const simt::Deadline& deadline) {
  const uint64_t asked = warp.shfl(simt::load_acquire(walkers.asked), 0);  // [V9]
  const uint32_t phase = warp.shfl(simt::load_relaxed(walkers.phase), 0);
  // Should the last who waited have given up, some may be left in it.
  if (!drain_phase(warp, walkers, 1 - phase, deadline)) return false;
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(walkers.phase).store(1 - phase, simt::memory_order_seq_cst);  // [V7]
  }
  warp.sync();
  if (!drain_phase(warp, walkers, phase, deadline)) return false;
  if (warp.thread_rank() == 0) simt::store_release(walkers.served, asked);  // [V9]
  return true;
}

}  // namespace detail

/// Waits until all have finished who were walking when it was called. Collective, uniform; the
/// caller has no lock, is in no operation and does not walk. 0 or -EBUSY: somebody has walked for
/// `timeout_ns`.
GOFS_NOINLINE GOFS_HD inline int wait_for_walkers(simt::AnyWarp auto warp, Walkers& walkers,
                                                  uint64_t timeout_ns) {
  warp.sync();
  uint64_t mine = 0;
  if (warp.thread_rank() == 0) {
    mine = simt::AtomicRef<uint64_t>(walkers.asked).fetch_add(1, simt::memory_order_acq_rel) + 1;
  }
  mine = warp.shfl(mine, 0);
  const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const bool served = simt::load_acquire(walkers.served) >= mine;  // [V9]
    if (warp.any(warp.thread_rank() == 0 && served)) break;
    uint32_t locked = 0;
    if (warp.thread_rank() == 0) locked = simt::try_lock(walkers.lock) ? 1 : 0;
    if (warp.shfl(locked, 0) != 0) {
      warp.sync();
      const bool done = detail::serve_waiting(warp, walkers, deadline);
      warp.sync();
      if (warp.thread_rank() == 0) simt::unlock(walkers.lock);
      if (!done) return -EBUSY;
      break;  // all who had asked by then are served, the caller too
    }
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  warp.sync();
  return 0;
}

}  // namespace gofs::vfs
