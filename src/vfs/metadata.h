// SPDX-License-Identifier: Apache-2.0
//
// What is asked about files rather than of them: stat, access, readlink, lseek, statfs,
// directories. All functions are collective with uniform arguments and answers, by one warp.
#pragma once

#include "vfs/open_files.h"

namespace gofs::vfs {

/// Nids 0, 1 and 2 are no files.
inline constexpr uint32_t kReservedNids = 3;

using gofs::FilesystemStat;
using gofs::Stat;

GOFS_HD inline Stat stat_of(const f2fs::Inode& inode) {
  Stat stat{};
  stat.ino = inode.ino;
  stat.size_bytes = inode.size_bytes;
  stat.blocks_512 = inode.block_count == 0 ? 0 : (inode.block_count - 1) * 8;
  // What lies in the inode itself counts as Linux counts it: as the sectors it would fill.
  if (inode.has_inline_dentries() || (inode.is_regular() && inode.has_inline_data())) {
    stat.blocks_512 += simt::divide_up(inode.size_bytes, uint64_t{512});
  }
  stat.mode = inode.mode;
  stat.links = inode.links;
  stat.uid = inode.uid;
  stat.gid = inode.gid;
  const uint32_t type = inode.mode & format::kModeTypeMask;
  if (type == format::kModeCharDevice || type == format::kModeBlockDevice) {
    stat.device_major = inode.device.major;
    stat.device_minor = inode.device.minor;
  }
  stat.accessed = inode.accessed;
  stat.modified = inode.modified;
  stat.changed = inode.changed;
  stat.created = inode.created;
  stat.flags = inode.flags;
  stat.advise = inode.advise;
  stat.project_id = inode.project_id;
  stat.generation = inode.generation;
  return stat;
}

GOFS_HD inline int stat(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                        LastLink last_link, Stat& out) {
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, last_link, inode);
    if (error == 0) out = stat_of(inode);
    return error;
  });
}

GOFS_HD inline int fstat(simt::AnyWarp auto warp, Filesystem& fs, int fd, Stat& out) {
  const Descriptor* descriptor = find_descriptor(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  f2fs::Inode inode{};
  const int error =
      detail::load_uniform(warp, fs, fs.open_inodes[descriptor->open_inode].inode.ino, inode);
  if (error == 0) out = stat_of(inode);
  return error;
}

/// `wanted` is made of AccessBits; 0 asks whether the file exists.
GOFS_HD inline int access(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                          uint32_t wanted) {
  if (wanted > (kMayRead | kMayWrite | kMayExecute)) return -EINVAL;
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, LastLink::kFollow, inode);
    if (error < 0) return error;
    const bool special = !inode.is_directory() && !inode.is_regular();
    if ((wanted & kMayWrite) != 0 && !special && fs.writer == nullptr) return -EROFS;
    return check_permission(warp, fs, inode, wanted);
  });
}

/// Bytes of the target, cut at `capacity` (not 0: -EINVAL), without a terminator; or a negative
/// errno.
GOFS_HD inline int64_t readlink(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                char* buffer, uint64_t capacity) {
  if (capacity == 0) return -EINVAL;
  return reading_paths(warp, fs, [&]() -> int64_t {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, LastLink::kKeep, inode);
    return error < 0 ? error : read_link(warp, fs, inode, buffer, capacity);
  });
}

using gofs::kSeekCurrent;
using gofs::kSeekData;
using gofs::kSeekEnd;
using gofs::kSeekHole;
using gofs::kSeekSet;

/// Moves the position of `fd`; returns it. For kSeekData and kSeekHole see lseek(2). -EINVAL past
/// f2fs::kFileBytesMax.
GOFS_NOINLINE GOFS_HD inline int64_t lseek(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           int64_t offset, int whence) {
  Descriptor* descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const f2fs::Inode& inode = fs.open_inodes[descriptor->open_inode].inode;
  // As one lane sees it, since it may be changing.
  const auto size = static_cast<int64_t>(warp.shfl(simt::load_relaxed(inode.size_bytes), 0));
  int64_t target = offset;
  if (whence == kSeekCurrent || whence == kSeekEnd) {
    const int64_t base =
        whence == kSeekEnd ? size : static_cast<int64_t>(simt::load_relaxed(descriptor->position));
    if (base < 0) return -EINVAL;  // a directory at its end: that place is no offset
    if (offset > 0 && base > INT64_MAX - offset) return -EINVAL;
    target = base + offset;
  } else if (whence == kSeekData || whence == kSeekHole) {
    if (offset < 0 || offset >= size) return -ENXIO;
    const bool data_wanted = whence == kSeekData;
    // To Linux a directory has no holes.
    bool found = inode.has_inline_data() || inode.is_directory();
    if (found) target = data_wanted ? offset : size;
    while (!found && target < size) {
      f2fs::BlockPlace place{};
      const int mapped = simt::first_error(
          warp, f2fs::map_blocks(warp, fs.volume, warp.ballot(true), inode,
                                 static_cast<uint64_t>(target) >> kBlockShift, place));
      if (mapped < 0) return mapped;
      found = (place.block != format::kNullAddr) == data_wanted;
      if (!found) {
        target = static_cast<int64_t>(((static_cast<uint64_t>(target) >> kBlockShift) + place.span)
                                      << kBlockShift);
      }
    }
    if (!found) {
      if (data_wanted) return -ENXIO;
      target = size;
    }
    target = simt::min(target, size);
  } else if (whence != kSeekSet) {
    return -EINVAL;
  }
  if (target < 0 || static_cast<uint64_t>(target) > f2fs::kFileBytesMax) return -EINVAL;
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(descriptor->position, static_cast<uint64_t>(target));
  }
  warp.sync();
  return target;
}

