// SPDX-License-Identifier: Apache-2.0
//
// Records that are made durable through a buffer which goes from file to file.
#include <gtest/gtest.h>

#include <string>

#include "f2fs/recover_files.h"
#include "simt/copy_any.h"
#include "vfs/record_append.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

VolumeRigOptions logging_ssd() {
  VolumeRigOptions options = testing::with_a_fault();
  options.ssd.logged_commands = 1 << 15;
  options.ssd.logged_bytes = 64 << 20;
  return options;
}

class RecordSyncTest : public WritingVfsTest {
 protected:
  RecordSyncTest()
      : WritingVfsTest(
            [](image::ImageBuilder& builder) {
              const auto add = [&](const char* name, uint64_t bytes) {
                image::FileSpec spec;
                spec.name = name;
                spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
                spec.size_bytes = bytes;
                spec.inline_xattr = true;
                TestImage::must(builder.add_file(builder.root(), spec));
              };
              add("log", 3 * kBlockBytes + 100);
              add("other", 5 * kBlockBytes - 7);
              add("third", kBlockBytes + 5);
            },
            logging_ssd()),
        before_(image_) {
    fs().time_granularity_ns = 1'000'000'000'000'000;
  }
  OpenInode& opened(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode]; }
  int64_t append(int fd, const std::string& record) {
    return alone([&](const simt::Warp& warp) {
      return write(warp, fs(), fd, record.data(), record.size());
    });
  }
  std::string recovered(TestImage& left, const char* path) {
    f2fs::WritingRig rig(left, width());
    EXPECT_EQ(rig.begin().error, 0);
    rig.rig().fs().writer = &rig.writer();
    std::string found;
    run_alone(width(), [&](const simt::Warp& warp) {
      Filesystem& cut = rig.rig().fs();
      EXPECT_GE(f2fs::recover_files(warp, cut.volume, *cut.writer), 0);
      const int fd = open(warp, cut, path, kOpenReadOnly);
      EXPECT_GE(fd, 0);
      Stat stat{};
      EXPECT_EQ(fstat(warp, cut, fd, stat), 0);
      if (warp.thread_rank() == 0) found.resize(stat.size_bytes);
      warp.sync();
      EXPECT_EQ(pread(warp, cut, fd, found.data(), found.size(), 0),
                static_cast<int64_t>(stat.size_bytes));
    });
    EXPECT_EQ(rig.checkpoint(true), 0);
    return found;
  }
  const TestImage before_;
};
GOFS_AT_BOTH_WIDTHS(RecordSyncTest);

// /log's record is flushed; its writer is about to make it durable when /third takes the buffer,
// and makes a record of its own durable.
TEST_P(RecordSyncTest, what_another_file_made_durable_says_nothing_of_this_one) {
  const int log = open_file("/log", kOpenWriteOnly | kOpenAppend);
  const std::string record(200, 'r');
  detail::RecordEnd end{};
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              detail::RecordEnd mine{};
              const int error = detail::append_through(
                  warp, fs(), opened(log), record.size(),
                  [&](uint8_t* target, uint64_t skip, uint64_t wanted) {
                    simt::copy_any({warp.thread_rank(), warp.size()}, target,
                                   reinterpret_cast<const uint8_t*>(record.data()) + skip, wanted);
                  },
                  mine);
              if (warp.thread_rank() == 0) end = mine;
              return error;
            }),
            0);
  const uint32_t number = opened(log).records;
  const int other = open_file("/other", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(append(other, "b"), 1);
  const uint64_t until = simt::now_ns() + 2 * detail::kRecordIdleNs;
  while (simt::now_ns() < until) {
  }
  const int third = open_file("/third", kOpenWriteOnly | kOpenAppend | kOpenDataSync);
  EXPECT_EQ(append(third, "c"), 1);
  ASSERT_EQ(opened(third).records, number);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return detail::sync_records(warp, fs(), opened(log), end, f2fs::SyncScope::kContents);
            }),
            0);
  const ssd::WriteTrace trace =
      ssd::read_trace(writing_->rig().arena().space(), writing_->rig().controller());
  TestImage left(before_);
  ssd::PowerCut(trace, trace.events)
      .apply({left.data(), left.bytes()}, kBlockBytes, [](uint32_t, uint64_t) { return false; });
  EXPECT_EQ(recovered(left, "/third").size(), kBlockBytes + 6) << "the one that is durable";
  EXPECT_EQ(recovered(left, "/log").size(), 3 * kBlockBytes + 300) << "this one is to be";
}

}  // namespace
}  // namespace gofs::vfs
