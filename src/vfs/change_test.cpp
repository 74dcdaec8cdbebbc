// SPDX-License-Identifier: Apache-2.0
//
// Changes that are refused for want of room: a checkpoint is made where it can help, which is where
// segments are short, and nowhere else.
#include "vfs/change.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "vfs/changes_for_test.hpp"
#include "vfs/set_xattr.h"

namespace gofs::vfs {
namespace {

class ChangeTest : public ChangesTest {
 protected:
  ChangeTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "file";
          spec.size_bytes = kBlockBytes;
          TestImage::must(builder.add_file(builder.root(), spec));
        }) {}

  /// Leaves users so many blocks.
  void leave(uint64_t blocks) {
    fs().volume.user_block_count = fs().volume.valid_block_count + blocks;
  }
  uint64_t version() { return fs().volume.checkpoint_version; }
  /// What `call()` answers some times over, each time the same, and without a checkpoint.
  template <typename Call>
  void expect_refused_at_once(Call call) {
    const uint64_t before = version();
    for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(call(), -ENOSPC);
    EXPECT_EQ(version(), before);
  }
  int operate_once(int error, uint32_t& tried) {
    return static_cast<int>(alone([&](const simt::Warp& warp) {
      return detail::operate(warp, fs(), 1, [&](f2fs::Operation&) {
        if (warp.thread_rank() == 0) ++tried;
        return error;
      });
    }));
  }
};
GOFS_AT_BOTH_WIDTHS(ChangeTest);

TEST_P(ChangeTest, what_is_refused_by_count_costs_no_checkpoint) {
  const int fd = open_file("/file", kOpenReadWrite);
  // A block less than each of these asks for; a link takes one for its inode as well.
  const std::string target(4000, 't');
  leave(1);
  expect_refused_at_once([&] {
    return alone(
        [&](const simt::Warp& warp) { return symlink(warp, fs(), target.c_str(), "/link"); });
  });
  leave(width() - 1);
  const std::string round(width() * kBlockBytes, 'r');
  expect_refused_at_once([&] { return pwrite_file(fd, round, kBlockBytes); });
  fs().volume.user_block_count = 1u << 20;
  EXPECT_EQ(pwrite_file(fd, round, kBlockBytes), static_cast<int64_t>(round.size()));
}

TEST_P(ChangeTest, what_an_inode_has_no_room_for_costs_no_checkpoint) {
  const std::string value(3000, 'v');
  const auto set = [&](const char* name) {
    return alone([&](const simt::Warp& warp) {
      return setxattr(warp, fs(), "/file", LastLink::kFollow, name, value.data(), value.size(), 0);
    });
  };
  ASSERT_EQ(set("user.first"), 0);
  expect_refused_at_once([&] { return set("user.second"); });
}

TEST_P(ChangeTest, where_segments_are_short_a_checkpoint_is_made_once_for_each_call) {
  // As a log leaves it that has found none.
  const auto short_now = [&] { writing_->writer().short_in = version(); };
  uint32_t tried = 0;
  short_now();
  const uint64_t before = version();
  EXPECT_EQ(operate_once(-ENOSPC, tried), -ENOSPC);
  EXPECT_EQ(tried, 2u);
  EXPECT_EQ(version(), before + 1);
  // That one has freed what there was to free.
  EXPECT_EQ(operate_once(-ENOSPC, tried), -ENOSPC);
  EXPECT_EQ(tried, 3u);
  EXPECT_EQ(version(), before + 1);
  short_now();
  leave(0);
  EXPECT_EQ(operate_once(-ENOSPC, tried), -ENOSPC);
  EXPECT_EQ(tried, 4u) << "users have no block that could be freed for them";
  EXPECT_EQ(operate_once(-EIO, tried), -EIO);
  EXPECT_EQ(tried, 5u);
  EXPECT_EQ(version(), before + 1);
}

}  // namespace
}  // namespace gofs::vfs
