// SPDX-License-Identifier: Apache-2.0
//
// The group of lanes that plays a warp: collectives give every lane what a GPU's would, and
// sync() orders memory (ThreadSanitizer says whether it does).
#include "simt/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "testing/teams.hpp"

namespace gofs::simt {
namespace {

class TeamTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  void run(const std::function<void(const Warp&)>& work) {
    testing::run_teams(1, width(), [&](const Warp& warp, uint32_t) { work(warp); });
  }
};

INSTANTIATE_TEST_SUITE_P(width, TeamTest, ::testing::Values(1u, 2u, 4u, 5u, 32u),
                         ::testing::PrintToStringParamName());

TEST_P(TeamTest, ranks_are_all_different_and_below_the_size) {
  std::vector<std::atomic<uint32_t>> seen(width());
  run([&](const Warp& warp) {
    ASSERT_EQ(warp.size(), width());
    ASSERT_LT(warp.thread_rank(), width());
    ++seen[warp.thread_rank()];
  });
  for (const auto& count : seen) EXPECT_EQ(count, 1u);
}

TEST_P(TeamTest, ballot_any_and_all_see_every_lane) {
  const uint32_t full = width() == 32 ? ~0u : (1u << width()) - 1;
  run([&](const Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    EXPECT_EQ(warp.ballot(rank % 3 == 0), 0x49249249u & full);
    EXPECT_EQ(warp.ballot(true), full);
    EXPECT_EQ(warp.ballot(false), 0u);
    EXPECT_TRUE(warp.any(rank == width() - 1));
    EXPECT_FALSE(warp.any(false));
    EXPECT_TRUE(warp.all(true));
    EXPECT_FALSE(warp.all(rank != 0));
  });
}

TEST_P(TeamTest, shfl_gives_each_lane_the_value_of_the_rank_it_names) {
  run([&](const Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    for (uint32_t source = 0; source < width(); ++source) {
      EXPECT_EQ(warp.shfl(rank + 100, source), source + 100);
      EXPECT_EQ(warp.shfl(uint64_t{rank} << 40 | 7, source), uint64_t{source} << 40 | 7);
      EXPECT_EQ(warp.shfl(-static_cast<int>(rank), source), -static_cast<int>(source));
      EXPECT_EQ(warp.shfl(static_cast<double>(rank) / 2, source), static_cast<double>(source) / 2);
    }
    // The rank may differ from lane to lane.
    const uint32_t next = (rank + 1) % width();
    EXPECT_EQ(warp.shfl(rank * 3, next), next * 3);
  });
}

TEST_P(TeamTest, match_any_groups_equal_values) {
  run([&](const Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    uint32_t expected = 0;
    for (uint32_t other = rank % 3; other < width(); other += 3) expected |= 1u << other;
    EXPECT_EQ(warp.match_any(uint64_t{rank % 3} << 33), expected);
    EXPECT_EQ(warp.match_any(rank), 1u << rank);
    EXPECT_EQ(warp.match_any(0u), warp.ballot(true));
  });
}

TEST_P(TeamTest, sums_and_first_errors_are_the_same_on_every_lane) {
  run([&](const Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    EXPECT_EQ(reduce_add(warp, rank + 1), width() * (width() + 1) / 2);
    EXPECT_EQ(reduce_add(warp, uint64_t{1} << 40), uint64_t{width()} << 40);
    uint64_t total = 0;
    EXPECT_EQ(sum_before(warp, uint64_t{rank} + 1, total), rank * (rank + 1) / 2);
    EXPECT_EQ(total, width() * (width() + 1) / 2);
    EXPECT_EQ(first_error(warp, 0), 0);
    EXPECT_EQ(first_error(warp, 5), 0);  // only negative numbers are errors
    const uint32_t failing = width() / 2;
    EXPECT_EQ(first_error(warp, rank >= failing ? -static_cast<int>(rank) - 1 : 0),
              -static_cast<int>(failing) - 1);
  });
}

// Plain accesses: a sync() that does not order them is a data race.
TEST_P(TeamTest, sync_makes_plain_writes_visible_to_the_team) {
  std::vector<uint32_t> words(width());
  run([&](const Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    for (uint32_t round = 1; round <= 50; ++round) {
      words[rank] = round * 1000 + rank;
      warp.sync();
      const uint32_t other = (rank + round) % width();
      EXPECT_EQ(words[other], round * 1000 + other);
      warp.sync();
    }
  });
}

TEST(BitsTest, match_their_definitions) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(lowest_bit(~0u << bit), bit);
    EXPECT_EQ(leading_zeros(1u << bit), 31 - bit);
    EXPECT_EQ(popcount(ranks_below(bit)), bit);
  }
  EXPECT_EQ(popcount(0u), 0u);
  EXPECT_EQ(popcount(~0u), 32u);
}

}  // namespace
}  // namespace gofs::simt
