// SPDX-License-Identifier: Apache-2.0
//
// Range locks with synthetic readers and writers: none reads what is being written, none overtakes
// an earlier request that it overlaps, waits end at their deadline and leave nothing behind. What
// the locks protect are plain words, so that ThreadSanitizer sees every overlap.
#include "vfs/range_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "vfs/range_locks_for_test.hpp"

namespace gofs::vfs {
namespace {

using simt::Deadline;

/// One that has a ring, which was used before `first_ticket`.
std::shared_ptr<RangeLock> make_lock(uint64_t first_ticket = 0) {
  EXPECT_EQ(first_ticket % kRangeRingEntries, 0u);
  auto lock = make_fresh_lock();
  RangeRing& ring = lock->rings->ring(1);
  ring.lock = lock.get();
  ring.left = first_ticket;
  for (RangeEntry& entry : ring.entries) entry.state = detail::ready_state(first_ticket);
  lock->turns = first_ticket * detail::kOneTicket | 1;
  return lock;
}

/// The same as one for the whole file.
std::shared_ptr<RangeLock> make_whole_lock() {
  auto lock = make_lock();
  hold_whole_files(*lock);
  return lock;
}

class RangeLockTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  bool narrow() const { return GetParam() == 1; }

  int shared(RangeLock& lock, const ByteRange& range, uint64_t timeout_ns, RangeHold& hold) {
    return lock_by(lock, range, timeout_ns, hold, false);
  }
  int exclusive(RangeLock& lock, const ByteRange& range, uint64_t timeout_ns, RangeHold& hold) {
    return lock_by(lock, range, timeout_ns, hold, true);
  }
  void release_shared(RangeLock& lock, const RangeHold& hold) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_shared(warp, lock, hold); });
  }
  void release_exclusive(RangeLock& lock, const RangeHold& hold) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_exclusive(warp, lock, hold); });
  }
  /// Until another thread has taken the ticket after `ticket`, or asked for the ring.
  static void wait_for_ticket(const RangeLock& lock, uint64_t ticket) {
    const Deadline deadline = Deadline::after_ns(kLongNs);
    while (detail::ticket_of(simt::load_relaxed(lock.turns)) <= ticket) {
      ASSERT_FALSE(deadline.passed());
      simt::Backoff().pause();
    }
  }
  static void wait_for_writer(const RangeLock& lock) {
    const Deadline deadline = Deadline::after_ns(kLongNs);
    while (simt::load_relaxed(lock.holder_counts) < detail::kOneWriter) {
      ASSERT_FALSE(deadline.passed());
      simt::Backoff().pause();
    }
  }

 private:
  int lock_by(RangeLock& lock, const ByteRange& range, uint64_t timeout_ns, RangeHold& hold,
              bool exclusively) {
    return lock_alone(width(), lock, range, exclusively, timeout_ns, hold);
  }
};
GOFS_AT_BOTH_WIDTHS(RangeLockTest);

TEST_P(RangeLockTest, readers_share_everything_without_the_ring) {
  const auto lock = make_lock();
  RangeHold a{};
  RangeHold b{};
  EXPECT_EQ(shared(*lock, {0, 100}, kShortNs, a), 0);
  EXPECT_EQ(shared(*lock, {0, 100}, kShortNs, b), 0);
  EXPECT_EQ(detail::ticket_of(lock->turns), 0u);
  EXPECT_EQ(lock->holder_counts, 2u);
  release_shared(*lock, a);
  release_shared(*lock, b);
  expect_free(*lock);
}

TEST_P(RangeLockTest, a_writer_excludes_overlapping_requests_and_no_others) {
  const auto lock = make_lock();
  RangeHold writer{};
  ASSERT_EQ(exclusive(*lock, {100, 50}, kShortNs, writer), 0);
  struct Case {
    ByteRange range;
    bool granted;
  };
  const Case cases[] = {{{0, 100}, true},   {{0, 101}, false}, {{149, 1}, false}, {{150, 10}, true},
                        {{110, 10}, false}, {{99, 1}, true},   {{0, 1000}, false}};
  for (const Case& one : cases) {
    for (const bool exclusively : {false, true}) {
      RangeHold hold{};
      const int error = exclusively ? exclusive(*lock, one.range, kShortNs, hold)
                                    : shared(*lock, one.range, kShortNs, hold);
      EXPECT_EQ(error, one.granted ? 0 : -ETIMEDOUT) << one.range.offset << " " << exclusively;
      if (error != 0) continue;
      exclusively ? release_exclusive(*lock, hold) : release_shared(*lock, hold);
    }
  }
  release_exclusive(*lock, writer);
  expect_free(*lock);
}

