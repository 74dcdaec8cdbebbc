// SPDX-License-Identifier: Apache-2.0
//
// fallocate(2): room for what will be written, holes, and zeros. Collective with uniform arguments
// and answers, by one warp, in portions that are operations of their own (f2fs/begin_operation.h).
// Seen by others when the call returns, durable after sync().
#pragma once

#include "f2fs/reserve_blocks.h"
#include "vfs/write_request.h"

namespace gofs::vfs {

using gofs::kFallocateKeepSize;
using gofs::kFallocatePunchHole;
using gofs::kFallocateZeroRange;

namespace detail {

struct FallocateRange {
  uint32_t mode;
  uint64_t offset;
  uint64_t end;

  GOFS_HD uint64_t first_block() const { return offset >> kBlockShift; }
  GOFS_HD uint64_t end_block() const { return simt::divide_up(end, kBlockBytes); }
  GOFS_HD bool keeps_size() const { return (mode & kFallocateKeepSize) != 0; }
  GOFS_HD bool zeroes() const { return (mode & kFallocateZeroRange) != 0; }
};

GOFS_HD constexpr bool fallocate_mode_known(uint32_t mode) {
  return mode == 0 || mode == kFallocateKeepSize || mode == kFallocateZeroRange ||
         mode == (kFallocateZeroRange | kFallocateKeepSize) ||
         mode == (kFallocatePunchHole | kFallocateKeepSize);
}

/// Blocks that users may still take, as far as one lane sees. Collective, uniform.
GOFS_HD inline uint64_t blocks_left(simt::AnyWarp auto warp, const f2fs::Volume& volume) {
  const uint64_t used = warp.shfl(simt::load_relaxed(volume.valid_block_count), 0);
  const uint64_t users = simt::load_relaxed(volume.user_block_count);
  return users - simt::min(used, users);
}

/// Before anything else is changed: moves inline data out, and refuses what there is no room for.
/// Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int begin_reserving(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const f2fs::FileHold& file,
                                                 const FallocateRange& range) {
  f2fs::Inode& inode = file.inode;
  const uint64_t blocks = range.end_block() - range.first_block();
  const uint64_t has = warp.shfl(simt::load_relaxed(inode.block_count), 0);
  if (blocks > blocks_left(warp, fs.volume) + has) return -ENOSPC;
  int error = operate(warp, fs, f2fs::kPagesToPrepareWrite + 1, [&](f2fs::Operation& op) {
    const int refused = f2fs::detail::check_change(*fs.writer, inode, range.end);
    if (refused < 0) return refused;
    const int dropped = clear_setid(warp, op, fs, inode.ino);
    const bool inlined = inode.has_inline_data();
    warp.sync();  // all lanes have looked
    if (dropped < 0 || !inlined) return dropped;
    return f2fs::move_out_inline(warp, op, file);
  });
  uint64_t missing = 0;
  if (error == 0) {
    error = f2fs::count_to_reserve(warp, fs.volume, inode, range.first_block(), range.end_block(),
                                   missing);
  }
  return error == 0 && missing > blocks_left(warp, fs.volume) ? -ENOSPC : error;
}

/// Reserves file blocks [first, end), portion after portion. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int reserve_range(simt::AnyWarp auto warp, Filesystem& fs,
                                               const f2fs::FileHold& file, f2fs::Reserve which,
                                               uint64_t first, uint64_t end) {
  int error = 0;
  for (uint64_t next = first; next < end && error == 0;) {
    error = operate(warp, fs, f2fs::kPagesToReserve, [&](f2fs::Operation& op) {
      return f2fs::reserve_blocks(warp, op, file, which, next, end);
    });
  }
  return error;
}

/// Makes zeros of a range that is reserved where it has no contents: clears the parts of its first
/// and last block, and reserves the blocks between them instead of their contents. Collective,
/// uniform.
GOFS_HD inline int zero_range(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::FileHold& file,
                              const FallocateRange& range) {
  const uint64_t from = simt::align_up(range.offset, uint64_t{kBlockBytes});
  const uint64_t to = range.end & ~uint64_t{kBlockBytes - 1};
  const int error = operate(warp, fs, f2fs::kPagesToPunch, [&](f2fs::Operation& op) {
    int failed = 0;
    if (range.offset < from) {
      failed = f2fs::detail::punch_part(warp, op, file, range.offset, range.end);
    }
    if (failed == 0 && to < range.end && to >= from) {
      failed = f2fs::detail::punch_part(warp, op, file, to, range.end);
    }
    return failed;
  });
  if (error < 0 || from >= to) return error;
  return reserve_range(warp, fs, file, f2fs::Reserve::kAll, from >> kBlockShift, to >> kBlockShift);
}

