// SPDX-License-Identifier: Apache-2.0
//
// Turns that serve: when they end, and that one which keeps its place goes on until the next has
// begun.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/channel.h"
#include "kernels/serve.h"
#include "testing/comes_true.hpp"
#include "testing/crowd.hpp"

namespace gofs::kernels {
namespace {

using simt::Warp;
using testing::comes_true;
using testing::run_alone;
using testing::run_crowd;

constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint32_t kWarps = 3;
constexpr uint32_t kDepth = 4;

class ServeTurnTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  struct Turn {
    serve::CallRoom rooms[kWarps];
    ServeTurnParams params{};
    std::thread thread;
  };

  ServeTurnTest() {
    const serve::RingHead head = serve::layout_of_ring(kDepth, kDepth * 64);
    memory_.resize(head.bytes / sizeof(uint64_t));
    ring_ = serve::view_of_ring(memory_.data(), head);
    channel_.taken = words_;
    channel_.answered = words_ + kDepth;
    ChannelParams opening{};
    opening.server = &server_;
    opening.step = ChannelStep::kOpen;
    opening.ring = ring_;
    run_alone(GetParam(), [&](const Warp& warp) { channel_body(warp, 0, 1, opening); });
  }
  ~ServeTurnTest() override {
    for (const auto& turn : turns_) {
      tell(*turn, NextTurn::kNone);
      if (turn->thread.joinable()) turn->thread.join();
    }
  }

  static ServeTurn plain_turn(uint64_t idle_ns, uint64_t turn_ns, uint64_t turn_ns_max) {
    ServeTurn turn{};
    turn.idle_ns = idle_ns;
    turn.turn_ns = turn_ns;
    turn.turn_ns_max = turn_ns_max;
    return turn;
  }
  /// Asks for the next one at once, since there are too few warps for no call at all, and waits for
  /// it for twice so long.
  static ServeTurn keeping_turn(uint64_t turn_ns_max = kNever / 4) {
    ServeTurn turn = plain_turn(kNever, 0, turn_ns_max);
    turn.keeps_place = true;
    return turn;
  }

  Turn& begin(ServeTurn turn) {
    turns_.push_back(std::make_unique<Turn>());
    Turn& begun = *turns_.back();
    turn.server = &server_;
    turn.grid = &grid_;
    turn.rooms = begun.rooms;
    turn.number = static_cast<uint32_t>(turns_.size());
    begun.params.turn = turn;
    begun.thread = std::thread([&begun, width = GetParam()] {
      run_crowd({kWarps, width}, [&begun](const Warp& warp, uint32_t index) {
        serve_turn_body(warp, index, kWarps, begun.params);
      });
    });
    return begun;
  }
  static void tell(Turn& turn, NextTurn next) {
    simt::store_system_relaxed(turn.params.next, next);
  }
  static bool asks(Turn& turn) {
    return comes_true([&] { return simt::load_system_acquire(turn.params.wants_next) != 0; });
  }
  bool is_over(const Turn& turn) {
    return comes_true([&] { return detail::is_over(grid_, turn.params.turn.number); });
  }
  /// A call with a verb that there is not: it needs no file system.
  bool is_served() {
    const serve::RingPlace place{calls_ % kDepth, calls_ / kDepth};
    ++calls_;
    request::Request call{};
    call.verb = static_cast<request::Verb>(request::kVerbs);
    ring_.requests[place.slot] = call;
    serve::publish(ring_, place, call);
    return comes_true([&] { return serve::is_answered(ring_, place); });
  }

  std::unique_ptr<vfs::Filesystem> fs_ = std::make_unique<vfs::Filesystem>();
  std::vector<uint64_t> memory_;
  serve::Ring ring_{};
  uint32_t words_[2 * kDepth] = {};
  uint32_t calls_ = 0;
  uint64_t places_[16] = {};
  serve::FoundCalls found_{places_, 15, 0, 0};
  serve::Channel channel_{};
  serve::SlotRun runs_[1] = {};
  serve::Server server_{fs_.get(), request::kVerbRows.data(), &channel_, &found_, nullptr, runs_, 0,
                        0};
  ServingGrid grid_{};
  std::vector<std::unique_ptr<Turn>> turns_;
};
GOFS_AT_BOTH_WIDTHS(ServeTurnTest);

TEST_P(ServeTurnTest, ends_when_it_has_lasted_and_no_call_is_under_way) {
  Turn& turn = begin(plain_turn(kNever, 0, kNever));
  turn.thread.join();
  EXPECT_EQ(turn.params.rests, 0u);
  EXPECT_EQ(turn.params.wants_next, 0u);
}

TEST_P(ServeTurnTest, rests_when_nothing_comes) {
  Turn& turn = begin(plain_turn(0, kNever, kNever));
  turn.thread.join();
  EXPECT_EQ(turn.params.rests, 1u);
}

TEST_P(ServeTurnTest, keeps_its_place_until_the_next_has_begun) {
  Turn* turn = &begin(keeping_turn());
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(asks(*turn));
    EXPECT_TRUE(is_served());
    EXPECT_FALSE(detail::is_over(grid_, turn->params.turn.number));
    Turn& next = begin(keeping_turn());
    ASSERT_TRUE(is_over(*turn));
    turn->thread.join();
    EXPECT_EQ(turn->params.rests, 0u);
    EXPECT_TRUE(is_served());
    turn = &next;
  }
}

TEST_P(ServeTurnTest, gives_its_place_to_one_that_was_launched_and_finds_no_other) {
  Turn& turn = begin(keeping_turn());
  ASSERT_TRUE(asks(turn));
  tell(turn, NextTurn::kLaunched);
  ASSERT_TRUE(is_over(turn));
  turn.thread.join();
  begin(keeping_turn());
  EXPECT_TRUE(is_served());
}

TEST_P(ServeTurnTest, ends_when_there_is_to_be_no_next_one) {
  ServeTurn long_one = keeping_turn();
  long_one.turn_ns = kNever;
  Turn& turn = begin(long_one);
  EXPECT_TRUE(is_served());
  tell(turn, NextTurn::kNone);
  turn.thread.join();
  EXPECT_EQ(turn.params.wants_next, 0u);
  EXPECT_EQ(turn.params.rests, 0u);
}

TEST_P(ServeTurnTest, ends_where_the_host_does_not_answer) {
  Turn& turn = begin(keeping_turn(1'000'000));
  turn.thread.join();
  EXPECT_EQ(turn.params.wants_next, 1u);
  EXPECT_EQ(turn.params.rests, 0u);
}

}  // namespace
}  // namespace gofs::kernels
