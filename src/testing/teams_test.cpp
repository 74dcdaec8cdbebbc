// SPDX-License-Identifier: Apache-2.0
//
// Lanes that take turns on a thread: they get on like threads that wait for each other, and
// ThreadSanitizer judges them as such.
#include "testing/teams.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "simt/clock.h"

namespace gofs::testing {
namespace {

class TeamsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(width, TeamsTest, ::testing::Values(1u, 2u, 4u, 32u),
                         ::testing::PrintToStringParamName());

TEST_P(TeamsTest, what_comes_before_and_after_a_launch_is_ordered) {
  for (const uint32_t count : {0u, 1u, 3u}) {
    std::vector<uint32_t> runs(count * width(), 1);  // plain: else a data race
    run_teams(count, width(), [&](const simt::Warp& warp, uint32_t index) {
      EXPECT_EQ(simt::processor_id(), index);
      EXPECT_EQ(warp.size(), width());
      ++runs[index * width() + warp.thread_rank()];
    });
    EXPECT_EQ(runs, std::vector<uint32_t>(count * width(), 2));
    EXPECT_EQ(simt::processor_id(), 0u);
  }
}

TEST_P(TeamsTest, a_lane_that_polls_lets_the_others_run) {
  for (const uint32_t count : {1u, 3u}) {
    // Each lane of each team waits for the one before it, and the first one for none.
    std::atomic<uint32_t> turn = 0;
    run_teams(count, width(), [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t mine = (width() - 1 - warp.thread_rank()) * count + index;
      while (turn != mine) simt::Backoff().pause();
      ++turn;
    });
    EXPECT_EQ(turn, count * width());
  }
}

TEST_P(TeamsTest, one_lane_polls_while_the_others_wait_for_it) {
  std::atomic<uint32_t> met = 0;
  run_teams(2, width(), [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t round = 1; round <= 20; ++round) {
      if (warp.thread_rank() == round % width()) {
        ++met;
        while (met < 2 * round) simt::Backoff().pause();
      }
      warp.sync();
      EXPECT_GE(met, 2 * round);
    }
  });
}

TEST_P(TeamsTest, lanes_may_end_early_where_nobody_waits_for_them) {
  std::atomic<uint32_t> ended = 0;
  run_teams(2, width(), [&](const simt::Warp& warp, uint32_t) {
    if (warp.thread_rank() % 2 == 0) {
      for (uint32_t i = 0; i < 10; ++i) simt::Backoff().pause();
    }
    ++ended;
  });
  EXPECT_EQ(ended, 2 * width());
}

TEST_P(TeamsTest, who_goes_on_first_changes) {
  constexpr uint32_t kRounds = 400;
  std::set<uint32_t> firsts;
  std::atomic<uint32_t> came = 0;
  run_teams(1, width(), [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      warp.sync();
      if (came++ == round * width()) firsts.insert(warp.thread_rank());
    }
  });
  EXPECT_EQ(firsts.size(), width());
}

TEST_P(TeamsTest, exceptions_are_caught_within_a_lane) {
  run_teams(2, width(), [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t round = 0; round < 10; ++round) {
      EXPECT_THROW(throw std::runtime_error("mine"), std::runtime_error);
      warp.sync();
    }
  });
}

TEST(ManyTeams, teams_do_not_see_each_other) {
  std::vector<std::atomic<uint32_t>> lanes(5);
  run_teams(5, 3, [&](const simt::Warp& warp, uint32_t index) {
    EXPECT_EQ(simt::processor_id(), index);
    EXPECT_EQ(warp.size(), 3u);
    for (uint32_t i = 0; i < 20; ++i) {
      EXPECT_EQ(warp.shfl(index * 10 + warp.thread_rank(), 2), index * 10 + 2);
    }
    ++lanes[index];
  });
  for (const auto& count : lanes) EXPECT_EQ(count, 3u);
}

TEST(ManyTeams, are_launched_by_several_threads) {
  std::vector<std::jthread> launchers;
  std::atomic<uint32_t> lanes = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    launchers.emplace_back([&] {
      for (uint32_t turn = 0; turn < 10; ++turn) {
        run_teams(1 + turn % 2, 3, [&](const simt::Warp& warp, uint32_t) {
          warp.sync();
          ++lanes;
        });
      }
    });
  }
  launchers.clear();
  EXPECT_EQ(lanes, 4u * 15 * 3);
}

class TeamsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(TeamsDeathTest, a_barrier_without_a_lane_that_has_ended_ends_the_program) {
  const auto launch = [] {
    run_teams(1, 3, [](const simt::Warp& warp, uint32_t) {
      if (warp.thread_rank() != 1) warp.sync();
    });
  };
  EXPECT_DEATH(launch(), "");
}

#if defined(GOFS_THREAD_SANITIZER)
/// One lane writes a plain word and another reads it, somewhere between barriers.
void hand_over(uint32_t writer, uint32_t reader, uint32_t rounds,
               const std::function<void(const simt::Warp&)>& between) {
  uint32_t word = 0;
  run_teams(1, 4, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t round = 0; round < rounds; ++round) warp.sync();
    if (warp.thread_rank() == writer) word = 1;
    between(warp);
    if (warp.thread_rank() == reader) {
      EXPECT_LE(word, 1u);
    }
    warp.sync();
  });
}

TEST_F(TeamsDeathTest, a_missing_sync_is_reported_whoever_comes_first) {
  const auto report = [](uint32_t writer, uint32_t reader, uint32_t rounds, const auto& between) {
    hand_over(writer, reader, rounds, between);
    std::abort();  // where ThreadSanitizer is told to go on after a report
  };
  const auto nothing = [](const simt::Warp&) {};
  const auto exchange = [](const simt::Warp& warp) { warp.shfl(warp.thread_rank(), 0); };
  for (const uint32_t rounds : {1u, 2u}) {
    for (const uint32_t reader : {0u, 2u}) {
      EXPECT_DEATH(report(1, reader, rounds, nothing), "data race");
      EXPECT_DEATH(report(1, reader, rounds, exchange), "data race");
      hand_over(1, reader, rounds, [](const simt::Warp& warp) { warp.sync(); });
    }
  }
}
#endif

}  // namespace
}  // namespace gofs::testing
