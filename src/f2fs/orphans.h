// SPDX-License-Identifier: Apache-2.0
//
// Orphans: inodes that no name leads to and that still hold something, since they are open or since
// their contents go in several portions. A checkpoint lists them in its pack, so that who mounts
// after a crash frees them.
//
// In memory this is a bit for each nid. To list an inode and to take it off the list is one atomic
// each, from any lane of any warp in an operation, and repeating either does nothing. A second
// level says which lines of the table may hold any, for who makes a checkpoint and goes through all
// of it under the exclusive checkpoint lock: no other thread uses it then.
#pragma once

#include "format/f2fs.h"
#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::f2fs {

inline constexpr uint32_t kWordsPerOrphanLine = 32;
inline constexpr uint32_t kInosPerOrphanLine = 32 * kWordsPerOrphanLine;

struct OrphanTable {
  uint32_t* words;              // a bit for each nid, in whole lines
  uint32_t* lines;              // a bit for each line: some ino of it was listed
  uint32_t ino_count;           // nids of the volume
  uint32_t most;                // inodes that may be listed
  alignas(128) uint32_t count;  // listed ones; while one is being added, possibly a few too many
};

/// Inodes that a checkpoint pack has room for, beside two checkpoint blocks and the six summaries
/// of an unmounting one: 514,080 without payload.
GOFS_HD constexpr uint32_t orphans_max(uint32_t cp_payload) {
  return (format::kBlocksPerSegment - 2 - format::kLogCount - cp_payload) *
         format::kOrphansPerBlock;
}

GOFS_HD inline uint32_t orphan_lines(uint32_t ino_count) {
  return static_cast<uint32_t>(simt::divide_up(uint64_t{ino_count}, kInosPerOrphanLine));
}

/// Whether `ino`, of the volume's range, is listed.
GOFS_HD inline bool is_orphan(const OrphanTable& table, uint32_t ino) {
  return (simt::load_relaxed(table.words[ino / 32]) >> ino % 32 & 1u) != 0;
}

/// Lists the inode `ino`, of the volume's range; one that is listed already stays so. Any lane,
/// in an operation. 0, or -ENOSPC: the pack has no room for more, or, where but a few places are
/// left, others try for them at this moment.
GOFS_HD inline int add_orphan(OrphanTable& table, uint32_t ino) {
  GOFS_ASSERT(ino < table.ino_count);
  if (is_orphan(table, ino)) return 0;
  if (simt::add_relaxed(table.count, 1u) >= table.most) {
    simt::add_relaxed(table.count, ~0u);
    return -ENOSPC;
  }
  const uint32_t bit = 1u << ino % 32;
  simt::AtomicRef<uint32_t> word(table.words[ino / 32]);
  const bool listed = (word.fetch_or(bit, simt::memory_order_relaxed) & bit) != 0;
  if (listed) simt::add_relaxed(table.count, ~0u);  // by another, since we looked
  const uint32_t line = ino / kInosPerOrphanLine;
  const uint32_t line_bit = 1u << line % 32;
  if ((simt::load_relaxed(table.lines[line / 32]) & line_bit) == 0) {
    simt::AtomicRef<uint32_t>(table.lines[line / 32])
        .fetch_or(line_bit, simt::memory_order_relaxed);
  }
  return 0;
}

/// Takes the inode `ino`, of the volume's range, off the list, if it is there. Any lane, in
/// an operation: that in which it gets a name. When an inode's node goes, remove_nodes() does
/// so.
GOFS_HD inline void remove_orphan(OrphanTable& table, uint32_t ino) {
  GOFS_ASSERT(ino < table.ino_count);
  if (!is_orphan(table, ino)) return;
  const uint32_t bit = 1u << ino % 32;
  simt::AtomicRef<uint32_t> word(table.words[ino / 32]);
  const bool listed = (word.fetch_and(~bit, simt::memory_order_relaxed) & bit) != 0;
  if (listed) simt::add_relaxed(table.count, ~0u);
}

/// The first line from `line` on that may hold an orphan, or their number. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t next_orphan_line(simt::AnyWarp auto warp,
                                                       const OrphanTable& table, uint32_t line) {
  const uint32_t lines = orphan_lines(table.ino_count);
  const auto words = static_cast<uint32_t>(simt::divide_up(lines, 32));
  for (uint32_t first = line / 32; first < words; first += warp.size()) {
    const uint32_t word = first + warp.thread_rank();
    uint32_t bits = word < words ? simt::load_relaxed(table.lines[word]) : 0;
    if (word == line / 32) bits &= ~0u << line % 32;
    const uint32_t found = warp.ballot(bits != 0);
    if (found == 0) continue;
    const uint32_t mine = bits == 0 ? 0 : 32 * word + simt::lowest_bit(bits);
    return warp.shfl(mine, simt::lowest_bit(found));
  }
  return lines;
}

/// The first orphan from `ino` on, or the number of nids. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t next_orphan(simt::AnyWarp auto warp, const OrphanTable& table,
                                                  uint32_t ino) {
  const uint32_t lines = orphan_lines(table.ino_count);
  while (ino < table.ino_count) {
    const uint32_t line = next_orphan_line(warp, table, ino / kInosPerOrphanLine);
    if (line >= lines) break;
    if (line != ino / kInosPerOrphanLine) ino = line * kInosPerOrphanLine;
    const uint32_t end = (line + 1) * kWordsPerOrphanLine;
    for (uint32_t first = ino / 32; first < end; first += warp.size()) {
      const uint32_t word = first + warp.thread_rank();
      uint32_t bits = word < end ? simt::load_relaxed(table.words[word]) : 0;
      if (word == ino / 32) bits &= ~0u << ino % 32;
      const uint32_t found = warp.ballot(bits != 0);
      if (found == 0) continue;
      const uint32_t mine = bits == 0 ? 0 : 32 * word + simt::lowest_bit(bits);
      return warp.shfl(mine, simt::lowest_bit(found));
    }
    if (line + 1 == lines) break;
    ino = (line + 1) * kInosPerOrphanLine;
  }
  return table.ino_count;
}

}  // namespace gofs::f2fs
