// SPDX-License-Identifier: Apache-2.0
//
// Time stamps that are multiples of an hour: what changes several times within one says so once,
// and nothing else is lost.
#include <gtest/gtest.h>

#include <string>

#include "vfs/change_attributes.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/write.h"

namespace gofs::vfs {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;
constexpr int64_t kHourS = 3'600;

class TimeStampsTest : public ChangesTest {
 protected:
  TimeStampsTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "file";
              spec.size_bytes = 3 * kBlockBytes;
              TestImage::must(builder.add_file(builder.root(), spec));
              spec.name = "long";  // its addresses are in a node of their own
              spec.size_bytes = 2'000 * kBlockBytes;
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            with_hours()) {}
  static VolumeRigOptions with_hours() {
    VolumeRigOptions options;
    options.filesystem.time_granularity_ns = kHourNs;
    return options;
  }
  void set_times(const std::string& path, int64_t seconds) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                const f2fs::TimeStamp time{seconds, 0};
                return utimens(warp, fs(), path.c_str(), LastLink::kFollow, time, time);
              }),
              0);
  }
};
GOFS_AT_BOTH_WIDTHS(TimeStampsTest);

TEST_P(TimeStampsTest, they_are_multiples_of_the_granularity) {
  const int fd = open_file("/file", kOpenReadWrite);
  EXPECT_EQ(pwrite_file(fd, "x", 0), 1);
  const Stat stat = stat_of_path("/file");
  EXPECT_EQ(stat.modified.seconds % kHourS, 0);
  EXPECT_EQ(stat.modified.nanoseconds, 0u);
  EXPECT_EQ(stat.changed.seconds, stat.modified.seconds);
}

TEST_P(TimeStampsTest, what_is_written_twice_in_a_moment_is_all_there) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const char* const path : {"/file", "/long"}) {
    std::string model = contents(path);
    const int fd = open_file(path, kOpenReadWrite);
    const uint64_t last = model.size() - kBlockBytes;
    for (uint32_t turn = 0; turn < 6; ++turn) {
      const std::string bytes(kBlockBytes, static_cast<char>('a' + turn));
      const uint64_t offset = turn % 2 == 0 ? last : 0;
      EXPECT_EQ(pwrite_file(fd, bytes, offset), int64_t{kBlockBytes});
      model.replace(offset, kBlockBytes, bytes);
      // The inode is clean then, and says already what the next write would say.
      if (turn == 2) {
        ASSERT_EQ(writing_->checkpoint(false), 0);
      }
    }
    // Longer, and into a hole, within the same moment.
    const uint64_t behind = model.size() + 5 * kBlockBytes;
    EXPECT_EQ(pwrite_file(fd, "end", behind), 3);
    model.resize(behind);
    model += "end";
    EXPECT_EQ(pwrite_file(fd, "hole", behind - 2 * kBlockBytes), 4);
    model.replace(behind - 2 * kBlockBytes, 4, "hole");
    EXPECT_EQ(close_file(fd), 0);
    EXPECT_TRUE(contents(path) == model) << path;
    mount_again();
    EXPECT_TRUE(contents(path) == model) << path;
  }
}

TEST_P(TimeStampsTest, a_write_after_utimens_sets_the_present_again) {
  const int fd = open_file("/file", kOpenReadWrite);
  // Twice, so that the inode need not be looked at any more.
  for (const char* const byte : {"x", "z"}) EXPECT_EQ(pwrite_file(fd, byte, 0), 1);
  const f2fs::TimeStamp now = stat_of_path("/file").modified;
  set_times("/file", 5);
  EXPECT_EQ(stat_of_path("/file").modified.seconds, 5);
  EXPECT_EQ(pwrite_file(fd, "y", 0), 1);
  EXPECT_EQ(stat_of_path("/file").modified.seconds, now.seconds);
}

}  // namespace
}  // namespace gofs::vfs
