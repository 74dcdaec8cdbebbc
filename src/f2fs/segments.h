// SPDX-License-Identifier: Apache-2.0
//
// The segment information table in memory, of a volume that is written to: which blocks of each
// main segment hold something now, and which did at the last checkpoint or were taken since. Those
// must not be written over before the next one, or a crash would find them changed.
//
// Each SIT block has two places on disk. Its current copy is what the last checkpoint refers to; a
// checkpoint writes what has changed to the other one and then refers to that.
#pragma once

#include "f2fs/pages.h"

namespace gofs::f2fs {

inline constexpr uint32_t kMapWords = format::kBlocksPerSegment / 32;

/// A main segment. Bit i % 32 of word i / 32 is block i.
struct SegmentInfo {
  uint32_t valid[kMapWords];
  uint32_t committed[kMapWords];
  uint64_t mtime;  // mean age in seconds of elapsed_time; cleaning asks for it
  uint32_t valid_count;
  uint32_t type;  // format::Log
};

struct SegmentTable {
  SegmentInfo* segments;  // main_segments
  uint32_t* dirty;        // a bit for each SIT block: some entry has changed
};

namespace detail {

/// Turns the bits of each byte of a word round: F2FS has the most significant one first.
GOFS_HD constexpr uint32_t turn_bits_of_bytes(uint32_t word) {
  word = (word >> 4 & 0x0f0f0f0fu) | (word & 0x0f0f0f0fu) << 4;
  word = (word >> 2 & 0x33333333u) | (word & 0x33333333u) << 2;
  return (word >> 1 & 0x55555555u) | (word & 0x55555555u) << 1;
}

/// Four bytes of a map as F2FS keeps it, wherever they lie.
GOFS_HD constexpr uint32_t load_map_word(const uint8_t* bytes) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) word |= uint32_t{bytes[i]} << (8 * i);
  return turn_bits_of_bytes(word);
}

GOFS_HD constexpr void store_map_word(uint8_t* bytes, uint32_t word) {
  word = turn_bits_of_bytes(word);
  for (uint32_t i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(word >> (8 * i));
}

/// One lane. -EUCLEAN (reported) if the entry contradicts itself.
GOFS_HD inline int unpack_segment(Volume& volume, uint32_t segno, const format::SitEntry& entry,
                                  SegmentInfo& segment) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMapWords; ++i) {
    const uint32_t word = load_map_word(entry.valid_map + 4 * i);
    segment.valid[i] = segment.committed[i] = word;
    count += simt::popcount(word);
  }
  segment.mtime = entry.mtime;
  segment.valid_count = count;
  segment.type = entry.type();
  if (count != entry.valid_count() || entry.type() >= format::kLogCount) {
    return report(*volume.corruptions, {Structure::kSitEntry, 0, segno, entry.vblocks});
  }
  return 0;
}

/// How many blocks of a segment its map has, which is not changed meanwhile: as many as are
/// counted.
GOFS_HD inline uint32_t blocks_in(const SegmentInfo& segment) {
  uint32_t blocks = 0;
  for (const uint32_t word : segment.valid) blocks += simt::popcount(word);
  return blocks;
}

/// One lane.
GOFS_HD inline void pack_segment(const SegmentInfo& segment, format::SitEntry& entry) {
  GOFS_DEBUG_ASSERT(blocks_in(segment) == segment.valid_count);
  entry.set_vblocks(segment.valid_count, segment.type);
  for (uint32_t i = 0; i < kMapWords; ++i) {
    store_map_word(entry.valid_map + 4 * i, segment.valid[i]);
  }
  entry.mtime = segment.mtime;
}

}  // namespace detail

GOFS_HD inline bool is_dirty(const SegmentTable& table, uint32_t sit_block) {
  return (simt::load_relaxed(table.dirty[sit_block / 32]) >> sit_block % 32 & 1u) != 0;
}

/// Says that a segment's entry is to be written at the next checkpoint. One lane.
GOFS_HD inline void mark_dirty(const SegmentTable& table, uint32_t segno) {
  const uint32_t index = segno / format::kSitEntriesPerBlock;
  if (is_dirty(table, index)) return;  // most often: one word is of 1,760 segments
  simt::AtomicRef<uint32_t>(table.dirty[index / 32])
      .fetch_or(1u << index % 32, simt::memory_order_relaxed);
}

