// SPDX-License-Identifier: Apache-2.0
//
// For who serves clients (caller.h): calls that hold their descriptor, since a client may close it
// meanwhile, and the end of a client, of which nothing stays open.
#pragma once

#include "vfs/async.h"
#include "vfs/batch.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

/// Holds the caller's descriptor `fd` until release_descriptor_hold(): whoever closes it meanwhile,
/// its file stays open, and its number is no other's. Collective, uniform. 0 or -EBADF. Of the
/// mount there is nothing to hold.
GOFS_HD inline int hold_descriptor(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  if (client_of(warp) == kMountClient) return find_descriptor(warp, fs, fd) != nullptr ? 0 : -EBADF;
  int error = -EBADF;
  if (warp.thread_rank() == 0 && fd >= 0 && static_cast<uint32_t>(fd) < fs.descriptor_count) {
    simt::AtomicRef<uint32_t> word(fs.descriptors[fd].state);
    uint32_t seen = word.load(simt::memory_order_relaxed);
    // Others that hold or close it take few instructions each.
    while (error != 0 && detail::is_open_for(warp, seen)) {
      if (word.compare_exchange_weak(seen, seen + kDescriptorHold, simt::memory_order_acquire,
                                     simt::memory_order_relaxed)) {  // [V3]
        error = 0;
      }
    }
  }
  error = warp.shfl(error, 0);
  warp.sync();
  return error;
}

/// Ends the hold, and closes the descriptor if that was put off. Collective, uniform.
GOFS_HD inline void release_descriptor_hold(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  if (client_of(warp) == kMountClient) return;
  warp.sync();
  uint32_t last = 0;
  uint32_t index = 0;
  if (warp.thread_rank() == 0) {
    Descriptor& descriptor = fs.descriptors[fd];
    const uint32_t before = simt::AtomicRef<uint32_t>(descriptor.state)
                                .fetch_sub(kDescriptorHold, simt::memory_order_acq_rel);  // [V24]
    constexpr uint32_t kHolds = ~(kDescriptorOwner | kDescriptorLeaving);
    if ((before & kDescriptorLeaving) != 0 && (before & kHolds) == kDescriptorHold) {
      last = 1;
      simt::store_relaxed(descriptor.state, uint32_t{kDescriptorClosed});
      index = detail::release_closed(fs, descriptor, fd);
    }
  }
  if (warp.shfl(last, 0) != 0) detail::leave_open_inode(warp, fs, warp.shfl(index, 0));
}

/// What `call()` answers, with the caller's descriptor `fd` held, or -EBADF. Collective, uniform.
template <typename Call>
GOFS_HD int64_t with_descriptor(simt::AnyWarp auto warp, Filesystem& fs, int fd, Call call) {
  const int error = hold_descriptor(warp, fs, fd);
  if (error < 0) return error;
  const int64_t answer = call();
  release_descriptor_hold(warp, fs, fd);
  return answer;
}

/// Closes all that the caller, a client that makes no more calls, has open: its asynchronous
/// operations end as if the device had failed them, and its descriptors and batches are closed. Its
/// number may then be another's. Collective, uniform. How many descriptors were closed.
GOFS_NOINLINE GOFS_HD inline uint32_t close_all(simt::AnyWarp auto warp, Filesystem& fs) {
  const uint32_t owner = owner_of_client(client_of(warp));
  for (uint32_t first = 0; first < fs.operation_count; first += warp.size()) {
    const uint32_t index = first + warp.thread_rank();
    const AsyncOperation* const operation =
        index < fs.operation_count ? &fs.operations[index] : nullptr;
    Ticket mine{};
    const bool found =
        operation != nullptr && simt::load_acquire(operation->owner) == owner;  // [V23]
    if (found) {
      mine.generation = simt::load_relaxed(operation->generation);
      mine.queue = simt::load_relaxed(operation->queue);
    }
    for (uint32_t lanes = warp.ballot(found); lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = simt::lowest_bit(lanes);
      Ticket ticket{-EIO, first + lane, 0, 0};
      ticket.generation = warp.shfl(mine.generation, lane);
      ticket.queue = warp.shfl(mine.queue, lane);
      (void)wait(warp, fs, ticket);
    }
  }
  for (uint32_t i = 0; fs.batches != nullptr && i < kBatchesMax; ++i) {
    (void)end_batch(warp, *fs.batches, static_cast<int>(i));
  }
  uint32_t closed = 0;
  for (uint32_t first = 0; first < fs.descriptor_count; first += warp.size()) {
    const uint32_t fd = first + warp.thread_rank();
    const bool mine = find_descriptor(warp, fs, static_cast<int>(fd)) != nullptr;
    for (uint32_t lanes = warp.ballot(mine); lanes != 0; lanes &= lanes - 1) {
      closed += close(warp, fs, static_cast<int>(first + simt::lowest_bit(lanes))) == 0 ? 1 : 0;
    }
  }
  warp.sync();
  if (warp.thread_rank() == 0) invalidate_paths(fs);
  warp.sync();
  return closed;
}

}  // namespace gofs::vfs
