// SPDX-License-Identifier: Apache-2.0
//
// From a path to the directory that its last name belongs to, for those who make that name.
#pragma once

#include "f2fs/dentry_space.h"
#include "vfs/path.h"

namespace gofs::vfs {

struct ParentPath {
  uint32_t ino;          // of the directory
  f2fs::EntryName name;  // in the caller's path; length 0: the path is that of the root
  bool slash_behind;     // only a directory is named so
};

/// `.` and `..`, and the root's missing name, which cannot be made.
GOFS_HD inline bool is_no_name(const f2fs::EntryName& name) {
  const bool dot = name.length == 1 && name.bytes[0] == '.';
  const bool dotdot = name.length == 2 && name.bytes[0] == '.' && name.bytes[1] == '.';
  return name.length == 0 || dot || dotdot;
}

/// Whether a directory can have a name of this length.
GOFS_HD inline int check_name(const f2fs::EntryName& name) {
  return name.length > format::kNameBytesMax ? -ENAMETOOLONG : 0;
}

/// Collective, uniform. 0 or a negative errno, as resolve(). Whoever looks the name up sees whether
/// it is too long (check_name()).
GOFS_NOINLINE GOFS_HD inline int resolve_parent(simt::AnyWarp auto warp, Filesystem& fs,
                                                const char* path, ParentPath& parent) {
  const int length = detail::path_length(warp, path);
  if (length <= 0) return length == 0 ? -ENOENT : length;
  path = simt::reach(warp.thread_rank(), path);
  auto end = static_cast<uint32_t>(length);
  while (end != 0 && path[end - 1] == '/') --end;
  uint32_t begin = end;
  while (begin != 0 && path[begin - 1] != '/') --begin;
  parent.name = {path + begin, end - begin};
  parent.slash_behind = end != static_cast<uint32_t>(length);
  f2fs::Inode inode{};
  detail::Walk walk{path, begin, 0, false, {}, nullptr, 0};
  const int error = detail::walk_path(warp, fs, walk, LastLink::kFollow, inode);
  if (walk.has_spare) f2fs::release_spares(warp, fs.pool, walk.spare);
  if (error < 0) return error;
  parent.ino = inode.ino;
  if (!inode.is_directory()) return -ENOTDIR;
  const int searched = check_permission(warp, fs, inode, kMayExecute);
  return searched < 0 ? searched : f2fs::check_supported(inode);
}

/// Finds what `path` names, or, where that could be made, the place for it: the directory that its
/// last name belongs to, or that of the symbolic link that it ends with, and the name, which is put
/// into `text`. Collective, uniform. As resolve(); with -ENOENT `parent.ino` is not 0 if there is
/// such a place.
GOFS_NOINLINE GOFS_HD inline int resolve_or_place(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const char* path, LastLink last_link,
                                                  f2fs::Inode& inode,
                                                  char (&text)[format::kNameBytesMax],
                                                  ParentPath& parent) {
  parent = {};
  const int length = detail::path_length(warp, path);
  if (length <= 0) return length == 0 ? -ENOENT : length;
  path = simt::reach(warp.thread_rank(), path);
  detail::Walk walk{path, static_cast<uint32_t>(length), 0, false, {}, nullptr, 0};
  const int error = detail::find_path(warp, fs, walk, last_link, inode);
  if (error == -ENOENT && walk.missing != nullptr) {
    // Each lane its own, before the block goes that the name may lie in.
    for (uint32_t i = 0; i < walk.missing_length; ++i) text[i] = walk.missing[i];
    parent = {inode.ino, {text, walk.missing_length}, false};
  }
  if (walk.has_spare) f2fs::release_spares(warp, fs.pool, walk.spare);
  return error;
}

}  // namespace gofs::vfs
