// SPDX-License-Identifier: Apache-2.0
//
// Making a checkpoint: what has changed since the last one becomes what the volume is after a
// crash.
//
// Nothing that the last checkpoint refers to is written over, until one block makes the new one
// valid: SIT and NAT blocks go to their other copies, the pack to the other pack, its closing block
// last and alone. The pack lists the orphans (orphans.h). A flush before that block makes all it
// vouches for durable, a flush after it the checkpoint itself. What fails on the way leaves memory
// and disk at the last checkpoint. Blocks of writes under way (held_blocks.h) are not in it.
#pragma once

#include "f2fs/address_readers.h"
#include "f2fs/discard.h"
#include "f2fs/freed_since_checkpoint.h"
#include "f2fs/held_blocks.h"
#include "f2fs/write_pages.h"

namespace gofs::f2fs {

namespace detail {

/// Block addresses of a warp's worth of packed pages, one a lane.
struct PackedBlocks {
  uint32_t count;
  uint32_t block;  // of this lane's page
};

/// Writes the first `packed.count` of the writer's pages. Collective, uniform.
GOFS_HD inline int write_packed(simt::AnyWarp auto warp, Operation& op,
                                const PackedBlocks& packed) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t lanes = warp.ballot(rank < packed.count);
  if (lanes == 0) return 0;
  const int error = write_blocks(warp, op.volume, lanes, packed.block,
                                 op.writer.pages + uint64_t{rank} * kBlockBytes);
  warp.sync();  // before others write to these pages
  return simt::first_error(warp, rank < packed.count ? error : 0);
}

GOFS_HD inline void flip(uint8_t* bitmap, uint32_t index) {
  format::set_msb_bit(bitmap, index, !format::msb_bit(bitmap, index));
}

/// A bitmap of the checkpoint that is being made, in its own copy.
GOFS_HD inline uint8_t* next_bitmap(const Volume& volume, const Writer& writer,
                                    const uint8_t* bitmap) {
  return writer.checkpoint + (bitmap - volume.checkpoint_blocks);
}

/// Writes the SIT blocks that have changed to their other copies. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int write_sit(simt::AnyWarp auto warp, Operation& op) {
  const format::Geometry& geometry = op.volume.geometry;
  uint8_t* const bitmap = next_bitmap(op.volume, op.writer, op.volume.sit_bitmap);
  const uint32_t width = simt::min(warp.size(), kWriterPages);
  PackedBlocks packed{};
  const uint32_t blocks = geometry.sit_blocks_used();
  for (uint32_t index = 0; index < blocks; ++index) {
    if (is_dirty(op.writer.segments, index)) {
      pack_sit_block(warp, op.volume, op.writer.segments, index,
                     op.writer.pages + uint64_t{packed.count} * kBlockBytes);
      const bool other = !format::msb_bit(op.volume.sit_bitmap, index);
      if (warp.thread_rank() == packed.count) packed.block = geometry.sit_block(index, other);
      if (warp.thread_rank() == 0) flip(bitmap, index);
      ++packed.count;
    }
    if (packed.count == width || index + 1 == blocks) {
      const int error = write_packed(warp, op, packed);
      if (error < 0) return error;
      packed.count = 0;
    }
  }
  return 0;
}

/// Writes the NAT blocks that have changed to their other copies. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int write_nat(simt::AnyWarp auto warp, Operation& op) {
  const PageCache& cache = op.volume.cache;
  uint8_t* const bitmap = next_bitmap(op.volume, op.writer, op.volume.nat_bitmap);
  const auto write = [&](uint32_t lanes, uint32_t frame, uint64_t key) {
    const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
    const uint32_t index = id_of(key);
    uint32_t block = 0;
    if (mine) {
      const bool other = !nat_version(op.volume, index);
      block = op.volume.geometry.nat_block(index, other);
    }
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      const uint32_t flipped = warp.shfl(index, simt::lowest_bit(left));
      if (warp.thread_rank() == 0) flip(bitmap, flipped);
    }
    const int written =
        write_blocks(warp, op.volume, lanes, block, mine ? cache.page(frame) : nullptr);
    return simt::first_error(warp, mine ? written : 0);
  };
  return for_dirty_pages(warp, cache, PageKind::kNat, whole_map(cache), write);
}