/// All modes but that of a hole. What the range needs is locked. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int allocate_range(simt::AnyWarp auto warp, Filesystem& fs,
                                                const f2fs::FileHold& file,
                                                const FallocateRange& range) {
  f2fs::Inode& inode = file.inode;
  int error = begin_reserving(warp, fs, file, range);
  if (error == 0) {
    error = reserve_range(warp, fs, file, f2fs::Reserve::kHoles, range.first_block(),
                          range.end_block());
  }
  if (error == 0 && range.zeroes()) error = zero_range(warp, fs, file, range);
  if (error < 0) return error;
  return operate(warp, fs, f2fs::kPagesToTruncate, [&](f2fs::Operation& op) {
    const f2fs::InodeUpdate update = f2fs::update_of_times(op.now);
    const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
    if (range.keeps_size() || range.end <= size) {
      return f2fs::update_inode(warp, op, inode, update);
    }
    return f2fs::detail::grow_size(warp, op, file, size, range.end, update);
  });
}

/// Makes a hole. What the range needs is locked. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int punch_range(simt::AnyWarp auto warp, Filesystem& fs,
                                             const f2fs::FileHold& file,
                                             const FallocateRange& range) {
  f2fs::Inode& inode = file.inode;
  int error = 0;
  uint64_t from = range.offset;
  for (bool first = true; error == 0 && (first || from < range.end); first = false) {
    error = operate(warp, fs, f2fs::kPagesToPunch + 1, [&](f2fs::Operation& op) {
      int begun = first ? clear_setid(warp, op, fs, inode.ino) : 0;
      // Also where nothing is there.
      if (first && begun == 0) {
        begun = f2fs::update_inode(warp, op, inode, f2fs::update_of_times(op.now));
      }
      if (begun < 0) return begun;
      return f2fs::punch_hole(warp, op, file, from, range.end);
    });
  }
  return error;
}

}  // namespace detail

/// fallocate(2) of the `bytes` bytes at `offset`. With `mode` 0 the range can be written to without
/// any more room on the volume, and the file reaches to its end at least; holes read as zeros. Or:
///
///   kFallocateKeepSize                        the same, but the size stays
///   kFallocateZeroRange [| kFallocateKeepSize]  and all of the range becomes zeros
///   kFallocatePunchHole | kFallocateKeepSize  the range becomes a hole
///
/// 0 or a negative errno: -EBADF (not open for writing), -EINVAL (no bytes), -EOPNOTSUPP (other
/// modes), -EPERM (of a file that is only appended to), -EFBIG, -ENOSPC, -EROFS, and what pwrite()
/// says. -ENOSPC comes before anything is changed; only where others take the room meanwhile, or
/// after an error of the SSD, a part of the range may be reserved, or be zeros.
GOFS_NOINLINE GOFS_HD inline int fallocate(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           uint32_t mode, uint64_t offset, uint64_t bytes) {
  const Descriptor* const descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (bytes == 0 || offset > kOffsetMax || bytes > kOffsetMax) return -EINVAL;
  if (!detail::fallocate_mode_known(mode)) return -EOPNOTSUPP;
  if (!may_write(descriptor->flags)) return -EBADF;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  const bool appended_to = (open.inode.flags & format::kFlagAppend) != 0;
  if (appended_to && (mode & ~kFallocateKeepSize) != 0) return -EPERM;
  if (bytes > f2fs::kFileBytesMax || offset > f2fs::kFileBytesMax - bytes) return -EFBIG;
  int error = detail::lose_capability(warp, fs, open.inode);
  if (error < 0) return error;
  WritePlan plan{};
  WriteHold hold{};
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  error = detail::acquire_in_ring(warp, open, deadline, plan, hold, [&](const FileView& view) {
    return plan_allocation(view, offset, bytes);
  });
  if (error < 0) return error;
  const detail::FallocateRange range{mode, offset, offset + bytes};
  const f2fs::FileHold file = detail::held_file(hold);
  error = (mode & kFallocatePunchHole) != 0 ? detail::punch_range(warp, fs, file, range)
                                            : detail::allocate_range(warp, fs, file, range);
  if (warp.thread_rank() == 0) simt::store_relaxed(open.inode.clean_tail, 0u);
  detail::release(warp, fs, hold);
  return error < 0 ? error : detail::sync_if_asked(warp, fs, *descriptor);
}

}  // namespace gofs::vfs
