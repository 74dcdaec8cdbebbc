// SPDX-License-Identifier: Apache-2.0
//
// For tests only: the orphans that an image's checkpoint lists.
#pragma once

#include <vector>

#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {

/// The pack that a mount starts from.
inline uint32_t pack_of(testing::TestImage& image) {
  testing::VolumeRig rig(image);
  rig.mount_ready();
  return rig.volume().checkpoint_pack;
}

/// Number `index`, of those in the pack that a mount starts from.
inline format::OrphanBlock& orphan_block(testing::TestImage& image, uint32_t index) {
  const uint32_t base = image.geometry().pack_block(pack_of(image));
  return *reinterpret_cast<format::OrphanBlock*>(
      image.block(base + 1 + image.geometry().cp_payload + index));
}

/// What the orphan blocks of an image's checkpoint say, and whether their heads are what they
/// should be.
inline std::vector<uint32_t> listed_on_disk(testing::TestImage& image) {
  const uint32_t pack = pack_of(image);
  const format::Checkpoint& checkpoint = image.checkpoint(pack);
  const uint32_t head = 1 + image.geometry().cp_payload;
  const uint32_t blocks = checkpoint.cp_pack_start_sum - head;
  EXPECT_EQ(checkpoint.has(format::kCheckpointOrphan), blocks != 0);
  EXPECT_LE(checkpoint.cp_pack_total_block_count, format::kBlocksPerSegment);
  const uint32_t summaries =
      format::has_node_summaries(checkpoint) ? format::kLogCount : format::kDataLogCount;
  EXPECT_EQ(checkpoint.cp_pack_total_block_count, head + blocks + summaries + 1);
  std::vector<uint32_t> inos;
  for (uint32_t i = 0; i < blocks; ++i) {
    const format::OrphanBlock& block = orphan_block(image, i);
    EXPECT_EQ(block.blk_addr, i + 1);
    EXPECT_EQ(block.blk_count, blocks);
    EXPECT_EQ(block.check_sum, 0u);
    EXPECT_EQ(block.reserved, 0u);
    const uint32_t count = block.entry_count;
    EXPECT_GT(count, 0u);
    EXPECT_LE(count, format::kOrphansPerBlock);
    EXPECT_TRUE(i + 1 == blocks || count == format::kOrphansPerBlock);
    for (uint32_t k = 0; k < format::kOrphansPerBlock; ++k) {
      if (k < count) inos.push_back(block.ino[k]);
      if (k >= count) {
        EXPECT_EQ(block.ino[k], 0u);
      }
    }
  }
  return inos;
}

}  // namespace gofs::f2fs
