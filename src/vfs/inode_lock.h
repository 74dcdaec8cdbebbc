// SPDX-License-Identifier: Apache-2.0
//
// Who changes an inode has it for himself: a table of locks that inodes share by their numbers.
// Readers do not ask for them.
//
// Locks of inodes come before the gate of operations (f2fs/operation.h): who is inside the gate
// waits for none, or a checkpoint, which waits for him, would wait for ever.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs {

/// Takes the lock of `ino` for the calling warp, which holds none. Collective, uniform. 0 or
/// -EBUSY: others had it for fs.lock_timeout_ns.
GOFS_HD inline int lock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  uint32_t& word = fs.inode_locks[ino & fs.inode_lock_mask];
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    uint32_t taken = 0;
    if (warp.thread_rank() == 0) taken = simt::try_lock(word) ? 1 : 0;
    if (warp.shfl(taken, 0) != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  warp.sync();
  return 0;
}

/// Collective.
GOFS_HD inline void unlock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(fs.inode_locks[ino & fs.inode_lock_mask]);
}

}  // namespace gofs::vfs
