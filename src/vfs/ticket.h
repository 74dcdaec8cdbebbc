// SPDX-License-Identifier: Apache-2.0
//
// What asynchronous reads and writes have in common: an operation that is started now and waited
// for later, known to the caller by a ticket. A ticket must be waited for exactly once, by any
// thread to which it was handed; its buffer belongs to the device until then. One with a negative
// `result` need not be: nothing is under way.
#pragma once

#include "f2fs/held_blocks.h"
#include "vfs/caller.h"

namespace gofs::vfs {

/// What the caller keeps: `operation` is an index of the table of operations, `queue` one of the
/// I/O queue pairs.
using gofs::Ticket;

namespace detail {

/// Takes an operation for `ticket`, to whose mailbox commands may report then. Collective, uniform.
/// Null when all are in use.
GOFS_NOINLINE GOFS_HD inline AsyncOperation* take_operation(simt::AnyWarp auto warp, Filesystem& fs,
                                                            const nvme::Route& route,
                                                            Ticket& ticket) {
  uint32_t index = Ticket::kNoOperation;
  uint32_t generation = 0;
  const auto queue = static_cast<uint32_t>(&route.queue - fs.volume.array.devices[0]->io);
  if (warp.thread_rank() == 0) {
    for (uint32_t probe = 0; probe < simt::min(fs.operation_count, 64u); ++probe) {
      const uint32_t next = simt::add_relaxed(fs.operation_cursor, 1u) & (fs.operation_count - 1);
      AsyncOperation& operation = fs.operations[next];
      if (!simt::try_lock(operation.taken)) continue;
      // 1: our own hold, so that the count cannot reach 0 while commands are still being added.
      simt::store_relaxed(operation.mailbox.remaining, 1u);
      simt::store_relaxed(operation.mailbox.status, 0u);
      operation.write = {f2fs::kNoHeldBlocks, 0, 0, 0, 0};
      generation = simt::load_relaxed(operation.generation);
      operation.queue = queue;
      // Last: until then no ticket is of this operation.
      simt::store_release(operation.owner, owner_of_client(client_of(warp)));  // [V23]
      index = next;
      break;
    }
  }
  index = warp.shfl(index, 0);
  if (index == Ticket::kNoOperation) return nullptr;
  warp.sync();
  ticket.operation = index;
  ticket.generation = warp.shfl(generation, 0);
  ticket.queue = queue;
  return &fs.operations[index];
}

/// No more commands come. Collective.
GOFS_HD inline void end_start(simt::AnyWarp auto warp, AsyncOperation& operation) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(operation.mailbox.remaining).fetch_sub(1, simt::memory_order_release);
  }
}

/// Ends the operation of `ticket`, which counts no more. One that is `lost` is not used again: what
/// still points to it is not known. Collective.
GOFS_HD inline void release_operation(simt::AnyWarp auto warp, Filesystem& fs, const Ticket& ticket,
                                      bool lost) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  AsyncOperation& operation = fs.operations[ticket.operation & (fs.operation_count - 1)];
  simt::store_relaxed(operation.owner, 0u);
  simt::store_relaxed(operation.generation, ticket.generation + 1);
  if (!lost) simt::unlock(operation.taken);
}

/// Whether `ticket` is the caller's and still to be waited for: then the operation is its own.
GOFS_HD inline bool is_current(const simt::AnyWarp auto& warp, const AsyncOperation& operation,
                               const Ticket& ticket) {
  return simt::load_acquire(operation.owner) == owner_of_client(client_of(warp)) &&  // [V23]
         simt::load_relaxed(operation.generation) == ticket.generation;
}

}  // namespace detail

/// Whether the commands of `ticket` have ended; it is to be waited for all the same. Lets the
/// device get on. Collective, uniform.
GOFS_HD inline bool poll(simt::AnyWarp auto warp, Filesystem& fs, const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return true;
  const AsyncOperation& operation = fs.operations[ticket.operation & (fs.operation_count - 1)];
  const auto ended = [&] {
    return !detail::is_current(warp, operation, ticket) ||
           simt::load_acquire(operation.mailbox.remaining) == 0;
  };
  if (warp.all(ended())) return true;
  nvme::progress(warp, fs.volume.array, ticket.queue);
  return warp.all(ended());
}

namespace detail {

/// Waits until all commands of `ticket` have ended. Collective, uniform. What it was to come to, or
/// a negative errno. `lost`: the device has failed, and not all of them have.
GOFS_NOINLINE GOFS_HD inline int64_t await_commands(simt::AnyWarp auto warp, Filesystem& fs,
                                                    AsyncOperation& operation, const Ticket& ticket,
                                                    bool& lost) {
  nvme::Array& array = fs.volume.array;
  const simt::Deadline deadline = simt::Deadline::after_ns(nvme::longest_timeout_ns(array));
  simt::Backoff backoff;
  while (!poll(warp, fs, ticket)) {
    if (nvme::is_lost(warp, array, ticket.queue, operation.mailbox)) break;
    if (warp.any(deadline.passed())) {
      nvme::recover_mailbox(warp, array, ticket.queue, operation.mailbox);
      break;
    }
    backoff.pause();
  }
  // In this order: the status of the last one is there before it is counted.
  lost = warp.any(simt::load_acquire(operation.mailbox.remaining) != 0);
  const nvme::CommandStatus status = simt::load_relaxed(operation.mailbox.status);
  warp.sync();
  if (lost) return -EIO;
  if (ticket.result < 0 || warp.all(status == 0)) return ticket.result;
  return simt::first_error(warp, nvme::to_errno(status));
}

}  // namespace detail

}  // namespace gofs::vfs
