// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes lie in two blocks, of which readers want what belongs together: while
// somebody writes an inode's attributes, nobody reads them. Inodes share words by their numbers.
// Who waits here holds no word, and the spare blocks that he needs he has: nobody waits for a spare
// block with a word in his hands.
#pragma once

#include "f2fs/volume.h"
#include "simt/clock.h"

namespace gofs::f2fs {

inline constexpr uint32_t kXattrLocks = 256;

namespace detail {

inline constexpr uint32_t kXattrWriter = 1u << 31;  // the other bits count readers

GOFS_HD inline uint32_t& xattr_lock(const Volume& volume, uint32_t ino) {
  return volume.xattr_locks[ino % kXattrLocks];
}

/// Calls `attempt()` on one lane until it says that it was successful. Collective. 0 or -EBUSY.
template <typename Attempt>
GOFS_HD int retry_alone(simt::AnyWarp auto warp, Attempt attempt) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    uint32_t done = 0;
    if (warp.thread_rank() == 0) done = attempt() ? 1 : 0;
    if (warp.shfl(done, 0) != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  warp.sync();
  return 0;
}

}  // namespace detail

/// Collective, uniform. 0 or -EBUSY. Of a volume that nobody writes to, nothing is locked.
GOFS_HD inline int lock_xattrs_shared(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  if (volume.xattr_locks == nullptr) return 0;
  simt::AtomicRef<uint32_t> word(detail::xattr_lock(volume, ino));
  return detail::retry_alone(warp, [&] {
    if ((word.fetch_add(1, simt::memory_order_acquire) & detail::kXattrWriter) == 0) return true;
    word.fetch_sub(1, simt::memory_order_relaxed);
    return false;
  });  // [X1]
}

/// Collective.
GOFS_HD inline void unlock_xattrs_shared(simt::AnyWarp auto warp, const Volume& volume,
                                         uint32_t ino) {
  if (volume.xattr_locks == nullptr) return;
  warp.sync();
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint32_t>(detail::xattr_lock(volume, ino))
      .fetch_sub(1, simt::memory_order_release);  // [X1]
}

/// Keeps others away from the attributes of `ino`. Collective, uniform. 0 or -EBUSY.
GOFS_HD inline int lock_xattrs(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  simt::AtomicRef<uint32_t> word(detail::xattr_lock(volume, ino));
  int error = detail::retry_alone(warp, [&] {
    return (word.fetch_or(detail::kXattrWriter, simt::memory_order_acquire) &
            detail::kXattrWriter) == 0;
  });
  if (error < 0) return error;
  // New readers turn back at the door.
  error = detail::retry_alone(
      warp, [&] { return word.load(simt::memory_order_acquire) == detail::kXattrWriter; });  // [X1]
  if (error < 0 && warp.thread_rank() == 0) {
    word.fetch_and(~detail::kXattrWriter, simt::memory_order_relaxed);
  }
  return error;
}

/// Collective.
GOFS_HD inline void unlock_xattrs(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint32_t>(detail::xattr_lock(volume, ino))
      .fetch_and(~detail::kXattrWriter, simt::memory_order_release);  // [X1]
}

}  // namespace gofs::f2fs
