// SPDX-License-Identifier: Apache-2.0
//
// Who changes an inode has it for himself: a table of locks that inodes share by their numbers.
// Readers do not ask for them.
//
// Locks of inodes come before the gate of operations (f2fs/operation.h): who is inside the gate
// waits for none, or a checkpoint, which waits for him, would wait for ever.
#pragma once

#include "simt/warp_lock.h"
#include "vfs/filesystem.h"

namespace gofs::vfs {

/// Takes the lock of `ino` for the calling warp, which holds none. Collective, uniform. 0 or
/// -EBUSY: others had it for fs.lock_timeout_ns.
GOFS_HD inline int lock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  return simt::wait_for_lock(warp, fs.inode_locks[ino & fs.inode_lock_mask], deadline) ? 0 : -EBUSY;
}

/// Collective.
GOFS_HD inline void unlock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  simt::release_lock(warp, fs.inode_locks[ino & fs.inode_lock_mask]);
}

/// The locks of up to four inodes, of which some may share one.
struct InodeLocks {
  static constexpr uint32_t kMax = 4;
  uint32_t places[kMax];  // in the table, ascending
  uint32_t count;

  /// Adds that of `ino`; 0 is none.
  GOFS_HD void add(const Filesystem& fs, uint32_t ino) {
    if (ino == 0) return;
    const uint32_t place = ino & fs.inode_lock_mask;
    uint32_t at = 0;
    while (at < count && places[at] < place) ++at;
    if (at < count && places[at] == place) return;
    for (uint32_t i = count; i > at; --i) places[i] = places[i - 1];
    places[at] = place;
    ++count;
  }
};

/// Gives them back. Collective.
GOFS_HD inline void unlock_inodes(simt::AnyWarp auto warp, Filesystem& fs,
                                  const InodeLocks& locks) {
  warp.sync();
  for (uint32_t i = 0; i < locks.count; ++i) {
    if (warp.thread_rank() == 0) simt::unlock(fs.inode_locks[locks.places[i]]);
  }
}

/// Takes them all, in the order of the table, so that two who want the same ones do not wait for
/// each other; the caller holds none. Collective, uniform. 0 or -EBUSY, with none taken or left in
/// `locks`.
GOFS_NOINLINE GOFS_HD inline int lock_inodes(simt::AnyWarp auto warp, Filesystem& fs,
                                             InodeLocks& locks) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (uint32_t i = 0; i < locks.count; ++i) {
    if (simt::wait_for_lock(warp, fs.inode_locks[locks.places[i]], deadline)) continue;
    locks.count = i;
    unlock_inodes(warp, fs, locks);
    locks.count = 0;
    return -EBUSY;
  }
  return 0;
}

}  // namespace gofs::vfs
