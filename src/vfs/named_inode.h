// SPDX-License-Identifier: Apache-2.0
//
// Names that are about to change, with the directories that hold them and the inodes that they lead
// to, all of them locked (inode_lock.h).
#pragma once

#include "f2fs/links.h"
#include "vfs/change.h"
#include "vfs/credentials.h"
#include "vfs/parent.h"

namespace gofs::vfs::detail {

struct NamedInode {
  ParentPath at;
  f2fs::Inode directory;
  f2fs::DirectoryEntry entry;  // ino 0: there is none
  f2fs::Inode inode;           // where there is
};

/// The lock of the name `at`.
GOFS_HD inline uint32_t& name_lock(const Filesystem& fs, const ParentPath& at) {
  return vfs::name_lock(fs, at.ino, format::name_hash(at.name.bytes, at.name.length));
}

/// Looks a name up as its directory is now. Collective, uniform. 0, also where it is not there, or
/// a negative errno: -ENOENT where the directory was removed.
GOFS_NOINLINE GOFS_HD inline int find_named(simt::AnyWarp auto warp, Filesystem& fs,
                                            NamedInode& named) {
  named.entry = {};
  int error = load_uniform(warp, fs, named.at.ino, named.directory);
  if (error < 0) return error;
  if (named.directory.links == 0) return -ENOENT;
  error = check_name(named.at.name);
  if (error < 0) return error;
  error = f2fs::find_entry(warp, fs.volume, named.directory, named.at.name.bytes,
                           named.at.name.length, named.entry);
  if (error == -ENOENT) named.entry = {};
  return error == -ENOENT ? 0 : error;
}

/// Locks a name, its directory together with others who make names there or remove them, and what
/// the name leads to, and loads both. Collective, uniform; the caller reads paths (reading_paths())
/// and holds no lock. 0 or a negative errno, with nothing locked. unlock_name() releases all of it.
GOFS_NOINLINE GOFS_HD inline int lock_name(simt::AnyWarp auto warp, Filesystem& fs,
                                           NamedInode& named, InodeLocks& locks) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  uint32_t& name = name_lock(fs, named.at);
  for (;;) {
    int error = find_named(warp, fs, named);
    locks = {};
    if (error < 0) return error;
    const uint32_t seen = named.entry.ino;
    locks.add_shared(fs, named.at.ino);
    locks.add(fs, seen);
    error = lock_inodes(warp, fs, locks);
    if (error < 0) return error;
    const bool locked = simt::wait_for_lock(warp, name, deadline);
    // Others may have been at the name until now.
    error = locked ? find_named(warp, fs, named) : -EBUSY;
    const bool same = error == 0 && named.entry.ino == seen;
    if (same && seen != 0) error = load_uniform(warp, fs, seen, named.inode);
    if (error == 0 && same) return 0;
    if (locked) simt::release_lock(warp, name);
    unlock_inodes(warp, fs, locks);
    locks = {};
    if (error < 0) return error;
    if (warp.any(deadline.passed())) return -EBUSY;
  }
}

/// Releases what lock_name() took. Collective.
GOFS_HD inline void unlock_name(simt::AnyWarp auto warp, Filesystem& fs, const NamedInode& named,
                                const InodeLocks& locks) {
  simt::release_lock(warp, name_lock(fs, named.at));
  unlock_inodes(warp, fs, locks);
}

/// Locks the directories of two names for the caller alone, and what the names lead to, and loads
/// both. Collective, uniform; the caller reads paths (reading_paths()) and holds no lock. 0 or a
/// negative errno, with nothing locked.
GOFS_NOINLINE GOFS_HD inline int lock_two_names(simt::AnyWarp auto warp, Filesystem& fs,
                                                NamedInode& first, NamedInode& second,
                                                InodeLocks& locks) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  // Where the first leads to nothing, the second is not asked about.
  const auto look = [&] {
    second.entry = {};
    const int error = find_named(warp, fs, first);
    return error < 0 || first.entry.ino == 0 ? error : find_named(warp, fs, second);
  };
  for (;;) {
    int error = look();
    locks = {};
    if (error < 0) return error;
    const uint32_t seen[2] = {first.entry.ino, second.entry.ino};
    locks.add(fs, first.at.ino);
    locks.add(fs, seen[0]);
    locks.add(fs, second.at.ino);
    locks.add(fs, seen[1]);
    error = lock_inodes(warp, fs, locks);
    if (error < 0) return error;
    // Others may have been at the names until now.
    error = look();
    const bool same = first.entry.ino == seen[0] && second.entry.ino == seen[1];
    if (error == 0 && same && seen[0] != 0) {
      error = load_uniform(warp, fs, seen[0], first.inode);
    }
    if (error == 0 && same && seen[1] != 0) {
      error = load_uniform(warp, fs, seen[1], second.inode);
    }
    if (error == 0 && same) return 0;
    unlock_inodes(warp, fs, locks);
    locks = {};
    if (error < 0) return error;
    if (warp.any(deadline.passed())) return -EBUSY;
  }
}

/// Whether the caller may make, change and remove names in `directory`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int may_change_names(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const f2fs::Inode& directory) {
  if (directory.links == 0) return -ENOENT;  // it was removed
  return check_permission(warp, fs, directory, kMayWrite | kMayExecute);
}

/// Whether the caller may take away the name of `named`, which leads to something: of a directory
/// where `is_directory`. Collective, uniform. 0 or a negative errno, in Linux's order.
GOFS_NOINLINE GOFS_HD inline int may_remove_name(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const NamedInode& named, bool is_directory) {
  constexpr uint32_t kSticky = 01000;
  const int error = may_change_names(warp, fs, named.directory);
  if (error < 0) return error;
  constexpr uint32_t kFrozen = format::kFlagImmutable | format::kFlagAppend;
  const Credentials& who = credentials_of(warp, fs);
  const bool stays = (named.directory.mode & kSticky) != 0 && !owns(who, named.inode) &&
                     !owns(who, named.directory);
  if (stays || (named.directory.flags & format::kFlagAppend) != 0) return -EPERM;
  if ((named.inode.flags & kFrozen) != 0) return -EPERM;
  if (is_directory && !named.inode.is_directory()) return -ENOTDIR;
  if (!is_directory && named.inode.is_directory()) return -EISDIR;
  return 0;
}

/// Invalidates what `named` led to. By one lane, after the change and under its locks.
GOFS_HD inline void invalidate_name(Filesystem& fs, const ParentPath& at) {
  fs.dentries.erase(at.ino, format::name_hash(at.name.bytes, at.name.length), at.name.length);
}

/// f2fs::change_links() of one inode, with one answer for the warp. Collective, uniform.
GOFS_HD inline int count_links(simt::AnyWarp auto warp, f2fs::Operation& op, uint32_t ino,
                               int32_t change) {
  uint32_t links = 0;
  const int changed = f2fs::change_links(warp, op, 1u, ino, change, links);
  return simt::first_error(warp, warp.thread_rank() == 0 ? changed : 0);
}

}  // namespace gofs::vfs::detail
