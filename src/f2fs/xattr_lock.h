// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes lie in two blocks, of which readers want what belongs together: while a
// thread writes an inode's attributes, no other reads them. Inodes share locks by their numbers. A
// thread that waits here holds none, and has the spare blocks that it needs: none waits for a spare
// block while it holds a lock.
#pragma once

#include "f2fs/volume.h"
#include "simt/shared_lock.h"

namespace gofs::f2fs {

inline constexpr uint32_t kXattrLocks = 256;

namespace detail {

GOFS_HD inline simt::SharedLock& xattr_lock(const Volume& volume, uint32_t ino) {
  return volume.xattr_locks[ino % kXattrLocks];
}

}  // namespace detail

/// Keeps those away who write the attributes of `ino`. Collective, uniform. 0 or -EBUSY. Of a
/// volume that is mounted read-only, nothing is locked.
GOFS_HD inline int lock_xattrs_shared(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  if (volume.xattr_locks == nullptr) return 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  return simt::lock_shared(warp, detail::xattr_lock(volume, ino), deadline) ? 0 : -EBUSY;
}

/// Collective.
GOFS_HD inline void unlock_xattrs_shared(simt::AnyWarp auto warp, const Volume& volume,
                                         uint32_t ino) {
  if (volume.xattr_locks == nullptr) return;
  simt::unlock_shared(warp, detail::xattr_lock(volume, ino));
}

/// Keeps others away from the attributes of `ino`. Collective, uniform. 0 or -EBUSY.
GOFS_HD inline int lock_xattrs(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  return simt::lock_alone(warp, detail::xattr_lock(volume, ino), deadline) ? 0 : -EBUSY;
}

/// Collective.
GOFS_HD inline void unlock_xattrs(simt::AnyWarp auto warp, const Volume& volume, uint32_t ino) {
  simt::unlock_alone(warp, detail::xattr_lock(volume, ino));
}

}  // namespace gofs::f2fs
