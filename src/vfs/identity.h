// SPDX-License-Identifier: Apache-2.0
//
// Files by what they are known by whatever their names are: the volume, the number of the inode,
// and the generation, which tells the file from those that had the number before. Collective with
// uniform arguments and answers, by one warp.
//
// What a caller gives may be old, or made up: it is looked up as something that need not be there,
// so nothing of it is reported as damage.
#pragma once

#include "vfs/metadata.h"

namespace gofs::vfs {

using gofs::Identity;

/// The identity of what `fd` has open. 0 or -EBADF.
GOFS_HD inline int identity(simt::AnyWarp auto warp, Filesystem& fs, int fd, Identity& out) {
  const Descriptor* const descriptor = find_descriptor(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const f2fs::Inode& inode = fs.open_inodes[descriptor->open_inode].inode;
  out = Identity{{}, inode.ino, inode.generation, 0};
  for (uint32_t i = 0; i < sizeof(out.uuid); ++i) out.uuid[i] = fs.volume.uuid[i];
  return 0;
}

namespace detail {

/// Flags of open() that make or empty a file, or a file without a name.
inline constexpr uint32_t kOpenMakes =
    kOpenCreate | kOpenExclusive | kOpenTruncate | kOpenTemporary;

GOFS_HD inline bool is_of_volume(const Filesystem& fs, const Identity& file) {
  bool same = true;
  for (uint32_t i = 0; i < sizeof(file.uuid); ++i) {
    same = same && file.uuid[i] == fs.volume.uuid[i];
  }
  return same;
}

/// Loads the inode with this identity; -ESTALE where there is none. Collective, uniform, while
/// reading paths.
GOFS_NOINLINE GOFS_HD inline int load_identified(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const Identity& file, f2fs::Inode& inode) {
  if (!is_of_volume(fs, file)) return -ESTALE;
  if (file.ino < kReservedNids || file.ino > UINT32_MAX) return -ESTALE;
  const auto ino = static_cast<uint32_t>(file.ino);
  const int found =
      simt::first_error(warp, f2fs::find_inodes(warp, fs.volume, warp.ballot(true), ino, inode));
  if (found < 0) return found == -ENOENT ? -ESTALE : found;
  return inode.generation == file.generation ? 0 : -ESTALE;
}

/// Opens an inode without names, which may be freed at any time unless it is open. Collective,
/// uniform. A descriptor, or a negative errno: -ESTALE where it is not open.
GOFS_NOINLINE GOFS_HD inline int open_orphan(simt::AnyWarp auto warp, Filesystem& fs,
                                             const f2fs::Inode& inode, uint32_t flags) {
  const int error = check_open(warp, fs, inode, flags);
  const int fd = error < 0 ? error : take_descriptor(warp, fs);
  if (fd < 0) return fd;
  int index = 0;
  if (warp.thread_rank() == 0) {
    index = acquire_if_open(fs, inode.ino, inode.generation);
    if (index >= 0) fill_descriptor(warp, fs, fd, static_cast<uint32_t>(index), inode, flags);
  }
  index = warp.shfl(index, 0);
  warp.sync();
  if (index >= 0) return fd;
  release_descriptor(warp, fs, fd);
  return index;
}

}  // namespace detail

/// Opens the file or directory with this identity, for those who may search everything: user 0,
/// else -EPERM, since the directories above it are not asked. A descriptor, or a negative errno: as
/// open_existing(); -EINVAL for flags that make or empty files; -ESTALE where there is no such file
/// any more, or it is another volume's.
GOFS_NOINLINE GOFS_HD inline int open_identity(simt::AnyWarp auto warp, Filesystem& fs,
                                               const Identity& file, uint32_t flags) {
  if (credentials_of(warp, fs).uid != 0) return -EPERM;
  const int refused = (flags & detail::kOpenMakes) != 0 ? -EINVAL : detail::check_flags(flags);
  if (refused < 0) return refused;
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = detail::load_identified(warp, fs, file, inode);
    if (error < 0) return error;
    return inode.links == 0 ? detail::open_orphan(warp, fs, inode, flags)
                            : detail::open_found(warp, fs, inode, flags);
  });
}

}  // namespace gofs::vfs
