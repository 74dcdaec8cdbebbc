// SPDX-License-Identifier: Apache-2.0
//
// Where the warps of a launch meet: no thread is past a meeting before all have come, what they
// wrote before it is seen after it, and the place serves launches of any size, one after another.
#include "simt/warp_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "simt/workers.h"
#include "testing/teams.hpp"

namespace gofs::simt {
namespace {

constexpr uint32_t kRounds = 50;

/// What each warp does: writes a plain word, and after a meeting reads all the others' words.
void exchange(const GridGroup& group, std::vector<uint32_t>& words) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    if (group.warp().thread_rank() == 0) words[group.index()] = round;
    group.sync();
    for (uint32_t warp = 0; warp < group.count(); ++warp) ASSERT_EQ(words[warp], round);
    group.sync();  // all have read
  }
}

TEST(GridGroup, sees_what_was_written_before_a_barrier) {
  Barrier barrier{};
  for (const uint32_t count : {3u, 1u, 4u}) {
    std::vector<uint32_t> words(count);
    run_workers(count, [&](const Warp& warp, uint32_t index) {
      exchange(GridGroup(warp, index, count, barrier), words);
    });
    EXPECT_EQ(barrier.arrived, 0u);
  }
  EXPECT_EQ(barrier.round, 3 * 2 * kRounds);
}

TEST(GridGroup, of_wide_warps_meets_once_for_each_warp) {
  Barrier barrier{};
  std::vector<uint32_t> words(3);
  testing::run_teams(3, 2, [&](const Warp& warp, uint32_t index) {
    exchange(GridGroup(warp, index, 3, barrier), words);
  });
  EXPECT_EQ(barrier.round, 2 * kRounds);
}

TEST(BlockGroup, is_one_warp_on_a_cpu) {
  testing::run_teams(1, 4, [](const Warp& warp, uint32_t) {
    const auto block = BlockGroup<Warp>::current(warp);
    EXPECT_EQ(block.index(), 0u);
    EXPECT_EQ(block.count(), 1u);
    EXPECT_EQ(block.warp().size(), 4u);
    block.sync();
  });
}

}  // namespace
}  // namespace gofs::simt
