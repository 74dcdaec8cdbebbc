// SPDX-License-Identifier: Apache-2.0
//
// Names that go: unlink and rmdir. All functions are collective with uniform arguments and answers,
// by one warp. Seen by others when the call returns, durable after sync(). What an inode without
// names holds is free then too, unless it is open: then with the last close().
#pragma once

#include "f2fs/change_directory.h"
#include "f2fs/empty_directory.h"
#include "vfs/by_number.h"
#include "vfs/free_removed.h"
#include "vfs/named_inode.h"

namespace gofs::vfs {

namespace detail {

/// How many links go with a name of `inode`: all of a directory, which has one name.
GOFS_HD inline int32_t links_of_name(const f2fs::Inode& inode) {
  if (!inode.is_directory()) return 1;
  return static_cast<int32_t>(simt::min<uint32_t>(inode.links, INT32_MAX));
}

/// Whether `inode` has no name any more when it loses one.
GOFS_HD inline bool loses_last_name(const f2fs::Inode& inode) {
  return inode.links <= static_cast<uint32_t>(links_of_name(inode));
}

/// Gives an inode the links of a name back, and its parent that of a directory's `..`: the way back
/// of drop_links(). Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void restore_links(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                Filesystem& fs, const f2fs::Inode& inode,
                                                uint32_t parent_ino) {
  if (inode.is_directory()) {
    (void)f2fs::count_subdirectory(warp, op, parent_ino, 1);
  }
  (void)count_links(warp, op, inode.ino, links_of_name(inode));
  if (loses_last_name(inode) && warp.thread_rank() == 0) {
    f2fs::remove_orphan(fs.writer->orphans, inode.ino);
  }
}

/// Takes the links of a name in `parent_ino` from an inode, which is an orphan if it was the last
/// one. Collective, uniform. 0 or a negative errno, with everything as it was.
GOFS_NOINLINE GOFS_HD inline int drop_links(simt::AnyWarp auto warp, f2fs::Operation& op,
                                            Filesystem& fs, const f2fs::Inode& inode,
                                            uint32_t parent_ino) {
  f2fs::OrphanTable& orphans = fs.writer->orphans;
  const bool last = loses_last_name(inode);
  int error = 0;
  // First of all: whatever happens from then on, it is freed once it has no name.
  if (last && warp.thread_rank() == 0) error = f2fs::add_orphan(orphans, inode.ino);
  error = warp.shfl(error, 0);
  if (error < 0) return error;
  error = count_links(warp, op, inode.ino, -links_of_name(inode));
  if (error == 0 && inode.is_directory()) {
    error = f2fs::count_subdirectory(warp, op, parent_ino, -1);
    if (error < 0) (void)count_links(warp, op, inode.ino, links_of_name(inode));
  }
  if (error < 0 && last && warp.thread_rank() == 0) f2fs::remove_orphan(orphans, inode.ino);
  return error;
}

/// Takes away the name that stands in `named`. Collective, uniform. 0 or a negative errno, with
/// everything as it was.
GOFS_NOINLINE GOFS_HD inline int remove_named(simt::AnyWarp auto warp, f2fs::Operation& op,
                                              Filesystem& fs, NamedInode& named,
                                              f2fs::EmptiedBlock& emptied) {
  int error = drop_links(warp, op, fs, named.inode, named.at.ino);
  if (error < 0) return error;
  error = f2fs::remove_shared_entry(warp, op, named.directory, named.at.name,
                                    &inode_lock(fs, named.at.ino).entries, emptied);
  if (error < 0) restore_links(warp, op, fs, named.inode, named.at.ino);
  return error;
}

/// Drops a block of a directory that has lost its last entry, unless it has others by now.
/// Collective; the caller reads paths and holds no lock. Where that cannot be, it stays.
GOFS_NOINLINE GOFS_HD inline void drop_emptied_block(simt::AnyWarp auto warp, Filesystem& fs,
                                                     uint32_t directory_ino, uint64_t index) {
  if (lock_inode(warp, fs, directory_ino) < 0) return;
  f2fs::Inode directory{};
  if (load_uniform(warp, fs, directory_ino, directory) == 0 && directory.links != 0) {
    (void)operate(warp, fs, f2fs::kPagesToChangeEntry, [&](f2fs::Operation& op) {
      return f2fs::drop_if_empty(warp, op, directory, index);
    });
  }
  unlock_inode(warp, fs, directory_ino);
}

/// Removes the last name of `path`; `gone` is the inode that then has none, or 0. Collective,
/// uniform, while reading paths.
GOFS_NOINLINE GOFS_HD inline int remove_path(simt::AnyWarp auto warp, Filesystem& fs,
                                             const ParentPath& at, bool is_directory,
                                             uint32_t& gone) {
  if (fs.writer == nullptr) return -EROFS;
  NamedInode named{};
  named.at = at;
  InodeLocks locks{};
  int error = lock_name(warp, fs, named, locks);
  if (error < 0) return error;
  f2fs::EmptiedBlock emptied{};
  if (named.entry.ino == 0) error = -ENOENT;
  if (error == 0 && at.slash_behind && !is_directory) {
    error = named.inode.is_directory() ? -EISDIR : -ENOTDIR;
  }
  if (error == 0) error = may_remove_name(warp, fs, named, is_directory);
  if (error == 0 && is_directory) {
    error = f2fs::is_empty_directory(warp, fs.volume, named.inode);
    error = error == 0 ? -ENOTEMPTY : simt::min(error, 0);
  }
  if (error == 0) {
    error = operate(warp, fs, f2fs::kPagesToChangeEntry + 2, [&](f2fs::Operation& op) {
      return remove_named(warp, op, fs, named, emptied);
    });
  }
  if (error == 0) {
    if (loses_last_name(named.inode)) gone = named.inode.ino;
    if (warp.thread_rank() == 0) {
      invalidate_name(fs, at);
      invalidate_paths(fs);
    }
  }
  unlock_name(warp, fs, named, locks);
  if (error == 0 && emptied.is_empty) drop_emptied_block(warp, fs, at.ino, emptied.index);
  return error;
}

/// What a name that cannot be removed answers: of `.`, `..`, or the root.
GOFS_HD inline int refuse_no_name(const f2fs::EntryName& name, bool is_directory) {
  if (!is_directory) return -EISDIR;
  if (name.length == 0) return -EBUSY;
  return name.length == 1 ? -EINVAL : -ENOTEMPTY;
}

/// The directory with number `ino` as the place of `name`, which is one name. Collective, uniform,
/// while reading paths. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int find_place_in(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t ino, const char* name, ParentPath& at) {
  const int refused = may_use_numbers(warp);
  if (refused < 0) return refused;
  const int length = path_length(warp, name);
  if (length <= 0) return length == 0 ? -ENOENT : length;
  for (int i = 0; i < length; ++i) {
    if (name[i] == '/') return -EINVAL;
  }
  f2fs::Inode directory{};
  int error = load_numbered(warp, fs, warp.ballot(true), ino, directory);
  error = simt::first_error(warp, error);
  if (error < 0) return error;
  if (!directory.is_directory()) return -ENOTDIR;
  at = ParentPath{ino, {name, static_cast<uint32_t>(length)}, false};
  error = check_permission(warp, fs, directory, kMayExecute);
  return error < 0 ? error : f2fs::check_supported(directory);
}

