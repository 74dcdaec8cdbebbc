// SPDX-License-Identifier: Apache-2.0
//
// Reads that are started now and waited for later, and the waiting, also for writes
// (async_write.h). Blocks that the device can put in place are left under way; the rest (holes,
// inline data, unaligned ends) is there when the call returns.
#pragma once

#include "f2fs/victims.h"
#include "vfs/async_write.h"
#include "vfs/read.h"

namespace gofs::vfs {

/// Waits for the operation of `ticket` and ends it. Collective, uniform. Bytes read or written, or
/// a negative errno. Of a read: if any command failed nothing is said about the buffer. Of a write:
/// see async_write.h; its new contents are seen from now on. -EINVAL for a ticket that was waited
/// for before.
GOFS_NOINLINE GOFS_HD inline int64_t wait(simt::AnyWarp auto warp, Filesystem& fs,
                                          const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return ticket.result;
  AsyncOperation& operation = fs.operations[ticket.operation & (fs.operation_count - 1)];
  if (!warp.all(detail::is_current(warp, operation, ticket))) return -EINVAL;
  bool lost = false;
  int64_t result = detail::await_commands(warp, fs, operation, ticket, lost);
  if (operation.write.held != f2fs::kNoHeldBlocks) {
    result = detail::end_async_write(warp, fs, operation.write, result, lost);
  } else if (warp.thread_rank() == 0 && !lost && fs.writer != nullptr) {
    f2fs::leave_address_readers(*fs.writer);
  }
  detail::release_operation(warp, fs, ticket, lost);
  return result;
}

/// Starts a pread by one warp. Collective, uniform. A ticket, with a negative errno that of pread,
/// or -EAGAIN when too many operations are under way.
GOFS_NOINLINE GOFS_HD inline Ticket pread_async(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                void* buffer, uint64_t bytes, uint64_t offset) {
  Ticket ticket{0, Ticket::kNoOperation, 0, 0};
  OpenInode* open = nullptr;
  ticket.result = begin_read(warp, fs, fd, offset, bytes, open);
  bytes = warp.shfl(bytes, 0);  // the file may be growing
  if (ticket.result < 0 || bytes == 0) return ticket;
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  AsyncOperation* const operation = detail::take_operation(warp, fs, route, ticket);
  if (operation == nullptr) {
    ticket.result = -EAGAIN;
    return ticket;
  }
  if (warp.thread_rank() == 0 && fs.writer != nullptr) f2fs::enter_address_readers(*fs.writer);
  warp.sync();
  const int written = detail::wait_for_overwriters(warp, fs, 1u, open->inode.ino);
  const IoFailure failure = written < 0
                                ? IoFailure{0, written}
                                : read_striped(warp, fs, open->inode, static_cast<uint8_t*>(buffer),
                                               bytes, offset, 0, 1, &operation->mailbox);
  ticket.result = io_outcome(bytes, failure);
  detail::end_start(warp, *operation);
  if (ticket.result >= 0) return ticket;
  return {wait(warp, fs, ticket), Ticket::kNoOperation, 0, 0};
}

}  // namespace gofs::vfs
