// SPDX-License-Identifier: Apache-2.0
//
// The CPU's launch: every index runs once, and is over when the launch returns.
#include "simt/workers.h"

#include <gtest/gtest.h>

#include <vector>

#include "simt/atomic.h"

namespace gofs::simt {
namespace {

TEST(WorkersTest, each_index_runs_once_and_is_over_at_return) {
  std::vector<uint32_t> runs(37);
  run_workers(37, [&](const Warp& warp, uint32_t index) {
    EXPECT_EQ(warp.size(), 1u);
    EXPECT_EQ(warp.thread_rank(), 0u);
    EXPECT_EQ(processor_id(), index);
    ++runs[index];  // plain: the launch must order it before what follows
  });
  for (const uint32_t count : runs) EXPECT_EQ(count, 1u);
}

TEST(WorkersTest, nothing_to_run_returns) {
  run_workers(0, [](const Warp&, uint32_t) { FAIL(); });
}

TEST(WorkersTest, a_thread_outside_is_processor_zero) { EXPECT_EQ(processor_id(), 0u); }

// Plain increments under the lock: lost ones, or a data race, if it does not exclude.
TEST(TryLockTest, excludes_all_others) {
  uint32_t lock = 0;
  uint64_t count = 0;
  run_workers(8, [&](const Warp&, uint32_t) {
    for (uint32_t done = 0; done < 200;) {
      if (!try_lock(lock)) {
        Backoff().pause();
        continue;
      }
      ++count;
      unlock(lock);
      ++done;
    }
  });
  EXPECT_EQ(count, 8u * 200);
  EXPECT_EQ(lock, 0u);
}

TEST(TryLockTest, fails_while_somebody_holds_it) {
  uint32_t lock = 0;
  ASSERT_TRUE(try_lock(lock));
  EXPECT_FALSE(try_lock(lock));
  unlock(lock);
  EXPECT_TRUE(try_lock(lock));
}

TEST(DeadlineTest, time_runs_from_the_first_look) {
  constexpr uint64_t kTimeoutNs = 20'000'000;
  const Deadline deadline = Deadline::after_ns(kTimeoutNs);
  const uint64_t made = now_ns();
  while (now_ns() - made < 2 * kTimeoutNs) Backoff().pause();
  const uint64_t looked = now_ns();
  if (deadline.passed()) {
    EXPECT_GE(now_ns() - looked, kTimeoutNs);
  }
  while (!deadline.passed()) Backoff().pause();
  EXPECT_GE(now_ns() - looked, kTimeoutNs);
  EXPECT_TRUE(deadline.passed());
}

TEST(DeadlineTest, a_time_past_the_end_of_the_clock_never_comes) {
  for (const uint64_t timeout_ns : {~uint64_t{0}, ~uint64_t{0} - 5}) {
    const Deadline deadline = Deadline::after_ns(timeout_ns);
    EXPECT_FALSE(deadline.passed());
    EXPECT_FALSE(deadline.passed());
  }
  EXPECT_TRUE(Deadline::after_ns(0).passed());
}

}  // namespace
}  // namespace gofs::simt
