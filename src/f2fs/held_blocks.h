// SPDX-License-Identifier: Apache-2.0
//
// Blocks that were taken for contents which are on their way to the SSD (store_later.h), and that
// nothing refers to before they have come there. They are not in use: a checkpoint made meanwhile
// does not have them, and after a crash they are free. But they are not allocated again, since the
// segment table keeps them among those that may not be written to (`committed`), for which each
// checkpoint looks through this table once more. So a segment with such blocks is not free and not
// discarded, logs go around them, and cleaning, which asks what is in use, does not find them.
#pragma once

#include "f2fs/allocate.h"

namespace gofs::f2fs {

inline constexpr uint32_t kNoHeldBlocks = ~0u;

/// Takes a place in the table. One lane. Its number, or kNoHeldBlocks where none was found that is
/// free.
GOFS_HD inline uint32_t take_held(Writer& writer) {
  constexpr uint32_t kTries = 256;
  for (uint32_t tries = simt::min(writer.held_count, kTries); tries != 0; --tries) {
    const uint32_t index = simt::add_relaxed(writer.held_cursor, 1u) % writer.held_count;
    if (simt::try_lock(writer.held[index].taken)) return index;
  }
  return kNoHeldBlocks;
}

/// Releases it, with no blocks. One lane.
GOFS_HD inline void release_held(HeldBlocks& held) { simt::unlock(held.taken); }

/// Holds the block of each lane in `lanes`, which was taken just now, of which `places` will be the
/// first at their places and were counted as such. Collective, in the operation that took them.
GOFS_HD inline void hold_blocks(simt::AnyWarp auto warp, Operation& op, HeldBlocks& held,
                                uint32_t lanes, uint32_t block, uint32_t places) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t before = warp.shfl(simt::load_relaxed(held.count), 0);
  const uint32_t number = before + simt::popcount(lanes & simt::ranks_below(rank));
  GOFS_ASSERT(before + simt::popcount(lanes) <= kHeldBlocks);
  if ((lanes >> rank & 1u) != 0) held.blocks[number] = block;
  warp.sync();
  if (rank == 0) {
    simt::store_relaxed(held.count, before + simt::popcount(lanes));
    held.places += places;
    simt::add_relaxed(op.writer.promised_blocks, uint64_t{places});
  }
  // Not in use; before the next checkpoint it is not allocated, and then this table is asked.
  free_blocks(warp, op, lanes, block);
}

/// Says that the held block of each lane in `lanes` is in use from now on. Collective;
/// free_blocks() takes it back.
GOFS_HD inline void use_held(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                             uint32_t block) {
  if ((lanes >> warp.thread_rank() & 1u) != 0) {
    const uint32_t segno = op.volume.geometry.segno_of(block);
    const uint32_t offset = op.volume.geometry.offset_in_segment(block);
    SegmentInfo& segment = op.writer.segments.segments[segno];
    simt::AtomicRef<uint32_t>(segment.valid[offset / 32])
        .fetch_or(1u << offset % 32, simt::memory_order_relaxed);
    simt::add_relaxed(segment.valid_count, 1u);
    mark_dirty(op.writer.segments, segno);
  }
  warp.sync();
}

/// Lets all blocks go that are held: those that are not in use may be had after the next
/// checkpoint. Collective.
GOFS_NOINLINE GOFS_HD inline void drop_held(simt::AnyWarp auto warp, Operation& op,
                                            HeldBlocks& held) {
  const uint32_t count = warp.shfl(simt::load_relaxed(held.count), 0);
  for (uint32_t i = warp.thread_rank(); i < count; i += warp.size()) {
    mark_dirty(op.writer.segments, op.volume.geometry.segno_of(held.blocks[i]));
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    const uint64_t places = held.places;
    held.places = 0;
    simt::store_relaxed(held.count, 0u);
    const uint64_t promised = simt::add_relaxed(op.writer.promised_blocks, ~places + 1);
    GOFS_DEBUG_ASSERT(promised >= places);
    simt::add_relaxed(op.volume.valid_block_count, ~places + 1);
  }
  warp.sync();
}

namespace detail {

/// Keeps held blocks among those that may not be written to, of which a checkpoint has just made
/// those that it refers to. Collective, under the exclusive checkpoint lock.
GOFS_HD inline void keep_held(simt::AnyWarp auto warp, Operation& op) {
  for (uint32_t index = warp.thread_rank(); index < op.writer.held_count; index += warp.size()) {
    const HeldBlocks& held = op.writer.held[index];
    const uint32_t count = simt::load_relaxed(held.count);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t offset = op.volume.geometry.offset_in_segment(held.blocks[i]);
      SegmentInfo& segment =
          op.writer.segments.segments[op.volume.geometry.segno_of(held.blocks[i])];
      simt::AtomicRef<uint32_t>(segment.committed[offset / 32])
          .fetch_or(1u << offset % 32, simt::memory_order_relaxed);
    }
  }
  warp.sync();
}

}  // namespace detail

}  // namespace gofs::f2fs
