// SPDX-License-Identifier: Apache-2.0
//
// Who writes several blocks in a row, and has joined those who write blocks outside the ring
// (range_lock.h), needs all of their queues at once (block_queue.h). He takes them one after the
// other, in the order in which they lie in the table, and stands in the next one when it is his
// turn in all before it. So whoever waits does so for somebody who is further on, the last one
// waits for nobody, and two who share several queues meet in the first of them: who is served there
// first is so in all. In each queue it is first come, first served, so nobody waits for ever; for a
// block that somebody does not stand at yet, he may be overtaken.
//
// The lanes of a warp do so each for itself, side by side. One that has its blocks need not wait
// for the others: it may be them that they wait for.
#pragma once

#include "vfs/block_queue.h"

namespace gofs::vfs::detail {

/// The most blocks that a span has; there are at least as many queues.
inline constexpr uint32_t kSpanBlocksMax = 32;

/// Blocks of a file in a row, and how far the lane that needs them has come with their queues.
struct BlockSpan {
  uint64_t first;
  uint32_t count;   // 0: it needs none
  uint32_t held;    // of its queues, in the order of the table, it is the lane's turn
  uint32_t ticket;  // for the one after these
};

GOFS_HD inline bool has_all(const BlockSpan& span) { return span.held == span.count; }

/// The `turn`-th of a span's queues in the order of the table.
GOFS_HD inline BlockQueue& queue_of_span(const Filesystem& fs, const OpenInode& open,
                                         const BlockSpan& span, uint32_t turn) {
  const uint32_t first = place_of_queue(fs, open, span.first);
  const uint32_t to_end = fs.block_queue_mask + 1 - first;
  const uint32_t at_start = span.count > to_end ? span.count - to_end : 0;
  return fs.block_queues[turn < at_start ? turn : first + (turn - at_start)];
}

/// Queues up for the first of its blocks. By each lane that needs some.
GOFS_HD inline void queue_up(const Filesystem& fs, const OpenInode& open, BlockSpan& span) {
  GOFS_ASSERT(span.count <= kSpanBlocksMax && span.count <= fs.block_queue_mask + 1);
  span.held = 0;
  span.ticket = queue_up(queue_of_span(fs, open, span, 0));
}

/// Each lane goes on as far as nobody is before it. Collective. Nobody can leave a queue: who is
/// before him, and his device, have deadlines of their own.
GOFS_NOINLINE GOFS_HD inline void go_on(simt::AnyWarp auto warp, const Filesystem& fs,
                                        const OpenInode& open, BlockSpan& span) {
  for (bool moved = true; warp.any(moved);) {
    moved = !has_all(span) && is_served(queue_of_span(fs, open, span, span.held), span.ticket);
    if (!moved) continue;
    ++span.held;
    if (!has_all(span)) span.ticket = queue_up(queue_of_span(fs, open, span, span.held));
  }
}

/// Lets those who come next have all blocks of a span that its lane has.
GOFS_HD inline void give_back(const simt::Release& release, const Filesystem& fs,
                              const OpenInode& open, const BlockSpan& span) {
  for (uint32_t turn = 0; turn < span.count; ++turn) {
    BlockQueue& queue = queue_of_span(fs, open, span, turn);
    serve_next(release, queue, simt::load_relaxed(queue.serving));  // which is this lane's ticket
  }
}

}  // namespace gofs::vfs::detail
