// SPDX-License-Identifier: Apache-2.0
//
// Where file blocks lie, on every level of the node tree, compared with a reader that shares
// nothing with ours but the format; and how far a hole's answer reaches.
#include "f2fs/map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "f2fs/mount.h"
#include "host/image/reader_for_test.h"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

constexpr uint64_t kDirect = format::kNodeSlots;
constexpr uint64_t kIndirect = kDirect * kDirect;

/// A file with blocks on every level: in the inode, under both direct nodes, both indirect ones and
/// the double indirect one; the rest are holes of every size. The offsets assume `slots` in the
/// inode.
std::vector<image::FileRange> scattered(uint32_t slots) {
  const uint32_t direct = slots;
  const uint32_t indirect = static_cast<uint32_t>(slots + 2 * kDirect);
  const auto double_indirect = static_cast<uint32_t>(indirect + 2 * kIndirect);
  return {{0, 2},
          {5, 1},
          {slots - 1, 3},                                    // into the first direct node
          {static_cast<uint32_t>(direct + kDirect - 2), 4},  // into the second
          {static_cast<uint32_t>(direct + kDirect + 100), 5, true},
          {indirect + 3, 2},
          {static_cast<uint32_t>(indirect + 7 * kDirect - 1), 2},
          {static_cast<uint32_t>(indirect + kIndirect - 1), 2},  // into the second indirect node
          {double_indirect - 1, 2},
          {static_cast<uint32_t>(double_indirect + 3 * kIndirect + 5 * kDirect + 9), 1},
          {static_cast<uint32_t>(double_indirect + 900 * kIndirect), 1}};
}

struct MapCase {
  uint32_t feature;
  uint32_t slots;
};

class MapTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr MapCase kCases[] = {{0, 923}, {image::kFeaturesOffered, 914}};

  uint32_t width() const { return GetParam(); }

  void build(const MapCase& one) {
    image::FileHandle handle;
    image_ = std::make_unique<TestImage>(
        [&](image::ImageBuilder& builder) {
          image::FileSpec file;
          file.name = "scattered";
          file.sparse = true;
          file.ranges = scattered(one.slots);
          file.size_bytes = uint64_t{file.ranges.back().first_block + 1} * kBlockBytes;
          file.content = image::pattern_content(3);
          TestImage::must(builder.add_file(builder.root(), file, {}, &handle));
          file = image::FileSpec{};
          file.name = "empty";
          TestImage::must(builder.add_file(builder.root(), file, {}, &empty_));
        },
        one.feature);
    ino_ = handle.ino;
    target_ = image_->target();
    reader_ = std::make_unique<image::TestReader>(*target_);
    remount();
  }
  void remount() {
    VolumeRigOptions options;
    options.ssd.fault_capacity = 4;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    rig_->mount_ready();
  }

  struct Answer {
    int error;
    BlockPlace place;
  };
  /// Asks for each of `indexes`, a lane each, as many at a time as there are lanes.
  std::vector<Answer> map(const std::vector<uint64_t>& indexes, uint32_t ino) {
    std::vector<Answer> answers(indexes.size());
    run_alone(width(), [&](const simt::Warp& warp) {
      Inode inode{};
      ASSERT_EQ(load_inodes(warp, rig_->volume(), warp.ballot(true), ino, inode), 0);
      for (size_t first = 0; first < indexes.size(); first += warp.size()) {
        const size_t at = first + warp.thread_rank();
        const bool mine = at < indexes.size();
        const uint32_t lanes = warp.ballot(mine);
        BlockPlace place{};
        const int error =
            map_blocks(warp, rig_->volume(), lanes, inode, mine ? indexes[at] : 0, place);
        if (mine) answers[at] = {error, place};
      }
    });
    return answers;
  }
  Answer map_one(uint64_t index, uint32_t ino) { return map({index}, ino)[0]; }
  /// What the other reader says; reserved blocks are holes to ours.
  uint32_t wanted(const image::TestReader::File& file, uint64_t index) {
    const uint32_t address = reader_->address(file, index);
    return address == format::kNewAddr ? format::kNullAddr : address;
  }

  std::unique_ptr<TestImage> image_;
  std::unique_ptr<image::ImageTarget> target_;
  std::unique_ptr<image::TestReader> reader_;
  std::unique_ptr<VolumeRig> rig_;
  uint32_t ino_ = 0;
  image::FileHandle empty_;
};
GOFS_AT_BOTH_WIDTHS(MapTest);

