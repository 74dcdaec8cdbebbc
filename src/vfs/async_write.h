// SPDX-License-Identifier: Apache-2.0
//
// Writes that are started now and waited for later. Whole blocks that the device can take from the
// caller's buffer, at most f2fs::kHeldBlocks, are left under way; what else there is, in front of
// them or behind, is written before the call returns. So nothing is left under way of a file whose
// data is in its inode, of a source that is not aligned to 4 bytes as the blocks are, of a write
// behind the old end that does not end with a block, and where as many are under way as there is
// room for, kKeptRanges in a file.
//
// Blocks under way are new ones that nobody refers to (f2fs/store_later.h). wait() waits for the
// device and then enters them: the file has its new contents and size from that moment on, for
// everybody, and before it the former ones, also after a crash. A write that is never waited for
// has not happened, but for what was written at once.
//
// The range stays locked until then, as for the call: who reads or writes it waits, and so does who
// writes behind the end where this write does. Who waits too long is told so (-ETIMEDOUT), and that
// is what a thread hears who, before it waits for a ticket, reads or writes the same blocks again.
// Who appends to a file by several writes at a time makes it as long first (ftruncate, fallocate).
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
      f2fs::detail::goes_in_place(source + (first - offset), first, 0, kBlockBytes - 1);
  // What is behind them must not make the file longer before they are there.
  if (first >= last || !direct || (end > size && end != last)) return {end, end};
  constexpr uint64_t kMost = uint64_t{f2fs::kHeldBlocks} * kBlockBytes;
  return {last - simt::min(last - first, kMost), last};
}

/// Takes blocks for `count` file blocks from `first` on and starts to write them from `source`, a
/// block a lane, in rounds. Collective, uniform. Where, in bytes from the first block on, it could
/// not go on.
GOFS_NOINLINE GOFS_HD inline IoFailure start_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                                    f2fs::Inode& inode, const nvme::Route& route,
                                                    Operation& operation, const uint8_t* source,
                                                    uint64_t first, uint32_t count) {
  f2fs::HeldBlocks& held = fs.writer->held[operation.write.held];
  for (uint32_t done = 0; done < count; done += warp.size()) {
    const uint32_t number = done + warp.thread_rank();
    const uint32_t lanes = warp.ballot(number < count);
    const bool mine = number < count;
    uint32_t block = 0;
    int error = operate(warp, fs, f2fs::kPagesToGrowRun, [&] {
      return f2fs::take_to_store(warp, fs.volume, *fs.writer, lanes, inode, first + number, held,
                                 block);
    });
    if (error == 0) {
      const auto* const from = source + uint64_t{number} * kBlockBytes;
      const int started = f2fs::detail::move_in_place(
          warp, route, lanes, format::nvme::IoOpcode::kWrite,
          {block, 0, mine ? uint32_t{kBlockBytes} : 0, const_cast<uint8_t*>(from)},
          &operation.mailbox);
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
                                              f2fs::Inode& inode, f2fs::HeldBlocks& held,
                                              uint64_t first) {
  const uint32_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  for (uint32_t done = 0; done < count; done += warp.size()) {
    const uint32_t number = done + warp.thread_rank();
    const uint32_t lanes = warp.ballot(number < count);
    const uint32_t block = number < count ? held.blocks[number] : 0;
    f2fs::InodeUpdate update = f2fs::update_of_times(time_now(fs));
    update.size_least = (first + simt::min(done + warp.size(), count)) << kBlockShift;
    const int error = operate(warp, fs, f2fs::kPagesToGrowRun, [&] {
      return f2fs::enter_stored(warp, fs.volume, *fs.writer, lanes, inode, first + number, held,
                                block, update);
    });
    if (error < 0) return error;
  }
  return 0;
}

/// Gives back what a write held, all of which was entered where `entered`. Collective, uniform.
/// Where no operation can be begun any more, it stays held.
GOFS_HD inline void let_go_held(simt::AnyWarp auto warp, Filesystem& fs, f2fs::HeldBlocks& held,
                                bool entered) {
  const uint32_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  if (!entered && count != 0) {
    const int error = operate(warp, fs, 1, [&] {
      f2fs::drop_held(warp, fs.volume, *fs.writer, held);
      return 0;
    });
    if (error < 0) return;
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(held.count, 0u);
    f2fs::give_back_held(held);
  }
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
      const int error = enter_blocks(warp, fs, open.inode, held, write.first);
      if (error < 0) result = error;
    }
    let_go_held(warp, fs, held, result >= 0);
  }
  unlock_kept(warp, open.lock, write.kept);
  if (result > 0 && (write.flags & kOpenDataSync) != 0) {
    const int synced = sync_inode(warp, fs, open.inode.ino, scope_of_flags(write.flags));
    if (synced < 0) result = synced;
  }
  leave_open_inode(warp, fs, write.open_inode);
  return result;
}

