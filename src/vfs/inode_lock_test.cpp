// SPDX-License-Identifier: Apache-2.0
//
// Locks of several inodes at once: each place of the table is taken once, alone if one of them is
// wanted alone, and who does not get all of them has none.
#include "vfs/inode_lock.h"

#include <gtest/gtest.h>

#include <vector>

#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kLockPlaces = 8;

class InodeLockTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  InodeLockTest() : table_(kLockPlaces) {
    fs_.inode_locks = table_.data();
    fs_.inode_lock_mask = kLockPlaces - 1;
    fs_.lock_timeout_ns = 1'000'000;
  }
  int lock(InodeLocks& locks) {
    int error = 0;
    InodeLocks after{};
    run_alone(GetParam(), [&](const simt::Warp& warp) {
      InodeLocks mine = locks;
      const int answer = lock_inodes(warp, fs_, mine);
      if (warp.thread_rank() != 0) return;
      error = answer;
      after = mine;
    });
    locks = after;
    return error;
  }
  void unlock(const InodeLocks& locks) {
    run_alone(GetParam(), [&](const simt::Warp& warp) { unlock_inodes(warp, fs_, locks); });
  }
  /// Whether each of them could be had alone at once.
  bool all_free() {
    bool free = true;
    for (uint32_t place = 0; place < kLockPlaces; ++place) {
      InodeLocks one{};
      one.add(fs_, place + kLockPlaces);
      if (lock(one) == 0) {
        unlock(one);
      } else {
        free = false;
      }
    }
    return free;
  }

  std::vector<InodeLock> table_;
  Filesystem fs_{};
};
GOFS_AT_BOTH_WIDTHS(InodeLockTest);

TEST_P(InodeLockTest, a_place_is_taken_once_and_alone_if_one_wants_it_so) {
  InodeLocks locks{};
  locks.add_shared(fs_, 13);
  locks.add(fs_, 0);
  locks.add_shared(fs_, 3);
  locks.add(fs_, 5);
  locks.add_shared(fs_, 1);
  locks.add_shared(fs_, 11);
  ASSERT_EQ(locks.count, 3u);
  EXPECT_EQ(locks.places[0], 1u);
  EXPECT_EQ(locks.places[1], 3u);
  EXPECT_EQ(locks.places[2], 5u);
  EXPECT_FALSE(locks.alone[0]);
  EXPECT_FALSE(locks.alone[1]);
  EXPECT_TRUE(locks.alone[2]) << "13 is to be shared, 5 is not";
  locks.add(fs_, 9);
  locks.add_shared(fs_, 8);
  ASSERT_EQ(locks.count, 4u);
  EXPECT_EQ(locks.places[0], 0u);
  EXPECT_FALSE(locks.alone[0]);
  EXPECT_TRUE(locks.alone[1]) << "9 is not to be shared";
  EXPECT_EQ(lock(locks), 0);
  unlock(locks);
  EXPECT_TRUE(all_free());
}

TEST_P(InodeLockTest, who_shares_keeps_out_who_wants_it_alone) {
  InodeLocks first{};
  first.add_shared(fs_, 2);
  InodeLocks second = first;
  EXPECT_EQ(lock(first), 0);
  EXPECT_EQ(lock(second), 0);
  InodeLocks alone{};
  alone.add(fs_, 2);
  EXPECT_EQ(lock(alone), -EBUSY);
  unlock(first);
  unlock(second);
  EXPECT_TRUE(all_free());
}

TEST_P(InodeLockTest, who_does_not_get_all_has_none) {
  for (const bool alone : {false, true}) {
    InodeLocks held{};
    held.add(fs_, 6);
    ASSERT_EQ(lock(held), 0);
    InodeLocks wanted{};
    wanted.add_shared(fs_, 1);
    wanted.add(fs_, 2);
    if (alone) {
      wanted.add(fs_, 6);
    } else {
      wanted.add_shared(fs_, 6);
    }
    wanted.add(fs_, 7);
    EXPECT_EQ(lock(wanted), -EBUSY);
    EXPECT_EQ(wanted.count, 0u);
    unlock(held);
    EXPECT_TRUE(all_free());
  }
}

TEST_P(InodeLockTest, names_of_one_directory_have_locks_all_over_the_table) {
  std::vector<uint32_t> names(1024);
  fs_.name_locks = names.data();
  fs_.name_lock_mask = 1023;
  std::vector<uint32_t> used(1024);
  for (uint32_t i = 0; i < 1024; ++i) {
    ++used[static_cast<size_t>(&name_lock(fs_, 7, i * 0x01010101u) - names.data())];
  }
  uint32_t places = 0;
  for (const uint32_t count : used) places += count != 0 ? 1 : 0;
  EXPECT_GT(places, 512u);
  EXPECT_EQ(&name_lock(fs_, 7, 99), &name_lock(fs_, 7, 99));
}

}  // namespace
}  // namespace gofs::vfs
