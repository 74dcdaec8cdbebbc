// SPDX-License-Identifier: Apache-2.0
//
// Writes that are started now and waited for later. Whole blocks that the device can take from the
// caller's buffer, at most f2fs::kHeldBlocks, are left under way; what else there is, in front of
// them or behind, is written before the call returns. So nothing is left under way of a file whose
// data is in its inode, of a source that is not aligned to 4 bytes as the blocks are, of a write
// behind the old end that does not end with a block, and where as many are under way as there is
// room for, kDetachedRanges in a file.
//
// Blocks under way are new ones that no thread refers to (f2fs/store_later.h). wait() waits for the
// device and then enters them: the file has its new contents and size from that moment on, for all
// threads, and before it the former ones, also after a crash. A write that is never waited for has
// not happened, but for what was written at once.
//
// The range stays locked until then, as for the call: reads and writes of it wait, and so do writes
// behind the end where this write goes there. A wait that is too long ends with -ETIMEDOUT, also
// that of a thread which reads or writes the same blocks again before it waits for its ticket. A
// file to which several writes append at a time is made as long first (ftruncate, fallocate).
#pragma once

#include "f2fs/store_later.h"
#include "vfs/ticket.h"
#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// How a write is divided: [later, later_end) is left under way, all before and behind it is
/// written at once. In bytes of the file, whole blocks.
struct WriteParts {
  uint64_t later;
  uint64_t later_end;

  GOFS_HD uint32_t count() const {
    return static_cast<uint32_t>((later_end - later) >> kBlockShift);
  }
};

/// How to divide a write of [offset, end) from `source` to a file of `size` bytes that are not in
/// its inode.
GOFS_HD inline WriteParts divide_write(const uint8_t* source, uint64_t offset, uint64_t end,
                                       uint64_t size) {
  const uint64_t first = simt::align_up(offset, uint64_t{kBlockBytes});
  const uint64_t last = end & ~uint64_t{kBlockBytes - 1};
  const bool direct =
      f2fs::detail::is_directly_addressable(source + (first - offset), first, 0, kBlockBytes - 1);
  // What is behind them must not make the file longer before they are there.
  if (first >= last || !direct || (end > size && end != last)) return {end, end};
  constexpr uint64_t kMost = uint64_t{f2fs::kHeldBlocks} * kBlockBytes;
  return {last - simt::min(last - first, kMost), last};
}

/// Takes blocks for `count` file blocks from `first` on and starts to write them from `source`, a
/// block a lane, in rounds. Collective, uniform. Where, in bytes from the first block on, it could
/// not go on.
GOFS_NOINLINE GOFS_HD inline IoFailure start_blocks(
    simt::AnyWarp auto warp, Filesystem& fs, const f2fs::FileHold& file, const nvme::Route& route,
    AsyncOperation& operation, const uint8_t* source, uint64_t first, uint32_t count) {
  f2fs::HeldBlocks& held = fs.writer->held[operation.write.held];
  for (uint32_t done = 0; done < count; done += warp.size()) {
    const uint32_t number = done + warp.thread_rank();
    const uint32_t lanes = warp.ballot(number < count);
    const bool mine = number < count;
    uint32_t block = 0;
    int error = operate(warp, fs, f2fs::kPagesToGrowRun, [&](f2fs::Operation& op) {
      return f2fs::take_to_store(warp, op, lanes, file, first + number, held, block);
    });
    if (error == 0) {
      const auto* const from = source + uint64_t{number} * kBlockBytes;
      const int started =
          f2fs::write_data(warp, route, lanes,
                           {file.inode.ino, (first + number) << kBlockShift, block,
                            mine ? uint32_t{kBlockBytes} : 0, const_cast<uint8_t*>(from)},
                           f2fs::Merge::kNeighbours, &operation.mailbox);
      error = simt::first_error(warp, started);
    }
    if (error < 0) return {uint64_t{done} << kBlockShift, error};
  }
  return {kOffsetMax, 0};
}

/// Enters the blocks of `held`, which the device has, as file blocks from `first` on, a block a
/// lane, in rounds. Collective, uniform. 0 or a negative errno; what was entered before is no
/// longer what it was.
GOFS_NOINLINE GOFS_HD inline int enter_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                              const f2fs::FileHold& file, f2fs::HeldBlocks& held,
                                              uint64_t first) {
  const uint32_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  for (uint32_t done = 0; done < count; done += warp.size()) {
    const uint32_t number = done + warp.thread_rank();
    const uint32_t lanes = warp.ballot(number < count);
    const uint32_t block = number < count ? held.blocks[number] : 0;
    f2fs::InodeUpdate update = f2fs::update_of_times(time_now(fs));
    update.size_least = (first + simt::min(done + warp.size(), count)) << kBlockShift;
    const int error = operate(warp, fs, f2fs::kPagesToGrowRun, [&](f2fs::Operation& op) {
      return f2fs::enter_stored(warp, op, lanes, file, first + number, held, block, update);
    });
    if (error < 0) return error;
  }
  return 0;
}