/// Has a write use the inode that `descriptor` has open, keep the range of `hold`, and hold blocks.
/// Collective, uniform. False, and `hold` is as it was, where there are too many such writes.
GOFS_NOINLINE GOFS_HD inline bool begin_async_write(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const Descriptor& descriptor,
                                                    const RangeHold& hold, Operation& operation) {
  PendingWrite write{f2fs::kNoHeldBlocks, descriptor.open_inode, 0, descriptor.flags, 0};
  const bool leader = warp.thread_rank() == 0;
  if (leader) write.held = f2fs::take_held(*fs.writer);
  write.held = warp.shfl(write.held, 0);
  if (write.held == f2fs::kNoHeldBlocks) return false;
  f2fs::HeldBlocks& held = fs.writer->held[write.held];
  if (!keep_exclusive(warp, fs.open_inodes[write.open_inode].lock, hold, write.kept)) {
    if (leader) f2fs::give_back_held(held);
    return false;
  }
  if (leader) {
    share_open_inode(fs, write.open_inode);
    operation.write = write;
  }
  warp.sync();
  return true;
}

/// Starts a write of [offset, end), whose range `operation` keeps. Collective, uniform. Bytes that
/// are written or under way, or a negative errno where there are none; `started`: some are under
/// way.
GOFS_NOINLINE GOFS_HD inline int64_t start_parts(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const nvme::Route& route, Operation& operation,
                                                 const uint8_t* source, uint64_t offset,
                                                 uint64_t end, bool& started) {
  f2fs::Inode& inode = fs.open_inodes[operation.write.open_inode].inode;
  started = false;
  const int error = operate(warp, fs, kPagesToBeginWrite, [&] {
    return begin_write(warp, fs, inode, offset, end, time_now(fs));
  });
  if (error < 0) return error;
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  WriteParts parts{end, end};
  if (!inode.has_inline_data()) parts = divide_write(source, offset, end, size);
  const auto write_now = [&](uint64_t from, uint64_t to) -> IoFailure {
    if (from >= to) return {kOffsetMax, 0};
    return write_striped(warp, fs, inode, source + (from - offset),
                         {to - from, from, 0, 1, uint64_t{0}});
  };
  const uint64_t before = parts.later - offset;
  IoFailure failure = write_now(offset, parts.later);
  if (failure.error != 0) return io_outcome(before, failure);
  if (parts.count() == 0) return static_cast<int64_t>(before);
  if (warp.thread_rank() == 0) operation.write.first = parts.later >> kBlockShift;
  warp.sync();
  failure = start_blocks(warp, fs, inode, route, operation, source + before,
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
/// more, or somebody keeps one (-EBUSY), some of them may be new ones. Of more than 1 MiB, that
/// much is left under way.
GOFS_NOINLINE GOFS_HD inline Ticket pwrite_async(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                 const void* buffer, uint64_t bytes,
                                                 uint64_t offset) {
  const Ticket nothing{0, Ticket::kNoOperation, 0, 0};
  const auto done = [&](int64_t result) {
    Ticket ticket = nothing;
    ticket.result = result;
    return ticket;
  };
  const Descriptor* const descriptor = find_writable(fs, fd);
  if (descriptor == nullptr) return done(-EBADF);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return done(-EINVAL);
  if (bytes == 0) return nothing;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  Ticket ticket = nothing;
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  Operation* const operation = detail::take_operation(warp, fs, route, ticket);
  if (operation == nullptr) return done(-EAGAIN);
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  RangeHold hold{};
  int64_t result = detail::prepare_to_write(warp, fs, open, bytes);
  if (result == 0) {
    result = detail::lock_to_write(warp, open, bytes, append, fs.lock_timeout_ns, offset, hold);
  }
  if (result == 0 && !detail::begin_async_write(warp, fs, *descriptor, hold, *operation)) {
    const IoVector part = detail::one_part(buffer, bytes);
    result = detail::write_and_unlock(warp, fs, open, {&part, 1, bytes}, offset, hold);
    const int synced = result > 0 ? detail::sync_if_asked(warp, fs, *descriptor) : 0;
    if (synced < 0) result = synced;
    detail::give_back_operation(warp, fs, ticket, false);
    return done(result);
  }
  if (result < 0) {
    detail::give_back_operation(warp, fs, ticket, false);
    return done(result);
  }
  bool started = false;
  ticket.result = -EFBIG;
  if (offset < f2fs::kFileBytesMax) {
    const uint64_t end = offset + simt::min(bytes, f2fs::kFileBytesMax - offset);
    ticket.result = detail::start_parts(warp, fs, route, *operation,
                                        static_cast<const uint8_t*>(buffer), offset, end, started);
  }
  detail::end_start(warp, *operation);
  if (started && ticket.result >= 0) return ticket;
  // All that there was to do is done, or has come to nothing.
  bool lost = false;
  if (started) ticket.result = detail::await_commands(warp, fs, *operation, ticket, lost);
  result = detail::end_async_write(warp, fs, operation->write, ticket.result, lost);
  detail::give_back_operation(warp, fs, ticket, lost);
  return done(result);
}

}  // namespace gofs::vfs
