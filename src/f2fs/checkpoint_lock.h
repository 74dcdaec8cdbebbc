// SPDX-License-Identifier: Apache-2.0
//
// The checkpoint lock: operations that change the volume share it, and a checkpoint holds it
// exclusively. Each processor counts the operations that hold it in a word of its own, so that
// taking it costs no more than a processor's own cache line. (GoFS, SOSP'25, section 3.5; a
// "big-reader lock".)
//
// No warp takes it twice, or makes a checkpoint within an operation.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::f2fs {

/// How long a caller waits for the lock. Operations that hold it wait for the device and for each
/// other, and a checkpoint writes all that has changed.
inline constexpr uint64_t kCheckpointLockTimeoutNs = 480'000'000'000;

struct CheckpointLock {
  struct alignas(128) Side {
    uint32_t inside;  // how many, and kKeptOut
  };
  static constexpr uint32_t kSides = 64;
  static constexpr uint32_t kKeptOut = 1u << 31;

  Side sides[kSides];
  alignas(128) uint32_t closed;  // not 0: by a checkpoint, which keeps operations out of all sides
};

/// The side on which an operation is counted.
struct OpHold {
  uint32_t side;
};

/// Takes the lock for an operation. Collective, one hold for the warp. As long as a checkpoint
/// holds it, `meanwhile()` is called, collectively, which says whether it has done anything. 0 or
/// -EBUSY (it was held for kCheckpointLockTimeoutNs).
template <typename Meanwhile>
GOFS_HD int lock_op(simt::AnyWarp auto warp, CheckpointLock& lock, OpHold& hold,
                    Meanwhile meanwhile) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  hold.side = warp.shfl(simt::processor_id() % CheckpointLock::kSides, 0);
  uint32_t& inside = lock.sides[hold.side].inside;
  for (bool first = true;; first = false) {
    uint32_t entered = 0;
    // After the first failure it only looks.
    if (warp.thread_rank() == 0 &&
        (first || (simt::load_relaxed(inside) & CheckpointLock::kKeptOut) == 0)) {
      // Acquire: what the checkpoint has changed is seen. [G3]
      const uint32_t before =
          simt::AtomicRef<uint32_t>(inside).fetch_add(1, simt::memory_order_acquire);  // [G1]
      entered = (before & CheckpointLock::kKeptOut) == 0 ? 1 : 0;
      if (entered == 0) {
        simt::AtomicRef<uint32_t>(inside).fetch_sub(1, simt::memory_order_relaxed);
      }
    }
    if (warp.shfl(entered, 0) != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    if (!meanwhile()) backoff.pause();
  }
  warp.sync();
  return 0;
}
GOFS_HD inline int lock_op(simt::AnyWarp auto warp, CheckpointLock& lock, OpHold& hold) {
  return lock_op(warp, lock, hold, [] { return false; });
}

/// Takes it without waiting: where is_op_locked() says no to the answer, the caller calls
/// unlock_op() at once. One lane, which calls add_before_look() next: only then is seen what the
/// checkpoint has changed.
GOFS_HD inline uint32_t try_lock_op(CheckpointLock& lock, OpHold& hold) {
  hold.side = simt::processor_id() % CheckpointLock::kSides;
  return simt::AtomicRef<uint32_t>(lock.sides[hold.side].inside)
      .fetch_add(1, simt::kAcquiredByNextLook);  // [G1] [G3]
}
GOFS_HD constexpr bool is_op_locked(uint32_t answer) {
  return (answer & CheckpointLock::kKeptOut) == 0;
}

/// Releases it. What the caller, and all that synchronised with it, have changed before `release`
/// is seen by the next checkpoint. [G2] One lane.
GOFS_HD inline void unlock_op(CheckpointLock& lock, const OpHold& hold,
                              const simt::Release& release) {
  release.add(lock.sides[hold.side].inside, ~0u);
}
/// The same for a warp. Collective.
GOFS_HD inline void unlock_op(simt::AnyWarp auto warp, CheckpointLock& lock, const OpHold& hold) {
  warp.sync();
  if (warp.thread_rank() == 0) unlock_op(lock, hold, simt::Release());
}