/// Releases what a write held, all of which was entered where `entered`. Collective, uniform. Where
/// no operation can be begun any more, it stays held.
GOFS_HD inline void release_held_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                        f2fs::HeldBlocks& held, bool entered) {
  const uint32_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  if (!entered && count != 0) {
    const int error = operate(warp, fs, 1, [&](f2fs::Operation& op) {
      f2fs::drop_held(warp, op, held);
      return 0;
    });
    if (error < 0) return;
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(held.count, 0u);
    f2fs::release_held(held);
  }
}

/// The blocks of `held`, file blocks from `first` on, which a write has held since it was started.
/// Collective, uniform.
GOFS_HD inline f2fs::FileHold file_of_kept(simt::AnyWarp auto warp, OpenInode& open,
                                           const f2fs::HeldBlocks& held, uint64_t first) {
  const uint64_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  return HoldMaker::file(open, {first << kBlockShift, count << kBlockShift});
}

/// The end of a write whose commands have come to `result`. Collective, uniform. Bytes written, or
/// a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t end_async_write(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const PendingWrite& write, int64_t result,
                                                     bool lost) {
  OpenInode& open = fs.open_inodes[write.open_inode];
  f2fs::HeldBlocks& held = fs.writer->held[write.held];
  // A failed device may be writing to the blocks still: they stay held.
  if (!lost) {
    if (result >= 0) {
      const f2fs::FileHold file = file_of_kept(warp, open, held, write.first);
      const int error = enter_blocks(warp, fs, file, held, write.first);
      if (error < 0) result = error;
    }
    release_held_blocks(warp, fs, held, result >= 0);
  }
  unlock_detached(warp, open.lock, write.detached);
  if (result > 0 && (write.flags & kOpenDataSync) != 0) {
    const int synced = sync_inode(warp, fs, open.inode.ino, scope_of_flags(write.flags));
    if (synced < 0) result = synced;
  }
  leave_open_inode(warp, fs, write.open_inode);
  return result;
}

/// Has a write use the inode that `descriptor` has open, detach the range of `hold`, which is over
/// then, and hold blocks. Collective, uniform. False, and `hold` is as it was, where there are too
/// many such writes.
GOFS_NOINLINE GOFS_HD inline bool begin_async_write(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const Descriptor& descriptor, WriteHold& hold,
                                                    AsyncOperation& operation) {
  PendingWrite write{f2fs::kNoHeldBlocks, descriptor.open_inode, 0, descriptor.flags, 0};
  const bool leader = warp.thread_rank() == 0;
  if (leader) write.held = f2fs::take_held(*fs.writer);
  write.held = warp.shfl(write.held, 0);
  if (write.held == f2fs::kNoHeldBlocks) return false;
  f2fs::HeldBlocks& held = fs.writer->held[write.held];
  if (!detach_lock(warp, hold.open().lock, HoldMaker::ring(hold), write.detached)) {
    if (leader) f2fs::release_held(held);
    return false;
  }
  HoldMaker::empty(hold);
  if (leader) {
    share_open_inode(fs, write.open_inode);
    operation.write = write;
  }
  warp.sync();
  return true;
}

