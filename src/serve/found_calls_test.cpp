// SPDX-License-Identifier: Apache-2.0
//
// The queue of calls that one warp has found: each is taken once, in their order, past the end of
// the counts too; and nothing is, where a warp sees an older count of those that were pushed.
#include "serve/found_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "testing/crowd.hpp"

namespace gofs::serve {
namespace {

using simt::Warp;
using testing::run_alone;
using testing::run_crowd;

class FoundCallsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kPlaces = 64;

  uint32_t width() const { return GetParam(); }
  /// The counts of a queue that has been at work for so long.
  void begin_at(uint32_t count) { queue_.pushed = queue_.taken = count; }
  void push_calls(uint32_t first, uint32_t lanes) {
    run_alone(width(), [&](const Warp& warp) {
      push(warp, queue_, lanes, {3, {first + warp.thread_rank(), 9}});
    });
  }
  /// The slot of a call that is taken, or -1.
  int take_call() {
    int slot = -1;
    run_alone(width(), [&](const Warp& warp) {
      FoundCall call{};
      if (take(warp, queue_, call) && warp.thread_rank() == 0) {
        EXPECT_EQ(call.channel, 3u);
        EXPECT_EQ(call.place.lap, 9u);
        slot = static_cast<int>(call.place.slot);
      }
    });
    return slot;
  }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(kPlaces);
  FoundCalls queue_{words_.data(), kPlaces - 1, 0, 0};
};
GOFS_AT_BOTH_WIDTHS(FoundCallsTest);

TEST_P(FoundCallsTest, gives_each_call_once_in_their_order_where_the_counts_begin_again) {
  begin_at(~0u - 1);
  for (uint32_t first = 0; first < 4; ++first) push_calls(first, 1);
  for (int slot = 0; slot < 4; ++slot) EXPECT_EQ(take_call(), slot);
  EXPECT_EQ(take_call(), -1);
}

TEST_P(FoundCallsTest, gives_none_where_the_count_of_those_pushed_is_seen_as_it_was) {
  for (const uint32_t count : {0u, 40u, ~0u}) {
    SCOPED_TRACE(count);
    begin_at(count);
    push_calls(1, 1);
    push_calls(2, 1);
    EXPECT_EQ(take_call(), 1);
    EXPECT_EQ(take_call(), 2);
    // A GPU's warp may load this word before the other one, and see it so.
    const uint32_t pushed = std::exchange(queue_.pushed, count + 1);
    EXPECT_EQ(take_call(), -1);
    queue_.pushed = pushed;
    EXPECT_EQ(take_call(), -1);
    push_calls(3, 1);
    EXPECT_EQ(take_call(), 3);
  }
}

TEST_P(FoundCallsTest, gives_each_call_to_one_of_many_warps) {
  constexpr uint32_t kCalls = 2000;
  std::vector<std::atomic<uint32_t>> got(kCalls);
  std::atomic<uint32_t> all = 0;
  run_crowd({5, width()}, [&](const Warp& warp, uint32_t index) {
    const bool leader = warp.thread_rank() == 0;
    if (index == 0) {
      for (uint32_t next = 0; next < kCalls; ++next) {
        while (warp.any(next - all.load() >= kPlaces)) simt::Backoff().pause();
        push(warp, queue_, 1, {0, {next % kPlaces, next}});
      }
      return;
    }
    while (warp.shfl(all.load(), 0) < kCalls) {
      FoundCall call{};
      if (!take(warp, queue_, call)) {
        simt::Backoff().pause();
        continue;
      }
      if (leader) {
        got[call.place.lap].fetch_add(1);
        all.fetch_add(1);
      }
      warp.sync();
    }
  });
  EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](const auto& one) { return one == 1; }));
}

}  // namespace
}  // namespace gofs::serve
