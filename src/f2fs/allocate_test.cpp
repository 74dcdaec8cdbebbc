// SPDX-License-Identifier: Apache-2.0
//
// Taking and releasing blocks: each is had by one, none that the last checkpoint needs, logs move
// from segment to segment as fsck.f2fs wants them, and a full volume gives all it has and no more.
#include "f2fs/allocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;

void fill_a_little(image::ImageBuilder& builder) {
  image::FileSpec file;
  file.name = "file";
  file.size_bytes = 3'000'000;
  file.content = image::pattern_content(1);
  TestImage::must(builder.add_file(builder.root(), file));
}

/// Without open segments, which open_segments_test.cpp is about.
WriterOptions only_logs() {
  WriterOptions options;
  options.open_segments = 0;
  return options;
}

class AllocateTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  AllocateTest() { EXPECT_EQ(writing_.begin().error, 0); }
  uint32_t width() const { return GetParam(); }
  Volume& volume() { return writing_.volume(); }
  Writer& writer() { return writing_.writer(); }
  const SegmentInfo& segment_of(uint32_t block) {
    return writer().segments.segments[volume().geometry.segno_of(block)];
  }
  bool is_valid(uint32_t block) {
    const uint32_t offset = volume().geometry.offset_in_segment(block);
    return (segment_of(block).valid[offset / 32] >> offset % 32 & 1u) != 0;
  }
  uint64_t valid_blocks() { return writing_.valid_blocks(); }

  /// Calls by all lanes, at most `calls`, until one fails: the blocks, in the order of the calls.
  std::vector<uint32_t> allocate(uint32_t log, uint32_t calls, int* error) {
    std::vector<std::vector<uint32_t>> lanes(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      int result = 0;
      for (uint32_t call = 0; call < calls && result == 0; ++call) {
        uint32_t block = 0;
        result = allocate_blocks(warp, *TestOperation(warp, volume(), writer()), warp.ballot(true),
                                 log, format::SummaryEntry{}, block);
        if (result == 0) lanes[warp.thread_rank()].push_back(block);
      }
      if (warp.thread_rank() == 0) *error = result;
    });
    std::vector<uint32_t> blocks;
    for (size_t call = 0; call < lanes[0].size(); ++call) {
      for (const auto& lane : lanes) blocks.push_back(lane.at(call));
    }
    return blocks;
  }
  std::vector<uint32_t> allocate(uint32_t log, uint32_t calls) {
    int error = 0;
    std::vector<uint32_t> blocks = allocate(log, calls, &error);
    EXPECT_EQ(error, 0);
    return blocks;
  }
  /// Until there are no more.
  std::vector<uint32_t> allocate_all(uint32_t log) {
    int error = 0;
    std::vector<uint32_t> blocks = allocate(log, ~0u, &error);
    EXPECT_EQ(error, -ENOSPC);
    return blocks;
  }
  void release(const std::vector<uint32_t>& blocks) {
    run_alone(1, [&](const simt::Warp& warp) {
      for (const uint32_t block : blocks)
        free_blocks(warp, *TestOperation(warp, volume(), writer()), 1u, block);
    });
  }
  void expect_nothing_left() {
    ASSERT_EQ(writing_.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(image_));
  }

  TestImage image_{fill_a_little};
  WritingRig writing_{image_, GetParam(), {}, only_logs()};
};

INSTANTIATE_TEST_SUITE_P(width, AllocateTest, ::testing::ValuesIn(gofs::testing::widths({1, 4})));

TEST_P(AllocateTest, a_log_goes_on_where_it_was_and_in_a_row) {
  const Log before = writer().logs[format::kWarmData];
  const std::vector<uint32_t> blocks = allocate(format::kWarmData, 2000 / width());
  EXPECT_EQ(blocks[0], volume().geometry.block_of(before.segno, before.next));
  uint32_t breaks = 0;
  for (size_t i = 1; i < blocks.size(); ++i) breaks += blocks[i] != blocks[i - 1] + 1;
  EXPECT_LE(breaks, 4u) << "one for each segment";
  for (const uint32_t block : blocks) {
    EXPECT_TRUE(is_valid(block));
    EXPECT_EQ(segment_of(block).type, uint32_t{format::kWarmData});
  }
  release(blocks);
  expect_nothing_left();
}

