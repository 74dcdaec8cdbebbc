// SPDX-License-Identifier: Apache-2.0
//
// The gate between operations and checkpoints: many inside at once, nobody inside while it is
// closed, and all get their turn. What it protects is changed by plain accesses, for
// ThreadSanitizer.
#include "f2fs/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "testing/crowd.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;

class GateTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  Gate gate_{};
};
GOFS_AT_BOTH_WIDTHS(GateTest);

TEST_P(GateTest, several_are_inside_at_once) {
  constexpr uint32_t kWarps = 4;
  std::atomic<uint32_t> inside{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t) {
    GatePass pass{};
    EXPECT_EQ(enter_gate(warp, gate_, pass), 0);
    if (warp.thread_rank() == 0) ++inside;
    // Nobody would come out if one had to wait for another.
    while (!warp.all(inside == kWarps)) simt::Backoff().pause();
    leave_gate(warp, gate_, pass);
  });
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(close_gate(warp, gate_), 0);
    open_gate(warp, gate_);
  });
  for (const Gate::Side& side : gate_.sides) EXPECT_EQ(side.inside, 0u);
}

TEST_P(GateTest, nobody_is_inside_while_it_is_closed) {
  constexpr uint32_t kWarps = 6;
  const uint32_t turns = width() == 1 ? 300 : 40;
  std::vector<uint32_t> counts(kWarps);  // plain: each changed inside by one, read by who closes
  uint32_t checkpoints = 0;              // plain: changed by who closes, read by all inside
  std::atomic<uint32_t> wrong{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      if ((turn + index) % 7 == 0) {
        EXPECT_EQ(close_gate(warp, gate_), 0);
        if (warp.thread_rank() == 0) {
          // An operation counts twice and is never seen in the middle.
          for (const uint32_t count : counts) {
            if (count % 2 != 0) ++wrong;
          }
          ++checkpoints;
        }
        open_gate(warp, gate_);
      } else {
        GatePass pass{};
        EXPECT_EQ(enter_gate(warp, gate_, pass), 0);
        const uint32_t before = checkpoints;
        if (warp.thread_rank() == 0) ++counts[index];
        simt::Backoff().pause();
        if (warp.thread_rank() == 0) ++counts[index];
        if (checkpoints != before) ++wrong;
        leave_gate(warp, gate_, pass);
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  uint32_t wanted = 0;
  for (uint32_t index = 0; index < kWarps; ++index) {
    uint32_t closed = 0;
    for (uint32_t turn = 0; turn < turns; ++turn) closed += (turn + index) % 7 == 0 ? 1 : 0;
    EXPECT_EQ(counts[index], 2 * (turns - closed));
    wanted += closed;
  }
  EXPECT_EQ(checkpoints, wanted);
}

}  // namespace
}  // namespace gofs::f2fs