TEST_P(RangeLockTest, ranges_of_a_lock_of_the_whole_file_overlap_wherever_they_lie) {
  const auto lock = make_whole_lock();
  RangeHold a{};
  RangeHold b{};
  RangeHold refused{};
  ASSERT_EQ(exclusive(*lock, {100, 50}, kShortNs, a), 0);
  EXPECT_EQ(exclusive(*lock, {0, 10}, kShortNs, refused), -ETIMEDOUT);
  EXPECT_EQ(shared(*lock, {1000, 1}, kShortNs, refused), -ETIMEDOUT);
  release_exclusive(*lock, a);
  // Readers are in the ring, together.
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, a), 0);
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, b), 0);
  EXPECT_TRUE(a.in_ring);
  EXPECT_EQ(exclusive(*lock, {1000, 1}, kShortNs, refused), -ETIMEDOUT);
  release_shared(*lock, a);
  release_shared(*lock, b);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_FALSE(try_join_readers(warp, *lock));
    EXPECT_FALSE(try_join_block_writers(warp, *lock, kNoneWaits));
  });
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_keeps_a_range_of_a_whole_file_goes_on_elsewhere) {
  const auto lock = make_whole_lock();
  RangeHold hold{};
  uint32_t detached = kDetachedRanges;
  ASSERT_EQ(exclusive(*lock, {0, 10}, kShortNs, hold), 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    uint32_t mine = 0;
    ASSERT_TRUE(detach_lock(warp, *lock, hold, mine));
    if (warp.thread_rank() == 0) detached = mine;
  });
  ASSERT_EQ(exclusive(*lock, {20, 1}, kShortNs, hold), 0);
  release_exclusive(*lock, hold);
  EXPECT_EQ(shared(*lock, {5, 1}, kShortNs, hold), -ETIMEDOUT);
  run_alone(width(), [&](const simt::Warp& warp) { unlock_detached(warp, *lock, detached); });
  expect_free(*lock);
}

TEST_P(RangeLockTest, a_writer_waits_for_readers_in_and_outside_the_ring) {
  const auto lock = make_lock();
  RangeHold outside{};
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, outside), 0);
  ASSERT_FALSE(outside.in_ring);
  RangeHold hold{};
  EXPECT_EQ(exclusive(*lock, {0, 10}, kShortNs, hold), -ETIMEDOUT);
  EXPECT_EQ(lock->holder_counts, 1u) << "the writer who gave up counts no more";
  release_shared(*lock, outside);

  RangeHold writer{};
  ASSERT_EQ(exclusive(*lock, {500, 10}, kShortNs, writer), 0);
  RangeHold inside{};
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, inside), 0);
  ASSERT_TRUE(inside.in_ring);
  release_exclusive(*lock, writer);
  EXPECT_EQ(exclusive(*lock, {5, 10}, kShortNs, hold), -ETIMEDOUT);
  EXPECT_EQ(exclusive(*lock, {10, 10}, kShortNs, hold), 0) << "side by side";
  release_exclusive(*lock, hold);
  release_shared(*lock, inside);
  expect_free(*lock);
}

// A reader who comes while a writer waits for an earlier reader must wait as well.
TEST_P(RangeLockTest, a_reader_does_not_overtake_a_waiting_writer) {
  const auto lock = make_lock();
  RangeHold first{};
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, first), 0);
  std::atomic<int> order{0};
  int writer_at = -1;
  int reader_at = -1;
  std::thread writer([&] {
    RangeHold hold{};
    EXPECT_EQ(exclusive(*lock, {0, 10}, kLongNs, hold), 0);
    writer_at = order++;
    release_exclusive(*lock, hold);
  });
  wait_for_writer(*lock);
  wait_for_ticket(*lock, 0);
  RangeHold hold{};
  EXPECT_EQ(shared(*lock, {5, 1}, kShortNs, hold), -ETIMEDOUT) << "overtook the writer";
  EXPECT_EQ(shared(*lock, {50, 1}, kLongNs, hold), 0) << "overlaps none";
  release_shared(*lock, hold);
  std::thread reader([&] {
    RangeHold mine{};
    EXPECT_EQ(shared(*lock, {5, 1}, kLongNs, mine), 0);
    reader_at = order++;
    release_shared(*lock, mine);
  });
  wait_for_ticket(*lock, 3);
  release_shared(*lock, first);
  writer.join();
  reader.join();
  EXPECT_EQ(writer_at, 0);
  EXPECT_EQ(reader_at, 1);
  expect_free(*lock);
}