TEST_P(MapTest, blocks_and_holes_of_every_level_are_where_they_are) {
  for (const MapCase& one : kCases) {
    build(one);
    const auto file = reader_->file(ino_);
    ASSERT_EQ(reader_->layout(file).slot_count, one.slots);
    std::vector<uint64_t> indexes;
    for (const image::FileRange& range : scattered(one.slots)) {
      const uint64_t first = range.first_block == 0 ? 0 : range.first_block - 1;
      for (uint64_t i = first; i <= range.first_block + range.block_count; ++i) {
        indexes.push_back(i);
      }
    }
    const uint64_t seed = printed_seed();
    const uint64_t end = scattered(one.slots).back().first_block + 1;
    for (uint32_t i = 0; i < 100; ++i) indexes.push_back(image::pattern_word(seed, i) % end);
    // Neighbours go to the same lane's neighbours and strangers together.
    std::rotate(indexes.begin(), indexes.begin() + 7, indexes.end());
    const std::vector<Answer> answers = map(indexes, ino_);
    uint32_t stored = 0;
    for (size_t i = 0; i < indexes.size(); ++i) {
      ASSERT_EQ(answers[i].error, 0) << indexes[i];
      ASSERT_EQ(answers[i].place.block, wanted(file, indexes[i])) << indexes[i];
      stored += answers[i].place.block != format::kNullAddr ? 1 : 0;
    }
    EXPECT_GE(stored, 20u);
    EXPECT_EQ(count_findings(*rig_->volume().corruptions), 0u);
  }
}

TEST_P(MapTest, a_hole_reaches_to_the_end_of_the_missing_subtree) {
  build(kCases[0]);
  const uint64_t indirect = 923 + 2 * kDirect;
  const uint64_t double_indirect = indirect + 2 * kIndirect;
  struct Case {
    uint64_t index;
    uint64_t span;
  };
  const Case cases[] = {
      {1, 1},                                                // stored
      {3, 1},                                                // in the inode
      {923 + 500, 1},                                        // in a direct node
      {indirect + kDirect + 10, kDirect - 10},               // a direct node is missing
      {indirect + kIndirect + 4 * kDirect, kDirect},         // likewise
      {double_indirect + 5 * kIndirect + 3, kIndirect - 3},  // an indirect one
      {double_indirect + 6 * kIndirect - 1, 1},
      {double_indirect + 3 * kIndirect + 6 * kDirect + 1, kDirect - 1},
  };
  for (const Case& one : cases) {
    const Answer answer = map_one(one.index, ino_);
    EXPECT_EQ(answer.error, 0);
    EXPECT_EQ(answer.place.span, one.span) << one.index;
  }
  // With no tree at all, each of the inode's pointers stands for all that is under it.
  EXPECT_EQ(map_one(923, empty_.ino).place.span, kDirect);
  EXPECT_EQ(map_one(indirect, empty_.ino).place.span, kIndirect);
  EXPECT_EQ(map_one(double_indirect, empty_.ino).place.span, kIndirect * kDirect);
}

