// SPDX-License-Identifier: Apache-2.0
//
// fsync of a file whose nodes another warp's ftruncate takes away.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"
#include "testing/held_command.hpp"
#include "vfs/fsync.h"
#include "vfs/make_file.h"
#include "vfs/open.h"
#include "vfs/resize.h"
#include "vfs/vfs_for_test.hpp"
#include "vfs/write.h"

namespace gofs::vfs {
namespace {

class FsyncBesideTruncate : public ::testing::TestWithParam<uint32_t> {
 protected:
  FsyncBesideTruncate()
      : image_([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "blocks";
          spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
          spec.inline_data = false;
          spec.size_bytes = 30'000;
          TestImage::must(builder.add_file(builder.root(), spec));
        }),
        writing_(image_, width(), options()) {
    EXPECT_EQ(writing_.begin().error, 0);
    fs().writer = &writing_.writer();
  }
  static testing::VolumeRigOptions options() {
    testing::VolumeRigOptions options = testing::with_a_fault();
    options.device.io_queues = 4;
    return options;
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_.rig().fs(); }
  f2fs::Volume& volume() { return writing_.volume(); }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  int64_t write_at(int fd, const std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  f2fs::NatRecord nat(uint32_t nid) {
    f2fs::NatRecord found{};
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(f2fs::look_up_nat(warp, volume(), 1u, nid, found), 0);
    });
    return found;
  }
  TestImage image_;
  f2fs::WritingRig writing_;
};
GOFS_AT_BOTH_WIDTHS(FsyncBesideTruncate);

// fsync has a node in its hands, and looked it up in the NAT; ftruncate, which is past its look at
// the node, takes it out of the NAT; then fsync's write comes back.
TEST_P(FsyncBesideTruncate, a_node_that_goes_is_not_entered_again) {
  const int fd = static_cast<int>(alone(
      [&](const simt::Warp& warp) { return open(warp, fs(), "/blocks", kOpenReadWrite, 0); }));
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 8 << 20), 5000);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  ASSERT_EQ(write_at(fd, std::string(5000, 'y'), 8 << 20), 5000);
  const uint32_t ino = fs().open_inodes[fs().descriptors[fd].open_inode].inode.ino;
  const uint64_t key = f2fs::page_key(f2fs::PageKind::kNode, ino);
  const f2fs::PageCache& cache = volume().cache;
  const uint32_t frame = f2fs::find_frame(cache, key);
  ASSERT_NE(frame, f2fs::kNoFrame);
  ASSERT_TRUE(f2fs::pin_frame(cache, frame, key));
  const uint32_t nid =
      reinterpret_cast<const format::NodeBlock*>(cache.page(frame))->inode.i_nid[1];
  ASSERT_NE(nid, 0u);
  const uint32_t before = nat(nid).block;
  ASSERT_TRUE(volume().is_main_block(before));
  std::atomic<bool> go{false};
  ssd::FaultRule writes;
  writes.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  const testing::HeldCommand held(writing_.rig(), 0, writes);
  testing::run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      EXPECT_TRUE(testing::wait_until([&] { return go.load(); }));
      warp.sync();
      EXPECT_EQ(fsync(warp, fs(), fd), 0);
    } else if (index == 1) {
      EXPECT_EQ(ftruncate(warp, fs(), fd, 4096), 0);
    } else if (index == 3) {
      EXPECT_TRUE(testing::wait_until([&] {
        return go || (simt::load_relaxed(cache.state(frame)) & f2fs::kFrameWanted) != 0;
      }));
      go = true;
      EXPECT_TRUE(held.wait());
      warp.sync();
      if (warp.thread_rank() == 0) f2fs::unpin(cache, frame);
      EXPECT_TRUE(testing::wait_until(
          [&] { return !f2fs::detail::is_in_use(volume(), writing_.writer(), before); },
          3'000'000'000));
      warp.sync();
      held.release(warp);
    }
  });
  EXPECT_EQ(nat(nid).block, format::kNullAddr);
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
  ASSERT_EQ(writing_.checkpoint(true), 0);
  EXPECT_TRUE(f2fs::fsck_likes(image_));
}

TEST_P(FsyncBesideTruncate, leaves_a_volume_that_is_whole) {
  const int fd = static_cast<int>(alone(
      [&](const simt::Warp& warp) { return open(warp, fs(), "/blocks", kOpenReadWrite, 0); }));
  const std::string bytes(5000, 'y');
  std::atomic<uint32_t> failed{0};
  const uint32_t kTurns = width() == 1 ? 1000 : 50;
  testing::run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      if (index == 0) {
        EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), bytes.size(), 8 << 20), 5000);
      } else if (index == 1) {
        const int error = turn % 2 == 0 ? fsync(warp, fs(), fd) : fdatasync(warp, fs(), fd);
        if (error != 0) ++failed;
      } else {
        EXPECT_EQ(ftruncate(warp, fs(), fd, 4096), 0);
      }
    }
  });
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
  EXPECT_EQ(failed, 0u);
  ASSERT_EQ(writing_.checkpoint(true), 0);
  EXPECT_TRUE(f2fs::fsck_likes(image_));
}

}  // namespace
}  // namespace gofs::vfs
