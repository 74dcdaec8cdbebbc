// SPDX-License-Identifier: Apache-2.0
//
// Blocks counted by many at once: all that there are can be had, and no more, whether there are
// plenty of them or few.
#include "f2fs/node_space.h"

#include <gtest/gtest.h>

#include <memory>

#include "testing/crowd.hpp"

namespace gofs::f2fs {
namespace {

constexpr uint32_t kCountingWarps = 4;
constexpr uint64_t kUsedBefore = 12345;

/// Warps count `largest` blocks and fewer until there are none for them, then one by one.
void count_all(uint64_t users_blocks, uint64_t largest) {
  const auto volume = std::make_unique<Volume>();
  volume->valid_block_count = kUsedBefore;
  volume->user_block_count = kUsedBefore + users_blocks;
  const auto writer = std::make_unique<Writer>();
  uint64_t counted = 0;
  gofs::testing::run_crowd({kCountingWarps, 1}, [&](const simt::Warp&, uint32_t index) {
    Operation op = Operation::before_others(*volume, *writer);
    uint64_t mine = 0;
    for (uint64_t count = largest - index; count != 0;) {
      if (detail::count_blocks(op, count)) {
        mine += count;
      } else {
        count /= 2;
      }
      EXPECT_LE(simt::load_relaxed(volume->valid_block_count),
                volume->user_block_count + kCountingWarps * largest);
    }
    simt::add_relaxed(counted, mine);
  });
  EXPECT_EQ(counted, users_blocks);
  EXPECT_EQ(volume->valid_block_count, volume->user_block_count);
  EXPECT_EQ(volume->newly_counted, users_blocks);
}

TEST(NodeSpaceTest, all_blocks_of_a_volume_are_counted_and_no_more) {
  count_all(1000, 32);
  count_all(5 * detail::kPlentyOfBlocks, 1000);
  // Together they would count more than what is plenty.
  count_all(3 * detail::kPlentyOfBlocks, 2 * detail::kPlentyOfBlocks);
}

}  // namespace
}  // namespace gofs::f2fs