/// Starts a write of [offset, end), whose range `operation` holds detached; `clears` as its plan.
/// Collective, uniform. Bytes that are written or under way, or a negative errno where there are
/// none; `started`: some are under way.
GOFS_NOINLINE GOFS_HD inline int64_t start_parts(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const nvme::Route& route,
                                                 const f2fs::FileHold& file,
                                                 AsyncOperation& operation, const uint8_t* source,
                                                 uint64_t offset, uint64_t end, bool clears,
                                                 bool& started) {
  f2fs::Inode& inode = file.inode;
  started = false;
  const int error = operate(warp, fs, kPagesToBeginWrite, [&](f2fs::Operation& op) {
    return begin_write(warp, op, fs, file, clears ? offset : 0, end);
  });
  if (error < 0) return error;
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  WriteParts parts{end, end};
  if (!inode.has_inline_data()) parts = divide_write(source, offset, end, size);
  const auto write_now = [&](uint64_t from, uint64_t to) -> IoFailure {
    if (from >= to) return {kOffsetMax, 0};
    return write_striped(warp, fs, file, source + (from - offset),
                         {to - from, from, 0, 1, warp.size(), 0, 0, f2fs::Growth::kStays});
  };
  const uint64_t before = parts.later - offset;
  IoFailure failure = write_now(offset, parts.later);
  if (failure.error != 0) return io_outcome(before, failure);
  if (parts.count() == 0) return static_cast<int64_t>(before);
  if (warp.thread_rank() == 0) operation.write.first = parts.later >> kBlockShift;
  warp.sync();
  failure = start_blocks(warp, fs, file, route, operation, source + before,
                         parts.later >> kBlockShift, parts.count());
  const f2fs::HeldBlocks& held = fs.writer->held[operation.write.held];
  started = warp.shfl(simt::load_relaxed(held.count), 0) != 0;
  if (failure.error != 0) {
    failure.at += before;
    return io_outcome(end - offset, failure);
  }
  // Not before them: what a write that finds no room for them says is not written, is not.
  failure = write_now(parts.later_end, end);
  return static_cast<int64_t>((failure.error != 0 ? parts.later_end : end) - offset);
}

}  // namespace detail

/// Starts a pwrite by one warp. Collective, uniform. A ticket, with a negative errno that of
/// pwrite, or -EAGAIN when too many operations are under way. A descriptor that was opened to
/// append writes at the end as it is when the write starts; one that was opened with kOpenDataSync
/// has it durable when wait() returns. The descriptor may be closed before that.
///
/// wait() returns the bytes written; or, where a command failed, -EIO or another negative errno,
/// and the blocks under way are as they were. Only where a node of the file cannot be read any
/// more, or another thread keeps one (-EBUSY), some of them may be new ones. Of more than 1 MiB,
/// that much is left under way.
GOFS_NOINLINE GOFS_HD inline Ticket pwrite_async(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                 const void* buffer, uint64_t bytes,
                                                 uint64_t offset) {
  const Ticket nothing{0, Ticket::kNoOperation, 0, 0};
  const auto done = [&](int64_t result) {
    Ticket ticket = nothing;
    ticket.result = result;
    return ticket;
  };
  const Descriptor* const descriptor = find_writable(warp, fs, fd);
  if (descriptor == nullptr) return done(-EBADF);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return done(-EINVAL);
  if (bytes == 0) return nothing;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  Ticket ticket = nothing;
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  AsyncOperation* const operation = detail::take_operation(warp, fs, route, ticket);
  if (operation == nullptr) return done(-EAGAIN);
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  WritePlan plan{};
  WriteHold hold{};
  int64_t result = detail::prepare_to_write(warp, fs, open, bytes);
  if (result == 0) {
    const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
    result = detail::acquire_range(warp, open, bytes, append, deadline, offset, plan, hold);
  }
  const ByteRange range = result == 0 ? hold.range() : ByteRange{};
  if (result == 0 && !detail::begin_async_write(warp, fs, *descriptor, hold, *operation)) {
    detail::release(warp, fs, hold);
    const IoVector part = detail::one_part(buffer, bytes);
    result = detail::write_by_warp(warp, fs, open, {&part, 1, bytes}, append, offset);
    const int synced = result > 0 ? detail::sync_if_asked(warp, fs, *descriptor) : 0;
    if (synced < 0) result = synced;
    detail::release_operation(warp, fs, ticket, false);
    return done(result);
  }
  if (result < 0) {
    detail::release_operation(warp, fs, ticket, false);
    return done(result);
  }
  bool started = false;
  ticket.result = -EFBIG;
  if (offset < f2fs::kFileBytesMax) {
    const uint64_t end = offset + simt::min(bytes, f2fs::kFileBytesMax - offset);
    const f2fs::FileHold file = detail::HoldMaker::file(open, range);  // which is detached now
    ticket.result =
        detail::start_parts(warp, fs, route, file, *operation, static_cast<const uint8_t*>(buffer),
                            offset, end, plan.clears, started);
  }
  detail::end_start(warp, *operation);
  if (started && ticket.result >= 0) return ticket;
  // All that there was to do is done, or has come to nothing.
  bool lost = false;
  if (started) ticket.result = detail::await_commands(warp, fs, *operation, ticket, lost);
  result = detail::end_async_write(warp, fs, operation->write, ticket.result, lost);
  detail::release_operation(warp, fs, ticket, lost);
  return done(result);
}

}  // namespace gofs::vfs