TEST_P(AllocateTest, many_warps_get_blocks_of_their_own) {
  const uint64_t before = valid_blocks();
  std::mutex mutex;
  std::vector<uint32_t> blocks;
  const uint32_t warps = width() == 1 ? 12 : 4;
  run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < 60; ++turn) {
      const uint32_t log = (index + turn) % format::kLogCount;
      // Not always all lanes.
      const uint32_t lanes = warp.ballot((warp.thread_rank() + turn) % 3 != 0 || warp.size() == 1);
      uint32_t block = 0;
      EXPECT_EQ(allocate_blocks(warp, *TestOperation(warp, volume(), writer()), lanes, log,
                                format::SummaryEntry{}, block),
                0);
      if ((lanes >> warp.thread_rank() & 1u) != 0) {
        const std::lock_guard lock(mutex);
        blocks.push_back(block);
      }
      // Some are released at once, and may be had again.
      const uint32_t back = warp.ballot(turn % 5 == 0) & lanes;
      if (back != 0) {
        free_blocks(warp, *TestOperation(warp, volume(), writer()), back, block);
        if ((back >> warp.thread_rank() & 1u) != 0) {
          const std::lock_guard lock(mutex);
          blocks.erase(std::find(blocks.begin(), blocks.end(), block));
        }
      }
    }
  });
  EXPECT_EQ(std::set<uint32_t>(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_EQ(valid_blocks(), before + blocks.size());
  release(blocks);
  expect_nothing_left();
}

TEST_P(AllocateTest, a_full_volume_gives_all_it_has_and_takes_it_back) {
  const uint64_t before = valid_blocks();
  std::vector<uint32_t> blocks = allocate_all(format::kColdData);
  const std::vector<uint32_t> nodes = allocate_all(format::kWarmNode);
  EXPECT_EQ(valid_blocks(), before + blocks.size() + nodes.size());
  blocks.insert(blocks.end(), nodes.begin(), nodes.end());
  EXPECT_EQ(std::set<uint32_t>(blocks.begin(), blocks.end()).size(), blocks.size());
  // The rest is where the other logs are, and the log's last segment.
  const uint64_t all = uint64_t{volume().geometry.main_segments} * format::kBlocksPerSegment;
  EXPECT_GT(valid_blocks(), all - format::kLogCount * format::kBlocksPerSegment);
  EXPECT_TRUE(allocate_all(format::kColdData).empty());
  release(blocks);
  expect_nothing_left();
}

TEST_P(AllocateTest, what_the_last_checkpoint_needs_is_not_given_out) {
  const std::vector<uint32_t> kept = allocate(format::kHotData, 5);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  release(kept);
  std::vector<uint32_t> others = allocate_all(format::kHotData);
  for (const uint32_t block : kept) {
    EXPECT_EQ(std::count(others.begin(), others.end(), block), 0);
    EXPECT_FALSE(is_valid(block));
  }
  // Holes are used again after the next checkpoint, where nothing else is left.
  std::vector<uint32_t> holes;
  for (size_t i = 0; i < others.size(); i += 7) holes.push_back(others[i]);
  release(holes);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  const std::vector<uint32_t> again = allocate_all(format::kHotData);
  EXPECT_GE(again.size() + width() * format::kLogCount, holes.size() / 2);
  EXPECT_EQ(writer().logs[format::kHotData].alloc_type, uint32_t{format::kAllocSsr});
  std::set<uint32_t> mine(others.begin(), others.end());
  for (const uint32_t hole : holes) mine.erase(hole);
  for (const uint32_t block : again) EXPECT_TRUE(mine.insert(block).second) << block;
  release({mine.begin(), mine.end()});
  expect_nothing_left();
}

TEST_P(AllocateTest, a_log_that_cannot_be_moved_gives_nothing) {
  testing::VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  TestImage image(fill_a_little);
  WritingRig writing(image, width(), options, only_logs());
  ASSERT_EQ(writing.begin().error, 0);
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.status = format::nvme::kWriteFault;
  writing.rig().add_fault(rule);
  std::vector<uint32_t> blocks;
  std::mutex mutex;
  int error = 0;
  while (error == 0) {
    run_alone(width(), [&](const simt::Warp& warp) {
      uint32_t block = 0;
      const int result =
          allocate_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()),
                          warp.ballot(true), format::kWarmData, format::SummaryEntry{}, block);
      const std::lock_guard lock(mutex);
      if (result == 0) blocks.push_back(block);
      error = result;
    });
  }
  EXPECT_EQ(error, -EIO);
  EXPECT_LT(blocks.size(), size_t{format::kBlocksPerSegment});
  EXPECT_LT(writing.writer().logs[format::kWarmData].next, format::kBlocksPerSegment);
  writing.rig().clear_faults();
  run_alone(1, [&](const simt::Warp& warp) {
    for (const uint32_t block : blocks) {
      free_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u, block);
    }
  });
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

}  // namespace
}  // namespace gofs::f2fs
