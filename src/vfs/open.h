// SPDX-License-Identifier: Apache-2.0
//
// open(2) with all that it may do: make the file, empty it.
#pragma once

#include "vfs/make_file.h"
#include "vfs/resize.h"

namespace gofs::vfs {

namespace detail {

/// Makes a regular file and opens it, whatever its permissions. Collective, uniform. A descriptor
/// (`made` then), or a negative errno: -EEXIST where something is there.
GOFS_NOINLINE GOFS_HD inline int create_at(simt::AnyWarp auto warp, Filesystem& fs,
                                           const ParentPath& parent, uint32_t flags,
                                           uint32_t permissions, bool& made) {
  const auto mode = static_cast<uint16_t>(format::kModeRegular |
                                          (permissions & uint32_t{format::kModePermissionMask}));
  const int fd = take_descriptor(warp, fs);  // without one, no file is made
  if (fd < 0) return fd;
  f2fs::Inode inode{};  // open_taken() loads it, since it cannot be open yet
  int opened = make_file_at(warp, fs, parent, {mode, {}, nullptr, 0}, inode.ino);
  if (opened == 0) opened = open_taken(warp, fs, fd, inode, flags);
  made = opened >= 0;
  if (!made) release_descriptor(warp, fs, fd);
  return opened;
}

/// create_at() of what `path` is to name. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int create(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                        uint32_t flags, uint32_t permissions, bool& made) {
  return reading_paths(warp, fs, [&]() -> int {
    ParentPath parent{};
    const int error = resolve_parent(warp, fs, path, parent);
    if (error < 0) return error;
    if (is_no_name(parent.name)) return -EEXIST;
    return create_at(warp, fs, parent, flags, permissions, made);
  });
}

/// Opens what `path` names, or makes it where nothing is there. Collective, uniform. As
/// create_at(); -EEXIST also where what was found has gone since.
GOFS_NOINLINE GOFS_HD inline int open_or_create_once(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const char* path, uint32_t flags,
                                                     uint32_t permissions, bool& made) {
  const bool no_follow = (flags & kOpenNoFollow) != 0;
  return reading_paths(warp, fs, [&]() -> int {
    char text[format::kNameBytesMax];
    ParentPath parent{};
    f2fs::Inode inode{};
    const int error = resolve_or_place(
        warp, fs, path, no_follow ? LastLink::kKeep : LastLink::kFollow, inode, text, parent);
    if (error == -ENOENT && parent.ino != 0) {
      return create_at(warp, fs, parent, flags, permissions, made);
    }
    if (error < 0) return error;
    const int fd = open_found(warp, fs, inode, flags);
    return fd == -ENOENT ? -EEXIST : fd;
  });
}

/// No file is made by a name with a slash behind it: -EISDIR, whatever is there. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int check_no_slash(simt::AnyWarp auto warp, Filesystem& fs,
                                                const char* path) {
  const int length = path_length(warp, path);
  if (length <= 1 || simt::reach(warp.thread_rank(), path)[length - 1] != '/') return 0;
  return reading_paths(warp, fs, [&]() -> int {
    ParentPath parent{};
    const int error = resolve_parent(warp, fs, path, parent);
    return error == 0 && !is_no_name(parent.name) ? -EISDIR : error;
  });
}

/// Opens what is there, or makes it: `made` says which. Collective, uniform.
GOFS_HD inline int open_or_create(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                  uint32_t flags, uint32_t permissions, bool& made) {
  made = false;
  if ((flags & kOpenCreate) == 0) return open_existing(warp, fs, path, flags);
  if ((flags & kOpenDirectory) != 0) return -EINVAL;
  const int named = check_no_slash(warp, fs, path);
  if (named < 0) return named;
  run_foreground_gc(warp, fs, 0);
  if ((flags & kOpenExclusive) != 0) return create(warp, fs, path, flags, permissions, made);
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  int fd = -EEXIST;
  // Others may make and remove it meanwhile.
  while (fd == -EEXIST) {
    if (warp.any(deadline.passed())) return -EBUSY;
    fd = open_or_create_once(warp, fs, path, flags, permissions, made);
  }
  if (fd != -ENOENT) return fd;
  // What was there has just gone.
  fd = create(warp, fs, path, flags, permissions, made);
  return fd == -EEXIST ? open_existing(warp, fs, path, flags) : fd;
}

}  // namespace detail

/// Opens `path`; with kOpenCreate a file that is not there is made with `permissions`. Collective,
/// uniform. A descriptor, or a negative errno: what resolve() says, -EINVAL, -EEXIST, -EACCES,
/// -EPERM, -EISDIR, -ENOTDIR, -ELOOP, -ENXIO, -EOPNOTSUPP, -EMFILE, -ENFILE, -ENOSPC; -EROFS where
/// a volume that is mounted for reading would change.
GOFS_NOINLINE GOFS_HD inline int open(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                      uint32_t flags, uint32_t permissions = 0) {
  const int refused = detail::check_flags(flags);
  if (refused < 0) return refused;
  if ((flags & kOpenPath) != 0) flags &= ~(kOpenCreate | kOpenExclusive | kOpenTruncate);
  bool made = false;
  const int fd = detail::open_or_create(warp, fs, path, flags, permissions, made);
  if (fd < 0 || made || (flags & kOpenTruncate) == 0) return fd;
  const int error = detail::resize_open(warp, fs, fs.open_inodes[fs.descriptors[fd].open_inode], 0);
  if (error == 0) return fd;
  (void)close(warp, fs, fd);
  return error;
}

}  // namespace gofs::vfs