/// What write_nat() has written is no newer than the disk. Collective.
GOFS_HD inline void clean_nat(simt::AnyWarp auto warp, PageCache& cache) {
  const auto clean = [&](uint32_t lanes, uint32_t frame, uint64_t key) {
    if ((lanes >> warp.thread_rank() & 1u) != 0) clean_frame(cache, frame, key);
    return 0;
  };
  (void)for_dirty_pages(warp, cache, PageKind::kNat, whole_map(cache), clean);
  warp.sync();
}

/// Fills in the head of the next checkpoint; so many segments hold nothing. One lane.
GOFS_HD inline void fill_checkpoint(const Volume& volume, const Writer& writer,
                                    uint32_t empty_segments, bool unmounting) {
  auto& checkpoint = *reinterpret_cast<format::Checkpoint*>(writer.checkpoint);
  const uint32_t kept = format::kCheckpointLargeNatBitmap | format::kCheckpointFsck |
                        format::kCheckpointError | format::kCheckpointQuotaNeedFsck;
  checkpoint.checkpoint_ver = volume.checkpoint_version + 1;
  checkpoint.valid_block_count = volume.valid_block_count - writer.promised_blocks;
  checkpoint.valid_node_count = volume.valid_node_count;
  checkpoint.valid_inode_count = volume.valid_inode_count;
  checkpoint.next_free_nid = writer.nid_cursors[0].next;
  checkpoint.elapsed_time = elapsed_seconds(volume, writer);
  uint32_t free_segments = empty_segments;
  for (const Log& log : writer.logs) {
    if (segment_bit(writer.empty_map, log.segno)) --free_segments;
  }
  checkpoint.free_segment_count = free_segments;
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    const Log& mine = writer.logs[log];
    const uint32_t in_kind = format::is_node_log(log) ? log - format::kHotNode : log;
    const auto next = static_cast<uint16_t>(mine.next);
    if (format::is_node_log(log)) {
      checkpoint.cur_node_segno[in_kind] = mine.segno;
      checkpoint.cur_node_blkoff[in_kind] = next;
    } else {
      checkpoint.cur_data_segno[in_kind] = mine.segno;
      checkpoint.cur_data_blkoff[in_kind] = next;
    }
    checkpoint.alloc_type[log] = static_cast<uint8_t>(mine.alloc_type);
  }
  const uint32_t orphan_blocks = orphan_block_count(writer.orphans);
  checkpoint.ckpt_flags = (volume.checkpoint_flags & kept) | format::kCheckpointCrcRecovery |
                          (unmounting ? uint32_t{format::kCheckpointUmount} : 0) |
                          (orphan_blocks != 0 ? uint32_t{format::kCheckpointOrphan} : 0);
  const uint32_t start_sum = 1 + volume.geometry.cp_payload + orphan_blocks;
  const uint32_t summaries = unmounting ? format::kLogCount : format::kDataLogCount;
  checkpoint.cp_pack_start_sum = start_sum;
  checkpoint.cp_pack_total_block_count = start_sum + summaries + 1;
  const uint32_t offset = checkpoint.checksum_offset;
  format::store_u32(writer.checkpoint + offset,
                    format::checkpoint_checksum(writer.checkpoint, offset));
}

/// Writes the list of orphans to blocks of the pack from `block` on. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int write_orphans(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t block) {
  const uint32_t width = simt::min(warp.size(), kWriterPages);
  const uint32_t blocks = warp.shfl(orphan_block_count(op.writer.orphans), 0);
  OrphanCursor cursor{};
  for (uint32_t first = 0; first < blocks; first += width) {
    const OrphanBlockRange range{first, simt::min(width, blocks - first)};
    pack_orphan_blocks(warp, op.writer.orphans, range, cursor, op.writer.pages);
    const PackedBlocks packed{range.count, block + first + warp.thread_rank()};
    const int error = write_packed(warp, op, packed);
    if (error < 0) return error;
  }
  return 0;
}

