// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that several warps write: all that has changed is in them, whoever wrote it, and a
// write that fails for one of them fails the checkpoint.
#include "f2fs/write_pages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "f2fs/change_attributes.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kHelpers = 3;

void fill_with_several(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < 600; ++i) {
    const std::string name = "several" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

class WritePagesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static VolumeRigOptions many_portions() {
    VolumeRigOptions options;
    options.filesystem.cache_pages = 16'384;
    options.ssd.fault_capacity = 1;
    return options;
  }
  void chown_all(WritingRig& writing, const std::vector<uint32_t>& inos, uint32_t uid) {
    run_alone(width(), [&](const simt::Warp& warp) {
      for (uint32_t first = 0; first < inos.size(); first += warp.size()) {
        const uint32_t i = first + warp.thread_rank();
        AttributeChange change{};
        change.mask = kSetUid;
        change.uid = uid;
        change.changed = {1'800'000'000, uid};
        const int error =
            change_attributes(warp, *TestOperation(warp, writing.volume(), writing.writer()),
                              warp.ballot(i < inos.size()), i < inos.size() ? inos[i] : 0, change);
        if (i < inos.size()) {
          EXPECT_EQ(error, 0);
        }
      }
    });
    simt::store_relaxed(writing.writer().changed, 1u);
  }
  /// A checkpoint by one warp, with others that help. `helped` counts their portions.
  int checkpoint_together(WritingRig& writing, std::atomic<uint32_t>& helped) {
    std::atomic<bool> ended{false};
    std::atomic<int> result{0};
    run_crowd({1 + kHelpers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 0) {
        const int error = write_checkpoint(warp, writing.volume(), writing.writer(), false);
        if (warp.thread_rank() != 0) return;
        result = error;
        ended = true;
        return;
      }
      while (!warp.any(ended)) {
        const bool some = help_writeback(warp, writing.volume(), writing.writer());
        if (some && warp.thread_rank() == 0) ++helped;
        if (!some) simt::Backoff().pause();
      }
    });
    return result;
  }
  void expect_owner(WritingRig& writing, const std::vector<uint32_t>& inos, uint32_t uid) {
    run_alone(1, [&](const simt::Warp& warp) {
      for (const uint32_t ino : inos) {
        Inode inode{};
        EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, inode), 0) << ino;
        EXPECT_EQ(inode.uid, uid) << ino;
      }
    });
  }
};
GOFS_AT_BOTH_WIDTHS(WritePagesTest);

TEST_P(WritePagesTest, what_several_write_is_all_there) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_several);
  const std::vector<uint32_t> inos = inodes_of(image);
  std::atomic<uint32_t> helped{0};
  uint32_t uid = 1000;
  {
    WritingRig writing(image, width(), many_portions());
    ASSERT_EQ(writing.begin().error, 0);
    // Until some have helped, which is up to the scheduler.
    for (uint32_t round = 0; round < 5 || (helped == 0 && round < 200); ++round) {
      chown_all(writing, inos, ++uid);
      ASSERT_EQ(checkpoint_together(writing, helped), 0);
      EXPECT_EQ(writing.volume().cache.dirty, 0u);
      expect_owner(writing, inos, uid);
    }
    EXPECT_GT(helped, 0u);
    ASSERT_EQ(writing.checkpoint(true), 0);
  }
  EXPECT_TRUE(fsck_likes(image));
  WritingRig again(image, 1);
  expect_owner(again, inos, uid);
}

TEST_P(WritePagesTest, a_write_that_fails_for_one_fails_the_checkpoint) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_several);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width(), many_portions());
  ASSERT_EQ(writing.begin().error, 0);
  chown_all(writing, inos, 7);
  const uint64_t version = writing.volume().checkpoint_version;
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.status = format::nvme::kWriteFault;
  rule.count = 1;
  rule.skip = 5;
  writing.rig().add_fault(rule);
  std::atomic<uint32_t> helped{0};
  EXPECT_EQ(checkpoint_together(writing, helped), -EIO);
  EXPECT_EQ(writing.volume().checkpoint_version, version);
  expect_owner(writing, inos, 7);
  writing.rig().clear_faults();
  EXPECT_EQ(checkpoint_together(writing, helped), 0);
  ASSERT_EQ(writing.checkpoint(true), 0);
  expect_owner(writing, inos, 7);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(WritePagesTest, there_is_nothing_to_help_with_where_nobody_writes) {
  TestImage image(fill_with_several);
  WritingRig writing(image, width(), many_portions());
  ASSERT_EQ(writing.begin().error, 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_FALSE(help_writeback(warp, writing.volume(), writing.writer()));
  });
  ASSERT_EQ(writing.checkpoint(false), 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_FALSE(help_writeback(warp, writing.volume(), writing.writer()));
  });
}

}  // namespace
}  // namespace gofs::f2fs
