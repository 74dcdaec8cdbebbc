// SPDX-License-Identifier: Apache-2.0
//
// Node trees that grow without data: by lanes and warps that want the same nodes at once, up to the
// last block of the volume, on disks that fail. fsck.f2fs looks at every volume.
#include "f2fs/grow_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kGrowingFiles = 3;
constexpr uint32_t kSlotsInInode = 923;
constexpr uint64_t kGrowDirect = format::kDirectBlocks;
constexpr uint64_t kGrowIndirect = format::kIndirectBlocks;

void fill_with_empty_files(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < kGrowingFiles; ++i) {
    const std::string name = "f" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

/// Blocks of every level, several of them under the same nodes.
std::vector<uint64_t> blocks_of_all_levels() {
  const uint64_t indirect = kSlotsInInode + 2 * kGrowDirect;
  const uint64_t doubly = indirect + 2 * kGrowIndirect;
  return {0,
          kSlotsInInode - 1,
          kSlotsInInode,
          kSlotsInInode + 1,
          kSlotsInInode + kGrowDirect,
          indirect - 1,
          indirect,
          indirect + 5 * kGrowDirect + 3,
          indirect + 5 * kGrowDirect + 4,
          indirect + kGrowIndirect - 1,
          indirect + kGrowIndirect,
          doubly - 1,
          doubly,
          doubly + 17,
          doubly + kGrowDirect,
          doubly + 1000 * kGrowIndirect + 3,
          format::file_blocks_max(kSlotsInInode) - 1};
}

/// Nodes that lie on the ways to `blocks`, by their offsets; the inode is not one.
std::set<uint32_t> nodes_on_the_way(const std::vector<uint64_t>& blocks) {
  std::set<uint32_t> nodes;
  for (const uint64_t block : blocks) {
    uint32_t offsets[4];
    uint32_t node_offsets[4];
    const int depth = format::node_path(block, kSlotsInInode, offsets, node_offsets);
    nodes.insert(node_offsets + 1, node_offsets + 1 + depth);
  }
  return nodes;
}

class GrowNodesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static Inode load(WritingRig& writing, uint32_t ino) {
    Inode inode{};
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, inode), 0) << ino;
    });
    return inode;
  }
  /// Grows to `blocks`, a lane each; `answer(i, error, place)` is called for each.
  template <typename Answer>
  static void grow(const simt::Warp& warp, WritingRig& writing, const Inode& inode,
                   const std::vector<uint64_t>& blocks, Answer answer) {
    for (size_t first = 0; first < blocks.size(); first += warp.size()) {
      const size_t i = first + warp.thread_rank();
      const bool mine = i < blocks.size();
      AddressPlace place{};
      const int error = grow_nodes(warp, *TestOperation(warp, writing.volume(), writing.writer()),
                                   warp.ballot(mine), inode, mine ? blocks[i] : 0, place);
      if (mine) answer(i, error, place);
    }
  }
  /// 0 or the last error.
  int grow_alone(WritingRig& writing, uint32_t ino, const std::vector<uint64_t>& blocks) {
    const Inode inode = load(writing, ino);
    std::atomic<int> result{0};
    run_alone(width(), [&](const simt::Warp& warp) {
      grow(warp, writing, inode, blocks, [&](size_t, int error, const AddressPlace&) {
        if (error < 0) result = error;
      });
    });
    return result;
  }
  static void expect_finished(WritingRig& writing, TestImage& image) {
    EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(image));
  }
};
GOFS_AT_BOTH_WIDTHS(GrowNodesTest);

