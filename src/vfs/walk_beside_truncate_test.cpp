// SPDX-License-Identifier: Apache-2.0
//
// Reads and walks down a file's nodes by address readers, which hold no lock, while others cut the
// file, or move its contents.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "f2fs/address_readers.h"
#include "f2fs/load_inode.h"
#include "f2fs/map.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/read.h"
#include "vfs/open.h"
#include "vfs/resize.h"
#include "vfs/write.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kFar = uint64_t{8} << 20;       // behind the inode's own addresses
constexpr uint64_t kFarther = uint64_t{12} << 30;  // under an indirect node

class WalkBesideTruncate : public WritingVfsTest {
 protected:
  WalkBesideTruncate() : WritingVfsTest([](image::ImageBuilder&) {}) {
    put_file("/f", 10'000, 'a');
    fd_ = static_cast<int>(
        as_root([&](const simt::Warp& warp) { return open(warp, fs(), "/f", kOpenReadWrite); }));
    EXPECT_GE(fd_, 0);
  }
  uint32_t ino() { return fs().open_inodes[fs().descriptors[fd_].open_inode].inode.ino; }
  uint32_t findings() { return f2fs::count_findings(*volume().corruptions); }
  int64_t write_at(uint64_t offset) {
    return as_root([&](const simt::Warp& warp) { return pwrite(warp, fs(), fd_, "x", 1, offset); });
  }
  int fd_ = -1;
};
GOFS_AT_BOTH_WIDTHS(WalkBesideTruncate);

TEST_P(WalkBesideTruncate, finds_holes_and_no_damage) {
  constexpr uint32_t kWalkers = 3;
  std::atomic<bool> done{false};
  testing::run_crowd({1 + kWalkers, GetParam()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(pwrite(warp, fs(), fd_, "x", 1, round % 2 == 0 ? kFar : kFarther), 1);
        EXPECT_EQ(ftruncate(warp, fs(), fd_, 5000), 0);
      }
      if (warp.thread_rank() == 0) done = true;
      return;
    }
    for (;;) {
      if (warp.shfl(done ? 1u : 0u, 0) != 0) break;
      if (warp.thread_rank() == 0) f2fs::enter_address_readers(*fs().writer);
      warp.sync();
      f2fs::Inode inode{};
      const uint32_t all = warp.ballot(true);
      EXPECT_EQ(f2fs::load_inodes(warp, volume(), all, ino(), inode), 0);
      for (const uint64_t offset : {kFar, kFarther}) {
        f2fs::BlockPlace place{};
        const uint64_t block = offset / kBlockBytes + warp.thread_rank();
        EXPECT_EQ(f2fs::map_blocks(warp, volume(), all, inode, block, place), 0);
      }
      warp.sync();
      if (warp.thread_rank() == 0) f2fs::leave_address_readers(*fs().writer);
    }
  });
  EXPECT_EQ(findings(), 0u);
}

