// SPDX-License-Identifier: Apache-2.0
//
// Range locks that borrow rings of a pool: one holder at a time needs none, the second one brings a
// ring, idle ones go to other locks, and where there is none all get their turn still, one at a
// time.
#include "vfs/range_rings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "vfs/range_locks_for_test.hpp"

namespace gofs::vfs {
namespace {

using simt::Deadline;

class RangeRingsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  bool narrow() const { return GetParam() == 1; }

  /// 0 or a negative errno.
  int lock(RangeLock& lock, const ByteRange& range, bool exclusively, uint64_t timeout_ns,
           RangeHold& hold) {
    return lock_alone(width(), lock, range, exclusively, timeout_ns, hold);
  }
  int exclusive(RangeLock& lock, const ByteRange& range, RangeHold& hold) {
    return this->lock(lock, range, true, kShortNs, hold);
  }
  int shared(RangeLock& lock, const ByteRange& range, RangeHold& hold) {
    return this->lock(lock, range, false, kShortNs, hold);
  }
  void release(RangeLock& lock, const RangeHold& hold) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_exclusive(warp, lock, hold); });
  }
  void release_shared(RangeLock& lock, const RangeHold& hold) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_shared(warp, lock, hold); });
  }
  /// The detached range, or kDetachedRanges where there is no room.
  uint32_t detach(RangeLock& lock, const RangeHold& hold) {
    uint32_t detached = kDetachedRanges;
    run_alone(width(), [&](const simt::Warp& warp) {
      uint32_t mine = kDetachedRanges;
      if (!detach_lock(warp, lock, hold, mine)) mine = kDetachedRanges;
      if (warp.thread_rank() == 0) detached = mine;
    });
    return detached;
  }
  void unlock(RangeLock& lock, uint32_t detached) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_detached(warp, lock, detached); });
  }
  /// Has the lock get a ring, if there is one, by two who do not overlap.
  void contend(RangeLock& lock) {
    RangeHold a{};
    RangeHold b{};
    ASSERT_EQ(exclusive(lock, {0, 1}, a), 0);
    ASSERT_EQ(exclusive(lock, {1, 1}, b), 0);
    release(lock, a);
    release(lock, b);
  }
  static bool has_ring(const RangeLock& lock) { return detail::ring_of(lock.turns) != 0; }
  static uint64_t used(RangeRings& rings) {
    return ring_bytes_used(rings, 0, 1) / sizeof(RangeRing);
  }
};
GOFS_AT_BOTH_WIDTHS(RangeRingsTest);

TEST_P(RangeRingsTest, who_is_by_himself_needs_no_ring) {
  const auto lock = make_fresh_lock();
  for (int turn = 0; turn < 3; ++turn) {
    RangeHold hold{};
    ASSERT_EQ(exclusive(*lock, {0, 100}, hold), 0);
    EXPECT_TRUE(hold.in_ring);
    release(*lock, hold);
    ASSERT_EQ(shared(*lock, {0, 100}, hold), 0);
    EXPECT_FALSE(hold.in_ring);
    // Nor who gives up since there are readers.
    EXPECT_EQ(exclusive(*lock, {0, 100}, hold), -ETIMEDOUT);
    EXPECT_EQ(lock->turns, 0u);
    release_shared(*lock, RangeHold{});
  }
  EXPECT_EQ(lock->rings->hand, 0u) << "none was looked for";
  expect_free(*lock);
}

TEST_P(RangeRingsTest, the_first_excludes_overlapping_requests_and_no_others) {
  for (const bool first_writes : {true, false}) {
    const auto lock = make_fresh_lock();
    // Readers queue in the line where there are block writers.
    if (!first_writes) {
      run_alone(width(), [&](const simt::Warp& warp) {
        EXPECT_TRUE(try_join_block_writers(warp, *lock, kNoneWaits));
      });
    }
    RangeHold first{};
    std::thread reader([&] {
      if (!first_writes) {
        EXPECT_EQ(this->lock(*lock, {100, 50}, false, kLongNs, first), 0);
      }
    });
    if (first_writes) {
      ASSERT_EQ(exclusive(*lock, {100, 50}, first), 0);
    } else {
      while (simt::load_relaxed(lock->turns) == 0) simt::Backoff().pause();
      run_alone(width(), [&](const simt::Warp& warp) { leave_block_writers(warp, *lock); });
    }
    reader.join();
    ASSERT_TRUE(first.in_ring);
    ASSERT_EQ(first.ring, nullptr);
    struct Case {
      ByteRange range;
      bool apart;
    };
    const Case cases[] = {{{0, 100}, true},  {{0, 101}, false},  {{149, 1}, false},
                          {{150, 10}, true}, {{110, 10}, false}, {{99, 1}, true},
                          {{0, 1000}, false}};
    for (const Case& one : cases) {
      for (const bool exclusively : {false, true}) {
        RangeHold hold{};
        const bool granted = one.apart || (!first_writes && !exclusively);
        EXPECT_EQ(this->lock(*lock, one.range, exclusively, kShortNs / 10, hold),
                  granted ? 0 : -ETIMEDOUT)
            << one.range.offset << " " << exclusively;
        if (granted) exclusively ? release(*lock, hold) : release_shared(*lock, hold);
      }
    }
    first_writes ? release(*lock, first) : release_shared(*lock, first);
    expect_free(*lock);
  }
}