// W1 holds, W2 waits for W1, R3 overlaps only W2: R3 waits all the same.
TEST_P(RangeLockTest, no_request_overtakes_a_waiting_one_that_it_overlaps) {
  const auto lock = make_lock();
  RangeHold first{};
  ASSERT_EQ(exclusive(*lock, {0, 10}, kShortNs, first), 0);
  std::thread second([&] {
    RangeHold hold{};
    EXPECT_EQ(exclusive(*lock, {5, 10}, kLongNs, hold), 0);
    release_exclusive(*lock, hold);
  });
  wait_for_ticket(*lock, 1);
  RangeHold hold{};
  EXPECT_EQ(shared(*lock, {12, 1}, kShortNs, hold), -ETIMEDOUT);
  EXPECT_EQ(exclusive(*lock, {12, 1}, kShortNs, hold), -ETIMEDOUT);
  EXPECT_EQ(exclusive(*lock, {20, 5}, kLongNs, hold), 0);
  release_exclusive(*lock, hold);
  release_exclusive(*lock, first);
  second.join();
  expect_free(*lock);
}

TEST_P(RangeLockTest, a_request_that_gave_up_is_in_no_way) {
  const auto lock = make_lock();
  RangeHold reader{};
  ASSERT_EQ(shared(*lock, {0, 10}, kShortNs, reader), 0);
  RangeHold hold{};
  // More of them than the ring has entries.
  const uint32_t attempts = kRangeRingEntries + 10;
  for (uint32_t i = 0; i < attempts; ++i) {
    ASSERT_EQ(exclusive(*lock, {0, 10}, 0, hold), -ETIMEDOUT) << i;
  }
  EXPECT_EQ(shared(*lock, {0, 10}, kShortNs, hold), 0);
  release_shared(*lock, hold);
  release_shared(*lock, reader);
  expect_free(*lock);
}

TEST_P(RangeLockTest, a_detached_range_excludes_overlapping_ones_and_takes_no_entry) {
  const auto lock = make_lock();
  const auto detach = [&](const ByteRange& range) {
    uint32_t detached = kDetachedRanges;
    RangeHold hold{};
    EXPECT_EQ(exclusive(*lock, range, kShortNs, hold), 0);
    run_alone(width(), [&](const simt::Warp& warp) {
      uint32_t mine = 0;
      EXPECT_TRUE(detach_lock(warp, *lock, hold, mine));
      if (warp.thread_rank() == 0) detached = mine;
    });
    return detached;
  };
  const uint32_t first = detach({100, 50});
  const uint32_t second = detach({500, 1});
  EXPECT_NE(first, second);
  RangeHold hold{};
  // More often than there are entries.
  for (uint32_t i = 0; i < kRangeRingEntries + 5; ++i) {
    ASSERT_EQ(exclusive(*lock, {0, 100}, kShortNs, hold), 0) << i;
    release_exclusive(*lock, hold);
    ASSERT_EQ(shared(*lock, {150, 350}, kShortNs, hold), 0) << i;
    EXPECT_TRUE(hold.in_ring);
    release_shared(*lock, hold);
    EXPECT_EQ(exclusive(*lock, {149, 1}, 0, hold), -ETIMEDOUT);
    EXPECT_EQ(shared(*lock, {90, 20}, 0, hold), -ETIMEDOUT);
  }
  EXPECT_EQ(shared(*lock, {400, 1000}, kShortNs, hold), -ETIMEDOUT);
  const auto is_there = [&](const ByteRange& range) {
    bool answer = false;
    run_alone(width(), [&](const simt::Warp& warp) {
      const bool mine = is_detached(warp, *lock, range);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  };
  EXPECT_TRUE(is_there({0, 101}));
  EXPECT_FALSE(is_there({0, 100}));
  const auto unlock = [&](uint32_t detached) {
    run_alone(width(), [&](const simt::Warp& warp) { unlock_detached(warp, *lock, detached); });
  };
  unlock(second);
  EXPECT_EQ(shared(*lock, {400, 1000}, kShortNs, hold), 0);
  release_shared(*lock, hold);
  unlock(first);
  expect_free(*lock);
  // As many as there is room for; who finds none has his entry still.
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < kDetachedRanges; ++i) all.push_back(detach({i, 1}));
  ASSERT_EQ(exclusive(*lock, {1000, 1}, kShortNs, hold), 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    uint32_t detached = 0;
    EXPECT_FALSE(detach_lock(warp, *lock, hold, detached));
  });
  release_exclusive(*lock, hold);
  for (const uint32_t detached : all) unlock(detached);
  expect_free(*lock);
}

