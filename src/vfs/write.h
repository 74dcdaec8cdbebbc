// SPDX-License-Identifier: Apache-2.0
//
// Writing open files, and setting their sizes. All functions are collective with uniform arguments
// and answers, by one warp; a write goes a block a lane, in rounds, each of them an operation
// (f2fs/operation.h). Seen by others when the call returns, durable after sync(), or fsync() of the
// file (fsync.h).
//
// Who writes has for himself what f2fs/write.h asks for: whole blocks; from the block of the end on
// where the file grows; all of a file that is, or could be, in its inode.
#pragma once

#include "f2fs/truncate.h"
#include "vfs/change_attributes.h"
#include "vfs/fsync.h"
#include "vfs/read.h"

namespace gofs::vfs {

namespace detail {

/// The descriptor `fd` if it is open for writing, else null (EBADF).
GOFS_HD inline Descriptor* find_writable(const Filesystem& fs, int fd) {
  Descriptor* const descriptor = find_file(fs, fd);
  return descriptor != nullptr && may_write(descriptor->flags) ? descriptor : nullptr;
}

GOFS_HD constexpr ByteRange whole_file() { return {0, kOffsetMax}; }

/// What a write of [offset, end) needs of a file that is as it is now.
GOFS_HD inline ByteRange range_to_write(const f2fs::Inode& inode, uint64_t offset, uint64_t end) {
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  if (size <= inode.inline_bytes) return whole_file();
  const uint64_t begin = simt::min(offset, size) & ~uint64_t{kBlockBytes - 1};
  if (end > size) return {begin, kOffsetMax - begin};
  return {begin, simt::align_up(end, kBlockBytes) - begin};
}

GOFS_HD inline bool covers(const ByteRange& outer, const ByteRange& inner) {
  return outer.offset <= inner.offset && inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

/// Locks what a write of `bytes` at `offset` needs; where `append`, `offset` becomes the file's
/// end. Collective, uniform. 0 or -ETIMEDOUT.
GOFS_NOINLINE GOFS_HD inline int lock_to_write(simt::AnyWarp auto warp, Filesystem& fs,
                                               OpenInode& open, uint64_t bytes, bool append,
                                               uint64_t& offset, RangeHold& hold) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  const auto needed = [&] {
    // What one lane sees: the size may be changing.
    if (append) offset = warp.shfl(simt::load_relaxed(open.inode.size_bytes), 0);
    const ByteRange range = range_to_write(open.inode, offset, offset + bytes);
    return ByteRange{warp.shfl(range.offset, 0), warp.shfl(range.bytes, 0)};
  };
  const ByteRange range = needed();
  int error = lock_exclusive(warp, open.lock, range, deadline, hold);
  if (error < 0 || covers(range, needed())) return error;
  // The file has become another meanwhile; of all of it, nobody changes the size.
  unlock_exclusive(warp, open.lock, hold);
  error = lock_exclusive(warp, open.lock, whole_file(), deadline, hold);
  if (error == 0) (void)needed();
  return error;
}

/// Takes from a file what would let others run it as somebody else, since its contents are about to
/// change, unless user 0 changes them. Collective, uniform, inside the gate.
GOFS_NOINLINE GOFS_HD inline int drop_powers(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                             const f2fs::TimeStamp& now) {
  if (fs.credentials.uid == 0) return 0;
  f2fs::Inode inode{};
  const int error = load_uniform(warp, fs, ino, inode);
  if (error < 0) return error;
  uint32_t powers = inode.mode & kSetUserId;
  if ((inode.mode & kGroupExecutes) != 0) powers |= inode.mode & kSetGroupId;
  if (powers == 0) return 0;
  f2fs::AttributeChange change{};
  change.mask = f2fs::kSetPermissions;
  change.permissions = static_cast<uint16_t>(inode.mode & format::kModePermissionMask & ~powers);
  change.changed = now;
  return apply_change(warp, fs, ino, change);
}

/// Writes `bytes` (not 0) at `offset`; what that needs is locked. Collective, uniform. Bytes
/// written, or a negative errno if there are none.
GOFS_NOINLINE GOFS_HD inline int64_t write_locked(simt::AnyWarp auto warp, Filesystem& fs,
                                                  f2fs::Inode& inode, const uint8_t* source,
                                                  uint64_t bytes, uint64_t offset) {
  constexpr uint32_t kPages = f2fs::kPagesToPrepareWrite + f2fs::kPagesToWriteRun + 1;
  const uint64_t end = offset + bytes;
  uint64_t done = 0;
  while (done < bytes) {
    // A block a lane, from where the last round ended.
    const uint64_t at = offset + done;
    const uint64_t first = at >> kBlockShift;
    const uint64_t from = simt::max(at, (first + warp.thread_rank()) << kBlockShift);
    const uint64_t to = simt::min(end, (first + warp.thread_rank() + 1) << kBlockShift);
    const bool mine = from < to;
    const f2fs::WritePiece piece{from, mine ? static_cast<uint32_t>(to - from) : 0,
                                 source + (from - offset)};
    const uint64_t next = simt::min(end, (first + warp.size()) << kBlockShift);
    const int error = operate(warp, fs, kPages, [&] {
      const f2fs::TimeStamp now = time_now(fs);
      int failed = 0;
      if (done == 0) {
        failed = drop_powers(warp, fs, inode.ino, now);
        if (failed == 0) {
          failed =
              f2fs::prepare_write(warp, fs.volume, *fs.writer, fs.pool, inode, offset, end, now);
        }
      }
      if (failed < 0) return failed;
      return f2fs::write_pieces(warp, fs.volume, *fs.writer, fs.pool, warp.ballot(mine), inode,
                                piece, now);
    });
    if (error < 0) return done != 0 ? static_cast<int64_t>(done) : error;
    done = next - offset;
  }
  return static_cast<int64_t>(done);
}

/// Writes at `offset`, or where `append`, at the end, which `offset` then becomes. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int64_t write_open(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, const void* buffer, uint64_t bytes,
                                                bool append, uint64_t& offset) {
  RangeHold hold{};
  const int locked = lock_to_write(warp, fs, open, bytes, append, offset, hold);
  if (locked < 0) return locked;
  const uint64_t most = f2fs::detail::file_bytes_max(open.inode);
  int64_t result = -EFBIG;
  if (offset < most) {
    result = write_locked(warp, fs, open.inode, static_cast<const uint8_t*>(buffer),
                          simt::min(bytes, most - offset), offset);
  }
  unlock_exclusive(warp, open.lock, hold);
  return result;
}

/// Sets the size of an open file, in as many portions as it takes. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int resize_open(simt::AnyWarp auto warp, Filesystem& fs,
                                             OpenInode& open, uint64_t size) {
  RangeHold hold{};
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  int error = lock_exclusive(warp, open.lock, whole_file(), deadline, hold);
  if (error < 0) return error;
  bool more = true;
  for (bool first = true; more && error == 0; first = false) {
    more = false;
    error = operate(warp, fs, f2fs::kPagesToTruncate + 1, [&] {
      const f2fs::TimeStamp now = time_now(fs);
      const int dropped = first ? drop_powers(warp, fs, open.inode.ino, now) : 0;
      if (dropped < 0) return dropped;
      return f2fs::truncate_file(warp, fs.volume, *fs.writer, fs.pool, open.inode, size, now, more);
    });
  }
  unlock_exclusive(warp, open.lock, hold);
  return error;
}

