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
#include "vfs/append.h"
#include "vfs/fsync.h"
#include "vfs/make_space.h"
#include "vfs/read.h"

namespace gofs::vfs {

namespace detail {

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
/// end. Collective, uniform. 0, or -ETIMEDOUT after `patience_ns`.
GOFS_NOINLINE GOFS_HD inline int lock_to_write(simt::AnyWarp auto warp, OpenInode& open,
                                               uint64_t bytes, bool append, uint64_t patience_ns,
                                               uint64_t& offset, RangeHold& hold) {
  const simt::Deadline deadline = simt::Deadline::after_ns(patience_ns);
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

/// A write of `bytes` (not 0) at `offset`, which is locked, or the share in it of one of several
/// warps: rounds of a block a lane, each an operation; every `warp_count`-th, from `warp_index` on.
struct WriteShare {
  uint64_t bytes;
  uint64_t offset;
  uint32_t warp_index;
  uint32_t warp_count;
  uint64_t begins_to;  // not 0: with begin_write() up to there, which nobody has called yet
};

/// Writes a share of what `source_of(from)` says that the bytes from `from` on are, in the file, up
/// to the end of their block. Collective, uniform; `source_of` is called collectively. Where, in
/// bytes from `offset` on, it could not go on.
template <typename SourceOf>
GOFS_HD IoFailure write_rounds(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode,
                               const WriteShare& share, SourceOf source_of) {
  constexpr uint32_t kPages = kPagesToBeginWrite + f2fs::kPagesToWriteRun;
  const uint64_t end = share.offset + share.bytes;
  const uint64_t step = uint64_t{share.warp_count} * warp.size();
  uint64_t first = (share.offset >> kBlockShift) + uint64_t{share.warp_index} * warp.size();
  for (uint64_t begins_to = share.begins_to; first << kBlockShift < end; first += step) {
    // A block a lane, from where the round begins.
    const uint64_t block = first + warp.thread_rank();
    const uint64_t from = simt::max(share.offset, block << kBlockShift);
    const uint64_t to = simt::min(end, (block + 1) << kBlockShift);
    const bool mine = from < to;
    const f2fs::WritePiece piece{from, mine ? static_cast<uint32_t>(to - from) : 0,
                                 source_of(from)};
    const int error = operate(warp, fs, kPages, [&] {
      const f2fs::TimeStamp now = time_now(fs);
      const int begun =
          begins_to != 0 ? begin_write(warp, fs, inode, share.offset, begins_to, now) : 0;
      if (begun < 0) return begun;
      return f2fs::write_pieces(warp, fs.volume, *fs.writer, fs.pool, warp.ballot(mine), inode,
                                piece, now);
    });
    if (error < 0) return {warp.shfl(from, 0) - share.offset, error};
    begins_to = 0;
  }
  return {kOffsetMax, 0};
}

/// The same from `source` on.
GOFS_NOINLINE GOFS_HD inline IoFailure write_striped(simt::AnyWarp auto warp, Filesystem& fs,
                                                     f2fs::Inode& inode, const uint8_t* source,
                                                     const WriteShare& share) {
  return write_rounds(warp, fs, inode, share,
                      [&](uint64_t from) { return source + (from - share.offset); });
}

/// Where the bytes of a write come from: parts in a row.
struct WriteSource {
  const IoVector* parts;
  int count;
  uint64_t bytes;  // of all of them, not 0
};

GOFS_HD inline IoVector one_part(const void* buffer, uint64_t bytes) {
  return {const_cast<void*>(buffer), bytes};  // which is only read
}

/// Writes `bytes` (not 0) of `source` at `offset`; what that needs is locked. Collective, uniform.
/// Bytes written, or a negative errno if there are none.
GOFS_NOINLINE GOFS_HD inline int64_t write_locked(simt::AnyWarp auto warp, Filesystem& fs,
                                                  f2fs::Inode& inode, const WriteSource& source,
                                                  uint64_t bytes, uint64_t offset) {
  uint64_t done = 0;
  for (int i = 0; i < source.count && done < bytes; ++i) {
    const uint64_t part = simt::min(source.parts[i].bytes, bytes - done);
    if (part == 0) continue;
    const auto* const from = static_cast<const uint8_t*>(source.parts[i].base);
    IoFailure failed = write_striped(warp, fs, inode, from,
                                     {part, offset + done, 0, 1, done == 0 ? offset + bytes : 0});
    if (failed.error != 0) {
      failed.at += done;
      return io_outcome(bytes, failed);
    }
    done += part;
  }
  return static_cast<int64_t>(done);
}

/// Writes at `offset` what `hold` holds the range for, and lets it go. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t write_and_unlock(simt::AnyWarp auto warp, Filesystem& fs,
                                                      OpenInode& open, const WriteSource& source,
                                                      uint64_t offset, const RangeHold& hold) {
  int64_t result = -EFBIG;
  if (offset < f2fs::kFileBytesMax) {
    const uint64_t bytes = simt::min(source.bytes, f2fs::kFileBytesMax - offset);
    result = write_locked(warp, fs, open.inode, source, bytes, offset);
  }
  unlock_exclusive(warp, open.lock, hold);
  return result;
}

/// Writes a part of one block that the file has, without the ring. Collective, uniform. Bytes
/// written, or a negative errno: -EAGAIN, it takes the ring.
GOFS_NOINLINE GOFS_HD inline int64_t write_one_block(simt::AnyWarp auto warp, Filesystem& fs,
                                                     OpenInode& open, const IoVector& part,
                                                     uint64_t offset) {
  const f2fs::WritePiece piece{offset, static_cast<uint32_t>(part.bytes),
                               static_cast<const uint8_t*>(part.base)};
  uint32_t written = 0;
  const int error = write_queued(warp, fs, open, 1u, piece, written);
  return error < 0 ? error : static_cast<int64_t>(part.bytes);
}

/// Writes at `offset`, or where `append`, at the end, which `offset` then becomes. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int64_t write_open(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, const WriteSource& source,
                                                bool append, uint64_t& offset) {
  const int prepared = prepare_to_write(warp, fs, open, source.bytes);
  if (prepared < 0) return prepared;
  if (!append && source.count == 1 &&
      warp.any(warp.thread_rank() == 0 && is_within(open.inode, offset, source.bytes))) {
    const int64_t written = write_one_block(warp, fs, open, source.parts[0], offset);
    if (written != -EAGAIN) return written;
  }
  RangeHold hold{};
  const int locked =
      lock_to_write(warp, open, source.bytes, append, fs.lock_timeout_ns, offset, hold);
  if (locked < 0) return locked;
  return write_and_unlock(warp, fs, open, source, offset, hold);
}

/// Sets the size of a file that the caller has for himself from there on, in as many portions as it
/// takes; `begin(now)`, which answers uniformly 0 or a negative errno, is part of the first.
/// Collective, uniform. 0 or a negative errno: where it is -ENOSPC, of a block for the new end, the
/// file is as it was, or others have taken all that a hundred checkpoints had made free.
template <typename Begin>
GOFS_HD int set_size(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode, uint64_t size,
                     Begin begin) {
  // A file that has lost nodes already does not give up as soon as others have taken what they
  // left.
  uint32_t patience = 100;
  bool begun = false;
  for (bool more = true; more;) {
    more = false;
    const int error = operate_or_sync(
        warp, fs, f2fs::kPagesToTruncate + 1,
        [&] {
          const f2fs::TimeStamp now = time_now(fs);
          const int failed = begun ? 0 : begin(now);
          if (failed < 0) return failed;
          return f2fs::truncate_file(warp, fs.volume, *fs.writer, fs.pool, inode, size, now, more);
        },
        [] { return true; });  // no more room is needed than there was
    if (error == -ENOSPC && begun && --patience != 0) {
      more = true;
    } else if (error < 0) {
      return error;
    }
    begun = true;
  }
  return 0;
}

/// Makes a file shorter whose powers are gone. As set_size().
GOFS_HD inline int cut_locked(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode,
                              uint64_t size) {
  return set_size(warp, fs, inode, size, [](const f2fs::TimeStamp&) { return 0; });
}

/// Sets the size of an open file. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int resize_open(simt::AnyWarp auto warp, Filesystem& fs,
                                             OpenInode& open, uint64_t size) {
  RangeHold hold{};
  int error = lose_capability(warp, fs, open.inode);
  if (error < 0) return error;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  error = lock_exclusive(warp, open.lock, whole_file(), deadline, hold);
  if (error < 0) return error;
  error = set_size(warp, fs, open.inode, size, [&](const f2fs::TimeStamp& now) {
    return drop_powers(warp, fs, open.inode.ino, now);
  });
  if (error == 0 && warp.thread_rank() == 0) begin_maps(fs, open.inode);
  unlock_exclusive(warp, open.lock, hold);
  return error;
}

