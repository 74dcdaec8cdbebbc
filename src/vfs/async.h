// SPDX-License-Identifier: Apache-2.0
//
// Reads that are started now and waited for later. Blocks that the device can put in place are left
// under way; the rest (holes, inline data, unaligned ends) is there when the call returns. A ticket
// must be waited for exactly once, by anybody; its buffer belongs to the device until then.
#pragma once

#include "f2fs/victims.h"
#include "vfs/read.h"

namespace gofs::vfs {

/// What the caller keeps. Trivially copyable. A ticket with a negative `result` was never started.
struct Ticket {
  int64_t result;      // bytes that will have been read, if all goes well; or a negative errno
  uint32_t operation;  // index; kNoOperation: nothing is under way
  uint32_t generation;
  uint32_t queue;  // index of the I/O queue pair

  static constexpr uint32_t kNoOperation = 0xffffffffu;
};

namespace detail {

/// Takes an operation slot. By one lane. Null when all are in use.
GOFS_HD inline Operation* take_operation(Filesystem& fs, uint32_t& index) {
  for (uint32_t probe = 0; probe < simt::min(fs.operation_count, 64u); ++probe) {
    index = simt::add_relaxed(fs.operation_cursor, 1u) & (fs.operation_count - 1);
    Operation& operation = fs.operations[index];
    if (simt::try_lock(operation.taken)) {
      // 1: our own hold, so that the count cannot reach 0 while commands are still being added.
      simt::store_relaxed(operation.mailbox.remaining, 1u);
      simt::store_relaxed(operation.mailbox.status, 0u);
      if (fs.writer != nullptr) f2fs::hold_places(*fs.writer);
      return &operation;
    }
  }
  return nullptr;
}

}  // namespace detail

/// Starts a pread by one warp. Collective, uniform. -EAGAIN when too many operations are under way.
GOFS_NOINLINE GOFS_HD inline Ticket pread_async(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                void* buffer, uint64_t bytes, uint64_t offset) {
  Ticket ticket{0, Ticket::kNoOperation, 0, 0};
  OpenInode* open = nullptr;
  ticket.result = begin_read(fs, fd, offset, bytes, open);
  bytes = warp.shfl(bytes, 0);  // the file may be growing
  if (ticket.result < 0 || bytes == 0) return ticket;
  uint64_t taken = 0;
  uint32_t index = 0;
  if (warp.thread_rank() == 0)
    taken = reinterpret_cast<uint64_t>(detail::take_operation(fs, index));
  auto* operation = reinterpret_cast<Operation*>(warp.shfl(taken, 0));
  index = warp.shfl(index, 0);
  if (operation == nullptr) {
    ticket.result = -EAGAIN;
    return ticket;
  }
  warp.sync();
  ticket.operation = index;
  ticket.generation = simt::load_relaxed(operation->generation);
  ticket.queue = simt::processor_id() % fs.volume.device->io_queue_count;
  const IoFailure failure = read_striped(warp, fs, open->inode, static_cast<uint8_t*>(buffer),
                                         bytes, offset, 0, 1, &operation->mailbox);
  ticket.result = io_outcome(bytes, failure);
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(operation->mailbox.remaining)
        .fetch_sub(1, simt::memory_order_release);
  }
  return ticket;
}

namespace detail {

/// Whether `ticket` is still to be waited for: then the operation is its own.
GOFS_HD inline bool is_current(const Operation& operation, const Ticket& ticket) {
  return simt::load_acquire(operation.taken) != 0 &&
         simt::load_relaxed(operation.generation) == ticket.generation;
}

}  // namespace detail

/// Whether the operation of `ticket` has ended. Lets the device get on. Collective, uniform.
GOFS_HD inline bool poll(simt::AnyWarp auto warp, Filesystem& fs, const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return true;
  nvme::Device& device = *fs.volume.device;
  const Operation& operation = fs.operations[ticket.operation & (fs.operation_count - 1)];
  const auto ended = [&] {
    return !detail::is_current(operation, ticket) ||
           simt::load_acquire(operation.mailbox.remaining) == 0;
  };
  if (warp.all(ended())) return true;
  nvme::progress(warp, device, device.io[ticket.queue]);
  return warp.all(ended());
}

/// Waits for the operation of `ticket` and ends it. Collective, uniform. Bytes read, or a negative
/// errno: if any command failed nothing is said about the buffer. -EINVAL for a ticket that was
/// waited for before.
GOFS_NOINLINE GOFS_HD inline int64_t wait(simt::AnyWarp auto warp, Filesystem& fs,
                                          const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return ticket.result;
  Operation& operation = fs.operations[ticket.operation & (fs.operation_count - 1)];
  if (!warp.all(detail::is_current(operation, ticket))) return -EINVAL;
  nvme::Device& device = *fs.volume.device;
  nvme::QueuePair& queue = device.io[ticket.queue];
  const simt::Deadline deadline = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  simt::Backoff backoff;
  while (!poll(warp, fs, ticket)) {
    if (warp.any(nvme::device_failed(device))) break;
    if (warp.any(deadline.passed())) {
      nvme::recover_mailbox(warp, device, queue, operation.mailbox);
      break;
    }
    backoff.pause();
  }
  const nvme::CommandStatus status = simt::load_relaxed(operation.mailbox.status);
  const bool lost = simt::load_acquire(operation.mailbox.remaining) != 0;
  warp.sync();
  int64_t result = ticket.result;
  if (warp.any(lost)) {
    result = -EIO;
  } else if (result >= 0 && warp.any(status != 0)) {
    result = simt::first_error(warp, nvme::to_errno(status));
  }
  // An operation on a failed device is not used again: nobody knows who still points to it.
  if (warp.thread_rank() == 0 && !lost) {
    if (fs.writer != nullptr) f2fs::let_go_places(*fs.writer);
    simt::store_relaxed(operation.generation, ticket.generation + 1);
    simt::unlock(operation.taken);
  }
  return result;
}

}  // namespace gofs::vfs
