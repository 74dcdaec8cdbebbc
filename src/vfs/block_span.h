// SPDX-License-Identifier: Apache-2.0
//
// A block writer (range_lock.h) that writes several contiguous blocks needs all of their queues at
// once (block_queue.h). It takes them one after the other, in the order in which they lie in the
// table, and queues in the next one when it is its turn in all before it. So each waits for one
// that is further on, the last one waits for none, and two that share several queues meet in the
// first of them: the one that is served there first is so in all. In each queue it is first come,
// first served, so none waits for ever; for a block at which one does not queue yet, it may be
// overtaken.
//
// The lanes of a warp do so each for itself, side by side. One that has its blocks need not wait
// for the others: it may be them that they wait for.
#pragma once

#include "vfs/block_queue.h"
#include "vfs/write_plan.h"

namespace gofs::vfs::detail {

/// The most blocks that a span has; there are at least as many queues.
inline constexpr uint32_t kSpanBlocksMax = kQueuedBlocksMax;

/// Contiguous blocks of a file, and how far the lane that needs them has come with their queues.
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

/// Each lane goes on as far as no other is before it. Collective. A queue cannot be left: those
/// before it, and their devices, have deadlines of their own.
GOFS_NOINLINE GOFS_HD inline void advance_queues(simt::AnyWarp auto warp, const Filesystem& fs,
                                                 const OpenInode& open, BlockSpan& span) {
  for (bool moved = true; warp.any(moved);) {
    moved = !has_all(span) && is_served(queue_of_span(fs, open, span, span.held), span.ticket);
    if (!moved) continue;
    ++span.held;
    if (!has_all(span)) span.ticket = queue_up(queue_of_span(fs, open, span, span.held));
  }
}

/// Lets those who come next have all blocks of a span that its lane has.
GOFS_HD inline void release_queues(const simt::Release& release, const Filesystem& fs,
                                   const OpenInode& open, const BlockSpan& span) {
  for (uint32_t turn = 0; turn < span.count; ++turn) {
    BlockQueue& queue = queue_of_span(fs, open, span, turn);
    serve_next(release, queue, simt::load_relaxed(queue.serving));  // which is this lane's ticket
  }
}

/// Lets the next one have each block of a contiguous run that the warp holds. Collective.
GOFS_HD inline void release_run(simt::AnyWarp auto warp, const simt::Release& release,
                                const Filesystem& fs, const OpenInode& open, uint64_t first,
                                uint32_t count) {
  for (uint32_t i = warp.thread_rank(); i < count; i += warp.size()) {
    BlockQueue& queue = queue_of_block(fs, open, first + i);
    serve_next(release, queue, simt::load_relaxed(queue.serving));
  }
}

/// Takes the queues of a run, one a lane at a time, where it is the warp's turn at once in all of
/// them. Collective, uniform. False, and none is taken.
GOFS_HD inline bool try_acquire_run(simt::AnyWarp auto warp, const Filesystem& fs,
                                    const OpenInode& open, uint64_t first, uint32_t count) {
  bool all = true;
  uint32_t end = warp.thread_rank();  // those of this lane that come before it are taken
  for (; end < count; end += warp.size()) {
    BlockQueue& queue = queue_of_block(fs, open, first + end);
    const BlockQueue seen = look_at(queue);
    // The second look acquires what was written before. [V12]
    all = try_queue_up(queue, seen) && is_served(queue, seen.next);
    if (!all) break;
  }
  if (warp.all(all)) return true;
  const simt::Release release;
  for (uint32_t i = warp.thread_rank(); i < end && i < count; i += warp.size()) {
    BlockQueue& queue = queue_of_block(fs, open, first + i);
    serve_next(release, queue, simt::load_relaxed(queue.serving));
  }
  return false;
}

/// Takes the queues of a run of at most kSpanBlocksMax blocks. Collective. What was written to
/// these blocks before is seen then. As with queue_up(), a queue cannot be left.
GOFS_NOINLINE GOFS_HD inline void acquire_run(simt::AnyWarp auto warp, const Filesystem& fs,
                                              const OpenInode& open, uint64_t first,
                                              uint32_t count) {
  if (!try_acquire_run(warp, fs, open, first, count)) {
    BlockSpan span{first, warp.thread_rank() == 0 ? count : 0, 0, 0};
    if (span.count != 0) queue_up(fs, open, span);
    for (simt::Backoff backoff; !warp.all(has_all(span)); backoff.pause()) {
      advance_queues(warp, fs, open, span);
    }
  }
  warp.sync();
}

}  // namespace gofs::vfs::detail
