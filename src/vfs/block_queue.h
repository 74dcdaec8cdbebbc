// SPDX-License-Identifier: Apache-2.0
//
// Who writes single blocks of a file and has joined those who do (range_lock.h) queues up for each
// of them: first come, first served. Blocks of all files share a table of queues by their numbers;
// two in one queue only wait for each other without need.
//
// A warp may be in many queues, one a lane. So that no two threads wait for each other, it waits
// for none of them while it holds a block: it writes those whose turn it is, releases them, and
// then looks after the others. A writer of several blocks at a time waits while it holds some, but
// only for queues that lie behind theirs in the table (block_span.h).
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs::detail {

/// Where in the table the queue of block `index` of an open inode is: by the inode's address, which
/// is the same for all and known before anything that the inode says. Blocks that follow each other
/// have queues that do so, and behind the last comes the first.
GOFS_HD inline uint32_t place_of_queue(const Filesystem& fs, const OpenInode& open,
                                       uint64_t index) {
  const auto number = static_cast<uint32_t>(reinterpret_cast<uint64_t>(&open) / alignof(OpenInode));
  return (static_cast<uint32_t>(index) + number * 0x9E3779B1u) & fs.block_queue_mask;
}

GOFS_HD inline BlockQueue& queue_of_block(const Filesystem& fs, const OpenInode& open,
                                          uint64_t index) {
  return fs.block_queues[place_of_queue(fs, open, index)];
}

/// Queues up. By one lane: its ticket. A ticket cannot be released: those before it, and their
/// devices, have deadlines of their own.
GOFS_HD inline uint32_t queue_up(BlockQueue& queue) { return simt::add_relaxed(queue.next, 1u); }

/// What a queue looks like, for try_queue_up().
GOFS_HD inline BlockQueue look_at(const BlockQueue& queue) {
  const uint32_t serving = simt::load_before_look(queue.serving);  // [V12]
  return {simt::load_relaxed(queue.next), serving};
}

/// Queues up where it is the caller's turn at once, and none has queued up since the queue was
/// `seen`, or else does not. By one lane: whether it is, and the ticket is `seen.next`. What was
/// written before is seen after enter_block_writers().
GOFS_HD inline bool try_queue_up(BlockQueue& queue, const BlockQueue& seen) {
  uint32_t next = seen.next;
  return seen.serving == next &&
         simt::AtomicRef<uint32_t>(queue.next)
             .compare_exchange_strong(next, next + 1, simt::kAcquiredByNextLook,
                                      simt::memory_order_relaxed);
}

/// Whether it is the turn of `ticket`: what was written before is seen then.
GOFS_HD inline bool is_served(const BlockQueue& queue, uint32_t ticket) {
  return simt::load_acquire(queue.serving) == ticket;  // [V12]
}

/// Lets the next one have his turn.
GOFS_HD inline void serve_next(const simt::Release& release, BlockQueue& queue, uint32_t ticket) {
  release.store(queue.serving, ticket + 1);  // [V12]
}

}  // namespace gofs::vfs::detail
