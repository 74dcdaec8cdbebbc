// SPDX-License-Identifier: Apache-2.0
//
// open(2) with all that it may do: make the file, empty it.
#pragma once

#include "vfs/make_file.h"
#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// Makes a regular file and opens it, whatever its permissions. Collective, uniform. A descriptor,
/// or a negative errno: -EEXIST where something is there.
GOFS_NOINLINE GOFS_HD inline int create_at(simt::AnyWarp auto warp, Filesystem& fs,
                                           const ParentPath& parent, uint32_t flags,
                                           uint32_t permissions) {
  const auto mode = static_cast<uint16_t>(format::kModeRegular |
                                          (permissions & uint32_t{format::kModePermissionMask}));
  uint32_t ino = 0;
  int error = make_file_at(warp, fs, parent, {mode, {}, nullptr, 0}, ino);
  f2fs::Inode inode{};
  if (error == 0) error = load_uniform(warp, fs, ino, inode);
  return error < 0 ? error : open_checked(warp, fs, inode, flags);
}

/// create_at() of what `path` is to name. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int create(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                        uint32_t flags, uint32_t permissions) {
  return walking(warp, fs, [&]() -> int {
    ParentPath parent{};
    const int error = resolve_parent(warp, fs, path, parent);
    if (error < 0) return error;
    if (is_no_name(parent.name)) return -EEXIST;
    return create_at(warp, fs, parent, flags, permissions);
  });
}

/// create_at() of what the symbolic link leads to that `path` names. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int create_behind_link(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const char* path, uint32_t flags,
                                                    uint32_t permissions) {
  return walking(warp, fs, [&]() -> int {
    char text[format::kNameBytesMax];
    ParentPath parent{};
    const int error = resolve_missing(warp, fs, path, text, parent);
    return error < 0 ? error : create_at(warp, fs, parent, flags, permissions);
  });
}

/// No file is made by a name with a slash behind it: -EISDIR, whatever is there. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int check_no_slash(simt::AnyWarp auto warp, Filesystem& fs,
                                                const char* path) {
  const int length = path_length(warp, path);
  if (length <= 1 || path[length - 1] != '/') return 0;
  return walking(warp, fs, [&]() -> int {
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
  make_space(warp, fs, 0);
  const bool exclusive = (flags & kOpenExclusive) != 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  int fd = exclusive ? -ENOENT : open_existing(warp, fs, path, flags);
  while (fd == -ENOENT) {
    fd = create(warp, fs, path, flags, permissions);
    made = fd >= 0;
    if (fd != -EEXIST || exclusive) break;
    // Another was faster; or the name is a link to nowhere.
    fd = open_existing(warp, fs, path, flags);
    if (fd != -ENOENT) break;
    fd = create_behind_link(warp, fs, path, flags, permissions);
    made = fd >= 0;
    if (fd == -EEXIST) fd = open_existing(warp, fs, path, flags);
    if (fd != -ENOENT || warp.any(deadline.passed())) break;
    // The link leads into a directory that is not there; or somebody has removed the name again.
    f2fs::Inode link{};
    const int found =
        walking(warp, fs, [&] { return resolve(warp, fs, path, LastLink::kKeep, link); });
    if (found != -ENOENT) break;
  }
  return fd;
}

}  // namespace detail

/// Opens `path`; with kOpenCreate a file that is not there is made with `permissions`. Collective,
/// uniform. A descriptor, or a negative errno: what resolve() says, -EINVAL, -EEXIST, -EACCES,
/// -EPERM, -EISDIR, -ENOTDIR, -ELOOP, -ENXIO, -EOPNOTSUPP, -EMFILE, -ENFILE, -ENOSPC; -EROFS where
/// a volume that is mounted for reading would change.
GOFS_NOINLINE GOFS_HD inline int open(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                      uint32_t flags, uint32_t permissions = 0) {
  if (!detail::flags_known(flags)) return -EINVAL;
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