/// Releases the lock that the caller holds for a checkpoint. Collective.
GOFS_HD inline void unlock_after_checkpoint(simt::AnyWarp auto warp, CheckpointLock& lock) {
  GOFS_DEBUG_ASSERT(simt::load_relaxed(lock.closed) != 0);
  warp.sync();
  for (uint32_t side = warp.thread_rank(); side < CheckpointLock::kSides; side += warp.size()) {
    simt::AtomicRef<uint32_t>(lock.sides[side].inside)
        .fetch_and(~CheckpointLock::kKeptOut, simt::memory_order_release);  // [G3]
  }
  warp.sync();
  if (warp.thread_rank() == 0) simt::store_release(lock.closed, 0u);  // [G3]
}

namespace detail {

/// Keeps operations out of all sides. From then on none takes the lock that is_empty() does not
/// see. Collective.
GOFS_HD inline void keep_ops_out(simt::AnyWarp auto warp, CheckpointLock& lock) {
  for (uint32_t side = warp.thread_rank(); side < CheckpointLock::kSides; side += warp.size()) {
    simt::AtomicRef<uint32_t>(lock.sides[side].inside)
        .fetch_or(CheckpointLock::kKeptOut, simt::memory_order_relaxed);  // [G1]
  }
  warp.sync();
}

/// Whether no operation holds the lock, all of whose sides keep them out. Collective, uniform.
GOFS_HD inline bool is_empty(simt::AnyWarp auto warp, const CheckpointLock& lock) {
  bool inside = false;
  for (uint32_t side = warp.thread_rank(); side < CheckpointLock::kSides; side += warp.size()) {
    const uint32_t word = simt::load_acquire(lock.sides[side].inside);  // [G1] [G2]
    inside = inside || word != CheckpointLock::kKeptOut;
  }
  return !warp.any(inside);
}

}  // namespace detail

/// Takes the lock for a checkpoint, unless another one holds it: -EAGAIN at once. Waits until no
/// operation holds it. Collective, uniform. 0; or -EBUSY, an operation held it for
/// kCheckpointLockTimeoutNs; it is free then.
GOFS_NOINLINE GOFS_HD inline int try_lock_for_checkpoint(simt::AnyWarp auto warp,
                                                         CheckpointLock& lock) {
  uint32_t closed = 0;
  if (warp.thread_rank() == 0) closed = simt::try_lock(lock.closed) ? 1 : 0;  // [G3]
  if (warp.shfl(closed, 0) == 0) return -EAGAIN;
  warp.sync();
  detail::keep_ops_out(warp, lock);
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  while (!detail::is_empty(warp, lock)) {
    if (warp.any(deadline.passed())) {
      unlock_after_checkpoint(warp, lock);
      return -EBUSY;
    }
    backoff.pause();
  }
  warp.sync();
  return 0;
}

/// Takes the lock for a checkpoint and waits until no operation holds it; `meanwhile()` as in
/// lock_op(). Collective, uniform. 0 or -EBUSY: another checkpoint, or an operation, held it for
/// kCheckpointLockTimeoutNs; it is then not the caller's.
template <typename Meanwhile>
GOFS_HD int lock_for_checkpoint(simt::AnyWarp auto warp, CheckpointLock& lock,
                                Meanwhile meanwhile) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    const int error = try_lock_for_checkpoint(warp, lock);
    if (error != -EAGAIN) return error;
    if (warp.any(deadline.passed())) return -EBUSY;
    if (!meanwhile()) backoff.pause();
  }
}
GOFS_HD inline int lock_for_checkpoint(simt::AnyWarp auto warp, CheckpointLock& lock) {
  return lock_for_checkpoint(warp, lock, [] { return false; });
}

}  // namespace gofs::f2fs
