// SPDX-License-Identifier: Apache-2.0
//
// Locks that many share or one has alone: none holds it beside one that has it alone, neither kind
// keeps the other out for good, and who gives up leaves nothing behind. What they protect are plain
// words, so that ThreadSanitizer sees who is beside whom.
#include "simt/shared_lock.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/crowd.hpp"

namespace gofs::simt {
namespace {

using testing::run_alone;
using testing::run_crowd;

constexpr uint64_t kLongNs = 60'000'000'000;
constexpr uint64_t kShortNs = 1'000'000;

class SharedLockTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  bool share(uint64_t timeout_ns) {
    return take(
        [&](const Warp& warp) { return lock_shared(warp, lock_, Deadline::after_ns(timeout_ns)); });
  }
  bool have_alone(uint64_t timeout_ns) {
    return take(
        [&](const Warp& warp) { return lock_alone(warp, lock_, Deadline::after_ns(timeout_ns)); });
  }
  void leave_shared() {
    run_alone(width(), [&](const Warp& warp) { unlock_shared(warp, lock_); });
  }
  void leave_alone() {
    run_alone(width(), [&](const Warp& warp) { unlock_alone(warp, lock_); });
  }
  /// Whether another thread has it alone or waits for that.
  bool wanted_alone() const { return (load_relaxed(lock_.in) & detail::kAlone) != 0; }
  uint32_t waiting_or_sharing() const {
    return detail::sharers_of(load_relaxed(lock_.in)) - load_relaxed(lock_.out);
  }

  SharedLock lock_{};

