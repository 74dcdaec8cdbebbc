// SPDX-License-Identifier: Apache-2.0
//
// Operations that change more than a small page cache holds: room is made by checkpoints, beside
// readers and other operations, and a disk that fails refuses an operation before it begins.
#include "f2fs/begin_operation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <type_traits>
#include <vector>

#include "f2fs/change_attributes.h"
#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kCachePages = 64;

void fill_with_many(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < 300; ++i) {
    const std::string name = "many" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

class OperationTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static VolumeRigOptions small_cache() {
    VolumeRigOptions options;
    options.filesystem.cache_pages = kCachePages;
    options.ssd.fault_capacity = 1;
    return options;
  }
  /// Gives the inodes from `first` on, one a lane, the owner `uid`, as one operation.
  static int chown_some(const simt::Warp& warp, WritingRig& writing,
                        const std::vector<uint32_t>& inos, uint32_t first, uint32_t uid) {
    OperationSlot operation;
    const int begun =
        begin_operation(warp, {writing.volume(), writing.writer()}, warp.size(), operation);
    if (begun < 0) return begun;
    const uint32_t i = first + warp.thread_rank();
    const bool mine = i < inos.size();
    AttributeChange change{};
    change.mask = kSetUid;
    change.uid = uid;
    change.changed = {1'800'000'000, uid};
    const int error =
        change_attributes(warp, *operation, warp.ballot(mine), mine ? inos[i] : 0, change);
    end_operation(warp, operation);
    return simt::first_error(warp, mine ? error : 0);
  }
  static uint32_t owner_of(WritingRig& writing, uint32_t ino) {
    Inode inode{};
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, inode), 0) << ino;
    });
    return inode.uid;
  }
};
GOFS_AT_BOTH_WIDTHS(OperationTest);

TEST_P(OperationTest, checkpoints_make_room_for_more) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_many);
  const std::vector<uint32_t> inos = inodes_of(image);
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kRounds = 3;
  {
    WritingRig writing(image, width(), small_cache());
    ASSERT_EQ(writing.begin().error, 0);
    const uint64_t version = writing.volume().checkpoint_version;
    std::atomic<uint32_t> most{0};
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t first = index * width(); first < inos.size(); first += kWarps * width()) {
          EXPECT_EQ(chown_some(warp, writing, inos, first, 1000 + round), 0);
          const uint32_t dirty = simt::load_relaxed(writing.volume().cache.dirty);
          for (uint32_t seen = most; seen < dirty && !most.compare_exchange_weak(seen, dirty);) {
          }
        }
      }
    });
    EXPECT_GT(writing.volume().checkpoint_version, version + kRounds * inos.size() / kCachePages);
    EXPECT_GT(most, 5u);
    EXPECT_LE(most, kCachePages);
    EXPECT_EQ(writing.writer().reserved, 0u);
    for (const uint32_t ino : inos) EXPECT_EQ(owner_of(writing, ino), 1000 + kRounds);
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_EQ(writing.volume().cache.dirty, 0u);
  }
  EXPECT_TRUE(fsck_likes(image));
  WritingRig again(image, 1);
  for (const uint32_t ino : inos) EXPECT_EQ(owner_of(again, ino), 1000 + kRounds);
}

TEST_P(OperationTest, one_that_the_cache_can_never_hold_is_refused) {
  TestImage image(fill_with_many);
  WritingRig writing(image, width(), small_cache());
  ASSERT_EQ(writing.begin().error, 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    OperationSlot operation;
    EXPECT_EQ(
        begin_operation(warp, {writing.volume(), writing.writer()}, kCachePages / 2, operation),
        -ENOBUFS);
    EXPECT_EQ(
        begin_operation(warp, {writing.volume(), writing.writer()}, kCachePages / 3, operation), 0);
    end_operation(warp, operation);
  });
  EXPECT_EQ(writing.checkpoint(true), 0) << "the checkpoint lock is free";
}

