// SPDX-License-Identifier: Apache-2.0
//
// Segments of the maps of open files: each block and each node has one place, in the segments that
// arithmetic says, and all memory comes back as it was.
#include "f2fs/file_maps.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "f2fs/dnode_cache.h"
#include "testing/ssd_rig.hpp"

namespace gofs::f2fs {
namespace {

TEST(FileMaps, each_block_has_one_place_and_segments_double) {
  uint64_t next = 0;
  for (uint32_t segment = 0; segment < FileMaps::kBlockSegments; ++segment) {
    const uint64_t first = detail::first_of_block_segment(segment);
    const uint64_t end = detail::end_of_block_segment(segment);
    EXPECT_EQ(first, next) << segment;
    EXPECT_EQ(end - first, detail::words_of_segment(segment)) << segment;
    for (const uint64_t index : {first, first + 1, (first + end) / 2, end - 1}) {
      EXPECT_EQ(detail::block_segment(index), segment) << index;
    }
    if (segment > 1) {
      EXPECT_EQ(end, 2 * first) << segment;
    }
    next = end;
  }
  EXPECT_EQ(next, detail::kMapBlocksMax);
}

TEST(FileMaps, each_node_of_the_largest_file_has_one_place) {
  uint64_t next = 0;
  for (uint32_t segment = 0; segment < FileMaps::kDnodeSegments; ++segment) {
    const uint64_t first = detail::first_of_dnode_segment(segment);
    const uint64_t words = detail::words_of_segment(FileMaps::kBlockSegments + segment);
    EXPECT_EQ(first, next) << segment;
    next = first + words / 2;
    for (const uint64_t number : {simt::max<uint64_t>(first, 1), next - 1}) {
      EXPECT_EQ(detail::dnode_segment(number), segment) << number;
    }
  }
  for (const uint32_t slots : {1u, 700u, 923u}) {
    EXPECT_LT(dnode_number(format::file_blocks_max(slots) - 1, slots), next);
  }
}

class FileMapsOfTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  FileMapsOfTest() {
    volume_.geometry.main_segments = 1 << 10;
    volume_.geometry.main_blkaddr = 4096;
    volume_.maps.unit_count = kUnits;
    volume_.maps.words =
        reinterpret_cast<uint32_t*>(memory_.bytes(uint64_t{kUnits} * MapArena::kUnitWords * 4));
    volume_.maps.used = reinterpret_cast<uint32_t*>(memory_.bytes(kUnits / 8));
    inode_.maps = &maps_;
    inode_.slot_count = 923;
  }
  uint64_t units_used() {
    return volume_.maps.bytes_used() / sizeof(uint32_t) / MapArena::kUnitWords;
  }
  void release() {
    gofs::testing::run_alone(GetParam(), [&](const simt::Warp& warp) {
      MapMemory memory{};
      if (warp.thread_rank() == 0) memory = memory_of_maps(maps_);
      release_maps(warp, volume_.maps, memory);
    });
    EXPECT_EQ(units_used(), 0u);
    for (uint64_t i = 0; i < uint64_t{kUnits} * MapArena::kUnitWords; ++i) {
      ASSERT_EQ(volume_.maps.words[i], 0u) << i;
    }
  }

  static constexpr uint32_t kUnits = 256;
  gofs::testing::TestArena memory_;
  Volume volume_{};
  Inode inode_{};
  FileMaps maps_{};
};
GOFS_AT_BOTH_WIDTHS(FileMapsOfTest);

TEST_P(FileMapsOfTest, words_of_a_file_that_is_opened_lie_in_a_row) {
  open_block_map(volume_, maps_, 1000);
  EXPECT_EQ(units_used(), 32u);
  uint32_t* const first = detail::find_block_word(volume_, inode_, 0);
  ASSERT_NE(first, nullptr);
  for (uint64_t index = 0; index < 1024; ++index) {
    uint32_t* const word = detail::find_block_word(volume_, inode_, index);
    ASSERT_EQ(word, first + index);
    *word = 1;
  }
  EXPECT_EQ(detail::find_block_word(volume_, inode_, 1024), nullptr);
  EXPECT_EQ(detail::find_block_word(volume_, inode_, uint64_t{1} << 40), nullptr);
  release();
}

TEST_P(FileMapsOfTest, a_file_in_pieces_has_all_words_apart) {
  uint32_t* const others = volume_.maps.allocate(200 * uint64_t{MapArena::kUnitWords});
  gofs::testing::run_alone(GetParam(), [&](const simt::Warp& warp) {
    // All lanes' blocks, in several segments at once.
    for (uint64_t first = 0; first <= 1100; first += 100 * warp.size()) {
      const uint64_t index = first + 100 * warp.thread_rank();
      detail::settle_places(warp, volume_, warp.ballot(true), inode_, index,
                            static_cast<uint32_t>(dnode_number(index, 923)));
    }
  });
  std::vector<uint32_t*> words;
  for (uint64_t index = 0; index < 1024; ++index) {
    uint32_t* const word = detail::find_block_word(volume_, inode_, index);
    if (index >= 32 && index < 64) {
      EXPECT_EQ(word, nullptr) << "these were not asked for";
    } else {
      ASSERT_NE(word, nullptr) << index;
      ASSERT_EQ((*word)++, 0u) << index;
    }
  }
  EXPECT_EQ(maps_.blocks[6], MapArena::kNoHome) << "32 units, of 25";
  uint64_t* const dnode = detail::find_dnode_word(volume_, inode_, 1);
  ASSERT_NE(dnode, nullptr);
  EXPECT_EQ((*dnode)++, 0u);
  EXPECT_EQ(detail::find_dnode_word(volume_, inode_, 0), &maps_.first_dnode);
  EXPECT_EQ(detail::find_dnode_word(volume_, inode_, 16), nullptr);
  EXPECT_EQ(detail::find_dnode_word(volume_, inode_, detail::kMapDnodesMax), nullptr);
  EXPECT_EQ(detail::find_dnode_word(volume_, inode_, ~uint64_t{0}), nullptr);
  volume_.maps.release(others, 200 * uint64_t{MapArena::kUnitWords});
  release();
}

TEST_P(FileMapsOfTest, blocks_behind_as_many_as_the_volume_has_get_no_words) {
  volume_.geometry.main_segments = 2;  // 1,024 blocks
  open_block_map(volume_, maps_, 1025);
  EXPECT_EQ(units_used(), 0u);
  gofs::testing::run_alone(GetParam(), [&](const simt::Warp& warp) {
    for (const uint64_t index : {uint64_t{500}, uint64_t{1024}, uint64_t{1} << 29}) {
      (void)detail::settled_block_word(warp, volume_, 1u, inode_, index);
    }
  });
  EXPECT_TRUE(MapArena::is_home(maps_.blocks[4]));
  EXPECT_EQ(maps_.blocks[6], MapArena::kNoHome);
  EXPECT_EQ(maps_.blocks[25], MapArena::kNoHome);
  EXPECT_EQ(units_used(), 8u);
  release();
}

}  // namespace
}  // namespace gofs::f2fs