/// Calls `visit(segno)`, on one lane, for each segment whose entry is to be written, and for those
/// beside it in its SIT block. Collective; none is changed meanwhile.
template <typename Visit>
GOFS_HD void for_dirty_segments(simt::AnyWarp auto warp, const Volume& volume,
                                const SegmentTable& table, Visit visit) {
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.sit_blocks_used(), 32));
  for (uint32_t first_word = 0; first_word < words; first_word += warp.size()) {
    const uint32_t word = first_word + warp.thread_rank();
    const uint32_t mine = word < words ? simt::load_relaxed(table.dirty[word]) : 0;
    for (uint32_t left = warp.ballot(mine != 0); left != 0; left &= left - 1) {
      const uint32_t lane = simt::lowest_bit(left);
      for (uint32_t bits = warp.shfl(mine, lane); bits != 0; bits &= bits - 1) {
        const uint32_t sit_block = 32 * (first_word + lane) + simt::lowest_bit(bits);
        const uint32_t first = sit_block * format::kSitEntriesPerBlock;
        const uint32_t end =
            simt::min(first + format::kSitEntriesPerBlock, volume.geometry.main_segments);
        for (uint32_t i = first + warp.thread_rank(); i < end; i += warp.size()) visit(i);
      }
    }
  }
  warp.sync();
}

/// Reads the SIT, and calls `loaded(segno)`, by one lane, for each segment. Each lane has a block
/// of it: an SSD does many commands of a warp in the time of a few. Collective; warps 0 to
/// `warp_count` - 1 do it together and then synchronise. The journal is not asked
/// (take_sit_journal). Returns 0 or a negative errno, for all lanes alike.
template <typename Loaded>
GOFS_HD int load_segments(simt::AnyWarp auto warp, Volume& volume, const SegmentTable& table,
                          uint32_t warp_index, uint32_t warp_count, Loaded loaded) {
  const format::Geometry& geometry = volume.geometry;
  const uint32_t blocks = geometry.sit_blocks_used();
  const uint32_t width = warp.size();
  int result = 0;
  for (uint32_t first = warp_index * width; first < blocks; first += warp_count * width) {
    const uint32_t index = first + warp.thread_rank();
    const bool mine = index < blocks;
    const uint32_t block =
        mine ? geometry.sit_block(index, format::msb_bit(volume.sit_bitmap, index)) : 0;
    int damaged = 0;
    const int read = with_blocks(warp, volume, warp.ballot(mine), block, [&](const uint8_t* page) {
      const auto& sit = *reinterpret_cast<const format::SitBlock*>(page);
      const uint32_t first_segno = index * format::kSitEntriesPerBlock;
      const uint32_t count =
          simt::min(format::kSitEntriesPerBlock, geometry.main_segments - first_segno);
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t segno = first_segno + i;
        const int error =
            detail::unpack_segment(volume, segno, sit.entries[i], table.segments[segno]);
        if (error < 0) damaged = error;
        loaded(segno);
      }
    });
    const int error = simt::first_error(warp, read < 0 ? read : damaged);
    if (error < 0) result = error;
  }
  return result;
}

/// What the checkpoint's journal says stands over the SIT: enters it, to be written. Collective, by
/// one warp, after load_segments.
GOFS_NOINLINE GOFS_HD inline int take_sit_journal(simt::AnyWarp auto warp, Volume& volume,
                                                  const SegmentTable& table) {
  int error = 0;
  if (warp.thread_rank() == 0) {
    for (uint32_t i = 0; i < volume.sit_journal_count; ++i) {
      const JournaledSit& journaled = volume.sit_journal[i];
      if (journaled.segno >= volume.geometry.main_segments) {
        error = report(*volume.corruptions, {Structure::kSitEntry, 0, journaled.segno, i});
        continue;
      }
      const int unpacked = detail::unpack_segment(volume, journaled.segno, journaled.entry,
                                                  table.segments[journaled.segno]);
      if (unpacked < 0) error = unpacked;
      mark_dirty(table, journaled.segno);
    }
  }
  warp.sync();
  return warp.shfl(error, 0);
}

/// SIT block `index` as it is to be written, at `page`. Collective.
GOFS_HD inline void pack_sit_block(simt::AnyWarp auto warp, const Volume& volume,
                                   const SegmentTable& table, uint32_t index, uint8_t* page) {
  auto& sit = *reinterpret_cast<format::SitBlock*>(page);
  for (uint32_t i = warp.thread_rank(); i < kBlockBytes; i += warp.size()) page[i] = 0;
  warp.sync();
  for (uint32_t i = warp.thread_rank(); i < format::kSitEntriesPerBlock; i += warp.size()) {
    const uint32_t segno = index * format::kSitEntriesPerBlock + i;
    if (segno >= volume.geometry.main_segments) break;
    detail::pack_segment(table.segments[segno], sit.entries[i]);
  }
  warp.sync();
}

}  // namespace gofs::f2fs
