// SPDX-License-Identifier: Apache-2.0
//
// Where things lie on a volume. A Geometry is the superblock's numbers unpacked: trivially
// copyable, to be kept in each backend's memory. The functions trust it; whoever fills it from a
// disk has checked that the areas follow each other and fit the device.
#pragma once

#include <cstdint>

#include "format/nat.h"
#include "format/sit.h"
#include "format/superblock.h"

namespace gofs::format {

struct Geometry {
  uint64_t block_count;
  uint32_t segment_count;
  uint32_t sit_segments;  // of one copy
  uint32_t nat_segments;  // of one copy
  uint32_t ssa_segments;
  uint32_t main_segments;
  uint32_t section_segments;
  uint32_t segment0_blkaddr;
  uint32_t cp_blkaddr;
  uint32_t sit_blkaddr;
  uint32_t nat_blkaddr;
  uint32_t ssa_blkaddr;
  uint32_t main_blkaddr;
  uint32_t cp_payload;
  uint32_t feature;
  uint32_t root_ino;

  /// First block after the main area.
  GOFS_HD constexpr uint64_t main_end() const {
    return main_blkaddr + static_cast<uint64_t>(main_segments) * kBlocksPerSegment;
  }
  GOFS_HD constexpr bool in_main(uint32_t block) const {
    return block >= main_blkaddr && block < main_end();
  }
  /// Nids are below this.
  GOFS_HD constexpr uint32_t nid_count() const {
    return nat_segments * kBlocksPerSegment * kNatEntriesPerBlock;
  }
  GOFS_HD constexpr uint32_t nat_blocks() const { return nat_segments * kBlocksPerSegment; }
  GOFS_HD constexpr uint32_t sit_blocks_used() const {
    return (main_segments + kSitEntriesPerBlock - 1) / kSitEntriesPerBlock;
  }
  /// First block of checkpoint pack 0 or 1.
  GOFS_HD constexpr uint32_t pack_block(uint32_t pack) const {
    return cp_blkaddr + pack * kBlocksPerSegment;
  }
  /// Main segment of a block of the main area, and the block's place there.
  GOFS_HD constexpr uint32_t segno_of(uint32_t block) const {
    return (block - main_blkaddr) / kBlocksPerSegment;
  }
  GOFS_HD constexpr uint32_t offset_in_segment(uint32_t block) const {
    return (block - main_blkaddr) % kBlocksPerSegment;
  }
  GOFS_HD constexpr uint32_t block_of(uint32_t segno, uint32_t offset) const {
    return main_blkaddr + segno * kBlocksPerSegment + offset;
  }
  GOFS_HD constexpr uint32_t summary_block(uint32_t segno) const { return ssa_blkaddr + segno; }
  /// SIT block `index` (= segno / kSitEntriesPerBlock) in the copy that its version bit chooses.
  /// The copies are two halves.
  GOFS_HD constexpr uint32_t sit_block(uint32_t index, bool version) const {
    return sit_blkaddr + index + (version ? sit_segments * kBlocksPerSegment : 0);
  }
  /// NAT block `index` (= nid / kNatEntriesPerBlock), likewise. The copies alternate by segment.
  GOFS_HD constexpr uint32_t nat_block(uint32_t index, bool version) const {
    return nat_blkaddr + index / kBlocksPerSegment * (2 * kBlocksPerSegment) +
           index % kBlocksPerSegment + (version ? kBlocksPerSegment : 0);
  }
  GOFS_HD constexpr uint32_t sit_bitmap_bytes() const {
    return sit_segments * kBlocksPerSegment / 8;
  }
  GOFS_HD constexpr uint32_t nat_bitmap_bytes() const {
    return nat_segments * kBlocksPerSegment / 8;
  }
};

GOFS_HD inline Geometry geometry_of(const Superblock& super) {
  Geometry geometry{};
  geometry.block_count = super.block_count;
  geometry.segment_count = super.segment_count;
  geometry.sit_segments = super.segment_count_sit / 2;
  geometry.nat_segments = super.segment_count_nat / 2;
  geometry.ssa_segments = super.segment_count_ssa;
  geometry.main_segments = super.segment_count_main;
  geometry.section_segments = super.segs_per_sec;
  geometry.segment0_blkaddr = super.segment0_blkaddr;
  geometry.cp_blkaddr = super.cp_blkaddr;
  geometry.sit_blkaddr = super.sit_blkaddr;
  geometry.nat_blkaddr = super.nat_blkaddr;
  geometry.ssa_blkaddr = super.ssa_blkaddr;
  geometry.main_blkaddr = super.main_blkaddr;
  geometry.cp_payload = super.cp_payload;
  geometry.feature = super.feature;
  geometry.root_ino = super.root_ino;
  return geometry;
}

}  // namespace gofs::format
