// SPDX-License-Identifier: Apache-2.0
//
// rename(2) and renameat2(2). Collective with uniform arguments and answers, by one warp. Seen by
// others when the call returns, durable after sync(); who looks the new name up meanwhile finds
// what it led to or what it shall lead to, never nothing.
#pragma once

#include "vfs/remove_file.h"

namespace gofs::vfs {

using gofs::kRenameExchange;
using gofs::kRenameNoReplace;

namespace detail {

/// The two names of a rename, locked; `to` leads to nothing where a name is made.
struct RenamePair {
  NamedInode from;
  NamedInode to;

  GOFS_HD bool same_directory() const { return from.at.ino == to.at.ino; }
  /// One object for one directory: what changes it brings the object up to date.
  GOFS_HD f2fs::Inode& to_directory() { return same_directory() ? from.directory : to.directory; }
};

inline constexpr uint32_t kPagesToRename = 4 * f2fs::kPagesToChangeEntry + 4;

GOFS_HD inline f2fs::DirectoryEntry entry_of(const f2fs::Inode& inode) {
  return {inode.ino, format::file_type_of_mode(inode.mode)};
}

/// Notes in an inode where its name now stands and, in a directory that has gone elsewhere, in its
/// `..`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int settle(simt::AnyWarp auto warp, f2fs::Operation& op,
                                        f2fs::Inode& inode, const ParentPath& at, bool elsewhere) {
  if (elsewhere && inode.is_directory()) {
    const int error = f2fs::set_entry(warp, op, inode, {"..", 2}, {at.ino, format::kTypeDirectory});
    if (error < 0) return error;
  }
  const int error = f2fs::set_parent(warp, op, 1u, inode.ino, at.ino, at.name);
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// Counts the `..` of a directory that moves from one directory to another. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int move_link(simt::AnyWarp auto warp, f2fs::Operation& op,
                                           uint32_t from, uint32_t to) {
  int error = count_links(warp, op, to, 1);
  if (error < 0) return error;
  error = count_links(warp, op, from, -1);
  if (error < 0) (void)count_links(warp, op, to, -1);
  return error;
}

/// Lets the new name lead to the inode, over what it may have led to, and takes the old one away.
/// Collective, uniform. 0 or a negative errno; everything is then as it was, but where the device
/// failed on the way back as well.
GOFS_NOINLINE GOFS_HD inline int move_name(simt::AnyWarp auto warp, f2fs::Operation& op,
                                           Filesystem& fs, RenamePair& pair) {
  f2fs::Inode& inode = pair.from.inode;
  f2fs::Inode& replaced = pair.to.inode;
  const bool replaces = pair.to.entry.ino != 0;
  const bool moves_link = inode.is_directory() && !pair.same_directory();
  const f2fs::EntryName& from = pair.from.at.name;
  const f2fs::EntryName& to = pair.to.at.name;

  int error = 0;
  if (replaces) {
    error = drop_links(warp, op, fs, replaced, pair.to.at.ino);
    if (error < 0) return error;
  }
  if (moves_link) error = move_link(warp, op, pair.from.at.ino, pair.to.at.ino);
  if (error == 0) {
    error = replaces ? f2fs::set_entry(warp, op, pair.to_directory(), to, entry_of(inode))
                     : f2fs::add_entry(warp, op, pair.to_directory(), to, entry_of(inode));
    if (error == 0) {
      error = settle(warp, op, inode, pair.to.at, moves_link);
      if (error == 0) {
        error = f2fs::remove_entry(warp, op, pair.from.directory, from);
        if (error == 0) return 0;
        (void)settle(warp, op, inode, pair.from.at, moves_link);
      }
      if (replaces) {
        (void)f2fs::set_entry(warp, op, pair.to_directory(), to, entry_of(replaced));
      } else {
        (void)f2fs::remove_entry(warp, op, pair.to_directory(), to);
      }
    }
    if (moves_link) (void)move_link(warp, op, pair.to.at.ino, pair.from.at.ino);
  }
  if (replaces) restore_links(warp, op, fs, replaced, pair.to.at.ino);
  return error;
}

/// Lets each name lead to what the other led to. Collective, uniform. As move_name().
GOFS_NOINLINE GOFS_HD inline int exchange_names(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                RenamePair& pair) {
  NamedInode& a = pair.from;
  NamedInode& b = pair.to;
  const bool elsewhere = !pair.same_directory();
  // Where both are directories, or none, as many `..` come as go.
  const bool uneven = elsewhere && a.inode.is_directory() != b.inode.is_directory();
  const uint32_t gives = a.inode.is_directory() ? a.at.ino : b.at.ino;
  const uint32_t takes = a.inode.is_directory() ? b.at.ino : a.at.ino;
  int error = uneven ? move_link(warp, op, gives, takes) : 0;
  if (error < 0) return error;
  error = f2fs::set_entry(warp, op, a.directory, a.at.name, entry_of(b.inode));
  if (error == 0) {
    error = f2fs::set_entry(warp, op, pair.to_directory(), b.at.name, entry_of(a.inode));
    if (error == 0) {
      error = settle(warp, op, a.inode, b.at, elsewhere);
      if (error == 0) error = settle(warp, op, b.inode, a.at, elsewhere);
      if (error == 0) return 0;
      (void)settle(warp, op, a.inode, a.at, elsewhere);
      (void)f2fs::set_entry(warp, op, pair.to_directory(), b.at.name, entry_of(b.inode));
    }
    (void)f2fs::set_entry(warp, op, a.directory, a.at.name, entry_of(a.inode));
  }
  if (uneven) (void)move_link(warp, op, takes, gives);
  return error;
}

/// Whether `inode` is the directory `ino` or above it: 1, 0, or a negative errno. Collective,
/// uniform, under the rename lock, so that no directory goes elsewhere meanwhile.
GOFS_NOINLINE GOFS_HD inline int is_above(simt::AnyWarp auto warp, Filesystem& fs, uint32_t above,
                                          uint32_t ino) {
  const uint32_t root = fs.volume.geometry.root_ino;
  // Not deeper than there are inodes.
  const uint32_t most = simt::load_relaxed(fs.volume.valid_inode_count);
  for (uint32_t depth = 0;; ++depth) {
    if (ino == above) return 1;
    if (ino == root) return 0;
    f2fs::Inode directory{};
    int error = load_uniform(warp, fs, ino, directory);
    if (error < 0) return error;
    if (warp.any(depth > most) || !directory.is_directory()) {
      return f2fs::report_once(warp, *fs.volume.corruptions,
                               {f2fs::Structure::kDirectory, 0, ino, directory.mode});
    }
    NameTarget parent{};
    error = look_up(warp, fs, directory, "..", 2, parent);
    if (error < 0) return error;
    ino = parent.ino;
  }
}

/// Whether the names may be exchanged, or one put over the other, as Linux asks. Collective,
/// uniform, under the locks.
GOFS_NOINLINE GOFS_HD inline int may_rename(simt::AnyWarp auto warp, Filesystem& fs,
                                            const RenamePair& pair, uint32_t flags) {
  const NamedInode& from = pair.from;
  const NamedInode& to = pair.to;
  const bool exchange = (flags & kRenameExchange) != 0;
  const bool is_directory = from.inode.is_directory();
  const bool replaces = to.entry.ino != 0;
  int error = may_remove_name(warp, fs, from, is_directory);
  if (error < 0) return error;
  if (!replaces) {
    error = may_change_names(warp, fs, to.directory);
  } else {
    error = may_remove_name(warp, fs, to, exchange ? to.inode.is_directory() : is_directory);
  }
  if (error < 0) return error;
  // Their `..` changes.
  if (!pair.same_directory()) {
    if (is_directory) error = check_permission(warp, fs, from.inode, kMayWrite);
    if (error == 0 && exchange && to.inode.is_directory()) {
      error = check_permission(warp, fs, to.inode, kMayWrite);
    }
    if (error < 0) return error;
  }
  if (!replaces || exchange || !is_directory) return 0;
  error = f2fs::is_empty_directory(warp, fs.volume, to.inode);
  return error == 0 ? -ENOTEMPTY : simt::min(error, 0);
}

/// What the shape of the two paths, and of what they lead to, says. Collective, uniform, under the
/// locks. 1: there is nothing to do.
GOFS_NOINLINE GOFS_HD inline int check_names(simt::AnyWarp auto warp, Filesystem& fs,
                                             const RenamePair& pair, uint32_t flags) {
  const NamedInode& from = pair.from;
  const NamedInode& to = pair.to;
  const bool exchange = (flags & kRenameExchange) != 0;
  if (from.entry.ino == 0) return -ENOENT;
  if (to.entry.ino != 0 && (flags & kRenameNoReplace) != 0) return -EEXIST;
  if (to.entry.ino == 0 && exchange) return -ENOENT;
  if (exchange && to.at.slash_behind && !to.inode.is_directory()) return -ENOTDIR;
  if (!from.inode.is_directory() && (from.at.slash_behind || (!exchange && to.at.slash_behind))) {
    return -ENOTDIR;
  }
  if (from.inode.is_directory() && !pair.same_directory()) {
    const int above = is_above(warp, fs, from.inode.ino, to.at.ino);
    if (above != 0) return above < 0 ? above : -EINVAL;
  }
  if (to.entry.ino != 0 && to.inode.is_directory() && !pair.same_directory()) {
    const int above = is_above(warp, fs, to.inode.ino, from.at.ino);
    if (above != 0) return above < 0 ? above : exchange ? -EINVAL : -ENOTEMPTY;
  }
  return from.entry.ino == to.entry.ino ? 1 : 0;
}

/// Renames under all locks; `gone` is the inode that then has no name, or 0. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int rename_locked(simt::AnyWarp auto warp, Filesystem& fs,
                                               RenamePair& pair, uint32_t flags, uint32_t& gone) {
  int error = check_names(warp, fs, pair, flags);
  if (error != 0) return simt::min(error, 0);
  error = may_rename(warp, fs, pair, flags);
  if (error < 0) return error;
  const bool exchange = (flags & kRenameExchange) != 0;
  const uint32_t pages = kPagesToRename + f2fs::pages_to_add_entry(pair.to_directory());
  error = operate(warp, fs, pages, [&](f2fs::Operation& op) {
    return exchange ? exchange_names(warp, op, pair) : move_name(warp, op, fs, pair);
  });
  const f2fs::Inode& replaced = pair.to.inode;
  const bool removes = error == 0 && !exchange && pair.to.entry.ino != 0;
  if (removes && loses_last_name(replaced)) gone = replaced.ino;
  if (warp.thread_rank() == 0) {  // also where the device failed halfway
    invalidate_name(fs, pair.from.at);
    invalidate_name(fs, pair.to.at);
    const auto invalidate_parent = [&](const f2fs::Inode& inode) {
      if (inode.is_directory()) {
        fs.dentries.erase(inode.ino, format::name_hash("..", 2), 2);
      }
    };
    invalidate_parent(pair.from.inode);
    if (exchange) invalidate_parent(pair.to.inode);
    invalidate_paths(fs);
  }
  return error;
}