// A request that waits for a detached range must not be in the way of the thread that has it and
// goes around the ring before it releases it.
TEST_P(RangeLockTest, who_keeps_a_range_goes_on_while_others_wait_for_it) {
  const auto lock = make_lock();
  uint32_t detached = kDetachedRanges;
  RangeHold hold{};
  ASSERT_EQ(exclusive(*lock, {0, 10}, kShortNs, hold), 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    uint32_t mine = 0;
    ASSERT_TRUE(detach_lock(warp, *lock, hold, mine));
    if (warp.thread_rank() == 0) detached = mine;
  });
  std::thread waiter([&] {
    RangeHold its{};
    EXPECT_EQ(shared(*lock, {5, 1}, kLongNs, its), 0);
    release_shared(*lock, its);
  });
  wait_for_ticket(*lock, 1);
  for (uint32_t i = 0; i < 2 * kRangeRingEntries; ++i) {
    ASSERT_EQ(exclusive(*lock, {20, 1}, kLongNs, hold), 0);
    release_exclusive(*lock, hold);
  }
  run_alone(width(), [&](const simt::Warp& warp) { unlock_detached(warp, *lock, detached); });
  waiter.join();
  expect_free(*lock);
}

TEST_P(RangeLockTest, readers_and_writers_exclude_each_other) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{5, 3, 150} : Storm{2, 2, 25}, printed_seed());
  expect_free(*lock);
}

TEST_P(RangeLockTest, readers_and_who_keeps_ranges_exclude_each_other) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{5, 3, 150, true} : Storm{2, 2, 25, true},
            printed_seed());
  expect_free(*lock);
}

TEST_P(RangeLockTest, writers_exclude_each_other) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{0, 8, 120} : Storm{0, 3, 25}, printed_seed());
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_writes_single_blocks_excludes_who_writes_the_same) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{0, 0, 100, false, 6} : Storm{0, 0, 20, false, 4},
            printed_seed());
  EXPECT_EQ(detail::ticket_of(lock->turns), 0u);  // none of them needed the ring
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_writes_single_blocks_and_all_others_exclude_each_other) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{3, 1, 100, false, 4} : Storm{2, 1, 20, false, 2},
            printed_seed());
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_writes_single_blocks_and_readers_exclude_each_other) {
  const auto lock = make_lock();
  run_storm(*lock, width(), narrow() ? Storm{3, 0, 150, false, 4} : Storm{2, 0, 25, false, 2},
            printed_seed());
  expect_free(*lock);
}

// Neither do they overtake who waits for them, reader or writer.
TEST_P(RangeLockTest, all_who_share_a_lock_of_the_whole_file_exclude_each_other) {
  const auto lock = make_whole_lock();
  run_storm(*lock, width(), narrow() ? Storm{3, 2, 100, true, 3} : Storm{2, 1, 20, true, 1},
            printed_seed());
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_writes_single_blocks_is_waited_for_outside_the_lock) {
  const auto lock = make_lock();
  uint32_t awaited = 0;
  EXPECT_FALSE(has_block_writers(*lock));
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_TRUE(try_join_block_writers(warp, *lock, awaited));
  });
  EXPECT_TRUE(has_block_writers(*lock));
  awaited = 1;
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_FALSE(try_join_block_writers(warp, *lock, awaited));
    leave_block_writers(warp, *lock);
  });
  EXPECT_FALSE(has_block_writers(*lock));
  expect_free(*lock);
}

TEST_P(RangeLockTest, who_writes_single_blocks_does_not_overtake_who_waits) {
  for (const bool reads : {false, true}) {
    const auto lock = make_lock();
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_TRUE(try_join_block_writers(warp, *lock, kNoneWaits));
    });
    RangeHold mine{};
    EXPECT_EQ(
        reads ? shared(*lock, {0, 10}, kShortNs, mine) : exclusive(*lock, {0, 1}, kShortNs, mine),
        -ETIMEDOUT);
    std::thread waiter([&] {
      RangeHold its{};
      EXPECT_EQ(
          reads ? shared(*lock, {0, 10}, kLongNs, its) : exclusive(*lock, {0, 1}, kLongNs, its), 0);
      reads ? release_shared(*lock, its) : release_exclusive(*lock, its);
    });
    wait_for_ticket(*lock, 1);
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_FALSE(try_join_block_writers(warp, *lock, kNoneWaits));
      leave_block_writers(warp, *lock);
    });
    waiter.join();
    expect_free(*lock);
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_TRUE(try_join_block_writers(warp, *lock, kNoneWaits));
      leave_block_writers(warp, *lock);
    });
  }
}