/// Takes the next `bytes` of a file for the caller and moves the position past them, or to the end
/// of the file. Returns where they begin, or a negative errno.
GOFS_HD inline int64_t advance_position(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                        uint64_t bytes) {
  Descriptor* descriptor = find_readable(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const f2fs::Inode& inode = fs.open_inodes[descriptor->open_inode].inode;
  if (inode.is_directory()) return -EISDIR;
  warp.sync();
  uint64_t position = 0;
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint64_t> word(descriptor->position);
    position = word.load(simt::memory_order_relaxed);
    uint64_t next = 0;
    const uint64_t size = simt::load_relaxed(inode.size_bytes);
    do {
      const uint64_t left = position < size ? size - position : 0;
      next = position + simt::min(bytes, left);
    } while (!word.compare_exchange_weak(position, next, simt::memory_order_relaxed,
                                         simt::memory_order_relaxed));
  }
  return static_cast<int64_t>(warp.shfl(position, 0));
}

/// A descriptor for readdir; close() closes it.
GOFS_HD inline int opendir(simt::AnyWarp auto warp, Filesystem& fs, const char* path) {
  return open_existing(warp, fs, path, kOpenReadOnly | kOpenDirectory);
}

/// Copies the next entries of a directory, at most `capacity` (at least kReaddirEntriesMin), to
/// `entries`; `.` and `..` are left out. How many; 0 at the end; or a negative errno. -EUCLEAN and
/// -EIO also at the end of a directory of which something was left out, once: entries that cannot
/// be, or a part that could not be read. All else was given before.
GOFS_HD inline int64_t readdir(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                               f2fs::NamedEntry* entries, uint32_t capacity) {
  constexpr uint64_t kEnd = ~uint64_t{0};
  constexpr uint64_t kDamaged = uint64_t{1} << 63;
  constexpr uint32_t kErrnoShift = 48;  // behind any cursor
  constexpr uint64_t kErrnoMask = uint64_t{0xfff} << kErrnoShift;
  if (capacity < kReaddirEntriesMin) return -EINVAL;
  entries = simt::reach(warp.thread_rank(), entries);
  Descriptor* descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const f2fs::Inode& opened = fs.open_inodes[descriptor->open_inode].inode;
  if (!opened.is_directory()) return -ENOTDIR;
  f2fs::Inode inode{};  // as it is now: names may have been added
  const int error = detail::load_uniform(warp, fs, opened.ino, inode);
  if (error < 0) return error;
  uint64_t position = simt::load_relaxed(descriptor->position);
  if (position == kEnd) return 0;
  int damage = -static_cast<int>((position & kErrnoMask) >> kErrnoShift);
  f2fs::DirectoryCursor cursor = position & ~(kDamaged | kErrnoMask);
  int64_t count = f2fs::list_entries(warp, fs.volume, inode, cursor, entries, capacity, damage);
  position = cursor;
  if (damage < 0) position |= kDamaged | static_cast<uint64_t>(-damage) << kErrnoShift;
  if (count == 0) count = damage;
  if (count <= 0) position = kEnd;
  warp.sync();
  if (warp.thread_rank() == 0) simt::store_relaxed(descriptor->position, position);
  warp.sync();
  return count;
}

GOFS_HD inline FilesystemStat statfs(const Filesystem& fs) {
  const f2fs::Volume& volume = fs.volume;
  FilesystemStat stat{};
  stat.block_bytes = kBlockBytes;
  stat.blocks = volume.geometry.block_count - volume.geometry.segment0_blkaddr;
  const uint64_t blocks_used = simt::load_relaxed(volume.valid_block_count);
  const uint64_t users = simt::load_relaxed(volume.user_block_count);
  const uint64_t withheld = simt::load_relaxed(volume.withheld_blocks);
  stat.blocks_available = users - simt::min(users, blocks_used);
  stat.blocks_free = stat.blocks_available + withheld;
  // As many files as there are nids (0 to 2 are taken), but each needs a block.
  const uint64_t nids = volume.geometry.nid_count() - kReservedNids;
  if (nids > users + withheld) {
    stat.files = users + withheld;
    stat.files_free = stat.blocks_free;
  } else {
    const uint32_t nodes = simt::load_relaxed(volume.valid_node_count);
    stat.files = nids;
    stat.files_free = nids > nodes ? simt::min<uint64_t>(nids - nodes, stat.blocks_free) : 0;
  }
  stat.files_used = simt::load_relaxed(volume.valid_inode_count);
  stat.name_bytes_max = format::kNameBytesMax;
  return stat;
}

}  // namespace gofs::vfs