 private:
  template <typename Take>
  bool take(Take one) {
    bool taken = false;
    run_alone(width(), [&](const Warp& warp) {
      const bool mine = one(warp);
      if (warp.thread_rank() == 0) taken = mine;
    });
    return taken;
  }
};
GOFS_AT_BOTH_WIDTHS(SharedLockTest);

TEST_P(SharedLockTest, is_shared_by_many_or_one_has_it) {
  EXPECT_EQ(count_sharers(lock_), 0u);
  EXPECT_TRUE(share(0));
  EXPECT_TRUE(share(0));
  EXPECT_EQ(count_sharers(lock_), 2u);
  EXPECT_FALSE(have_alone(kShortNs));
  leave_shared();
  EXPECT_EQ(count_sharers(lock_), 1u);
  EXPECT_FALSE(have_alone(kShortNs));
  leave_shared();
  EXPECT_TRUE(have_alone(0));
  EXPECT_FALSE(have_alone(kShortNs));
  EXPECT_FALSE(share(kShortNs));
  leave_alone();
  EXPECT_TRUE(share(0));
  leave_shared();
}

TEST_P(SharedLockTest, who_gives_up_leaves_nothing_behind) {
  for (uint32_t turn = 0; turn < 4; ++turn) {
    ASSERT_TRUE(share(0));
    EXPECT_FALSE(have_alone(kShortNs));
    EXPECT_FALSE(wanted_alone());
    EXPECT_TRUE(share(0)) << "none waits any more";
    leave_shared();
    leave_shared();
    ASSERT_TRUE(have_alone(0));
    EXPECT_FALSE(share(kShortNs));
    EXPECT_FALSE(share(kShortNs));
    EXPECT_EQ(waiting_or_sharing(), 0u);
    leave_alone();
    ASSERT_TRUE(have_alone(0)) << "it waits for none of those who gave up";
    leave_alone();
  }
}

TEST_P(SharedLockTest, counts_go_around) {
  lock_.in = ~uint64_t{detail::kAlone};  // the last turn, and as many as can be counted
  lock_.out = ~uint32_t{0};
  EXPECT_TRUE(share(0));
  EXPECT_EQ(waiting_or_sharing(), 1u);
  EXPECT_FALSE(have_alone(kShortNs));
  EXPECT_EQ(waiting_or_sharing(), 1u);
  EXPECT_TRUE(share(0));
  leave_shared();
  leave_shared();
  EXPECT_TRUE(have_alone(0));
  leave_alone();
  EXPECT_EQ(waiting_or_sharing(), 0u);
  EXPECT_FALSE(wanted_alone());
}

// He came in a turn after which others wait for him and give up, so that two turns pass before he
// looks.
TEST_P(SharedLockTest, who_waits_to_share_it_may_miss_turns) {
  ASSERT_TRUE(have_alone(0));
  run_crowd({2, width()}, [&](const Warp& warp, uint32_t index) {
    if (index == 0) {
      EXPECT_TRUE(lock_shared(warp, lock_, Deadline::after_ns(kLongNs)));
      unlock_shared(warp, lock_);
      return;
    }
    while (!warp.any(waiting_or_sharing() == 1)) pause_host_thread();
    unlock_alone(warp, lock_);
    for (uint32_t turn = 0; turn < 3; ++turn) {
      if (lock_alone(warp, lock_, Deadline::after_ns(0))) unlock_alone(warp, lock_);
    }
    EXPECT_TRUE(lock_alone(warp, lock_, Deadline::after_ns(kLongNs)));
    unlock_alone(warp, lock_);
  });
}

// As soon as those are done who shared it when he came, however many come after.
TEST_P(SharedLockTest, who_waits_to_have_it_alone_gets_his_turn) {
  constexpr uint32_t kTurns = 20;
  uint32_t done = 0;
  uint64_t guarded = 0;
  run_crowd({4, width()}, [&](const Warp& warp, uint32_t index) {
    const bool leader = warp.thread_rank() == 0;
    if (index == 0) {
      for (uint32_t turn = 0; turn < kTurns; ++turn) {
        EXPECT_TRUE(lock_alone(warp, lock_, Deadline::after_ns(kLongNs)));
        if (leader) ++guarded;
        unlock_alone(warp, lock_);
      }
      if (leader) store_release(done, 1u);
      return;
    }
    uint64_t seen = 0;
    bool going = true;
    EXPECT_TRUE(lock_shared(warp, lock_, Deadline::after_ns(kLongNs)));
    while (going) {
      EXPECT_GE(guarded, seen);
      seen = guarded;
      pause_host_thread();
      unlock_shared(warp, lock_);
      EXPECT_TRUE(lock_shared(warp, lock_, Deadline::after_ns(kLongNs)));
      going = warp.shfl(load_acquire(done), 0) == 0;
    }
    unlock_shared(warp, lock_);
  });
  EXPECT_EQ(guarded, kTurns);
}

// A row of those who want it alone, one of whom always has it or waits for it.
TEST_P(SharedLockTest, who_waits_to_share_it_gets_his_turn) {
  constexpr uint32_t kTurns = 20;
  uint32_t done = 0;
  uint64_t guarded = 0;
  run_crowd({4, width()}, [&](const Warp& warp, uint32_t index) {
    const bool leader = warp.thread_rank() == 0;
    if (index == 0) {
      for (uint32_t turn = 0; turn < kTurns; ++turn) {
        EXPECT_TRUE(lock_shared(warp, lock_, Deadline::after_ns(kLongNs)));
        const uint64_t seen = guarded;
        pause_host_thread();
        EXPECT_EQ(guarded, seen);
        unlock_shared(warp, lock_);
      }
      if (leader) store_release(done, 1u);
      return;
    }
    while (warp.shfl(load_acquire(done), 0) == 0) {
      EXPECT_TRUE(lock_alone(warp, lock_, Deadline::after_ns(kLongNs)));
      if (leader) ++guarded;
      pause_host_thread();
      unlock_alone(warp, lock_);
    }
  });
}

// Those who share it change words of their own, one who has it alone changes all of them. Many give
// up before they have it.
TEST_P(SharedLockTest, none_has_it_beside_one_that_has_it_alone) {
  constexpr uint32_t kWarps = 6;
  constexpr uint32_t kTurnsEach = 400;
  std::vector<uint64_t> words(kWarps);
  std::vector<uint64_t> added(kWarps);
  uint64_t added_to_all = 0;
  run_crowd({kWarps, width()}, [&](const Warp& warp, uint32_t index) {
    const bool leader = warp.thread_rank() == 0;
    for (uint32_t round = 0; round < kTurnsEach; ++round) {
      const Deadline deadline = Deadline::after_ns(round % 3 == 0 ? 0 : kLongNs);
      if ((round + index) % 5 == 0) {
        if (!lock_alone(warp, lock_, deadline)) continue;
        if (leader) {
          for (uint64_t& word : words) ++word;
          ++added_to_all;
        }
        unlock_alone(warp, lock_);
      } else {
        if (!lock_shared(warp, lock_, deadline)) continue;
        if (leader) {
          ++words[index];
          ++added[index];
        }
        unlock_shared(warp, lock_);
      }
    }
  });
  for (uint32_t i = 0; i < kWarps; ++i) EXPECT_EQ(words[i], added[i] + added_to_all);
  EXPECT_EQ(waiting_or_sharing(), 0u);
  EXPECT_FALSE(wanted_alone());
}

}  // namespace
}  // namespace gofs::simt
