// SPDX-License-Identifier: Apache-2.0
//
// open(2) with all that it may do to the file.
#pragma once

#include "vfs/write.h"

namespace gofs::vfs {

/// Opens `path`. Collective, uniform. A descriptor, or a negative errno: what resolve() says,
/// -EINVAL, -EACCES, -EPERM, -EISDIR, -ENOTDIR, -ELOOP, -ENXIO, -EOPNOTSUPP, -EMFILE, -ENFILE;
/// -EROFS where a volume that is mounted for reading would change.
GOFS_NOINLINE GOFS_HD inline int open(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                      uint32_t flags) {
  const int fd = open_existing(warp, fs, path, flags & ~(kOpenCreate | kOpenExclusive));
  if (fd == -ENOENT && (flags & kOpenCreate) != 0) return -EROFS;
  if (fd < 0 || (flags & kOpenTruncate) == 0 || (flags & kOpenPath) != 0) return fd;
  const int error = detail::resize_open(warp, fs, fs.open_inodes[fs.descriptors[fd].open_inode], 0);
  if (error == 0) return fd;
  (void)close(warp, fs, fd);
  return error;
}

}  // namespace gofs::vfs