TEST_P(RangeRingsTest, who_comes_second_waits_for_the_first_in_the_ring) {
  const auto lock = make_fresh_lock();
  RangeHold first{};
  ASSERT_EQ(exclusive(*lock, {0, 10}, first), 0);
  std::atomic<int> order{0};
  std::atomic<int> second_at{-1};
  std::thread second([&] {
    RangeHold hold{};
    EXPECT_EQ(this->lock(*lock, {5, 10}, true, kLongNs, hold), 0);
    second_at = order++;
    EXPECT_NE(hold.ring, nullptr);
    release(*lock, hold);
  });
  // A ticket that is counted before there is a ring is nobody's.
  const auto is_in_ring = [&] {
    const uint64_t turns = simt::load_relaxed(lock->turns);
    return detail::ring_of(turns) != 0 && detail::ticket_of(turns) == 2;
  };
  while (!is_in_ring()) simt::Backoff().pause();
  // Who overlaps the second alone does not overtake him; who overlaps neither goes on.
  RangeHold hold{};
  EXPECT_EQ(exclusive(*lock, {12, 1}, hold), -ETIMEDOUT);
  EXPECT_EQ(shared(*lock, {12, 1}, hold), -ETIMEDOUT);
  ASSERT_EQ(exclusive(*lock, {20, 1}, hold), 0);
  release(*lock, hold);
  EXPECT_EQ(second_at, -1);
  release(*lock, first);
  second.join();
  EXPECT_EQ(second_at, 0);
  EXPECT_TRUE(has_ring(*lock)) << "it stays, for the next ones";
  expect_free(*lock);
}

TEST_P(RangeRingsTest, a_ring_that_is_idle_goes_to_who_needs_one) {
  const auto locks = make_locks(3, 1);
  RangeRings& rings = *locks[0].rings;
  for (int turn = 0; turn < 3; ++turn) {
    for (uint32_t i = 0; i < 3; ++i) {
      contend(locks[i]);
      for (uint32_t other = 0; other < 3; ++other) EXPECT_EQ(has_ring(locks[other]), other == i);
      EXPECT_EQ(used(rings), 0u);
    }
  }
  for (uint32_t i = 0; i < 3; ++i) expect_free(locks[i]);
}

// The third one comes and goes while the second one looks whether it is alone with the first gone:
// as many have left as stood before the second then, though the first has not.
TEST(RangeRings, who_comes_and_goes_does_not_stand_for_who_stays) {
  constexpr uint32_t kTurns = 1'000;
  const auto lock = make_fresh_lock();
  const auto take = [&](const ByteRange& range, RangeHold& hold) {
    EXPECT_EQ(lock_exclusive(simt::Warp(), *lock, range, Deadline::after_ns(kLongNs), hold), 0);
  };
  std::atomic<uint32_t> turn{0};
  std::thread third([&] {
    for (uint32_t i = 1; i <= kTurns; ++i) {
      while (turn != i) std::this_thread::yield();
      RangeHold hold{};
      take({20, 1}, hold);
      unlock_exclusive(simt::Warp(), *lock, hold);
      turn = 0;
    }
  });
  RangeHold a{};
  RangeHold b{};
  take({0, 1}, a);
  take({1, 1}, b);  // which brings a ring, where all stand from now on
  unlock_exclusive(simt::Warp(), *lock, a);
  unlock_exclusive(simt::Warp(), *lock, b);
  for (uint32_t i = 1; i <= kTurns; ++i) {
    RangeHold first{};
    RangeHold second{};
    take({0, 10}, first);
    take({10, 10}, second);
    turn = i;
    uint32_t alone = 0;
    for (uint64_t seen = 0; turn != 0;) {
      alone += detail::has_line_alone(*lock, second, seen) ? 1 : 0;
    }
    EXPECT_EQ(alone, 0u) << i;
    unlock_exclusive(simt::Warp(), *lock, first);
    unlock_exclusive(simt::Warp(), *lock, second);
  }
  third.join();
  expect_free(*lock);
}

