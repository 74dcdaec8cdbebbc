// SPDX-License-Identifier: Apache-2.0
//
// New names: mkdir, mknod, symlink, link, and the making of files for open(). All functions are
// collective with uniform arguments and answers, by one warp. Seen by others when the call returns,
// durable after sync(). There is no umask: modes are taken as they are.
#pragma once

#include "f2fs/change_directory.h"
#include "f2fs/links.h"
#include "f2fs/make_files.h"
#include "vfs/change_attributes.h"
#include "vfs/edit_access_list.h"
#include "vfs/foreground_gc.h"
#include "vfs/named_inode.h"

namespace gofs::vfs {

/// What a new name shall lead to.
struct NewFile {
  uint16_t mode;  // type and permissions
  format::DeviceNumber device;
  const char* target;  // of a symbolic link
  uint32_t target_bytes;
};

namespace detail {

/// Makes a name that the caller holds exclusively, as make_name() does. -EAGAIN: others have added
/// so many to the directory meanwhile that it takes more pages.
template <typename Make>
GOFS_HD int make_locked_name(simt::AnyWarp auto warp, Filesystem& fs, const ParentPath& parent,
                             uint32_t pages, Make make) {
  f2fs::Inode directory{};
  int error = load_uniform(warp, fs, parent.ino, directory);
  f2fs::EntryWay way{};
  InodeLock& lock = inode_lock(fs, parent.ino);
  way.locks = &lock.entries;
  way.spread = f2fs::levels_for_makers(directory, warp.shfl(simt::count_sharers(lock.users), 0));
  if (error == 0) {
    error = f2fs::find_free_name(warp, fs.volume, directory, parent.name, way.spread, way.room);
  }
  if (error == 0 && parent.slash_behind) error = -ENOENT;
  if (error == 0 && fs.writer == nullptr) error = -EROFS;
  if (error == 0) error = may_change_names(warp, fs, directory);
  if (error < 0) return error;
  way.levels = f2fs::levels_to_reach(directory, way.spread);
  const uint32_t all = pages + f2fs::pages_to_add_entry(directory, way.spread);
  return operate(warp, fs, all, [&](f2fs::Operation& op) { return make(op, directory, way); });
}

/// Locks the directory of `parent`, which it shares with others that make names in it, the name
/// exclusively, and `existing` too, unless it is 0; makes sure that the name is free and may be
/// made, and calls `make(f2fs::Inode& directory, const f2fs::EntryWay& way)` within an operation of
/// `pages` pages and those for the entry. Collective, uniform, while reading paths. 0 or a negative
/// errno, in Linux's order: -EEXIST before all that forbids to make it.
template <typename Make>
GOFS_HD int make_name(simt::AnyWarp auto warp, Filesystem& fs, const ParentPath& parent,
                      uint32_t existing, uint32_t pages, Make make) {
  int error = check_name(parent.name);
  if (error < 0) return error;
  InodeLocks locks{};
  locks.add_shared(fs, parent.ino);
  locks.add(fs, existing);
  error = lock_inodes(warp, fs, locks);
  if (error < 0) return error;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  uint32_t& name = name_lock(fs, parent);
  error = -EBUSY;
  if (simt::wait_for_lock(warp, name, deadline)) {
    do {
      error = make_locked_name(warp, fs, parent, pages, make);
    } while (error == -EAGAIN && !warp.any(deadline.passed()));
    simt::release_lock(warp, name);
  }
  unlock_inodes(warp, fs, locks);
  return error == -EAGAIN ? -EBUSY : error;
}

/// Owner and permissions of what is made in `directory`.
GOFS_HD inline void inherit(const Credentials& who, const f2fs::Inode& directory,
                            f2fs::NewInode& made) {
  made.uid = who.uid;
  made.gid = who.gid;
  if ((directory.mode & format::kModeSetGroupId) == 0) return;
  made.gid = directory.gid;
  if ((made.mode & format::kModeTypeMask) == format::kModeDirectory) {
    made.mode = static_cast<uint16_t>(made.mode | format::kModeSetGroupId);
  } else if (who.uid != 0 && (made.mode & format::kModeGroupExecutes) != 0 &&
             !who.in_group(directory.gid)) {
    made.mode = static_cast<uint16_t>(made.mode & ~uint32_t{format::kModeSetGroupId});
  }
}

/// A number that the next inode with the same nid will not have.
GOFS_HD inline uint32_t new_generation(const f2fs::TimeStamp& now) {
  return (static_cast<uint32_t>(now.seconds) * 0x9E3779B1u) ^ now.nanoseconds;
}

/// Removes a new inode again, which nothing refers to. Collective, within its operation.
GOFS_HD inline void unmake_file(simt::AnyWarp auto warp, f2fs::Operation& op, Filesystem& fs,
                                uint32_t ino, const f2fs::NewContents& contents) {
  f2fs::Inode inode{};
  if (load_uniform(warp, fs, ino, inode) == 0 && inode.xattr_nid != 0) {
    (void)f2fs::remove_nodes(warp, op, 1u, inode.xattr_nid);
  }
  f2fs::unmake_files(warp, op, 1u, ino, contents.bytes);
}

/// Pages that make_and_enter() changes without those for the entry: the inode, its access lists,
/// and the directory's links.
inline constexpr uint32_t kPagesToMakeFile = f2fs::kPagesToMakeInode + f2fs::kXattrPages + 1;

/// Makes the inode and enters it. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int make_and_enter(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                Filesystem& fs, f2fs::Inode& directory,
                                                const f2fs::EntryName& name,
                                                const f2fs::EntryWay& way, const NewFile& file,
                                                uint32_t& ino) {
  f2fs::Volume& volume = fs.volume;
  f2fs::NewInode wanted{};
  wanted.mode = file.mode;
  wanted.name = name;
  wanted.target = file.target;
  wanted.target_bytes = file.target_bytes;
  wanted.device = file.device;
  wanted.now = op.now;
  wanted.generation = new_generation(wanted.now);
  inherit(op.caller(), directory, wanted);
  const bool is_directory = (file.mode & format::kModeTypeMask) == format::kModeDirectory;
  const bool is_symlink = (file.mode & format::kModeTypeMask) == format::kModeSymlink;
  ino = 0;
  // What does not fit in the inode.
  f2fs::NewContents contents{};
  if (file.target_bytes > f2fs::detail::new_inode_layout(volume).inline_bytes) {
    wanted.target_bytes = 0;
    contents = {reinterpret_cast<const uint8_t*>(file.target), file.target_bytes};
  }
  InheritedAcl inherited{};
  int error = is_symlink ? 0 : load_inherited(warp, fs, directory, wanted.mode, inherited);
  if (error < 0) return error;
  error = contents.bytes == 0 ? f2fs::make_inodes(warp, op, 1u, directory, wanted, ino)
                              : f2fs::make_files(warp, op, 1u, directory, wanted, contents, ino);
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  ino = warp.shfl(ino, 0);
  const int made = error;
  if (error == 0) error = store_inherited(warp, op, fs, ino, inherited);
  release_inherited(warp, fs, inherited);
  if (made < 0) return made;
  bool counted = false;
  if (error == 0 && is_directory) {
    error = f2fs::count_subdirectory(warp, op, directory.ino, 1);
    counted = error == 0;
  }
  if (error == 0) {
    error = f2fs::add_entry(warp, op, directory, name, {ino, format::file_type_of_mode(file.mode)},
                            way);
    if (error < 0 && counted) {
      (void)f2fs::count_subdirectory(warp, op, directory.ino, -1);
    }
  }
  if (error < 0) unmake_file(warp, op, fs, ino, contents);
  return error;
}

/// Collective, uniform.
GOFS_HD inline int make_file_at(simt::AnyWarp auto warp, Filesystem& fs, const ParentPath& parent,
                                const NewFile& file, uint32_t& ino) {
  const uint32_t type = file.mode & format::kModeTypeMask;
  // As Linux since 5.8: a character device 0:0 gives access to nothing (a whiteout).
  const bool whiteout =
      type == format::kModeCharDevice && file.device.major == 0 && file.device.minor == 0;
  const bool is_device =
      (type == format::kModeCharDevice && !whiteout) || type == format::kModeBlockDevice;
  const auto make = [&](f2fs::Operation& op, f2fs::Inode& directory,
                        const f2fs::EntryWay& way) -> int {
    if (is_device && op.caller().uid != 0) return -EPERM;
    return make_and_enter(warp, op, fs, directory, parent.name, way, file, ino);
  };
  return make_name(warp, fs, parent, 0, kPagesToMakeFile, make);
}

/// Makes what `path` is to name. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int make_file(simt::AnyWarp auto warp, Filesystem& fs,
                                           const char* path, const NewFile& file) {
  run_foreground_gc(warp, fs, 0);
  return reading_paths(warp, fs, [&]() -> int {
    ParentPath parent{};
    const int error = resolve_parent(warp, fs, path, parent);
    if (error < 0) return error;
    if (is_no_name(parent.name)) return -EEXIST;
    const bool is_directory = (file.mode & format::kModeTypeMask) == format::kModeDirectory;
    if (is_directory) parent.slash_behind = false;
    uint32_t ino = 0;
    return make_file_at(warp, fs, parent, file, ino);
  });
}

}  // namespace detail

