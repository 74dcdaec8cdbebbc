// SPDX-License-Identifier: Apache-2.0
//
// Path readers walk paths, and use what they have found, without locks: a name may be removed while
// they are on their way from it to its inode. So the inode of a removed name is freed only when all
// path readers of that time have finished; those that come later do not find the name any more.
//
// They are counted in two phases, by processors as in the checkpoint lock (f2fs/checkpoint_lock.h).
// A thread that waits for them has newcomers count in the other phase, and waits until none is left
// in this one. (Read-copy update; the two phases are those of its sleepable form.)
//
// A path reader may wait for locks, the checkpoint lock and the device, so a thread that waits for
// path readers holds nothing.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

struct PathReaders {
  struct alignas(128) Side {
    uint32_t inside[2];  // of each phase
  };
  static constexpr uint32_t kSides = 64;

  Side sides[kSides];
  alignas(128) uint32_t phase;
  uint32_t lock;    // of the thread that waits on behalf of all that asked
  uint64_t asked;   // how often a thread had to wait
  uint64_t served;  // of those, so many need not wait any more
};

/// Where a path reader is counted.
struct PathReaderPass {
  uint32_t side;
  uint32_t phase;
};

/// Makes the warp a path reader. Collective, one pass for the warp.
GOFS_NOINLINE GOFS_HD inline PathReaderPass enter_path_readers(simt::AnyWarp auto warp,
                                                               PathReaders& readers) {
  PathReaderPass pass{0, 0};
  if (warp.thread_rank() == 0) {
    pass.side = simt::processor_id() % PathReaders::kSides;
    pass.phase = simt::load_relaxed(readers.phase);
    for (;;) {
      uint32_t& inside = readers.sides[pass.side].inside[pass.phase];
      // Either we see the other phase, or the thread that changed it sees us. [V7]
      (void)simt::add_before_look(inside, 1u);
      const uint32_t now = simt::look_after_add(readers.phase);
      if (now == pass.phase) break;
      simt::add_relaxed(inside, ~0u);
      pass.phase = now;
    }
  }
  warp.sync();
  return pass;  // only the first lane's counts
}

/// Ends it. Collective.
GOFS_HD inline void leave_path_readers(simt::AnyWarp auto warp, PathReaders& readers,
                                       const PathReaderPass& pass) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(readers.sides[pass.side].inside[pass.phase])
        .fetch_sub(1, simt::memory_order_release);  // [V8]
  }
}

namespace detail {

/// Waits until no path reader is left in `phase`, in which none begins. Collective, uniform.
GOFS_HD inline bool drain_phase(simt::AnyWarp auto warp, PathReaders& readers, uint32_t phase,
                                const simt::Deadline& deadline) {
  simt::Backoff backoff;
  for (;;) {
    bool inside = false;
    for (uint32_t side = warp.thread_rank(); side < PathReaders::kSides; side += warp.size()) {
      simt::AtomicRef<uint32_t> count(readers.sides[side].inside[phase]);
      inside = inside || count.load(simt::memory_order_seq_cst) != 0;  // [V7] [V8]
    }
    if (!warp.any(inside)) break;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
  warp.sync();
  return true;
}

/// Waits for all path readers, on behalf of all threads that have asked so far. Collective,
/// uniform, under the lock.
GOFS_NOINLINE GOFS_HD inline bool serve_waiting(simt::AnyWarp auto warp, PathReaders& readers,
                                                const simt::Deadline& deadline) {
  const uint64_t asked = warp.shfl(simt::load_acquire(readers.asked), 0);  // [V9]
  const uint32_t phase = warp.shfl(simt::load_relaxed(readers.phase), 0);
  // Should the last that waited have given up, some may be left in it.
  if (!drain_phase(warp, readers, 1 - phase, deadline)) return false;
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(readers.phase).store(1 - phase, simt::memory_order_seq_cst);  // [V7]
  }
  warp.sync();
  if (!drain_phase(warp, readers, phase, deadline)) return false;
  if (warp.thread_rank() == 0) simt::store_release(readers.served, asked);  // [V9]
  return true;
}

}  // namespace detail

/// Waits until all that were path readers when it was called have finished. Collective, uniform;
/// the caller has no lock, is in no operation and is no path reader. 0 or -EBUSY: one has not
/// finished for `timeout_ns`.
GOFS_NOINLINE GOFS_HD inline int wait_for_path_readers(simt::AnyWarp auto warp,
                                                       PathReaders& readers, uint64_t timeout_ns) {
  warp.sync();
  uint64_t mine = 0;
  if (warp.thread_rank() == 0) {
    mine = simt::AtomicRef<uint64_t>(readers.asked).fetch_add(1, simt::memory_order_acq_rel) + 1;
  }
  mine = warp.shfl(mine, 0);
  const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const bool served = simt::load_acquire(readers.served) >= mine;  // [V9]
    if (warp.any(warp.thread_rank() == 0 && served)) break;
    uint32_t locked = 0;
    if (warp.thread_rank() == 0) locked = simt::try_lock(readers.lock) ? 1 : 0;
    if (warp.shfl(locked, 0) != 0) {
      warp.sync();
      const bool done = detail::serve_waiting(warp, readers, deadline);
      warp.sync();
      if (warp.thread_rank() == 0) simt::unlock(readers.lock);
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