/// Writes the pack but for its closing block, flushes, writes that, flushes. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int write_pack(simt::AnyWarp auto warp, Operation& op) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(op.writer.checkpoint);
  const uint32_t base = op.volume.geometry.pack_block(1 - op.volume.checkpoint_pack);
  // Packs take turns: that of the last checkpoint stays as it is.
  GOFS_DEBUG_ASSERT(base != op.volume.geometry.pack_block(op.volume.checkpoint_pack));
  const uint32_t start_sum = checkpoint.cp_pack_start_sum;
  const uint32_t closing = checkpoint.cp_pack_total_block_count - 1u;
  const uint32_t head = 1 + op.volume.geometry.cp_payload;
  const uint32_t orphan_blocks = start_sum - head;
  const uint32_t others = closing - orphan_blocks;
  for (uint32_t first = 0; first < others; first += warp.size()) {
    const uint32_t i = first + warp.thread_rank();
    const void* from = op.writer.checkpoint + uint64_t{i} * kBlockBytes;
    if (i >= head && i < others) from = &op.writer.summaries[i - head];
    const uint32_t lanes = warp.ballot(i < others);
    const uint32_t block = base + i + (i >= head ? orphan_blocks : 0);
    const int written = write_blocks(warp, op.volume, lanes, block, from);
    const int error = simt::first_error(warp, i < others ? written : 0);
    if (error < 0) return error;
  }
  int error = write_orphans(warp, op, base + head);
  if (error == 0) error = flush_device(warp, op.volume);
  if (error < 0) return error;
  error = simt::first_error(
      warp, write_blocks(warp, op.volume, 1u, base + closing, op.writer.checkpoint));
  if (error == 0) error = flush_device(warp, op.volume);
  // The block may be there or not: what either checkpoint refers to must stay as it is.
  if (error < 0 && warp.thread_rank() == 0) simt::store_relaxed(op.writer.failed, error);
  warp.sync();
  return error;
}

/// What the new checkpoint refers to is what there is. Collective.
GOFS_NOINLINE GOFS_HD inline void adopt_checkpoint(simt::AnyWarp auto warp, Operation& op) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t width = warp.size();
  // By words, since others look up versions meanwhile.
  const uint64_t checkpoint_words = (1 + uint64_t{op.volume.geometry.cp_payload}) * kBlockBytes / 4;
  const auto* const from = reinterpret_cast<const uint32_t*>(op.writer.checkpoint);
  auto* const to = reinterpret_cast<uint32_t*>(op.volume.checkpoint_blocks);
  for (uint64_t i = rank; i < checkpoint_words; i += width) simt::store_relaxed(to[i], from[i]);
  const bool held = has_address_readers(warp, op.volume, op.writer);
  const auto commit = [&](uint32_t segno) {
    SegmentInfo& segment = op.writer.segments.segments[segno];
    for (uint32_t i = 0; i < kMapWords; ++i) {
      segment.committed[i] = segment.valid[i] | (held ? segment.committed[i] : 0);
    }
  };
  if (warp.shfl(op.writer.cleaning.reuse_deferred, 0) == 0) {
    for_dirty_segments(warp, op.volume, op.writer.segments, commit);
  } else {
    for (uint32_t i = rank; i < op.volume.geometry.main_segments; i += width) commit(i);
    warp.sync();
  }
  const uint32_t words =
      static_cast<uint32_t>(simt::divide_up(op.volume.geometry.sit_blocks_used(), 32));
  for (uint32_t i = rank; i < words; i += width) op.writer.segments.dirty[i] = 0;
  for (uint32_t i = rank; i < kFreedWords; i += width) op.writer.freed_since_checkpoint[i] = 0;
  keep_held(warp, op);
  find_free_segments(warp, op.volume, op.writer, held, false);
  if (rank == 0) {
    op.writer.cleaning.reuse_deferred = held ? 1 : 0;
    const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(op.writer.checkpoint);
    const uint64_t version = checkpoint.checkpoint_ver.value();
    GOFS_DEBUG_ASSERT(version == simt::load_relaxed(op.volume.checkpoint_version) + 1);
    GOFS_DEBUG_ASSERT(op.volume.checkpoint_pack <= 1);
    simt::store_relaxed(op.volume.checkpoint_version, version);
    simt::add_relaxed(op.writer.checkpoints, uint64_t{1});
    // The host reads these at any time.
    simt::store_relaxed(op.volume.checkpoint_flags, checkpoint.ckpt_flags.value());
    simt::store_relaxed(op.volume.checkpoint_pack, 1 - op.volume.checkpoint_pack);
    simt::store_relaxed(op.volume.free_segments, checkpoint.free_segment_count.value());
    op.volume.sit_journal_count = 0;
    op.volume.newly_counted = op.writer.promised_blocks;
    op.writer.fsync_log = FsyncLog{};
    simt::store_relaxed(op.writer.changed, 0u);
  }
  warp.sync();
  clean_nat(warp, op.volume.cache);
}