/// mkdir(2). -EEXIST, -ENOENT, -ENOTDIR, -EACCES, -EPERM, -EROFS, -ENOSPC, -ENAMETOOLONG, and what
/// resolve() and detail::operate() say; so the others.
GOFS_HD inline int mkdir(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                         uint32_t permissions) {
  const NewFile file{
      static_cast<uint16_t>(format::kModeDirectory | (permissions & 01777)), {}, nullptr, 0};
  return detail::make_file(warp, fs, path, file);
}

/// mknod(2): an empty regular file, a FIFO, a socket, a character device 0:0, or (by user 0 alone:
/// -EPERM) another device.
GOFS_HD inline int mknod(simt::AnyWarp auto warp, Filesystem& fs, const char* path, uint32_t mode,
                         const format::DeviceNumber& device) {
  const uint32_t type = mode & format::kModeTypeMask;
  if (type == format::kModeDirectory) return -EPERM;
  if (type == format::kModeSymlink || mode > UINT16_MAX) return -EINVAL;
  const uint32_t regular = type == 0 ? uint32_t{format::kModeRegular} : 0;
  const auto whole = static_cast<uint16_t>(mode | regular);
  if (format::file_type_of_mode(whole) == format::kTypeUnknown) return -EINVAL;
  return detail::make_file(warp, fs, path, {whole, device, nullptr, 0});
}