/// After what `descriptor` was opened for is done: makes it durable if it was opened so.
GOFS_HD inline int sync_if_asked(simt::AnyWarp auto warp, Filesystem& fs,
                                 const Descriptor& descriptor) {
  if ((descriptor.flags & kOpenDataSync) == 0) return 0;
  return sync_inode(warp, fs, fs.open_inodes[descriptor.open_inode].inode.ino,
                    scope_of_flags(descriptor.flags));
}

}  // namespace detail

namespace detail {

/// Brings the parts of `source` together in spare memory, as one `part` of at most a block.
/// Collective, uniform. False: others had it all for as long as locks are waited for. Else lane 0
/// has `bounce` to give back.
GOFS_NOINLINE GOFS_HD inline bool bring_together(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const WriteSource& source, IoVector& part,
                                                 Bounce& bounce) {
  if (warp.thread_rank() == 0) {
    bounce = take_bounce(fs.bounces, source.bytes, fs.lock_timeout_ns);
  }
  auto* const memory =
      reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(bounce.memory), 0));
  if (memory == nullptr) return false;
  warp.sync();  // whoever had it has done with it, for all lanes
  uint64_t done = 0;
  for (int i = 0; i < source.count; ++i) {
    const IoVector& next = source.parts[i];
    if (next.bytes != 0) simt::copy_bytes(warp, memory + done, next.base, next.bytes);
    done += next.bytes;
  }
  warp.sync();
  part = one_part(memory, source.bytes);
  return true;
}