// A ring is busy while a request holds or waits in it, a range is detached there, or one is the
// first of its lock.
TEST_P(RangeRingsTest, a_ring_that_is_in_use_stays_where_it_is) {
  const auto locks = make_locks(2, 1);
  RangeRings& rings = *locks[0].rings;
  RangeHold first{};
  RangeHold second{};
  ASSERT_EQ(exclusive(locks[0], {0, 1}, first), 0);
  EXPECT_EQ(used(rings), 0u);
  ASSERT_EQ(exclusive(locks[0], {1, 1}, second), 0);
  const auto is_refused = [&] {
    EXPECT_EQ(used(rings), 1u);
    RangeHold a{};
    RangeHold b{};
    EXPECT_EQ(exclusive(locks[1], {0, 1}, a), 0) << "the first needs none";
    EXPECT_EQ(exclusive(locks[1], {1, 1}, b), -ETIMEDOUT);
    EXPECT_FALSE(has_ring(locks[1]));
    release(locks[1], a);
    EXPECT_EQ(locks[1].turns, 0u);
  };
  is_refused();
  release(locks[0], second);
  is_refused();  // the first is there still
  ASSERT_EQ(exclusive(locks[0], {1, 1}, second), 0);
  release(locks[0], first);
  is_refused();
  const uint32_t detached = detach(locks[0], second);
  ASSERT_NE(detached, kDetachedRanges);
  is_refused();
  unlock(locks[0], detached);
  EXPECT_EQ(used(rings), 0u);
  contend(locks[1]);
  EXPECT_TRUE(has_ring(locks[1]));
  for (uint32_t i = 0; i < 2; ++i) expect_free(locks[i]);
}

TEST_P(RangeRingsTest, who_keeps_a_range_as_the_first_brings_a_ring) {
  const auto locks = make_locks(2, 1);
  RangeHold hold{};
  ASSERT_EQ(exclusive(locks[0], {10, 10}, hold), 0);
  const uint32_t detached = detach(locks[0], hold);
  ASSERT_NE(detached, kDetachedRanges);
  EXPECT_TRUE(has_ring(locks[0]));
  EXPECT_EQ(exclusive(locks[0], {15, 1}, hold), -ETIMEDOUT);
  ASSERT_EQ(exclusive(locks[0], {20, 1}, hold), 0);
  release(locks[0], hold);
  // Where there is none to be had, nothing is detached, and the hold goes on.
  ASSERT_EQ(exclusive(locks[1], {0, 10}, hold), 0);
  EXPECT_EQ(detach(locks[1], hold), kDetachedRanges);
  RangeHold refused{};
  EXPECT_EQ(shared(locks[1], {0, 1}, refused), -ETIMEDOUT);
  release(locks[1], hold);
  unlock(locks[0], detached);
  for (uint32_t i = 0; i < 2; ++i) expect_free(locks[i]);
}

TEST_P(RangeRingsTest, without_a_ring_all_get_their_turn_one_at_a_time) {
  // The only ring is in use all the time.
  const auto locks = make_locks(2, 1);
  RangeHold a{};
  RangeHold b{};
  ASSERT_EQ(exclusive(locks[0], {0, 1}, a), 0);
  ASSERT_EQ(exclusive(locks[0], {1, 1}, b), 0);
  run_storm(locks[1], width(), narrow() ? Storm{5, 3, 100} : Storm{2, 2, 20}, printed_seed());
  EXPECT_FALSE(has_ring(locks[1]));
  expect_free(locks[1]);
  release(locks[0], a);
  release(locks[0], b);
  expect_free(locks[0]);
}

TEST_P(RangeRingsTest, a_waiter_without_a_ring_counts_itself_once) {
  const auto locks = make_locks(2, 1);
  RangeHold a{};
  RangeHold b{};
  ASSERT_EQ(exclusive(locks[0], {0, 1}, a), 0);
  ASSERT_EQ(exclusive(locks[0], {1, 1}, b), 0);  // the only ring is in use
  RangeHold first{};
  ASSERT_EQ(exclusive(locks[1], {0, 1}, first), 0);
  for (uint64_t others = 1; others <= 3; ++others) {
    RangeHold refused{};
    EXPECT_EQ(exclusive(locks[1], {0, 1}, refused), -ETIMEDOUT);
    EXPECT_EQ(detail::ticket_of(locks[1].turns), 1 + others) << "the first, and one each";
  }
  release(locks[1], first);
  expect_free(locks[1]);
  release(locks[0], a);
  release(locks[0], b);
}

