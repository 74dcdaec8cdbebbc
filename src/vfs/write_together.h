// SPDX-License-Identifier: Apache-2.0
//
// Writes that the warps of a block or of a grid make together (write_request.h). A write of at most
// a block is too little to be shared, and a record (record_append.h) is whole: one of them makes
// the call that it would make alone.
#pragma once

#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// What `call(warp)`, made by one warp of `group`, answers, for all of them.
template <typename WarpGroup, typename Call>
GOFS_HD int64_t write_by_one(const WarpGroup& group, SharedWrite& shared, Call call) {
  if (group.index() == 0) {
    const int64_t result = call(group.warp());
    if (group.warp().thread_rank() == 0) shared.result = result;
  }
  group.sync();
  return shared.result;
}

/// Whether one warp makes a write of `bytes`.
GOFS_HD inline bool is_for_one(const Descriptor& descriptor, uint64_t bytes) {
  const bool append = (descriptor.flags & kOpenAppend) != 0;
  return bytes <= (append ? kRecordBytesMax : kBlockBytes);
}

/// The part of one warp alone, before the others begin: what comes first in the file is done here.
/// Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void begin_write_together(simt::AnyWarp auto warp, Filesystem& fs,
                                                       SharedWrite& shared,
                                                       const Descriptor& descriptor, uint64_t bytes,
                                                       uint64_t offset) {
  OpenInode& open = fs.open_inodes[descriptor.open_inode];
  SharedWrite begun{};
  begin_request(warp, fs, open, bytes, (descriptor.flags & kOpenAppend) != 0, offset, begun);
  if (begun.result == 0 && begun.begins_to != 0) {
    const f2fs::FileHold file = held_file(begun.hold);
    begun.result = operate(warp, fs, kPagesToBeginWrite, [&](f2fs::Operation& op) {
      return begin_write(warp, op, fs, file, begun.begins_from, begun.begins_to);
    });
    begun.begins_to = 0;
    if (begun.result < 0) release(warp, fs, begun.hold);
  }
  begun.in_inode = open.inode.has_inline_data();
  warp.sync();
  if (warp.thread_rank() == 0) shared = begun;
}

/// The writing itself, by all warps of `group`; `descriptor` is open for writing.
template <typename WarpGroup>
GOFS_HD int64_t write_open_together(const WarpGroup& group, Filesystem& fs, SharedWrite& shared,
                                    Descriptor* descriptor, const WriteSource& source,
                                    uint64_t offset, bool moves_position) {
  const auto warp = group.warp();
  const bool leads = group.index() == 0;
  if (leads) begin_write_together(warp, fs, shared, *descriptor, source.bytes, offset);
  group.sync();
  if (shared.result < 0) return shared.result;
  write_parts(group, fs, shared, source);
  if (leads) {
    int64_t result = end_request(warp, fs, shared);
    const bool append = (descriptor->flags & kOpenAppend) != 0;
    if (moves_position && append && result > 0 && warp.thread_rank() == 0) {
      simt::store_relaxed(descriptor->position, shared.offset + static_cast<uint64_t>(result));
    }
    const int synced = result > 0 ? sync_if_asked(warp, fs, *descriptor) : 0;
    if (synced < 0) result = synced;
    if (warp.thread_rank() == 0) shared.result = result;
  }
  group.sync();
  return shared.result;
}

}  // namespace detail

/// pwritev() by all warps of `group`, with the same arguments, and `parts` that all of them reach,
/// where all have come, with their buffers filled, and use `shared` for nothing else. The result of
/// pwritev(), the same everywhere: where one warp could not go on, the bytes before its round are
/// good. A file that grew ends there again, or with the zeros in front of the write's first block;
/// what was reserved behind is freed, what it had before may be old or new.
template <typename WarpGroup>
GOFS_HD int64_t pwritev_by_all(const WarpGroup& group, Filesystem& fs, SharedWrite& shared, int fd,
                               const IoVector* parts, int count, uint64_t offset) {
  Descriptor* const descriptor = find_writable(group.warp(), fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return offset > kOffsetMax ? -EINVAL : total;
  const auto bytes = static_cast<uint64_t>(total);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EINVAL;
  if (detail::is_for_one(*descriptor, bytes)) {
    return detail::write_by_one(group, shared, [&](simt::AnyWarp auto warp) {
      return detail::call_pwritev(warp, fs, fd, parts, count, offset);
    });
  }
  return detail::write_open_together(group, fs, shared, descriptor, {parts, count, bytes}, offset,
                                     false);
}

/// The same by a group that comes together first.
template <typename WarpGroup>
GOFS_HD int64_t pwritev_together(const WarpGroup& group, Filesystem& fs, SharedWrite& shared,
                                 int fd, const IoVector* parts, int count, uint64_t offset) {
  group.sync();  // all have taken the outcome of a former write, and filled their buffers
  return pwritev_by_all(group, fs, shared, fd, parts, count, offset);
}

/// pwrite() by all warps of `group`. As pwritev_together().
template <typename WarpGroup>
GOFS_HD int64_t pwrite_together(const WarpGroup& group, Filesystem& fs, SharedWrite& shared, int fd,
                                const void* buffer, uint64_t bytes, uint64_t offset) {
  const IoVector part = detail::one_part(buffer, bytes);
  return pwritev_together(group, fs, shared, fd, &part, 1, offset);
}

/// writev() by all warps of `group`, with the same arguments. As pwritev_by_all().
template <typename WarpGroup>
GOFS_HD int64_t writev_by_all(const WarpGroup& group, Filesystem& fs, SharedWrite& shared, int fd,
                              const IoVector* parts, int count) {
  const auto warp = group.warp();
  Descriptor* const descriptor = find_writable(group.warp(), fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return total;
  const auto bytes = static_cast<uint64_t>(total);
  if (detail::is_for_one(*descriptor, bytes)) {
    return detail::write_by_one(group, shared, [&](simt::AnyWarp auto caller) {
      return writev(caller, fs, fd, parts, count);
    });
  }
  uint64_t offset = 0;
  if ((descriptor->flags & kOpenAppend) == 0) {
    if (group.index() == 0 && warp.thread_rank() == 0) {
      shared.offset = simt::add_relaxed(descriptor->position, bytes);
    }
    group.sync();
    offset = shared.offset;
    group.sync();  // all have it
    if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EFBIG;
  }
  return detail::write_open_together(group, fs, shared, descriptor, {parts, count, bytes}, offset,
                                     true);
}

/// The same by a group that comes together first.
template <typename WarpGroup>
GOFS_HD int64_t writev_together(const WarpGroup& group, Filesystem& fs, SharedWrite& shared, int fd,
                                const IoVector* parts, int count) {
  group.sync();  // as in pwritev_together()
  return writev_by_all(group, fs, shared, fd, parts, count);
}

/// write() by all warps of `group`. As pwritev_together().
template <typename WarpGroup>
GOFS_HD int64_t write_together(const WarpGroup& group, Filesystem& fs, SharedWrite& shared, int fd,
                               const void* buffer, uint64_t bytes) {
  const IoVector part = detail::one_part(buffer, bytes);
  return writev_together(group, fs, shared, fd, &part, 1);
}

}  // namespace gofs::vfs
