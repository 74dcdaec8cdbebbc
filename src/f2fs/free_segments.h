// SPDX-License-Identifier: Apache-2.0
//
// Free segments: those that nothing uses now or at the last checkpoint. Some are left to
// checkpoints, and where there are few, who writes data shares (open_segments.h).
#pragma once

#include "f2fs/segment_maps.h"

namespace gofs::f2fs::detail {

/// Free segments that data leaves to checkpoints: one that could not write the nodes and the blocks
/// of directories that have changed would never come, and without it no block that was released
/// could be had again.
GOFS_HD inline uint32_t segments_for_checkpoint(const Volume& volume) {
  const uint32_t frames = volume.cache.frame_count();
  const uint32_t nodes = simt::min(frames, simt::load_relaxed(volume.valid_node_count));
  // Of directories no more than may be dirty at a time (operation.h).
  const uint64_t others = simt::load_relaxed(volume.valid_block_count) - nodes;
  const uint64_t pages = nodes + simt::min<uint64_t>(frames / 3, others);
  return format::kLogCount - format::kDataLogCount +
         static_cast<uint32_t>(simt::divide_up(pages, format::kBlocksPerSegment));
}

/// As many free segments as this, or fewer, are few: none becomes an open one any more, and a log
/// that needs one takes over what is left of an open one. Above it fsync finds room for its nodes
/// (fsync_log.h), also when each owner of an open segment takes another one at the same time.
GOFS_HD inline uint32_t few_segments(const Volume& volume, const Writer& writer) {
  return segments_for_checkpoint(volume) + format::kLogCount + writer.open_count;
}

/// Takes a free segment for a log; kNullSegno if there is none for it. One lane.
GOFS_HD inline uint32_t take_free_segment(Operation& op, uint32_t log) {
  const bool is_data =
      !format::is_node_log(log) && simt::load_relaxed(op.writer.writing_directories) == 0;
  if (is_data && simt::load_relaxed(op.writer.free_count) <= segments_for_checkpoint(op.volume)) {
    return format::kNullSegno;
  }
  const auto words = static_cast<uint32_t>(simt::divide_up(op.volume.geometry.main_segments, 32));
  const uint32_t start = simt::load_relaxed(op.writer.free_hint);
  for (uint32_t step = 0; step < words; ++step) {
    const uint32_t index = (start + step) % words;
    simt::AtomicRef<uint32_t> word(op.writer.free_map[index]);
    for (uint32_t seen = word.load(simt::memory_order_relaxed); seen != 0;
         seen = word.load(simt::memory_order_relaxed)) {
      const uint32_t bit = simt::lowest_bit(seen);
      if ((word.fetch_and(~(1u << bit), simt::memory_order_acquire) >> bit & 1u) != 0) {
        simt::store_relaxed(op.writer.free_hint, index);
        simt::add_relaxed(op.writer.free_count, ~0u);
        clear_segment_bit(op.writer.discarded, 32 * index + bit);
        return 32 * index + bit;
      }
    }
  }
  return format::kNullSegno;
}

}  // namespace gofs::f2fs::detail
