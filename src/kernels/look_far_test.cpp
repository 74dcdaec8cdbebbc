// SPDX-License-Identifier: Apache-2.0
//
// Looks at the rings of several channels: each request that is published there is found once, by
// its channel, slot and lap, whatever depth the rings have; and none of a channel that is closed.
#include "serve/look_far.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/channel.h"
#include "testing/crowd.hpp"

namespace gofs::kernels {
namespace {

using serve::FoundCall;
using simt::Warp;
using testing::run_alone;

/// Channel, slot, lap.
using Place = std::tuple<uint32_t, uint32_t, uint32_t>;
using Places = std::set<Place>;

class LookFarTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kDepths[] = {2, 64, 256, 128};
  static constexpr uint32_t kChannels = std::size(kDepths);
  static constexpr uint32_t kWords = 256;  // of a channel
  static constexpr uint32_t kPlaces = 1024;

  LookFarTest() {
    for (uint32_t i = 0; i < kChannels; ++i) {
      channels_[i] = {};
      channels_[i].taken = words_.data() + 2 * i * kWords;
      channels_[i].answered = channels_[i].taken + kWords;
      const serve::RingHead head = serve::layout_of_ring(kDepths[i], kDepths[i] * 64);
      rings_.emplace_back(head.bytes / sizeof(uint64_t));
      views_.push_back(serve::view_of_ring(rings_.back().data(), head));
    }
    uint32_t run = 0;
    for (uint32_t i = 0; i < kChannels; ++i) {
      first_runs_.push_back(run);
      run += serve::runs_of(kDepths[i]);
      open(i);
    }
  }

  void open(uint32_t number) {
    ChannelParams params{};
    params.server = &server_;
    params.step = ChannelStep::kOpen;
    params.number = number;
    params.ring = views_[number];
    params.first_run = first_runs_[number];
    run_alone(GetParam(), [&](const Warp& warp) { channel_body(warp, 0, 1, params); });
    laps_[number].assign(kDepths[number], 0);
  }
  void close(uint32_t number) { ASSERT_TRUE(serve::begin_close(channels_[number])); }

  /// A client publishes there; which place it is.
  Place publish(uint32_t number, uint32_t slot) {
    const uint32_t lap = laps_[number][slot]++;
    serve::publish(views_[number], {slot, lap}, {});
    return {number, slot, lap};
  }
  void answer(const Place& place) {
    const auto [number, slot, lap] = place;
    channels_[number].answered[slot] = lap + 1;
    serve::leave_gate(channels_[number].gate);
  }

  /// All that a look finds: what it keeps, and what it hands on.
  Places look(bool may_keep = false) {
    Places found;
    run_alone(GetParam(), [&](const Warp& warp) {
      const serve::FarLook look = serve::look_far(warp, server_, may_keep);
      std::vector<FoundCall> calls;
      if (look.keeps) calls.push_back(look.kept);
      for (FoundCall call{}; serve::take(warp, found_, call);) calls.push_back(call);
      if (warp.thread_rank() != 0) return;
      EXPECT_EQ(look.any, !calls.empty());
      EXPECT_EQ(look.keeps, may_keep && !calls.empty());
      for (const FoundCall& call : calls) {
        EXPECT_TRUE(found.emplace(call.channel, call.place.slot, call.place.lap).second);
      }
    });
    return found;
  }

  std::vector<uint32_t> words_ = std::vector<uint32_t>(2 * kChannels * kWords);
  std::vector<std::vector<uint64_t>> rings_;
  std::vector<serve::Ring> views_;
  std::vector<uint32_t> first_runs_;
  std::vector<uint32_t> laps_[kChannels];
  std::vector<uint64_t> places_ = std::vector<uint64_t>(kPlaces);
  serve::FoundCalls found_{places_.data(), kPlaces - 1, 0, 0};
  serve::Channel channels_[kChannels];
  serve::SlotRun runs_[16] = {};
  serve::Server server_{nullptr, nullptr, channels_, &found_, nullptr, runs_, 0, 0};
};
GOFS_AT_BOTH_WIDTHS(LookFarTest);

TEST_P(LookFarTest, finds_each_request_once_and_the_next_when_it_is_answered) {
  EXPECT_EQ(look(), Places{});
  for (uint32_t lap = 0; lap < 3; ++lap) {
    Places places;
    for (uint32_t i = 0; i < kChannels; ++i) {
      for (uint32_t slot = i; slot < kDepths[i]; slot += 1 + 5 * lap) {
        places.insert(publish(i, slot));
      }
    }
    EXPECT_EQ(look(lap % 2 == 1), places);
    EXPECT_EQ(look(true), Places{});
    for (const Place& place : places) answer(place);
    EXPECT_EQ(look(), Places{});
  }
  for (const serve::Channel& channel : channels_) EXPECT_TRUE(serve::is_left(channel.gate));
}

TEST_P(LookFarTest, takes_no_second_request_of_a_slot_before_the_first_is_answered) {
  const Place first = publish(2, 200);
  EXPECT_EQ(look(), Places{first});
  const Place second = publish(2, 200);
  EXPECT_EQ(look(), Places{});
  answer(first);
  EXPECT_EQ(look(), Places{second});
}

TEST_P(LookFarTest, finds_nothing_of_a_channel_that_is_closed_until_it_is_opened_again) {
  const Place other = publish(3, 127);
  publish(2, 63);
  publish(2, 64);
  close(2);
  EXPECT_EQ(look(), Places{other});
  std::fill(rings_[2].begin(), rings_[2].end(), 0);
  open(2);
  EXPECT_EQ(look(), Places{});
  const Place again = publish(2, 255);
  EXPECT_EQ(look(), Places{again});
}

TEST_P(LookFarTest, believes_no_slot_behind_those_of_a_ring) {
  serve::publish(views_[0], {2, 0}, {});
  EXPECT_EQ(look(), Places{});
}

}  // namespace
}  // namespace gofs::kernels