// A writer that comes when as many entries were released as are before its own is not alone where
// these were not those.
TEST_P(RangeLockTest, entries_that_come_later_do_not_count_as_let_go) {
  const auto lock = make_lock();
  RangeHold first{};
  ASSERT_EQ(exclusive(*lock, {0, 100}, kShortNs, first), 0);
  // As if another thread read outside of the ring: the next writer is counted before it looks
  // around.
  simt::AtomicRef<uint64_t>(lock->holder_counts).fetch_add(1);
  std::atomic<bool> granted{false};
  std::thread second([&] {
    RangeHold hold{};
    EXPECT_EQ(exclusive(*lock, {50, 10}, kLongNs, hold), 0);
    granted = true;
    release_exclusive(*lock, hold);
  });
  wait_for_ticket(*lock, 1);
  RangeHold third{};
  ASSERT_EQ(shared(*lock, {200, 10}, kLongNs, third), 0);
  release_shared(*lock, third);
  EXPECT_EQ(lock->rings->ring(1).left, 1u);
  simt::AtomicRef<uint64_t>(lock->holder_counts).fetch_sub(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(granted);
  release_exclusive(*lock, first);
  second.join();
  expect_free(*lock);
}

// ThreadSanitizer sees whether a reader in the ring has handed the bytes over: nothing else stands
// between him and the writer here.
TEST_P(RangeLockTest, a_writer_who_is_alone_comes_after_those_who_were_there) {
  const auto lock = make_lock();
  uint64_t word = 0;
  std::atomic<uint32_t> step{0};
  const auto wait_for = [&](uint32_t wanted) {
    while (step.load(std::memory_order_relaxed) != wanted) simt::Backoff().pause();
  };
  std::thread writer([&] {
    wait_for(4);
    RangeHold hold{};
    EXPECT_EQ(exclusive(*lock, {0, 100}, kLongNs, hold), 0);
    word = 1;
    release_exclusive(*lock, hold);
  });
  std::thread reader([&] {
    wait_for(1);
    RangeHold hold{};
    EXPECT_EQ(shared(*lock, {0, 100}, kLongNs, hold), 0);
    EXPECT_TRUE(hold.in_ring);
    EXPECT_EQ(word, 0u);
    step.store(2, std::memory_order_relaxed);
    wait_for(3);
    release_shared(*lock, hold);
    step.store(4, std::memory_order_relaxed);
  });
  RangeHold first{};
  ASSERT_EQ(exclusive(*lock, {200, 100}, kShortNs, first), 0);
  step.store(1, std::memory_order_relaxed);
  wait_for(2);
  release_exclusive(*lock, first);
  step.store(3, std::memory_order_relaxed);
  writer.join();
  reader.join();
  expect_free(*lock);
}

TEST_P(RangeLockTest, states_run_over_the_end_of_32_bits) {
  const auto lock = make_lock(uint64_t{kRangeRingEntries} * 0x7fffffff);
  // Readers need no ticket where none writes: the writers alone go once around the ring.
  const Storm storm = narrow() ? Storm{4, 4, 100} : Storm{2, 2, 80};
  ASSERT_GT(storm.writers * storm.turns, kRangeRingEntries);
  run_storm(*lock, width(), storm, printed_seed());
  EXPECT_GT(detail::ticket_of(lock->turns) / kRangeRingEntries, 0x7fffffffu);
  expect_free(*lock);
}

// More requests at once than the ring has entries: they queue up for their entries as well.
TEST_P(RangeLockTest, more_requests_than_entries_all_get_their_turn) {
  if (!narrow()) return;
  const auto lock = make_lock();
  RangeHold first{};
  ASSERT_EQ(exclusive(*lock, {0, 10}, kShortNs, first), 0);
  constexpr uint32_t kMany = kRangeRingEntries + 30;
  uint32_t count = 0;
  std::thread releaser([&] {
    wait_for_ticket(*lock, kRangeRingEntries + 10);
    release_exclusive(*lock, first);
  });
  run_crowd({kMany, 1}, [&](const simt::Warp& warp, uint32_t) {
    RangeHold hold{};
    ASSERT_EQ(lock_exclusive(warp, *lock, {5, 1}, Deadline::after_ns(kLongNs), hold), 0);
    ++count;  // plain
    unlock_exclusive(warp, *lock, hold);
  });
  releaser.join();
  EXPECT_EQ(count, kMany);
  expect_free(*lock);
}

}  // namespace
}  // namespace gofs::vfs