/// pwritev() where the straight way was left, or is none; `offset` becomes the place of a write
/// that appends.
GOFS_NOINLINE GOFS_HD inline int64_t write_at(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                              const IoVector* parts, int count, uint64_t& offset) {
  const Descriptor* const descriptor = find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return offset > kOffsetMax ? -EINVAL : total;
  const auto bytes = static_cast<uint64_t>(total);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EINVAL;
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  WriteSource source{parts, count, bytes};
  IoVector part{};
  Bounce bounce{};
  if (count > 1 && bytes <= kBlockBytes && bring_together(warp, fs, source, part, bounce)) {
    source = {&part, 1, bytes};
  }
  const bool appended =
      source.count == 1 && try_to_append(warp, fs, open, source.parts[0], append, offset);
  const int64_t result = appended ? total : write_open(warp, fs, open, source, append, offset);
  if (bounce.bytes != 0) give_back_bounce(bounce);
  const int synced = result > 0 ? sync_if_asked(warp, fs, *descriptor) : 0;
  return synced < 0 ? synced : result;
}

/// Moves the position of `descriptor` past a write() of `bytes` by one lane, which goes to `offset`
/// then, so that those who write at the same time get ranges of their own; one that appends is told
/// its place later. 0 or -EFBIG.
GOFS_HD inline int take_position(Descriptor& descriptor, uint64_t bytes, uint64_t& offset) {
  offset = 0;
  if ((descriptor.flags & kOpenAppend) != 0) return 0;
  offset = simt::add_relaxed(descriptor.position, bytes);
  return offset > kOffsetMax || bytes > kOffsetMax - offset ? -EFBIG : 0;
}

}  // namespace detail

