// SPDX-License-Identifier: Apache-2.0
//
// Calls of several grids at the same time: each meets by itself, whoever comes first or stays
// behind, and what is left behind is free for the next one.
#include "vfs/grid_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

using simt::Deadline;

class GridCallTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  GridCallTest() : fs_(std::make_unique<Filesystem>()) { fs_->lock_timeout_ns = 60'000'000'000; }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return *fs_; }
  uint32_t in_use() {
    const auto& users = fs().grids.users;
    return static_cast<uint32_t>(
        std::count_if(std::begin(users), std::end(users),
                      [](uint64_t one) { return (one & detail::kGridBlocksMax) != 0; }));
  }

 private:
  std::unique_ptr<Filesystem> fs_;
};
GOFS_AT_BOTH_WIDTHS(GridCallTest);

// Each call adds up what its own warps bring, as ThisGrid::share() does.
TEST_P(GridCallTest, several_grids_call_at_once_and_each_gets_its_own_answer) {
  constexpr uint32_t kGrids = 4;
  constexpr uint32_t kWarps = 3;
  constexpr int64_t kCalls = 60;
  std::vector<simt::Barrier> points(kGrids);
  std::atomic<uint32_t> wrong{0};
  run_crowd({kGrids * kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t grid = index % kGrids;
    const simt::GridGroup group(warp, index / kGrids, kWarps, points[grid]);
    for (int64_t call = 0; call < kCalls; ++call) {
      GridMeeting* const meeting = begin_grid_call(group, fs());
      ASSERT_NE(meeting, nullptr);
      const int64_t mine = (grid + 1) * 1000 + call;
      if (warp.thread_rank() == 0) simt::add_relaxed(meeting->answer, mine);
      // A plain word of which one warp tells the others.
      if (group.index() == 0 && warp.thread_rank() == 0) meeting->read.bytes = grid;
      group.sync();
      if (simt::load_relaxed(meeting->answer) != kWarps * mine) ++wrong;
      if (meeting->read.bytes != grid) ++wrong;
      end_grid_call(group, fs(), *meeting);
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(in_use(), 0u);
}

TEST_P(GridCallTest, a_set_that_some_block_has_not_left_is_not_given_to_another_call) {
  GridCalls& calls = fs().grids;
  const auto soon = [] { return Deadline::after_ns(1'000'000); };
  constexpr uint64_t kLaunch = 0x7f1234567890;
  ASSERT_TRUE(detail::claim_meeting(calls, kLaunch, 2, soon()));
  GridMeeting* meeting = nullptr;
  run_alone(width(), [&](const simt::Warp& warp) {
    GridMeeting* const mine = detail::find_meeting(warp, calls, kLaunch);
    EXPECT_EQ(detail::find_meeting(warp, calls, kLaunch + 8), nullptr);
    if (warp.thread_rank() == 0) meeting = mine;
  });
  ASSERT_NE(meeting, nullptr);
  const auto index = meeting - calls.meetings;
  // One block has left; the first warp of the other goes on to the next call.
  simt::count_release(calls.users[index], ~uint64_t{0});
  // Other grids have claimed all others but one.
  for (uint32_t i = 1; i + 1 < kGridCalls; ++i) {
    ASSERT_TRUE(detail::claim_meeting(calls, kLaunch + 8 * i, 1, soon())) << i;
  }
  ASSERT_TRUE(detail::claim_meeting(calls, kLaunch, 2, soon()));
  EXPECT_EQ(in_use(), kGridCalls);
  EXPECT_FALSE(detail::claim_meeting(calls, kLaunch + 4, 1, soon()));
  EXPECT_EQ(calls.users[index], detail::grid_key(kLaunch) | 1) << "still whose it was";
  simt::count_release(calls.users[index], ~uint64_t{0});
  run_alone(width(), [&](const simt::Warp& warp) {
    GridMeeting* const next = detail::find_meeting(warp, calls, kLaunch);
    EXPECT_NE(next, nullptr);
    EXPECT_NE(next, meeting) << "that of the call before has the same name";
  });
  EXPECT_TRUE(detail::claim_meeting(calls, kLaunch + 4, 1, soon()));
}

TEST_P(GridCallTest, who_finds_all_sets_in_use_waits_for_one) {
  GridCalls& calls = fs().grids;
  for (uint64_t& users : calls.users) users = detail::grid_key(1) | 1;
  std::thread other([&] {
    std::this_thread::yield();
    simt::count_release(calls.users[7], ~uint64_t{0});
  });
  simt::Barrier point{};
  run_alone(width(), [&](const simt::Warp& warp) {
    const simt::GridGroup group(warp, 0, 1, point);
    GridMeeting* const meeting = begin_grid_call(group, fs());
    EXPECT_EQ(meeting, &calls.meetings[7]);
    if (meeting != nullptr) end_grid_call(group, fs(), *meeting);
  });
  other.join();
  // As long as locks are waited for.
  calls.users[7] = detail::grid_key(1) | 1;
  fs().lock_timeout_ns = 1'000'000;
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(begin_grid_call(simt::GridGroup(warp, 0, 1, point), fs()), nullptr);
  });
}

}  // namespace
}  // namespace gofs::vfs
