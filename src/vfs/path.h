// SPDX-License-Identifier: Apache-2.0
//
// From a path to an inode, as POSIX.1-2017 section 4.13 has it: search permission in every
// directory, symbolic links followed, `.` and `..` as they stand in the directories. Paths are
// absolute; one without a leading slash is taken from the root, since a GPU thread has no current
// directory.
#pragma once

#include "f2fs/victims.h"
#include "simt/copy_near.h"
#include "vfs/access_list.h"

namespace gofs::vfs {

using gofs::kPathBytesMax;
using gofs::kSymlinksMax;

enum class LastLink { kFollow, kKeep };

/// Calls `walk()`, which resolves paths and uses the inodes that they name; none of them is freed
/// meanwhile (path_readers.h), unless it has been removed before. Collective; passes on the answer.
template <typename Walk>
GOFS_HD auto reading_paths(simt::AnyWarp auto warp, Filesystem& fs, Walk walk) {
  const bool counted = fs.writer != nullptr;
  PathReaderPass pass{};
  if (counted) pass = enter_path_readers(warp, fs.path_readers);
  const auto answer = walk();
  if (counted) leave_path_readers(warp, fs.path_readers, pass);
  return answer;
}

namespace detail {

/// Length of the NUL-terminated `path`, -ENAMETOOLONG, or -EFAULT: the caller's memory ends before
/// it does. Collective, uniform.
GOFS_HD inline int path_length(simt::AnyWarp auto warp, const char* path) {
  int length = 0;
  if (warp.thread_rank() == 0) {
    const auto most = static_cast<int>(simt::min<uint64_t>(kPathBytesMax, simt::room_at(path)));
    const char* const text = simt::reach(0, path);
    while (length < most && text[length] != '\0') ++length;
    if (length == most) length = most == static_cast<int>(kPathBytesMax) ? -ENAMETOOLONG : -EFAULT;
  }
  return warp.shfl(length, 0);
}

GOFS_HD inline void count_name_found(simt::AnyWarp auto warp, Filesystem& fs, CacheKind kind,
                                     bool found) {
  if (warp.thread_rank() == 0) f2fs::count_lookups(fs.volume.cache_counts, kind, found);
}

/// Looks one name up in `directory`, in the name table first. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int look_up(simt::AnyWarp auto warp, Filesystem& fs,
                                         const f2fs::Inode& directory, const char* name,
                                         uint32_t length, NameTarget& target) {
  const uint32_t hash = format::name_hash(name, length);
  uint64_t seen = 0;
  const bool known = fs.dentries.find(warp, directory.ino, hash, name, length, target, seen);
  count_name_found(warp, fs, CacheKind::kNames, known);
  if (known) return 0;
  f2fs::DirectoryEntry entry{};
  const int error = f2fs::find_entry(warp, fs.volume, directory, name, length, entry);
  if (error < 0) return error;
  target = NameTarget{entry.ino, entry.type};
  fs.dentries.insert(warp, directory.ino, hash, name, length, target, seen);
  return 0;
}

/// Loads one inode for the whole warp. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int load_uniform(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                              f2fs::Inode& inode) {
  return simt::first_error(warp, f2fs::load_inodes(warp, fs.volume, warp.ballot(true), ino, inode));
}

/// Copies with the whole warp; overlapping moves go towards lower addresses only.
GOFS_HD inline void copy_name(simt::AnyWarp auto warp, char* to, const char* from, uint32_t bytes) {
  for (uint32_t i = warp.thread_rank(); i < bytes; i += warp.size()) to[i] = from[i];
  warp.sync();
}

}  // namespace detail

namespace detail {

/// Whether `link` can be read: 0 or a negative errno. Collective, uniform.
GOFS_HD inline int check_link(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& link) {
  if (!link.is_symlink()) return -EINVAL;
  const int supported = f2fs::check_supported(link);
  if (supported < 0) return supported;
  if (link.size_bytes != 0 && link.size_bytes < kPathBytesMax) return 0;
  const uint32_t block = f2fs::block_of_node(warp, fs.volume, link.ino);
  return f2fs::report_once(warp, *fs.volume.corruptions,
                           {f2fs::Structure::kSymlink, block, link.ino, link.size_bytes});
}

/// Reads a piece of what a link holds. It is not locked, so its addresses are read as an address
/// reader. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int read_link_piece(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const f2fs::Inode& link,
                                                 const f2fs::Piece& piece) {
  const bool holds = warp.thread_rank() == 0 && fs.writer != nullptr && !link.has_inline_data();
  if (holds) f2fs::enter_address_readers(*fs.writer);
  warp.sync();
  const int error = f2fs::read_pieces(warp, fs.volume, fs.pool, 1u, link, piece);
  warp.sync();
  if (holds) f2fs::leave_address_readers(*fs.writer);
  return simt::first_error(warp, error);
}