/// Renames while reading paths. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int rename_found(simt::AnyWarp auto warp, Filesystem& fs,
                                              const char* from, const char* to, uint32_t flags,
                                              uint32_t& gone) {
  RenamePair pair{};
  int error = resolve_parent(warp, fs, from, pair.from.at);
  if (error == 0) error = resolve_parent(warp, fs, to, pair.to.at);
  if (error < 0) return error;
  if (is_no_name(pair.from.at.name)) return -EBUSY;
  if (is_no_name(pair.to.at.name)) return (flags & kRenameNoReplace) != 0 ? -EEXIST : -EBUSY;
  if (fs.writer == nullptr) return -EROFS;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (bool alone = false;; alone = true) {
    // Where a directory goes elsewhere, one at a time: two could go into each other.
    if (alone && !simt::wait_for_lock(warp, fs.rename_lock, deadline)) return -EBUSY;
    InodeLocks locks{};
    error = lock_two_names(warp, fs, pair.from, pair.to, locks);
    const bool moves = pair.from.inode.is_directory() || pair.to.inode.is_directory();
    const bool retries = error == 0 && moves && !pair.same_directory() && !alone;
    if (error == 0 && !retries) error = rename_locked(warp, fs, pair, flags, gone);
    unlock_inodes(warp, fs, locks);
    if (alone && warp.thread_rank() == 0) simt::unlock(fs.rename_lock);
    if (!retries) return error;
  }
}

}  // namespace detail

/// renameat2(2): gives what `from` names the name `to`, in place of what had it; with
/// kRenameNoReplace only if nothing had (-EEXIST), with kRenameExchange each gets the other's name.
/// -ENOENT, -EEXIST, -EINVAL (a directory into itself; flags), -ENOTEMPTY, -EISDIR, -ENOTDIR,
/// -EBUSY, -EACCES, -EPERM, -EROFS, -ENOSPC, and what resolve() and detail::operate() say.
GOFS_NOINLINE GOFS_HD inline int rename(simt::AnyWarp auto warp, Filesystem& fs, const char* from,
                                        const char* to, uint32_t flags = 0) {
  if (flags > kRenameExchange) return -EINVAL;
  uint32_t gone = 0;
  const int error = reading_paths(
      warp, fs, [&] { return detail::rename_found(warp, fs, from, to, flags, gone); });
  if (gone != 0) detail::release_removed(warp, fs, gone);
  return error;
}

}  // namespace gofs::vfs
