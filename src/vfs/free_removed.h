// SPDX-License-Identifier: Apache-2.0
//
// What happens to an inode that has lost its last name: it is freed when it cannot be found any
// more and is not open. Until then it is listed as an orphan (f2fs/orphans.h), so a crash loses no
// room.
#pragma once

#include "f2fs/free_inode.h"
#include "vfs/change.h"
#include "vfs/open_inodes.h"

namespace gofs::vfs::detail {

/// Frees an inode without names, which cannot be opened and is not open. Collective, uniform; the
/// caller holds no lock. Should that fail, it stays an orphan, and who mounts the volume next frees
/// it.
GOFS_NOINLINE GOFS_HD inline void free_removed(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t ino) {
  f2fs::Inode inode{};
  if (load_uniform(warp, fs, ino, inode) < 0) return;
  // The one name that a removed directory still has, which path readers may have entered again.
  if (inode.is_directory() && warp.thread_rank() == 0) {
    fs.dentries.erase(ino, format::name_hash("..", 2), 2);
  }
  (void)f2fs::free_inode(warp, fs.volume, *fs.writer, fs.pool, inode, time_now(fs));
}

/// Has the inode `ino`, from which the caller has taken the last name, freed: now, or when it is
/// closed last. Collective, uniform; the caller holds no lock and is no path reader.
GOFS_NOINLINE GOFS_HD inline void release_removed(simt::AnyWarp auto warp, Filesystem& fs,
                                                  uint32_t ino) {
  // From then on it cannot be opened.
  if (wait_for_path_readers(warp, fs.path_readers, fs.lock_timeout_ns) < 0) return;
  uint32_t in_use = 0;
  if (warp.thread_rank() == 0) {
    const uint32_t home = home_of(fs, ino);
    uint32_t& lock = fs.open_inode_sets[home].lock;
    lock_table(lock);
    const int index = find_open_inode(fs, home, ino);
    if (index >= 0) fs.open_inodes[index].removed = 1;
    simt::unlock(lock);
    in_use = index >= 0 ? 1 : 0;
  }
  if (warp.shfl(in_use, 0) == 0) free_removed(warp, fs, ino);
}

}  // namespace gofs::vfs::detail