/// Whether a link's target, or the beginning of it that is wanted, can be one: it has no NUL, at
/// which programs would take it to end. By the lane that has read it. Collective, uniform. 0 or
/// -EUCLEAN.
GOFS_NOINLINE GOFS_HD inline int check_target(simt::AnyWarp auto warp, Filesystem& fs,
                                              const f2fs::Inode& link, const char* target,
                                              uint32_t bytes) {
  uint32_t length = 0;
  if (warp.thread_rank() == 0) {
    while (length < bytes && target[length] != '\0') ++length;
  }
  length = warp.shfl(length, 0);
  if (length == bytes) return 0;
  const uint32_t block = f2fs::block_of_node(warp, fs.volume, link.ino);
  return f2fs::report_once(warp, *fs.volume.corruptions,
                           {f2fs::Structure::kSymlinkTarget, block, link.ino, length});
}

/// Reads the target of `link` into `block`, a whole spare block; up to `wanted` bytes of it are
/// asked for. Takes no further spare block: a warp that holds some must not wait for more.
/// Collective, uniform. The number of bytes or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t read_link_block(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const f2fs::Inode& link, char* block,
                                                     uint64_t wanted) {
  int error = check_link(warp, fs, link);
  if (error < 0) return error;
  const auto bytes = static_cast<uint32_t>(link.size_bytes);
  const f2fs::Piece piece{0, link.has_inline_data() ? bytes : kBlockBytes,
                          reinterpret_cast<uint8_t*>(block)};
  error = read_link_piece(warp, fs, link, piece);
  const auto asked = static_cast<uint32_t>(simt::min<uint64_t>(wanted, bytes));
  if (error == 0) error = check_target(warp, fs, link, block, asked);
  return error < 0 ? error : int64_t{asked};
}

}  // namespace detail

/// Reads the target of a symbolic link into `buffer` (up to `capacity` bytes, no terminator), which
/// need be no memory that others reach. Collective, uniform, with no spare block held. The number
/// of bytes or a negative errno.
GOFS_HD inline int64_t read_link(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& link,
                                 char* buffer, uint64_t capacity) {
  f2fs::SpareBlocks<1> spare{};
  if (!f2fs::take_spares(warp, fs.pool, f2fs::kFrameTimeoutNs, spare)) return -EBUSY;
  auto* const block = reinterpret_cast<char*>(spare.blocks[0]);
  const int64_t length = detail::read_link_block(warp, fs, link, block, capacity);
  if (length > 0) {
    simt::copy_to_near(warp, {warp.thread_rank(), warp.size()}, buffer, spare.blocks[0],
                       static_cast<uint64_t>(length));
  }
  f2fs::release_spares(warp, fs.pool, spare);
  return length;
}

namespace detail {

/// The state of a walk. `rest` points to what is still to be walked, in the caller's path or, once
/// a symbolic link was met, in one of two spare blocks by turns.
struct Walk {
  const char* rest;
  uint32_t rest_length;
  uint32_t links;
  bool has_spare;
  f2fs::SpareBlocks<3> spare;  // taken when they are needed, all at once
  const char* missing;         // the last name, where the directory has none like it
  uint32_t missing_length;

