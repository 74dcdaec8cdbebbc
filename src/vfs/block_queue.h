// SPDX-License-Identifier: Apache-2.0
//
// Who writes single blocks of a file and has joined those who do (range_lock.h) queues up for each
// of them: first come, first served. Blocks of all files share a table of queues by their numbers;
// two in one queue only wait for each other without need.
//
// A warp may stand in many queues, one a lane. So that nobody waits for somebody who waits for him,
// it waits for none of them with a block in its hands: it writes those whose turn it is, gives them
// back, and then looks after the others. Who needs several blocks at a time waits with some in his
// hands, but only for queues that lie behind theirs in the table (block_span.h).
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs::detail {

/// Where in the table the queue of block `index` of the file `ino` is. Blocks that follow each
/// other have queues that do so, and behind the last comes the first.
GOFS_HD inline uint32_t place_of_queue(const Filesystem& fs, uint32_t ino, uint64_t index) {
  return (static_cast<uint32_t>(index) + ino * 0x9E3779B1u) & fs.block_queue_mask;
}

GOFS_HD inline BlockQueue& queue_of_block(const Filesystem& fs, uint32_t ino, uint64_t index) {
  return fs.block_queues[place_of_queue(fs, ino, index)];
}

/// Queues up. By one lane: its ticket. Nobody can give one back: who is before it, and his device,
/// have deadlines of their own.
GOFS_HD inline uint32_t queue_up(BlockQueue& queue) { return simt::add_relaxed(queue.next, 1u); }

/// Queues up where it is one's turn at once, or else does not. By one lane: whether it is, and the
/// ticket. What was written before is seen after add_and_look().
GOFS_HD inline bool try_queue_up(BlockQueue& queue, uint32_t& ticket) {
  ticket = simt::load_relaxed(queue.next);
#if GOFS_ON_GPU
  constexpr auto kOrder = simt::memory_order_relaxed;  // the fence there is dear, and is to come
  const uint32_t serving = simt::load_relaxed(queue.serving);
#else
  constexpr auto kOrder = simt::memory_order_acquire;
  const uint32_t serving = simt::load_acquire(queue.serving);  // [V12]
#endif
  uint32_t next = ticket;
  return serving == ticket &&
         simt::AtomicRef<uint32_t>(queue.next)
             .compare_exchange_strong(next, ticket + 1, kOrder, simt::memory_order_relaxed);
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
