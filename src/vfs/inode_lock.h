// SPDX-License-Identifier: Apache-2.0
//
// A change of an inode holds it exclusively: a table of locks that inodes share by their numbers.
// Of a directory, those who add names to it or remove some have it together: none is led elsewhere
// meanwhile, no block goes, and its attributes stay. Each holds the name exclusively, too: another
// table of locks, by directory and name. Readers do not ask for any.
//
// The order is: locks of inodes, by their places in the table; that of one name; the checkpoint
// lock, for an operation (f2fs/begin_operation.h). A warp within an operation waits for none of
// them, or a checkpoint, which waits for it, would wait for ever.
#pragma once

#include "simt/warp_lock.h"
#include "vfs/filesystem.h"

namespace gofs::vfs {

GOFS_HD inline InodeLock& inode_lock(const Filesystem& fs, uint32_t ino) {
  return fs.inode_locks[ino & fs.inode_lock_mask];
}

/// Has the inode `ino` for the calling warp alone, which holds no lock. Collective, uniform. 0 or
/// -EBUSY: others had it until `deadline`.
GOFS_HD inline int lock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                              const simt::Deadline& deadline) {
  return simt::lock_alone(warp, inode_lock(fs, ino).users, deadline) ? 0 : -EBUSY;
}
GOFS_HD inline int lock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  return lock_inode(warp, fs, ino, simt::Deadline::after_ns(fs.lock_timeout_ns));
}

/// Collective.
GOFS_HD inline void unlock_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  simt::unlock_alone(warp, inode_lock(fs, ino).users);
}

/// The locks of up to four inodes, of which some may share one.
struct InodeLocks {
  static constexpr uint32_t kMax = 4;
  uint32_t places[kMax];  // in the table, ascending
  bool alone[kMax];       // or together with others
  uint32_t count;

  /// Adds that of `ino`, for the caller alone; 0 is none.
  GOFS_HD void add(const Filesystem& fs, uint32_t ino) { add_lock(fs, ino, true); }
  /// Adds that of `ino`, to be shared.
  GOFS_HD void add_shared(const Filesystem& fs, uint32_t ino) { add_lock(fs, ino, false); }

 private:
  GOFS_HD void add_lock(const Filesystem& fs, uint32_t ino, bool is_alone) {
    if (ino == 0) return;
    const uint32_t place = ino & fs.inode_lock_mask;
    uint32_t at = 0;
    while (at < count && places[at] < place) ++at;
    if (at < count && places[at] == place) {
      alone[at] = alone[at] || is_alone;
      return;
    }
    for (uint32_t i = count; i > at; --i) {
      places[i] = places[i - 1];
      alone[i] = alone[i - 1];
    }
    places[at] = place;
    alone[at] = is_alone;
    ++count;
  }
};

/// Releases them. Collective.
GOFS_HD inline void unlock_inodes(simt::AnyWarp auto warp, Filesystem& fs,
                                  const InodeLocks& locks) {
  for (uint32_t i = 0; i < locks.count; ++i) {
    simt::SharedLock& lock = fs.inode_locks[locks.places[i]].users;
    if (locks.alone[i]) {
      simt::unlock_alone(warp, lock);
    } else {
      simt::unlock_shared(warp, lock);
    }
  }
}

/// Takes them all, in the order of the table, so that two who want the same ones do not wait for
/// each other; the caller holds none. Collective, uniform. 0 or -EBUSY, with none taken or left in
/// `locks`.
GOFS_NOINLINE GOFS_HD inline int lock_inodes(simt::AnyWarp auto warp, Filesystem& fs,
                                             InodeLocks& locks) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (uint32_t i = 0; i < locks.count; ++i) {
    simt::SharedLock& lock = fs.inode_locks[locks.places[i]].users;
    const bool locked = locks.alone[i] ? simt::lock_alone(warp, lock, deadline)
                                       : simt::lock_shared(warp, lock, deadline);
    if (locked) continue;
    locks.count = i;
    unlock_inodes(warp, fs, locks);
    locks.count = 0;
    return -EBUSY;
  }
  return 0;
}

/// The lock of a name of `hash` in the directory `directory_ino`, which other names may share.
GOFS_HD inline uint32_t& name_lock(const Filesystem& fs, uint32_t directory_ino, uint32_t hash) {
  constexpr uint32_t kMixer = 0x9E3779B1u;
  constexpr uint32_t kShift = 16;
  return fs.name_locks[(hash ^ directory_ino * kMixer) * kMixer >> kShift & fs.name_lock_mask];
}

}  // namespace gofs::vfs