TEST_P(WalkBesideTruncate, a_node_that_its_parent_names_no_more_is_a_hole) {
  ASSERT_EQ(write_at(kFarther), 1);
  constexpr uint32_t kWord = offsetof(format::Inode, i_nid) / 4;
  uint32_t nid = 0;
  uint32_t word = 0;
  uint32_t node_offset = 0;
  const auto judge = [&](const f2fs::Corruption& found) {
    return as_root([&](const simt::Warp& warp) {
      return int64_t{f2fs::detail::judge_wrong_node(warp, volume(), 1u, ino(),
                                                    {ino(), word, nid, node_offset, found})};
    });
  };
  for (uint32_t i = 0; nid == 0 && i < format::kInodeNids; ++i) {
    as_root([&](const simt::Warp& warp) {
      return f2fs::with_nodes(warp, volume(), 1u, ino(), ino(), [&](const format::NodeBlock& node) {
        nid = node.inode.i_nid[i];
        word = kWord + i;
      });
    });
  }
  ASSERT_NE(nid, 0u);
  const f2fs::Corruption damage{f2fs::Structure::kNatEntry, 0, nid, 7};
  ASSERT_EQ(as_root([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd_, 5000); }), 0);
  EXPECT_EQ(judge(damage), 0);
  EXPECT_EQ(findings(), 0u);
  ASSERT_EQ(write_at(kFarther), 1);
  as_root([&](const simt::Warp& warp) {
    return f2fs::with_nodes(warp, volume(), 1u, ino(), ino(), [&](const format::NodeBlock& node) {
      nid = f2fs::load_address(reinterpret_cast<const uint32_t*>(&node) + word);
    });
  });
  ASSERT_NE(nid, 0u);
  as_root([&](const simt::Warp& warp) {
    return f2fs::with_nodes(warp, volume(), 1u, nid, ino(), [&](const format::NodeBlock& node) {
      node_offset = node.footer.node_offset();
    });
  });
  EXPECT_EQ(judge({f2fs::Structure::kNodeFooter, 0, nid, 7}), 0) << "it is there again";
  EXPECT_EQ(findings(), 0u);
  ++node_offset;
  EXPECT_EQ(judge({f2fs::Structure::kNodeFooter, 0, nid, 7}), -EUCLEAN);
  EXPECT_EQ(findings(), 1u);
}

TEST_P(WalkBesideTruncate, contents_that_have_left_the_inode_are_read_where_they_are) {
  put_file("/small", 100, 's');
  testing::run_crowd({1, GetParam()}, [&](const simt::Warp& warp, uint32_t) {
    const int fd = open(warp, fs(), "/small", kOpenReadWrite);
    const uint32_t small = fs().open_inodes[fs().descriptors[fd].open_inode].inode.ino;
    f2fs::Inode before{};
    EXPECT_EQ(f2fs::load_inodes(warp, volume(), warp.ballot(true), small, before), 0);
    EXPECT_TRUE(before.has_inline_data());
    EXPECT_EQ(ftruncate(warp, fs(), fd, 5000), 0);
    uint8_t bytes[100] = {};
    EXPECT_EQ(f2fs::read_pieces(warp, volume(), fs().pool, warp.ballot(true), before,
                                {0, sizeof(bytes), bytes}),
              0);
    EXPECT_EQ(bytes[0], 's');
    EXPECT_EQ(bytes[99], 's');
    EXPECT_EQ(close(warp, fs(), fd), 0);
  });
  EXPECT_EQ(findings(), 0u);
}

// Lanes that look for the same node have the same answer.
TEST_P(WalkBesideTruncate, a_node_that_is_not_in_the_nat_is_damage_to_all_lanes) {
  ASSERT_EQ(write_at(kFar), 1);
  uint32_t nid = 0;
  as_root([&](const simt::Warp& warp) {
    return f2fs::with_nodes(warp, volume(), 1u, ino(), ino(),
                            [&](const format::NodeBlock& node) { nid = node.inode.i_nid[1]; });
  });
  ASSERT_NE(nid, 0u);
  testing::run_crowd({1, GetParam()}, [&](const simt::Warp& warp, uint32_t) {
    {
      f2fs::TestOperation op(warp, volume(), *fs().writer);
      EXPECT_EQ(f2fs::remove_nodes(warp, *op, 1u, nid), 0);
    }
    const uint32_t all = warp.ballot(true);
    f2fs::Inode inode{};
    EXPECT_EQ(f2fs::load_inodes(warp, volume(), all, ino(), inode), 0);
    f2fs::BlockPlace place{};
    const uint64_t index = kFar / kBlockBytes + warp.thread_rank();
    EXPECT_EQ(f2fs::map_blocks(warp, volume(), all, inode, index, place), -EUCLEAN);
  });
  EXPECT_EQ(findings(), 1u);
}

}  // namespace
}  // namespace gofs::vfs
