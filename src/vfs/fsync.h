// SPDX-License-Identifier: Apache-2.0
//
// fsync and fdatasync: one file made durable (f2fs/sync_file.h). Collective with uniform arguments
// and answers, by one warp.
#pragma once

#include "f2fs/sync_file.h"
#include "vfs/change.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

namespace detail {

/// Makes the file `ino` durable. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int sync_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                            f2fs::SyncScope scope) {
  if (fs.writer == nullptr) return 0;
  int error = lock_inode(warp, fs, ino);
  if (error < 0) return error;
  error = f2fs::sync_file(warp, fs.volume, *fs.writer, ino, scope);
  unlock_inode(warp, fs, ino);
  return error;
}

/// What a write through a descriptor with these flags, which have kOpenDataSync, makes durable.
GOFS_HD constexpr f2fs::SyncScope scope_of_flags(uint32_t flags) {
  return (flags & kOpenSync) == kOpenSync ? f2fs::SyncScope::kAll : f2fs::SyncScope::kContents;
}

/// fsync() and fdatasync().
GOFS_NOINLINE GOFS_HD inline int sync_descriptor(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                 f2fs::SyncScope scope) {
  const Descriptor* const descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  return sync_inode(warp, fs, fs.open_inodes[descriptor->open_inode].inode.ino, scope);
}

}  // namespace detail

/// fsync(2): all that was done to the file before is durable when this returns 0, and its name, if
/// it is new; of a directory all of its names, since the whole volume is then made durable. Also
/// for descriptors that are open for reading. Negative errno: -EBADF, -EIO, -EROFS (an earlier
/// checkpoint failed in its last step: nothing becomes durable any more), -EBUSY, -EUCLEAN.
GOFS_HD inline int fsync(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  return detail::sync_descriptor(warp, fs, fd, f2fs::SyncScope::kAll);
}

/// fdatasync(2): fsync(), but for the times of the last change where nothing else of the inode has
/// changed since it was durable: that of a file in which blocks are overwritten is not written.
GOFS_HD inline int fdatasync(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  return detail::sync_descriptor(warp, fs, fd, f2fs::SyncScope::kContents);
}

}  // namespace gofs::vfs
