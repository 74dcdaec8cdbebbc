// SPDX-License-Identifier: Apache-2.0
//
// The orphan blocks of a checkpoint pack: read when writing begins, made when a checkpoint is.
#pragma once

#include "f2fs/mount.h"
#include "f2fs/orphans.h"

namespace gofs::f2fs::detail {

/// How many orphan blocks the table fills. Under the exclusive checkpoint lock.
GOFS_HD inline uint32_t orphan_block_count(const OrphanTable& table) {
  return static_cast<uint32_t>(
      simt::divide_up(simt::load_relaxed(table.count), format::kOrphansPerBlock));
}

/// How far who makes orphan blocks has come.
struct OrphanCursor {
  uint32_t line;
  uint32_t before;  // orphans in the lines before it
};

/// Contiguous orphan blocks, of all those of a pack.
struct OrphanBlockRange {
  uint32_t first;  // from 0
  uint32_t count;
};

/// Enters the orphans of a line, of which `before` come before it, where they belong in the blocks
/// of `range` at `pages`. Collective, uniform answer: how many the line has.
GOFS_HD inline uint32_t pack_orphan_line(simt::AnyWarp auto warp, const OrphanTable& table,
                                         const OrphanCursor& cursor, const OrphanBlockRange& range,
                                         uint8_t* pages) {
  auto* const blocks = reinterpret_cast<format::OrphanBlock*>(pages);
  const uint32_t from = range.first * format::kOrphansPerBlock;
  const uint32_t to = from + range.count * format::kOrphansPerBlock;
  uint32_t seen = cursor.before;
  for (uint32_t first = 0; first < kWordsPerOrphanLine; first += warp.size()) {
    const uint32_t i = first + warp.thread_rank();
    const uint32_t word = cursor.line * kWordsPerOrphanLine + i;
    uint32_t bits = i < kWordsPerOrphanLine ? simt::load_relaxed(table.words[word]) : 0;
    uint32_t total = 0;
    uint32_t entry = seen + simt::sum_before(warp, simt::popcount(bits), total);
    for (; bits != 0; bits &= bits - 1, ++entry) {
      if (entry < from || entry >= to) continue;
      const uint32_t place = entry - from;
      blocks[place / format::kOrphansPerBlock].ino[place % format::kOrphansPerBlock] =
          32 * word + simt::lowest_bit(bits);
    }
    seen += total;
  }
  return seen - cursor.before;
}

/// Makes the orphan blocks of `range` at `pages`; `cursor` is where the range before it ended, at
/// first all zeros. Collective, under the exclusive checkpoint lock.
GOFS_NOINLINE GOFS_HD inline void pack_orphan_blocks(simt::AnyWarp auto warp, OrphanTable& table,
                                                     const OrphanBlockRange& range,
                                                     OrphanCursor& cursor, uint8_t* pages) {
  const uint32_t rank = warp.thread_rank();
  auto* const words = reinterpret_cast<uint32_t*>(pages);
  for (uint32_t i = rank; i < range.count * (kBlockBytes / 4); i += warp.size()) words[i] = 0;
  warp.sync();
  const uint32_t total = simt::load_relaxed(table.count);
  const uint32_t to = simt::min((range.first + range.count) * format::kOrphansPerBlock, total);
  while (cursor.before < to) {
    cursor.line = next_orphan_line(warp, table, cursor.line);
    if (cursor.line >= orphan_lines(table.ino_count)) break;
    const uint32_t here = pack_orphan_line(warp, table, cursor, range, pages);
    if (cursor.before + here > to) break;  // the next range begins in this line
    warp.sync();
    if (here == 0 && rank == 0) {
      simt::AtomicRef<uint32_t>(table.lines[cursor.line / 32])
          .fetch_and(~(1u << cursor.line % 32), simt::memory_order_relaxed);
    }
    cursor = {cursor.line + 1, cursor.before + here};
  }
  for (uint32_t i = rank; i < range.count; i += warp.size()) {
    auto& block = reinterpret_cast<format::OrphanBlock*>(pages)[i];
    const uint32_t before = (range.first + i) * format::kOrphansPerBlock;
    block.blk_addr = static_cast<uint16_t>(range.first + i + 1);
    block.blk_count = static_cast<uint16_t>(orphan_block_count(table));
    block.entry_count = simt::min(total - before, format::kOrphansPerBlock);
  }
  warp.sync();
}

/// Lists the inodes of the orphan block at `where`. One lane. 0 or -EUCLEAN (reported): it cannot
/// be one, or there are too many. What can be no file's inode is reported and left out. Linux asks
/// for nothing else in the block.
GOFS_HD inline int take_orphan_block(Volume& volume, OrphanTable& table, uint32_t where,
                                     const uint8_t* page) {
  const auto& block = *reinterpret_cast<const format::OrphanBlock*>(page);
  const uint32_t count = block.entry_count;
  if (count > format::kOrphansPerBlock) {
    return report(*volume.corruptions,
                  {Structure::kCheckpoint, where, volume.checkpoint_pack, count});
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ino = block.ino[i];
    if (ino <= volume.geometry.root_ino || ino >= table.ino_count) {
      (void)report(*volume.corruptions, {Structure::kOrphan, where, ino, i});
    } else if (add_orphan(table, ino) < 0) {
      return report(*volume.corruptions,
                    {Structure::kCheckpoint, where, volume.checkpoint_pack, table.most});
    }
  }
  return 0;
}

/// Lists the orphans of the checkpoint that the volume is mounted at; `page` is a block to read
/// into. Collective, uniform. 0, -EUCLEAN (reported), or a negative errno of the device.
GOFS_NOINLINE GOFS_HD inline int load_orphans(simt::AnyWarp auto warp, Volume& volume,
                                              OrphanTable& table, uint8_t* page) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  if (!checkpoint.has(format::kCheckpointOrphan)) return 0;
  // The mount has seen that start_sum lies in the pack, behind the payload.
  const uint32_t first = 1 + volume.geometry.cp_payload;
  const uint32_t count = checkpoint.cp_pack_start_sum - first;
  const uint32_t base = volume.geometry.pack_block(volume.checkpoint_pack) + first;
  for (uint32_t i = 0; i < count; ++i) {
    int error = read_uniform(warp, volume, base + i, page);
    if (error == 0 && warp.thread_rank() == 0)
      error = take_orphan_block(volume, table, base + i, page);
    error = warp.shfl(error, 0);
    warp.sync();
    if (error < 0) return error;
  }
  return 0;
}

}  // namespace gofs::f2fs::detail