/// pwrite(2): bytes written, less than asked only where the volume or the SSD gave out in between;
/// or a negative errno: -EBADF, -EINVAL, -EFBIG, -ENOSPC, -EROFS, -EIO, -EUCLEAN, -EOPNOTSUPP,
/// -EBUSY, -ETIMEDOUT (somebody else kept the range). A descriptor that was opened to append writes
/// at the end, wherever `offset` is. Zero copy where the buffer is aligned to 4 bytes and its range
/// to blocks.
GOFS_HD inline int64_t pwrite(simt::AnyWarp auto warp, Filesystem& fs, int fd, const void* buffer,
                              uint64_t bytes, uint64_t offset) {
  if (bytes != 0 && bytes <= kBlockBytes) {
    const WriteRequest request{fd, buffer, warp.thread_rank() == 0 ? bytes : 0, offset};
    if (try_to_overwrite(warp, fs, request)) return static_cast<int64_t>(bytes);
  }
  const IoVector part = detail::one_part(buffer, bytes);
  return detail::write_at(warp, fs, fd, &part, 1, offset);
}

/// pwritev(2): as pwrite(), which it is where there is one part. -EINVAL also of more than
/// kIoVectorsMax parts. Zero copy where each part and its range are as pwrite() wants them; parts
/// of at most a block in all are brought together first, and written as one.
GOFS_HD inline int64_t pwritev(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                               const IoVector* parts, int count, uint64_t offset) {
  if (count == 1) return pwrite(warp, fs, fd, parts->base, parts->bytes, offset);
  return detail::write_at(warp, fs, fd, parts, count, offset);
}

namespace detail {

/// pwritev() as a function of its own, for those to whom a call costs little.
GOFS_NOINLINE GOFS_HD inline int64_t call_pwritev(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                  const IoVector* parts, int count,
                                                  uint64_t offset) {
  return pwritev(warp, fs, fd, parts, count, offset);
}

}  // namespace detail

/// writev(2): pwritev() at the descriptor's position, which moves past what was asked for. Groups
/// that write at the same time get ranges of their own.
GOFS_NOINLINE GOFS_HD inline int64_t writev(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                            const IoVector* parts, int count) {
  Descriptor* const descriptor = find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return total;
  uint64_t offset = 0;
  warp.sync();
  int error = 0;
  if (warp.thread_rank() == 0) {
    error = detail::take_position(*descriptor, static_cast<uint64_t>(total), offset);
  }
  error = warp.shfl(error, 0);
  if (error < 0) return error;
  offset = warp.shfl(offset, 0);
  if ((descriptor->flags & kOpenAppend) == 0) {
    return detail::call_pwritev(warp, fs, fd, parts, count, offset);
  }
  const int64_t result = detail::write_at(warp, fs, fd, parts, count, offset);
  if (result > 0 && warp.thread_rank() == 0) {
    simt::store_relaxed(descriptor->position, offset + static_cast<uint64_t>(result));
  }
  return result;
}

/// write(2): writev() of one part.
GOFS_HD inline int64_t write(simt::AnyWarp auto warp, Filesystem& fs, int fd, const void* buffer,
                             uint64_t bytes) {
  const IoVector part = detail::one_part(buffer, bytes);
  return writev(warp, fs, fd, &part, 1);
}

/// ftruncate(2): the file gets shorter, or longer with zeros. 0 or a negative errno: -EBADF,
/// -EINVAL (not open for writing), -EPERM (of a file that is only appended to), -EFBIG, -ENOSPC,
/// and as pwrite().
GOFS_NOINLINE GOFS_HD inline int ftruncate(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           uint64_t size) {
  const Descriptor* const descriptor = find_file(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (!may_write(descriptor->flags) || size > kOffsetMax) return -EINVAL;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  if ((open.inode.flags & format::kFlagAppend) != 0) return -EPERM;
  const int error = detail::resize_open(warp, fs, open, size);
  return error < 0 ? error : detail::sync_if_asked(warp, fs, *descriptor);
}

/// truncate(2) of what `path` names.
GOFS_NOINLINE GOFS_HD inline int truncate(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                          uint64_t size) {
  if (size > kOffsetMax) return -EINVAL;
  const int fd = walking(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, LastLink::kFollow, inode);
    if (error < 0) return error;
    if (inode.is_directory()) return -EISDIR;
    return inode.is_regular() ? detail::open_found(warp, fs, inode, kOpenWriteOnly) : -EINVAL;
  });
  if (fd < 0) return fd;
  const int error = ftruncate(warp, fs, fd, size);
  (void)close(warp, fs, fd);
  return error;
}

}  // namespace gofs::vfs