namespace detail {

/// Makes a symbolic link of a target that all warps reach. Collective, uniform.
GOFS_HD inline int make_link_to(simt::AnyWarp auto warp, Filesystem& fs, const char* target,
                                uint32_t bytes, const char* path) {
  return make_file(warp, fs, path, {format::kModeSymlink | 0777, {}, target, bytes});
}

/// The same of one that the caller reaches: what does not fit in the inode is a block of the link,
/// which any warp that steps the SSD moves. Collective, uniform. Also -EBUSY: other calls had all
/// spare memory.
GOFS_NOINLINE GOFS_HD inline int make_link_to_near(simt::AnyWarp auto warp, Filesystem& fs,
                                                   const char* target, uint32_t bytes,
                                                   const char* path) {
  const bool leader = warp.thread_rank() == 0;
  Bounce bounce{};
  if (leader) bounce = take_bounce(fs.bounces, bytes, fs.lock_timeout_ns);
  warp.sync();  // the call that had it has done with it, for all lanes
  auto* const memory =
      reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(bounce.memory), 0));
  if (memory == nullptr) return -EBUSY;
  simt::copy_from_near(warp, {warp.thread_rank(), warp.size()}, memory, target, bytes);
  warp.sync();
  const int made = make_link_to(warp, fs, reinterpret_cast<const char*>(memory), bytes, path);
  warp.sync();
  if (leader) release_bounce(bounce);
  return made;
}

}  // namespace detail

/// symlink(2): `target` is NUL-terminated, in memory that the caller reaches. -ENOENT for an empty
/// one, -ENAMETOOLONG for one of more than 4,095 bytes; -EBUSY as pwritev_near().
GOFS_NOINLINE GOFS_HD inline int symlink(simt::AnyWarp auto warp, Filesystem& fs,
                                         const char* target, const char* path) {
  const int length = detail::path_length(warp, target);
  if (length <= 0) return length == 0 ? -ENOENT : length;
  const auto bytes = static_cast<uint32_t>(length);
  if (simt::is_common_source(target)) return detail::make_link_to(warp, fs, target, bytes, path);
  return detail::make_link_to_near(warp, fs, target, bytes, path);
}

namespace detail {

/// Enters one more name of `inode`, which was loaded. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int enter_link(simt::AnyWarp auto warp, f2fs::Operation& op,
                                            f2fs::Inode& directory, const f2fs::EntryName& name,
                                            const f2fs::EntryWay& way, const f2fs::Inode& inode) {
  if (warp.thread_rank() == 0) f2fs::note_freed(op, f2fs::renamed_inode(inode.ino));
  const int counted = count_links(warp, op, inode.ino, 1);
  if (counted < 0) return counted;
  const int added = f2fs::add_entry(warp, op, directory, name,
                                    {inode.ino, format::file_type_of_mode(inode.mode)}, way);
  if (added < 0) (void)count_links(warp, op, inode.ino, -1);
  return added;
}

}  // namespace detail

/// link(2): `path` becomes another name of what `existing` names, which is no directory (-EPERM);
/// of a symbolic link itself.
GOFS_NOINLINE GOFS_HD inline int link(simt::AnyWarp auto warp, Filesystem& fs, const char* existing,
                                      const char* path) {
  run_foreground_gc(warp, fs, 0);
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    int error = resolve(warp, fs, existing, LastLink::kKeep, inode);
    ParentPath parent{};
    if (error == 0) error = resolve_parent(warp, fs, path, parent);
    if (error < 0) return error;
    if (is_no_name(parent.name)) return -EEXIST;
    const auto make = [&](f2fs::Operation& op, f2fs::Inode& directory,
                          const f2fs::EntryWay& way) -> int {
      if (inode.is_directory() || detail::is_frozen(inode)) return -EPERM;
      // As it is now: its last name may have gone.
      const int loaded = detail::load_uniform(warp, fs, inode.ino, inode);
      if (loaded < 0) return loaded;
      if (inode.links == 0) return -ENOENT;
      return detail::enter_link(warp, op, directory, parent.name, way, inode);
    };
    return detail::make_name(warp, fs, parent, inode.ino, 1, make);
  });
}

}  // namespace gofs::vfs