TEST_P(RangeRingsTest, who_waits_without_a_ring_gets_one_that_becomes_idle) {
  const auto locks = make_locks(2, 1);
  RangeHold a{};
  RangeHold b{};
  RangeHold first{};
  ASSERT_EQ(exclusive(locks[0], {0, 1}, a), 0);
  ASSERT_EQ(exclusive(locks[0], {1, 1}, b), 0);
  ASSERT_EQ(exclusive(locks[1], {0, 1}, first), 0);
  std::thread waiter([&] {
    RangeHold hold{};
    EXPECT_EQ(this->lock(locks[1], {1, 1}, true, kLongNs, hold), 0) << "beside the first";
    release(locks[1], hold);
  });
  while (detail::ticket_of(simt::load_relaxed(locks[1].turns)) < 2) simt::Backoff().pause();
  release(locks[0], a);
  release(locks[0], b);
  waiter.join();
  release(locks[1], first);
  for (uint32_t i = 0; i < 2; ++i) expect_free(locks[i]);
}

TEST_P(RangeRingsTest, readers_and_writers_of_a_fresh_lock_exclude_each_other) {
  for (const bool whole : {false, true}) {
    const auto lock = make_fresh_lock();
    if (whole) hold_whole_files(*lock);
    run_storm(*lock, width(), narrow() ? Storm{4, 3, 100, true, 2} : Storm{2, 1, 20, true, 1},
              printed_seed());
    expect_free(*lock);
  }
}

/// Many storms at once, each with few in it, so that rings go from lock to lock all the time.
void run_storms(uint32_t count, uint32_t rings, uint32_t width, const Storm& storm) {
  const auto locks = make_locks(count, rings);
  const uint64_t seed = printed_seed();
  std::vector<std::thread> storms;
  for (uint32_t i = 0; i < count; ++i) {
    storms.emplace_back([&, i] { run_storm(locks[i], width, storm, seed + i); });
  }
  for (std::thread& one : storms) one.join();
  for (uint32_t i = 0; i < count; ++i) expect_free(locks[i]);
  EXPECT_EQ(ring_bytes_used(*locks[0].rings, 0, 1), 0u);
  for (uint32_t i = 1; i <= rings; ++i) EXPECT_EQ(locks[0].rings->ring(i).claimed, 0u);
}

TEST_P(RangeRingsTest, rings_go_around_among_contended_locks) {
  run_storms(5, 2, width(), narrow() ? Storm{1, 2, 120, false, 1} : Storm{1, 1, 20, false, 1});
}

// A lock with a detached range must not lose the ring that has it.
TEST_P(RangeRingsTest, rings_go_around_among_locks_with_detached_ranges) {
  const auto locks = make_locks(4, 2);
  std::atomic<uint32_t> wrong{0};
  std::vector<uint64_t> words(4);
  const uint32_t turns = narrow() ? 200 : 30;
  run_crowd({6, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint32_t which = (turn * 5 + index) % 4;
      RangeLock& lock = locks[which];
      RangeHold hold{};
      if (lock_exclusive(warp, lock, {7, 1}, Deadline::after_ns(kLongNs), hold) != 0) ++wrong;
      uint32_t detached = kDetachedRanges;
      const bool detaches = detach_lock(warp, lock, hold, detached);
      const uint64_t stamp = uint64_t{index} << 32 | turn;
      if (warp.thread_rank() == 0) words[which] = stamp;
      simt::Backoff().pause();
      if (warp.thread_rank() == 0 && words[which] != stamp) ++wrong;
      detaches ? unlock_detached(warp, lock, detached) : unlock_exclusive(warp, lock, hold);
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (uint32_t i = 0; i < 4; ++i) expect_free(locks[i]);
}

TEST_P(RangeRingsTest, tickets_run_over_the_end_of_their_bits) {
  const auto lock = make_fresh_lock();
  RangeRing& ring = lock->rings->ring(1);
  // The first one who stands in the ring has the last ticket there is, or nearly.
  const uint64_t last = detail::kTicketMask - 3;
  ring.left = last;
  for (uint64_t ticket = last; ticket < last + kRangeRingEntries; ++ticket) {
    ring.entries[ticket % kRangeRingEntries].state = detail::ready_state(ticket);
  }
  run_storm(*lock, width(), narrow() ? Storm{3, 3, 60} : Storm{2, 2, 20}, printed_seed());
  EXPECT_LT(detail::ticket_of(lock->turns), uint64_t{1} << 30);
  EXPECT_GT(ring.left, detail::kTicketMask);
  expect_free(*lock);
}

}  // namespace
}  // namespace gofs::vfs
