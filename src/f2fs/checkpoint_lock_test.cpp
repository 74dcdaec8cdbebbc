// SPDX-License-Identifier: Apache-2.0
//
// The checkpoint lock: many operations hold it at once, none while a checkpoint does, and all get
// their turn. What it protects is changed by plain accesses, for ThreadSanitizer.
#include "f2fs/checkpoint_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "testing/crowd.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;

class CheckpointLockTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  CheckpointLock lock_{};
};
GOFS_AT_BOTH_WIDTHS(CheckpointLockTest);

TEST_P(CheckpointLockTest, several_operations_hold_it_at_once) {
  constexpr uint32_t kWarps = 4;
  std::atomic<uint32_t> inside{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t) {
    OpHold hold{};
    EXPECT_EQ(lock_op(warp, lock_, hold), 0);
    if (warp.thread_rank() == 0) ++inside;
    // None would release it if one had to wait for another.
    while (!warp.all(inside == kWarps)) simt::Backoff().pause();
    unlock_op(warp, lock_, hold);
  });
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(lock_for_checkpoint(warp, lock_), 0);
    unlock_after_checkpoint(warp, lock_);
  });
  for (const CheckpointLock::Side& side : lock_.sides) EXPECT_EQ(side.inside, 0u);
}

TEST_P(CheckpointLockTest, no_operation_holds_it_during_a_checkpoint) {
  constexpr uint32_t kWarps = 6;
  const uint32_t turns = width() == 1 ? 300 : 40;
  std::vector<uint32_t> counts(kWarps);  // plain: each changed inside by one, read by who closes
  uint32_t checkpoints = 0;              // plain: changed by who closes, read by all inside
  std::atomic<uint32_t> wrong{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      if ((turn + index) % 7 == 0) {
        EXPECT_EQ(lock_for_checkpoint(warp, lock_), 0);
        if (warp.thread_rank() == 0) {
          // An operation counts twice and is never seen in the middle.
          for (const uint32_t count : counts) {
            if (count % 2 != 0) ++wrong;
          }
          ++checkpoints;
        }
        unlock_after_checkpoint(warp, lock_);
      } else {
        OpHold hold{};
        EXPECT_EQ(lock_op(warp, lock_, hold), 0);
        const uint32_t before = checkpoints;
        if (warp.thread_rank() == 0) ++counts[index];
        simt::Backoff().pause();
        if (warp.thread_rank() == 0) ++counts[index];
        if (checkpoints != before) ++wrong;
        unlock_op(warp, lock_, hold);
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