TEST_P(GrowNodesTest, nodes_of_every_level_are_made_once_and_found_again) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t feature :
       {uint32_t{0}, format::kFeatureExtraAttr | format::kFeatureInodeChecksum}) {
    TestImage image(fill_with_empty_files, feature);
    const std::vector<uint32_t> inos = inodes_of(image);
    std::vector<uint64_t> blocks = blocks_of_all_levels();
    if (feature != 0) blocks.pop_back();  // the extra attributes take slots away
    std::mt19937 random(5);
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::map<uint64_t, std::pair<uint32_t, uint32_t>> places;
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    const uint32_t nodes_before = writing.volume().valid_node_count;
    const Inode inode = load(writing, inos[1]);
    std::mutex mutex;
    for (uint32_t turn = 0; turn < 3; ++turn) {
      run_alone(width(), [&](const simt::Warp& warp) {
        grow(warp, writing, inode, blocks, [&](size_t i, int error, const AddressPlace& place) {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(error, 0) << blocks[i];
          EXPECT_EQ(place.address, format::kNullAddr);
          const auto known = places.emplace(blocks[i], std::pair(place.nid, place.word));
          EXPECT_EQ(known.first->second, std::pair(place.nid, place.word)) << blocks[i];
          const uint32_t header = place.nid == inos[1] ? 90u + inode.extra_words : 0u;
          EXPECT_EQ(place.word, header + place.slot);
        });
      });
      ASSERT_EQ(writing.checkpoint(false), 0);
    }
    const std::set<std::pair<uint32_t, uint32_t>> different = [&] {
      std::set<std::pair<uint32_t, uint32_t>> set;
      for (const auto& [block, place] : places) set.insert(place);
      return set;
    }();
    EXPECT_EQ(different.size(), blocks.size());
    const uint32_t made = writing.volume().valid_node_count - nodes_before;
    EXPECT_EQ(load(writing, inos[1]).block_count, 1u + made);
    if (feature == 0) {
      EXPECT_EQ(made, nodes_on_the_way(blocks).size());
    }
    expect_finished(writing, image);
    EXPECT_EQ(grow_alone(writing, inos[1], {format::file_blocks_max(kSlotsInInode)}), -EFBIG);
  }
}

// Whose node comes second to its place takes it away again.
TEST_P(GrowNodesTest, several_warps_grow_the_same_trees) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_empty_files);
  const std::vector<uint32_t> inos = inodes_of(image);
  const std::vector<uint64_t> blocks = blocks_of_all_levels();
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const uint32_t nodes_before = writing.volume().valid_node_count;
  constexpr uint32_t kWarps = 4;
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint64_t>, std::set<uint32_t>> nids;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t file = 0; file < kGrowingFiles; ++file) {
      Inode inode{};
      EXPECT_EQ(load_inodes(warp, writing.volume(), warp.ballot(true), inos[1 + file], inode), 0);
      std::vector<uint64_t> mine = blocks;
      std::rotate(mine.begin(), mine.begin() + index / 2 * 5, mine.end());
      grow(warp, writing, inode, mine, [&](size_t i, int error, const AddressPlace& place) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(error, 0);
        nids[{file, mine[i]}].insert(place.nid);
      });
    }
  });
  for (const auto& [block, nid] : nids) EXPECT_EQ(nid.size(), 1u) << block.second;
  const auto wanted = static_cast<uint32_t>(nodes_on_the_way(blocks).size());
  EXPECT_EQ(writing.volume().valid_node_count, nodes_before + kGrowingFiles * wanted);
  for (uint32_t file = 0; file < kGrowingFiles; ++file) {
    EXPECT_EQ(load(writing, inos[1 + file]).block_count, 1u + wanted);
  }
  expect_finished(writing, image);
}