  /// The block for the target of the link that was met last.
  GOFS_HD char* link_block() const { return reinterpret_cast<char*>(spare.blocks[links % 2]); }
  /// The blocks that `rest` is not in.
  GOFS_HD f2fs::SpareBlocks<2> unused() const {
    return {{spare.blocks[(links + 1) % 2], spare.blocks[2]}};
  }
};

/// Collective, uniform. 0 or -EBUSY.
GOFS_HD inline int need_spare(simt::AnyWarp auto warp, Filesystem& fs, Walk& walk) {
  if (!walk.has_spare) {
    walk.has_spare = f2fs::take_spares(warp, fs.pool, f2fs::kFrameTimeoutNs, walk.spare);
  }
  return walk.has_spare ? 0 : -EBUSY;
}

/// check_permission() for who may hold spare blocks already. Collective, uniform.
GOFS_HD inline int check_search(simt::AnyWarp auto warp, Filesystem& fs,
                                const f2fs::Inode& directory, Walk& walk) {
  const Credentials& who = credentials_of(warp, fs);
  if (!asks_acl(who, directory)) return check_access(who, directory, kMayExecute);
  const int error = need_spare(warp, fs, walk);
  return error < 0 ? error : check_acl(warp, fs, directory, kMayExecute, walk.unused());
}

/// Puts the target of `link` before what is left of the path. Collective, uniform.
GOFS_HD inline int follow_link(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& link,
                               Walk& walk) {
  const int spare = need_spare(warp, fs, walk);
  if (spare < 0) return spare;
  if (++walk.links > kSymlinksMax) return -ELOOP;
  char* const to = walk.link_block();
  const int64_t length = read_link_block(warp, fs, link, to, kPathBytesMax);
  if (length < 0) return static_cast<int>(length);
  const auto target_length = static_cast<uint32_t>(length);
  if (target_length + walk.rest_length >= kPathBytesMax) return -ENAMETOOLONG;
  detail::copy_name(warp, to + target_length, walk.rest, walk.rest_length);
  walk.rest = to;
  walk.rest_length += target_length;
  return 0;
}

GOFS_NOINLINE GOFS_HD inline int walk_path(simt::AnyWarp auto warp, Filesystem& fs, Walk& walk,
                                           LastLink last_link, f2fs::Inode& inode) {
  const uint32_t root = fs.volume.geometry.root_ino;
  int error = load_uniform(warp, fs, root, inode);
  // Every turn takes a component off the path, which only links can lengthen.
  while (error == 0) {
    uint32_t skipped = 0;
    while (skipped < walk.rest_length && walk.rest[skipped] == '/') ++skipped;
    walk.rest += skipped;
    walk.rest_length -= skipped;
    if (skipped != 0 && !inode.is_directory()) return -ENOTDIR;  // also for a trailing slash
    if (walk.rest_length == 0) return 0;
    if (!inode.is_directory()) return -ENOTDIR;
    uint32_t length = 0;
    while (length < walk.rest_length && walk.rest[length] != '/') ++length;
    error = check_search(warp, fs, inode, walk);
    if (error == 0) error = f2fs::check_supported(inode);
    if (error < 0) return error;
    if (length > format::kNameBytesMax) return -ENAMETOOLONG;

    const char* name = walk.rest;
    const bool last = length == walk.rest_length;
    walk.rest += length;
    walk.rest_length -= length;
    const bool dotdot = length == 2 && name[0] == '.' && name[1] == '.';
    if ((length == 1 && name[0] == '.') || (dotdot && inode.ino == root)) continue;
    NameTarget target{};
    error = look_up(warp, fs, inode, name, length, target);
    if (error == -ENOENT && last) {
      walk.missing = name;
      walk.missing_length = length;
    }
    if (error < 0) return error;
    const f2fs::Inode directory = inode;
    error = load_uniform(warp, fs, target.ino, inode);
    if (error < 0) return error;
    if (inode.is_symlink() && !(last && last_link == LastLink::kKeep)) {
      error = follow_link(warp, fs, inode, walk);
      if (error < 0) return error;
      inode = directory;
      if (walk.rest[0] == '/') error = load_uniform(warp, fs, root, inode);
    }
  }
  return error;
}

/// Finds what a walk that has not begun leads to, in the path table first. Collective, uniform. As
/// resolve(), with the walk's spare blocks released by the caller.
GOFS_NOINLINE GOFS_HD inline int find_path(simt::AnyWarp auto warp, Filesystem& fs, Walk& walk,
                                           LastLink last_link, f2fs::Inode& inode) {
  const char* const path = walk.rest;
  const uint32_t path_bytes = walk.rest_length;
  const bool asks = last_link == LastLink::kFollow && keeps_paths(warp);
  const uint32_t hash = path_hash(path, path_bytes);
  NameTarget known{};
  // What is found on the way is only true of the generation that the walk began in.
  const uint32_t generation = warp.shfl(simt::load_acquire(fs.path_generation), 0);  // [V6]
  // And of who was allowed to go that way.
  const uint64_t scope = uint64_t{client_of(warp)} << 32 | generation;
  uint64_t seen = 0;
  if (asks) {
    const bool found = fs.paths.find(warp, scope, hash, path, path_bytes, known, seen);
    count_name_found(warp, fs, CacheKind::kPaths, found);
    if (found) return load_uniform(warp, fs, known.ino, inode);
  }
  const int error = walk_path(warp, fs, walk, last_link, inode);
  if (error == 0 && asks) {
    fs.paths.insert(warp, scope, hash, path, path_bytes,
                    NameTarget{inode.ino, format::file_type_of_mode(inode.mode)}, seen);
  }
  return error;
}

}  // namespace detail

/// Finds the inode that `path` (NUL-terminated) names. Collective, uniform; 0 or a negative errno:
/// -ENOENT, -ENOTDIR, -EACCES, -ELOOP, -ENAMETOOLONG, -EUCLEAN, or a device's.
GOFS_NOINLINE GOFS_HD inline int resolve(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                         LastLink last_link, f2fs::Inode& inode) {
  const int length = detail::path_length(warp, path);
  if (length <= 0) return length == 0 ? -ENOENT : length;
  path = simt::reach(warp.thread_rank(), path);
  detail::Walk walk{path, static_cast<uint32_t>(length), 0, false, {}, nullptr, 0};
  const int error = detail::find_path(warp, fs, walk, last_link, inode);
  if (walk.has_spare) f2fs::release_spares(warp, fs.pool, walk.spare);
  return error;
}

}  // namespace gofs::vfs
