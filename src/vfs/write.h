// SPDX-License-Identifier: Apache-2.0
//
// Writing open files by one warp. All functions are collective with uniform arguments and answers.
// What was written is seen by others when the call returns, and durable after sync(), or fsync() of
// the file (fsync.h). How it is done: write_plan.h.
#pragma once

#include "vfs/foreground_gc.h"
#include "vfs/record_append.h"
#include "vfs/write_request.h"

namespace gofs::vfs {

namespace detail {

/// Brings the parts of `source` together in spare memory, as one `part` of at most a block.
/// Collective, uniform. False: others had it all for as long as locks are waited for. Else lane 0
/// has `bounce` to release.
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

/// pwritev() where the fast path was left, or is none; `offset` becomes the place of a write that
/// appends.
GOFS_NOINLINE GOFS_HD inline int64_t write_at(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                              const IoVector* parts, int count, uint64_t& offset) {
  const Descriptor* const descriptor = find_writable(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return offset > kOffsetMax ? -EINVAL : total;
  const auto bytes = static_cast<uint64_t>(total);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EINVAL;
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  if (append) {
    const int64_t recorded = append_record(warp, fs, *descriptor, parts, count, bytes, offset);
    if (recorded != -EAGAIN) return recorded;
  }
  WriteSource source{parts, count, bytes};
  IoVector part{};
  Bounce bounce{};
  if (count > 1 && bytes <= kBlockBytes && bring_together(warp, fs, source, part, bounce)) {
    source = {&part, 1, bytes};
  }
  const bool appended =
      source.count == 1 && try_to_append(warp, fs, open, source.parts[0], append, offset);
  const int64_t result = appended ? total : write_by_warp(warp, fs, open, source, append, offset);
  if (bounce.bytes != 0) release_bounce(bounce);
  const int synced = result > 0 ? sync_if_asked(warp, fs, *descriptor) : 0;
  return synced < 0 ? synced : result;
}

/// Moves the position of `descriptor` past a write() of `bytes` by one lane, which goes to `offset`
/// then, so that those who write at the same time get ranges of their own; one that appends gets
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
/// -EBUSY, -ETIMEDOUT (another thread held the range). A descriptor that was opened to append
/// writes at the end, wherever `offset` is. Zero copy where the buffer is aligned to 4 bytes and
/// its range to blocks.
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
  Descriptor* const descriptor = find_writable(warp, fs, fd);
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

}  // namespace gofs::vfs