// What lseek and listing rely on: stepping by spans meets every stored block.
TEST_P(MapTest, stepping_by_spans_misses_no_block) {
  build(kCases[1]);
  const auto file = reader_->file(ino_);
  std::vector<uint64_t> stored;
  for (const image::FileRange& range : scattered(914)) {
    for (uint64_t i = range.first_block; i < range.first_block + range.block_count; ++i) {
      if (wanted(file, i) != format::kNullAddr) stored.push_back(i);
    }
  }
  const uint64_t end = stored.back() + 1;
  std::vector<uint64_t> met;
  // By one thread: this takes one step after another.
  Inode inode{};
  ASSERT_EQ(load_inodes(simt::Warp(), rig_->volume(), 1u, ino_, inode), 0);
  uint64_t steps = 0;
  for (uint64_t index = 0; index < end; ++steps) {
    BlockPlace place{};
    ASSERT_EQ(map_blocks(simt::Warp(), rig_->volume(), 1u, inode, index, place), 0);
    ASSERT_GE(place.span, 1u);
    if (place.block != format::kNullAddr) met.push_back(index);
    index += place.span;
  }
  EXPECT_EQ(met, stored);
  EXPECT_LT(steps, 20'000u) << "holes of subtrees are not skipped";
}

TEST_P(MapTest, no_inode_reaches_further_than_its_tree) {
  build(kCases[0]);
  const uint64_t end = format::file_blocks_max(923);
  EXPECT_EQ(map_one(end - 1, ino_).error, 0);
  EXPECT_EQ(map_one(end, ino_).error, -EFBIG);
  EXPECT_EQ(map_one(~uint64_t{0}, ino_).error, -EFBIG);
}

TEST_P(MapTest, lanes_fail_each_for_itself) {
  build(kCases[0]);
  const std::vector<uint64_t> indexes = {0, ~uint64_t{0}, 5, format::file_blocks_max(923), 1};
  const std::vector<Answer> answers = map(indexes, ino_);
  const int wanted_errors[] = {0, -EFBIG, 0, -EFBIG, 0};
  const auto file = reader_->file(ino_);
  for (size_t i = 0; i < indexes.size(); ++i) {
    EXPECT_EQ(answers[i].error, wanted_errors[i]);
    if (answers[i].error == 0) {
      EXPECT_EQ(answers[i].place.block, wanted(file, indexes[i]));
    }
  }
}

TEST_P(MapTest, addresses_that_cannot_be_are_reported_or_refused) {
  build(kCases[0]);
  format::NodeBlock& node = image_->node(ino_);
  node.inode.i_addr[10] = image_->geometry().main_blkaddr - 1;
  node.inode.i_addr[11] = static_cast<uint32_t>(image_->geometry().main_end());
  node.inode.i_addr[12] = format::kCompressAddr;
  node.inode.i_addr[13] = format::kNewAddr;
  remount();
  EXPECT_EQ(map_one(10, ino_).error, -EUCLEAN);
  EXPECT_EQ(map_one(11, ino_).error, -EUCLEAN);
  EXPECT_EQ(map_one(12, ino_).error, -EOPNOTSUPP);
  EXPECT_EQ(map_one(13, ino_).error, 0);
  EXPECT_EQ(map_one(13, ino_).place.block, format::kNullAddr);
  EXPECT_EQ(rig_->volume().corruptions->records[0].structure, Structure::kBlockAddress);
}

TEST_P(MapTest, nodes_that_are_not_where_they_belong_are_reported) {
  const uint64_t first = 923;  // the first block under the first direct node
  build(kCases[0]);
  const uint32_t direct = image_->node(ino_).inode.i_nid[0];
  // A node that says it has another place in the tree.
  image_->node(direct).footer.flag = (7u << format::kNodeOffsetShift) | format::kNodeCold;
  remount();
  EXPECT_EQ(map_one(first, ino_).error, -EUCLEAN);
  EXPECT_EQ(map_one(first, ino_).place.span, kDirect);
  EXPECT_EQ(rig_->volume().corruptions->records[0].structure, Structure::kNodeFooter);
  // One that belongs to another file, or lies nowhere.
  image_->node(ino_).inode.i_nid[0] = empty_.ino;
  remount();
  EXPECT_EQ(map_one(first, ino_).error, -EUCLEAN);
  image_->node(ino_).inode.i_nid[0] = 0x00ffffff;
  remount();
  EXPECT_EQ(map_one(first, ino_).error, -EUCLEAN);
  EXPECT_EQ(map_one(0, ino_).error, 0) << "the rest of the file is as it was";
  // A tree that bites its tail.
  image_->node(ino_).inode.i_nid[0] = ino_;
  remount();
  EXPECT_EQ(map_one(first, ino_).error, -EUCLEAN);
}

TEST_P(MapTest, a_node_that_cannot_be_read_fails_those_who_need_it) {
  build(kCases[0]);
  const uint32_t direct = image_->node(ino_).inode.i_nid[1];
  rig_->add_fault(VolumeRig::reads_of_block(image_->nat_entry(direct).block_addr, 9,
                                            ssd::FaultAction::kStatus));
  const std::vector<uint64_t> indexes = {0, 923 + kDirect, 923, 923 + kDirect + 1, 5};
  const std::vector<Answer> answers = map(indexes, ino_);
  const int errors[] = {0, -EIO, 0, -EIO, 0};
  for (size_t i = 0; i < indexes.size(); ++i) EXPECT_EQ(answers[i].error, errors[i]) << i;
  rig_->clear_faults();
  EXPECT_EQ(map_one(923 + kDirect, ino_).error, 0);
}

}  // namespace
}  // namespace gofs::f2fs