TEST_P(OperationTest, a_disk_that_fails_refuses_it_before_it_begins) {
  TestImage image(fill_with_many);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width(), small_cache());
  ASSERT_EQ(writing.begin().error, 0);
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.status = format::nvme::kWriteFault;
  writing.rig().add_fault(rule);
  uint32_t changed = 0;
  const auto change_until_error = [&] {
    int error = 0;
    while (error == 0 && changed < inos.size()) {
      run_alone(width(), [&](const simt::Warp& warp) {
        const int mine = chown_some(warp, writing, inos, changed, 77);
        if (warp.thread_rank() == 0) error = mine;
      });
      if (error == 0) changed += width();
    }
    return error;
  };
  EXPECT_EQ(change_until_error(), -EIO);
  EXPECT_GE(changed, kCachePages / 3 - width());
  EXPECT_LT(changed, kCachePages);
  EXPECT_EQ(owner_of(writing, inos[0]), 77u) << "what was changed before is still there";
  EXPECT_NE(owner_of(writing, inos[changed]), 77u);
  writing.rig().clear_faults();
  EXPECT_EQ(change_until_error(), 0);
  ASSERT_EQ(writing.checkpoint(true), 0);
  for (const uint32_t ino : inos) EXPECT_EQ(owner_of(writing, ino), 77u);
}

TEST_P(OperationTest, who_finds_room_taken_by_others_waits_and_nothing_is_written) {
  TestImage image(fill_with_many);
  WritingRig writing(image, width(), small_cache());
  ASSERT_EQ(writing.begin().error, 0);
  const uint64_t version = writing.volume().checkpoint_version;
  constexpr uint32_t kMost = kCachePages / 3;
  constexpr uint32_t kWarps = 5;
  std::atomic<uint32_t> inside{0};
  std::atomic<uint32_t> together{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t turn = 0; turn < 20; ++turn) {
      OperationSlot operation;
      // Two have room, and a third has not.
      EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, kMost / 2, operation),
                0);
      if (warp.thread_rank() == 0) {
        const uint32_t now = ++inside;
        for (uint32_t seen = together; seen < now && !together.compare_exchange_weak(seen, now);) {
        }
      }
      simt::Backoff().pause();
      warp.sync();
      if (warp.thread_rank() == 0) --inside;
      end_operation(warp, operation);
    }
  });
  EXPECT_LE(together, 2u);
  EXPECT_EQ(writing.writer().reserved, 0u);
  EXPECT_EQ(writing.volume().checkpoint_version, version);
}

// What is left would do for one at a time only.
TEST_P(OperationTest, who_finds_half_of_it_dirty_and_the_rest_taken_makes_a_checkpoint) {
  TestImage image(fill_with_many);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width(), small_cache());
  ASSERT_EQ(writing.begin().error, 0);
  constexpr uint32_t kMost = kCachePages / 3;
  run_alone(width(), [&](const simt::Warp& warp) {
    for (uint32_t first = 0; first <= kMost / 2; first += warp.size()) {
      EXPECT_EQ(chown_some(warp, writing, inos, first, 5), 0);
    }
  });
  const uint64_t version = writing.volume().checkpoint_version;
  ASSERT_GE(writing.volume().cache.dirty, kMost / 2);
  const uint32_t rest = kMost - writing.volume().cache.dirty;
  std::atomic<bool> inside{false};
  run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    OperationSlot operation;
    if (index == 0) {
      EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, rest, operation), 0);
      if (warp.thread_rank() == 0) inside = true;
      while (!warp.any(simt::load_relaxed(writing.writer().checkpoint_lock.closed) != 0)) {
        simt::Backoff().pause();
      }
    } else {
      while (!warp.any(inside)) simt::Backoff().pause();
      EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, 2, operation), 0);
    }
    end_operation(warp, operation);
  });
  EXPECT_EQ(writing.volume().checkpoint_version, version + 1);
  EXPECT_EQ(writing.volume().cache.dirty, 0u);
  EXPECT_EQ(writing.writer().reserved, 0u);
}