/// As write_checkpoint(), under the exclusive checkpoint lock.
GOFS_NOINLINE GOFS_HD inline int write_all(simt::AnyWarp auto warp, Operation& op,
                                           bool unmounting) {
  if (simt::load_relaxed(op.writer.failed) < 0) return -EROFS;
  // Should this fail, nodes lie in the log that belong to no fsync log.
  if (warp.thread_rank() == 0) simt::store_relaxed(op.writer.fsync_log.broken, 1u);
  int error = write_dirty_pages(warp, op);
  if (error == 0) error = save_open_segments(warp, op);
  if (error < 0) return error;
  const uint64_t bytes = (1 + uint64_t{op.volume.geometry.cp_payload}) * kBlockBytes;
  for (uint64_t i = warp.thread_rank(); i < bytes; i += warp.size()) {
    op.writer.checkpoint[i] = op.volume.checkpoint_blocks[i];
  }
  warp.sync();
  error = write_sit(warp, op);
  if (error == 0) error = write_nat(warp, op);
  if (error < 0) return error;
  const uint32_t empty_segments = count_empty_segments(warp, op.volume, op.writer);
  if (warp.thread_rank() == 0) fill_checkpoint(op.volume, op.writer, empty_segments, unmounting);
  warp.sync();
  error = write_pack(warp, op);
  if (error < 0) return error;
  adopt_checkpoint(warp, op);
  discard_freed(warp, op.volume, op.writer);
  return 0;
}

}  // namespace detail

/// Makes a checkpoint. `unmounting`: nothing is written to the volume after it. Collective, by one
/// warp, which is not within an operation; operations that change the volume wait meanwhile,
/// readers do not. When it returns 0, all that operations had done before is durable; otherwise
/// (-EBUSY: the checkpoint lock, or a thread that kept a page; else a negative errno of the device)
/// the disk is at its former checkpoint and what has changed is still in memory, unless the very
/// last step failed: then no other checkpoint can be made (-EROFS), and what the disk holds is one
/// of the two.
GOFS_NOINLINE GOFS_HD inline int write_checkpoint(simt::AnyWarp auto warp, Volume& volume,
                                                  Writer& writer, bool unmounting) {
  int error = lock_for_checkpoint(warp, writer.checkpoint_lock,
                                  [&] { return help_writeback(warp, volume, writer); });
  if (error < 0) return error;
  Operation op = Operation::under_checkpoint_lock(volume, writer);
  error = detail::write_all(warp, op, unmounting);
  unlock_after_checkpoint(warp, writer.checkpoint_lock);
  return error;
}

}  // namespace gofs::f2fs
