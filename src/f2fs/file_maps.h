// SPDX-License-Identifier: Apache-2.0
//
// What is kept of an open file: where its blocks lie (map.h), a word for each, and the nodes with
// their addresses (dnode_cache.h), two words for each. A map consists of segments that grow with
// their number, so a file that becomes longer gets more of them, and what is there never moves: an
// entry has one place as long as the file is open. Where a segment lies is found by arithmetic and
// one load.
//
//   blocks   32, 32, 64, 128, 256 ...     a file has at most twice the words that it needs
//   nodes    16, 240, 3,840 ...           a 500th of that; the inode itself has a place of its own
//
// Whether a segment is there is decided once: for a file of known size when it is opened, else by
// the first that changes an address of it (settled_block_word()). So nothing that a node said
// before a change is entered in a segment that came after it. Readers only use what is there.
#pragma once

#include "f2fs/inode.h"
#include "simt/copy.h"

namespace gofs::f2fs {

struct FileMaps {
  static constexpr uint32_t kBlockSegments = 26;
  static constexpr uint32_t kDnodeSegments = 5;

  uint32_t blocks[kBlockSegments];  // homes of segments (map_arena.h)
  uint32_t dnodes[kDnodeSegments];
  uint64_t first_dnode;  // the entry of node 0, which is the inode
};

/// Segments of both maps, one behind the other.
inline constexpr uint32_t kMapSegments = FileMaps::kBlockSegments + FileMaps::kDnodeSegments;

namespace detail {

/// More than a file can have.
inline constexpr uint64_t kMapBlocksMax = uint64_t{32} << (FileMaps::kBlockSegments - 1);
static_assert(format::file_blocks_max(format::kInodeSlots) <= kMapBlocksMax);
inline constexpr uint64_t kMapDnodesMax = uint64_t{1} << 4 * FileMaps::kDnodeSegments;
static_assert(1 + format::file_blocks_max(format::kInodeSlots) / format::kNodeSlots <=
              kMapDnodesMax);

/// The segment with the word of block `index`, which is below kMapBlocksMax.
GOFS_HD inline uint32_t block_segment(uint64_t index) {
  return 27 - simt::leading_zeros(static_cast<uint32_t>(index) | 31);
}
GOFS_HD constexpr uint64_t first_of_block_segment(uint32_t segment) {
  return (uint64_t{16} << segment) & ~uint64_t{31};
}
GOFS_HD constexpr uint64_t end_of_block_segment(uint32_t segment) {
  return uint64_t{32} << segment;
}

/// The same of the entry of node `number`, which is not 0.
GOFS_HD inline uint32_t dnode_segment(uint64_t number) {
  return (31 - simt::leading_zeros(static_cast<uint32_t>(number) | 15)) / 4;
}
GOFS_HD constexpr uint64_t first_of_dnode_segment(uint32_t segment) {
  return (uint64_t{1} << 4 * segment) & ~uint64_t{15};
}

GOFS_HD constexpr uint64_t words_of_segment(uint32_t segment) {
  if (segment < FileMaps::kBlockSegments) {
    return end_of_block_segment(segment) - first_of_block_segment(segment);
  }
  const uint32_t dnodes = segment - FileMaps::kBlockSegments;
  return 2 * ((uint64_t{16} << 4 * dnodes) - first_of_dnode_segment(dnodes));
}

/// Words of a map from one block on, as many as are contiguous; null: there are none.
struct MapRow {
  uint32_t* words;
  uint64_t count;
};

GOFS_HD inline MapRow row_at_home(const MapArena& arena, uint32_t home, uint64_t index) {
  if (!MapArena::is_home(home)) return {nullptr, 0};
  const uint32_t segment = block_segment(index);
  return {arena.at_home(home) + (index - first_of_block_segment(segment)),
          end_of_block_segment(segment) - index};
}

GOFS_HD inline MapRow find_map_row(const Volume& volume, const Inode& inode, uint64_t index) {
  if (inode.maps == nullptr || index >= kMapBlocksMax) return {nullptr, 0};
  const uint32_t home = simt::load_acquire(inode.maps->blocks[block_segment(index)]);  // [F3]
  return row_at_home(volume.maps, home, index);
}

/// The word of block `index`, or null.
GOFS_HD inline uint32_t* find_block_word(const Volume& volume, const Inode& inode, uint64_t index) {
  return find_map_row(volume, inode, index).words;
}

/// The entry of node `number`, or null.
GOFS_HD inline uint64_t* find_dnode_word(const Volume& volume, const Inode& inode,
                                         uint64_t number) {
  if (inode.maps == nullptr || number >= kMapDnodesMax) return nullptr;
  if (number == 0) return &inode.maps->first_dnode;
  const uint32_t segment = dnode_segment(number);
  const uint32_t home = simt::load_acquire(inode.maps->dnodes[segment]);  // [F3]
  if (!MapArena::is_home(home)) return nullptr;
  return reinterpret_cast<uint64_t*>(volume.maps.at_home(home)) +
         (number - first_of_dnode_segment(segment));
}

GOFS_HD inline uint32_t& home_of_segment(FileMaps& maps, uint32_t segment) {
  return segment < FileMaps::kBlockSegments ? maps.blocks[segment]
                                            : maps.dnodes[segment - FileMaps::kBlockSegments];
}
GOFS_HD inline uint32_t home_of_segment(const FileMaps& maps, uint32_t segment) {
  return home_of_segment(const_cast<FileMaps&>(maps), segment);
}

/// Whether a file whose last block is `index` may be without holes. A map of one that is mostly
/// holes would cost more to clear than it gains.
GOFS_HD inline bool is_dense(const Volume& volume, uint64_t index) {
  return index < volume.geometry.main_end() - volume.geometry.main_blkaddr;
}

/// Decides about a segment. By one lane.
GOFS_HD inline void settle_segment(Volume& volume, FileMaps& maps, uint32_t segment) {
  uint32_t& home = home_of_segment(maps, segment);
  if (simt::load_relaxed(home) != 0) return;
  const bool kept =
      segment >= FileMaps::kBlockSegments || is_dense(volume, first_of_block_segment(segment));
  volume.maps.settle(home, kept ? words_of_segment(segment) : 0);
}

/// Decides about the segments that each lane in `lanes` asks for. Collective.
GOFS_NOINLINE GOFS_HD inline void settle_segments(simt::AnyWarp auto warp, Volume& volume,
                                                  FileMaps& maps, uint32_t lanes,
                                                  uint32_t segment) {
  while (lanes != 0) {
    const uint32_t owner = simt::lowest_bit(lanes);
    const uint32_t wanted = warp.shfl(segment, owner);
    if (warp.thread_rank() == owner) settle_segment(volume, maps, wanted);
    lanes &= ~warp.ballot((lanes >> warp.thread_rank() & 1u) != 0 && segment == wanted);
  }
  warp.sync();
}

/// The words of the map from block `index` of each lane in `lanes` on, or null, for who changes the
/// blocks' addresses: what it says does not depend on who looks. `count` blocks have the answer, at
/// least one. Collective; `inode` is one object for all lanes.
GOFS_HD inline MapRow settled_map_row(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                      const Inode& inode, uint64_t index) {
  if (inode.maps == nullptr) return {nullptr, ~uint64_t{0}};
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0 && index < kMapBlocksMax;
  const uint32_t segment = block_segment(mine ? index : 0);
  uint32_t home = MapArena::kNoHome;
  if (mine) home = simt::load_acquire(inode.maps->blocks[segment]);  // [F3]
  const uint32_t asking = warp.ballot(home == 0);
  if (asking != 0) {
    settle_segments(warp, volume, *inode.maps, asking, segment);
    if (home == 0) home = simt::load_acquire(inode.maps->blocks[segment]);  // [F3]
  }
  if (!mine) return {nullptr, ~uint64_t{0}};
  return {row_at_home(volume.maps, home, index).words, end_of_block_segment(segment) - index};
}

/// The word of block `index` of each lane in `lanes`, or null. As settled_map_row().
GOFS_HD inline uint32_t* settled_block_word(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                            const Inode& inode, uint64_t index) {
  return settled_map_row(warp, volume, lanes, inode, index).words;
}

}  // namespace detail

/// What the maps of a file take of the arena.
struct MapMemory {
  uint32_t segments;  // a bit for each that there is
  FileMaps maps;
};

GOFS_HD inline MapMemory memory_of_maps(const FileMaps& maps) {
  MapMemory memory{0, maps};
  for (uint32_t i = 0; i < kMapSegments; ++i) {
    if (MapArena::is_home(detail::home_of_segment(memory.maps, i))) memory.segments |= 1u << i;
  }
  return memory;
}

/// Has a file that is being opened, whose `maps` are all zero, keep a map of its first `blocks`
/// blocks: in one piece, if there is one. By one lane, before others see the file.
GOFS_HD inline void open_block_map(Volume& volume, FileMaps& maps, uint64_t blocks) {
  if (blocks == 0 || !detail::is_dense(volume, blocks - 1)) return;
  const uint32_t last = detail::block_segment(blocks - 1);
  const uint32_t* const words = volume.maps.allocate(detail::end_of_block_segment(last));
  for (uint32_t i = 0; i <= last; ++i) {
    if (words != nullptr) {
      maps.blocks[i] = volume.maps.home_at(words + detail::first_of_block_segment(i));
    } else {
      detail::settle_segment(volume, maps, i);
    }
  }
}

/// The same for a file that others have open as well and that has become longer. By one lane.
GOFS_HD inline void extend_block_map(Volume& volume, FileMaps& maps, uint64_t blocks) {
  if (blocks == 0 || !detail::is_dense(volume, blocks - 1)) return;
  const uint32_t last = detail::block_segment(blocks - 1);
  for (uint32_t i = 0; i <= last; ++i) detail::settle_segment(volume, maps, i);
}

/// Releases what lane 0 has in `memory`, which no thread looks at any more. Collective.
GOFS_NOINLINE GOFS_HD inline void release_maps(simt::AnyWarp auto warp, MapArena& arena,
                                               const MapMemory& memory) {
  const bool leader = warp.thread_rank() == 0;
  for (uint32_t left = warp.shfl(memory.segments, 0); left != 0;) {
    // Segments that lie one behind the other go at once.
    const uint32_t first = simt::lowest_bit(left);
    const uint32_t home = warp.shfl(detail::home_of_segment(memory.maps, first), 0);
    uint64_t count = 0;
    for (; left != 0; left &= left - 1) {
      const uint32_t next = simt::lowest_bit(left);
      const uint32_t lies = warp.shfl(detail::home_of_segment(memory.maps, next), 0);
      if (lies != home + count / MapArena::kUnitWords) break;
      count += detail::words_of_segment(next);
    }
    uint32_t* const words = arena.at_home(home);
    warp.sync();
    simt::zero_bytes(warp, words, count * sizeof(uint32_t));
    warp.sync();
    if (leader) arena.release(words, count);
  }
}

}  // namespace gofs::f2fs