// It would never find so much free at once as long as small ones come and go.
TEST_P(OperationTest, one_that_needs_all_the_room_gets_its_turn) {
  TestImage image(fill_with_many);
  WritingRig writing(image, width(), small_cache());
  ASSERT_EQ(writing.begin().error, 0);
  std::atomic<bool> ended{false};
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    OperationSlot operation;
    if (index == 0) {
      EXPECT_EQ(
          begin_operation(warp, {writing.volume(), writing.writer()}, kCachePages / 3, operation),
          0);
      end_operation(warp, operation);
      if (warp.thread_rank() == 0) ended = true;
      return;
    }
    while (!warp.any(ended)) {
      EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, 2, operation), 0);
      simt::Backoff().pause();
      end_operation(warp, operation);
    }
  });
  EXPECT_EQ(writing.writer().reserved, 0u);
}

// Only begin_operation() makes one, and it cannot be copied.
static_assert(!std::is_copy_constructible_v<Operation>);
static_assert(!std::is_default_constructible_v<Operation>);
static_assert(
    !std::is_constructible_v<Operation, Volume&, Writer&, const PagePool*, const Credentials*,
                             const TimeStamp&, const OpHold&, uint32_t>);

TEST(OperationSlotTest, what_is_not_under_way_is_neither_used_nor_ended) {
  TestImage image(fill_with_many);
  WritingRig writing(image, 1);
  ASSERT_EQ(writing.begin().error, 0);
  const auto with_slot = [&](auto use) {
    run_alone(1, [&](const simt::Warp& warp) {
      OperationSlot slot;
      use(warp, slot);
    });
  };
  EXPECT_DEATH(with_slot([](const auto&, OperationSlot& slot) { (void)*slot; }), "");
  EXPECT_DEATH(with_slot([](const auto& warp, OperationSlot& slot) { end_operation(warp, slot); }),
               "");
  const auto begin = [&](const simt::Warp& warp, OperationSlot& slot) {
    EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, 1, slot), 0);
  };
  EXPECT_DEATH(with_slot([&](const simt::Warp& warp, OperationSlot& slot) {
                 begin(warp, slot);
                 begin(warp, slot);
               }),
               "");
  EXPECT_DEATH(with_slot([&](const simt::Warp& warp, OperationSlot& slot) {
                 begin(warp, slot);
                 end_operation(warp, slot);
                 end_operation(warp, slot);
               }),
               "");
  with_slot([&](const simt::Warp& warp, OperationSlot& slot) {
    begin(warp, slot);
    end_operation(warp, slot);
    begin(warp, slot);
    end_operation(warp, slot);
  });
  EXPECT_EQ(simt::load_relaxed(writing.writer().reserved), 0u);
}

TEST(OperationSlotTest, one_that_is_said_to_be_behind_an_open_gate_is_refused) {
  TestImage image(fill_with_many);
  WritingRig writing(image, 1);
  ASSERT_EQ(writing.begin().error, 0);
  EXPECT_DEATH((void)Operation::under_checkpoint_lock(writing.volume(), writing.writer()), "");
}

TEST_P(OperationTest, more_pages_than_there_is_room_for_are_noticed_by_checks) {
  if (!simt::kDebugChecks) GTEST_SKIP() << "built without GOFS_DEBUG_CHECKS";
  TestImage image(fill_with_many);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  // Inodes that are changed, one a lane, beside the room that there is.
  const auto change = [&](const PageBudget& pages) {
    run_alone(width(), [&](const simt::Warp& warp) {
      OperationSlot slot;
      EXPECT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, pages, slot), 0);
      AttributeChange owner{};
      owner.mask = kSetUid;
      EXPECT_EQ(
          change_attributes(warp, *slot, warp.ballot(true), inos[1 + warp.thread_rank()], owner),
          0);
      end_operation(warp, slot);
    });
  };
  EXPECT_DEATH(change(width() - 1), "");
  // Where others have room for the last one.
  change({width() - 1, 1});
  // They are dirty already.
  change(0);
}

}  // namespace
}  // namespace gofs::f2fs
