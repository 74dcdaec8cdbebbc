// SPDX-License-Identifier: Apache-2.0
//
// Where the warps of a launch meet: nobody is past a meeting before all have come, what they wrote
// before it is seen after it, and the place serves launches of any size, one after another.
#include "simt/crew.h"

#include <gtest/gtest.h>

#include <vector>

#include "simt/workers.h"
#include "testing/teams.hpp"

namespace gofs::simt {
namespace {

constexpr uint32_t kRounds = 50;

/// What each warp does: writes a plain word, and after a meeting reads all the others' words.
void exchange(const GridCrew& crew, std::vector<uint32_t>& words) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    if (crew.warp().thread_rank() == 0) words[crew.index()] = round;
    crew.sync();
    for (uint32_t warp = 0; warp < crew.count(); ++warp) ASSERT_EQ(words[warp], round);
    crew.sync();  // all have read
  }
}

TEST(GridCrew, sees_what_was_written_before_a_meeting) {
  MeetingPoint meeting{};
  for (const uint32_t count : {3u, 1u, 4u}) {
    std::vector<uint32_t> words(count);
    run_workers(count, [&](const Warp& warp, uint32_t index) {
      exchange(GridCrew(warp, index, count, meeting), words);
    });
    EXPECT_EQ(meeting.arrived, 0u);
  }
  EXPECT_EQ(meeting.round, 3 * 2 * kRounds);
}

TEST(GridCrew, of_wide_warps_meets_once_for_each_warp) {
  MeetingPoint meeting{};
  std::vector<uint32_t> words(3);
  testing::run_teams(3, 2, [&](const Warp& warp, uint32_t index) {
    exchange(GridCrew(warp, index, 3, meeting), words);
  });
  EXPECT_EQ(meeting.round, 2 * kRounds);
}

TEST(BlockCrew, is_one_warp_on_a_cpu) {
  testing::run_teams(1, 4, [](const Warp& warp, uint32_t) {
    const auto block = BlockCrew<Warp>::current(warp);
    EXPECT_EQ(block.index(), 0u);
    EXPECT_EQ(block.count(), 1u);
    EXPECT_EQ(block.warp().size(), 4u);
    block.sync();
  });
}

}  // namespace
}  // namespace gofs::simt