/// unlink() and rmdir(), with a `directory_ino` that is not 0 of one name in that directory.
/// Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int remove(simt::AnyWarp auto warp, Filesystem& fs,
                                        uint32_t directory_ino, const char* path,
                                        bool is_directory) {
  uint32_t gone = 0;
  const int error = reading_paths(warp, fs, [&]() -> int {
    ParentPath at{};
    const int found = directory_ino == 0 ? resolve_parent(warp, fs, path, at)
                                         : find_place_in(warp, fs, directory_ino, path, at);
    if (found < 0) return found;
    if (is_no_name(at.name)) return refuse_no_name(at.name, is_directory);
    return remove_path(warp, fs, at, is_directory, gone);
  });
  if (gone != 0) release_removed(warp, fs, gone);
  return error;
}

}  // namespace detail

/// unlink(2): takes away a name of what is no directory. -ENOENT, -EISDIR, -ENOTDIR, -EACCES,
/// -EPERM, -EROFS, -EBUSY, and what resolve() and detail::operate() say.
GOFS_HD inline int unlink(simt::AnyWarp auto warp, Filesystem& fs, const char* path) {
  return detail::remove(warp, fs, 0, path, false);
}

/// rmdir(2): removes an empty directory. -ENOTEMPTY, -ENOTDIR, -EINVAL (its last name is `.`),
/// -EBUSY (the root), and as unlink().
GOFS_HD inline int rmdir(simt::AnyWarp auto warp, Filesystem& fs, const char* path) {
  return detail::remove(warp, fs, 0, path, true);
}

/// The two of a name in the directory with number `ino`, for those who walk a whole volume, where
/// paths may be longer than any call takes: permissions of the directories above are not asked.
/// -EINVAL where `name` is a path, -ESTALE where the directory has been removed.
GOFS_HD inline int unlink_in(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                             const char* name) {
  return detail::remove(warp, fs, ino, name, false);
}
GOFS_HD inline int rmdir_in(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                            const char* name) {
  return detail::remove(warp, fs, ino, name, true);
}

}  // namespace gofs::vfs