TEST_P(GrowNodesTest, a_full_volume_refuses_and_stays_sound) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_empty_files);
  const std::vector<uint32_t> inos = inodes_of(image);
  const std::vector<uint64_t> blocks = blocks_of_all_levels();
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const uint64_t user_blocks = volume.user_block_count;
  const uint64_t wanted = nodes_on_the_way(blocks).size();
  // Two more each time.
  while (load(writing, inos[1]).block_count + 2 < 1 + wanted) {
    volume.user_block_count = volume.valid_block_count + 2;
    ASSERT_EQ(grow_alone(writing, inos[1], blocks), -ENOSPC);
    EXPECT_EQ(grow_alone(writing, inos[1], {0, kSlotsInInode - 1}), 0) << "needs none";
    ASSERT_LE(volume.valid_block_count, volume.user_block_count);
    if (volume.valid_block_count < volume.user_block_count && width() > 1) break;
  }
  volume.user_block_count = user_blocks;
  ASSERT_EQ(writing.checkpoint(false), 0);
  EXPECT_TRUE(fsck_likes(image));
  EXPECT_EQ(grow_alone(writing, inos[1], blocks), 0);
  EXPECT_EQ(load(writing, inos[1]).block_count, 1 + wanted);
  expect_finished(writing, image);
}

// Pages of a small cache go and are read again; every read fails once.
TEST_P(GrowNodesTest, a_disk_that_fails_leaves_nothing_half_done) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const std::vector<uint64_t> blocks = blocks_of_all_levels();
  TestImage sound(fill_with_empty_files);
  const std::vector<uint32_t> inos = inodes_of(sound);
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  uint32_t failures = 0;
  for (uint32_t skip = 0;; ++skip) {
    TestImage image(sound);
    WritingRig writing(image, width(), options);
    ASSERT_EQ(writing.begin().error, 0);
    EXPECT_EQ(grow_alone(writing, inos[1], {blocks[3], blocks[7]}), 0);
    // On the disk, and no page of it in memory.
    ASSERT_EQ(writing.checkpoint(true), 0);
    WritingRig later(image, width(), options);
    ASSERT_EQ(later.begin().error, 0);
    const Inode inode = load(later, inos[1]);
    ssd::FaultRule rule;
    rule.skip = skip;
    rule.count = 1;
    rule.status = format::nvme::kInternalError;
    later.rig().add_fault(rule);
    std::atomic<int> failed{0};
    run_alone(width(), [&](const simt::Warp& warp) {
      grow(warp, later, inode, blocks, [&](size_t, int error, const AddressPlace&) {
        if (error < 0) failed = error;
      });
    });
    later.rig().clear_faults();
    if (failed == 0) break;
    ++failures;
    EXPECT_EQ(failed, -EIO);
    ASSERT_EQ(later.checkpoint(false), 0);
    EXPECT_TRUE(fsck_likes(image)) << skip;
    EXPECT_EQ(grow_alone(later, inos[1], blocks), 0);
    EXPECT_EQ(load(later, inos[1]).block_count, 1 + nodes_on_the_way(blocks).size());
    expect_finished(later, image);
  }
  EXPECT_GT(failures, 2u);
}

// A node that is not the one of its place is found out before anything hangs on it.
TEST_P(GrowNodesTest, a_node_in_the_wrong_place_is_refused) {
  TestImage image(fill_with_empty_files);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  ASSERT_EQ(grow_alone(writing, inos[1], {kSlotsInInode}), 0);
  run_alone(1, [&](const simt::Warp& warp) {
    EXPECT_EQ(change_nodes(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u,
                           inos[1], inos[1],
                           [](format::NodeBlock& node) {
                             // Itself among its nodes, and one node in two places.
                             node.inode.i_nid[2] = uint32_t{node.footer.nid};
                             node.inode.i_nid[1] = uint32_t{node.inode.i_nid[0]};
                           }),
              0);
  });
  const uint64_t before = writing.volume().valid_block_count;
  EXPECT_EQ(grow_alone(writing, inos[1], {kSlotsInInode + kGrowDirect}), -EUCLEAN);
  EXPECT_EQ(grow_alone(writing, inos[1], {kSlotsInInode + 2 * kGrowDirect + 5000}), -EUCLEAN);
  EXPECT_EQ(grow_alone(writing, inos[1], {kSlotsInInode + 7}), 0);
  EXPECT_EQ(writing.volume().valid_block_count, before);
  EXPECT_GE(count_findings(*writing.volume().corruptions), 2u);
}

}  // namespace
}  // namespace gofs::f2fs