/// After what `descriptor` was opened for is done: makes it durable if it was opened so.
GOFS_HD inline int sync_if_asked(simt::AnyWarp auto warp, Filesystem& fs,
                                 const Descriptor& descriptor) {
  if ((descriptor.flags & kOpenDataSync) == 0) return 0;
  return sync_inode(warp, fs, fs.open_inodes[descriptor.open_inode].inode.ino);
}

}  // namespace detail

/// pwrite(2): bytes written, less than asked only where the volume or the SSD gave out in between;
/// or a negative errno: -EBADF, -EINVAL, -EFBIG, -ENOSPC, -EROFS, -EIO, -EUCLEAN, -EOPNOTSUPP,
/// -EBUSY, -ETIMEDOUT (somebody else kept the range). A descriptor that was opened to append writes
/// at the end, wherever `offset` is. Zero copy where `buffer` is aligned to 4 bytes and the range
/// to blocks.
GOFS_NOINLINE GOFS_HD inline int64_t pwrite(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                            const void* buffer, uint64_t bytes, uint64_t offset) {
  const Descriptor* const descriptor = detail::find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EINVAL;
  if (bytes == 0) return 0;
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  const int64_t result = detail::write_open(warp, fs, fs.open_inodes[descriptor->open_inode],
                                            buffer, bytes, append, offset);
  const int synced = result > 0 ? detail::sync_if_asked(warp, fs, *descriptor) : 0;
  return synced < 0 ? synced : result;
}

/// write(2): pwrite() at the descriptor's position, which moves past what was asked for. Groups
/// that write at the same time get ranges of their own.
GOFS_NOINLINE GOFS_HD inline int64_t write(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           const void* buffer, uint64_t bytes) {
  Descriptor* const descriptor = detail::find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (bytes > kOffsetMax) return -EINVAL;
  if (bytes == 0) return 0;
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  uint64_t offset = 0;
  if (!append) {
    warp.sync();
    if (warp.thread_rank() == 0) offset = simt::add_relaxed(descriptor->position, bytes);
    offset = warp.shfl(offset, 0);
    if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EFBIG;
  }
  const int64_t result = detail::write_open(warp, fs, fs.open_inodes[descriptor->open_inode],
                                            buffer, bytes, append, offset);
  if (append && result > 0 && warp.thread_rank() == 0) {
    simt::store_relaxed(descriptor->position, offset + static_cast<uint64_t>(result));
  }
  const int synced = result > 0 ? detail::sync_if_asked(warp, fs, *descriptor) : 0;
  return synced < 0 ? synced : result;
}

/// ftruncate(2): the file gets shorter, or longer with zeros. 0 or a negative errno: -EBADF,
/// -EINVAL (not open for writing), -EFBIG, -ENOSPC, and as pwrite().
GOFS_NOINLINE GOFS_HD inline int ftruncate(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           uint64_t size) {
  const Descriptor* const descriptor = find_file(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (!may_write(descriptor->flags) || size > kOffsetMax) return -EINVAL;
  const int error = detail::resize_open(warp, fs, fs.open_inodes[descriptor->open_inode], size);
  return error < 0 ? error : detail::sync_if_asked(warp, fs, *descriptor);
}

/// truncate(2) of what `path` names.
GOFS_NOINLINE GOFS_HD inline int truncate(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                          uint64_t size) {
  if (size > kOffsetMax) return -EINVAL;
  const int fd = open_existing(warp, fs, path, kOpenWriteOnly);
  if (fd < 0) return fd == -ENXIO ? -EINVAL : fd;
  const int error = ftruncate(warp, fs, fd, size);
  (void)close(warp, fs, fd);
  return error;
}

}  // namespace gofs::vfs
