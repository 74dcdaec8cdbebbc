// SPDX-License-Identifier: Apache-2.0
//
// Open segments: processors take blocks of their own without getting in each other's way, also
// while checkpoints are made; summaries are in the SSA before a checkpoint refers to what they are
// about; and a volume that gets full is used to its last block, however many segments had been
// open.
#include "f2fs/open_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "f2fs/operation_for_test.hpp"
#include "f2fs/victims.h"
#include "f2fs/writing_for_test.hpp"
#include "testing/held_command.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kOpenForTest = 3;
constexpr uint64_t kOpenVolumeBytes = uint64_t{128} << 20;

void fill_one_file(image::ImageBuilder& builder) {
  image::FileSpec file;
  file.name = "file";
  file.size_bytes = 3'000'000;
  file.content = image::pattern_content(1);
  TestImage::must(builder.add_file(builder.root(), file));
}

WriterOptions open_segments(uint32_t count) {
  WriterOptions options;
  options.open_segments = count;
  return options;
}

VolumeRigOptions with_a_fault() {
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  return options;
}

/// A block, and what its summary is to say.
struct TakenBlock {
  uint32_t block;
  uint32_t nid;
  uint16_t slot;
};

class OpenSegmentsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  OpenSegmentsTest() { EXPECT_EQ(writing_.begin().error, 0); }
  uint32_t width() const { return GetParam(); }
  Volume& volume() { return writing_.volume(); }
  Writer& writer() { return writing_.writer(); }
  SegmentInfo& segment_of(uint32_t block) {
    return writer().segments.segments[volume().geometry.segno_of(block)];
  }
  uint64_t valid_blocks() { return writing_.valid_blocks(); }
  uint32_t open_at(uint32_t index) { return detail::segment_of_place(writer().open[index].place); }

  /// Takes blocks as `warps` warps on as many processors, `calls` times or until there are none.
  /// Each warp's are in the order in which it got them.
  std::vector<std::vector<TakenBlock>> take(uint32_t warps, uint32_t calls, int* error = nullptr) {
    std::vector<std::vector<std::vector<TakenBlock>>> taken(
        warps, std::vector<std::vector<TakenBlock>>(width()));
    std::atomic<int> failed{0};
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t call = 0; call < calls; ++call) {
        OperationSlot slot;
        ASSERT_EQ(begin_operation(warp, {volume(), writer()}, 0, slot), 0);
        const uint32_t nid = 1000 + index;
        format::SummaryEntry summary{};
        summary.nid = nid;
        summary.ofs_in_node = static_cast<uint16_t>(call % 900);
        uint32_t block = 0;
        const int result =
            allocate_blocks(warp, *slot, warp.ballot(true), format::kWarmData, summary, block);
        end_operation(warp, slot);
        if (result < 0) {
          failed = result;
          break;
        }
        taken[index][warp.thread_rank()].push_back({block, nid, static_cast<uint16_t>(call % 900)});
      }
    });
    if (error != nullptr) *error = failed;
    EXPECT_TRUE(error != nullptr || failed == 0);
    std::vector<std::vector<TakenBlock>> of_warps(warps);
    for (uint32_t i = 0; i < warps; ++i) {
      for (size_t call = 0; call < taken[i][0].size(); ++call) {
        for (const auto& lane : taken[i]) of_warps[i].push_back(lane.at(call));
      }
    }
    return of_warps;
  }
  static std::vector<TakenBlock> all_of(const std::vector<std::vector<TakenBlock>>& of_warps) {
    std::vector<TakenBlock> all;
    for (const auto& blocks : of_warps) all.insert(all.end(), blocks.begin(), blocks.end());
    return all;
  }
  void expect_unique(const std::vector<TakenBlock>& blocks) {
    std::set<uint32_t> seen;
    for (const TakenBlock& taken : blocks) EXPECT_TRUE(seen.insert(taken.block).second);
  }
  static uint32_t breaks_in(const std::vector<TakenBlock>& blocks) {
    uint32_t breaks = 0;
    for (size_t i = 1; i < blocks.size(); ++i) breaks += blocks[i].block != blocks[i - 1].block + 1;
    return breaks;
  }
  /// What the SSA on the disk says of blocks, where it is that of no log.
  void expect_in_ssa(const std::vector<TakenBlock>& blocks) {
    for (const TakenBlock& taken : blocks) {
      const uint32_t segno = volume().geometry.segno_of(taken.block);
      if (detail::is_current_segment(writer(), segno)) continue;
      const auto& summary = *reinterpret_cast<const format::SummaryBlock*>(
          image_.block(volume().geometry.summary_block(segno)));
      const format::SummaryEntry& entry =
          summary.entries[volume().geometry.offset_in_segment(taken.block)];
      ASSERT_EQ(uint32_t{entry.nid}, taken.nid) << taken.block;
      ASSERT_EQ(uint32_t{entry.ofs_in_node}, taken.slot) << taken.block;
      ASSERT_EQ(summary.footer.entry_type, format::kSummaryData);
    }
  }
  void release(const std::vector<TakenBlock>& blocks) {
    run_alone(1, [&](const simt::Warp& warp) {
      for (const TakenBlock& taken : blocks) {
        free_blocks(warp, *TestOperation(warp, volume(), writer()), 1u, taken.block);
      }
    });
  }
  /// Of commands that write.
  static ssd::FaultRule all_writes() {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.status = format::nvme::kWriteFault;
    return rule;
  }
  void expect_nothing_left() {
    ASSERT_EQ(writing_.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(image_));
  }

  TestImage image_{fill_one_file, 0, kOpenVolumeBytes};
  WritingRig writing_{image_, GetParam(), with_a_fault(), open_segments(kOpenForTest)};
};
GOFS_AT_BOTH_WIDTHS(OpenSegmentsTest);

TEST_P(OpenSegmentsTest, each_processor_writes_runs_of_its_own) {
  const uint64_t before = valid_blocks();
  const auto of_warps = take(kOpenForTest, 1200 / width());
  const std::vector<TakenBlock> all = all_of(of_warps);
  expect_unique(all);
  EXPECT_EQ(valid_blocks(), before + all.size());
  for (const auto& blocks : of_warps) {
    EXPECT_LE(breaks_in(blocks), 1200 / format::kBlocksPerSegment) << "one for each segment";
    for (const TakenBlock& taken : blocks) {
      const SegmentInfo& segment = segment_of(taken.block);
      EXPECT_EQ(segment.type, uint32_t{format::kWarmData});
      const uint32_t offset = volume().geometry.offset_in_segment(taken.block);
      EXPECT_TRUE((segment.valid[offset / 32] >> offset % 32 & 1u) != 0);
      EXPECT_TRUE((segment.committed[offset / 32] >> offset % 32 & 1u) != 0);
    }
  }
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, many_warps_share_and_checkpoints_come_in_between) {
  const uint64_t before = valid_blocks();
  std::mutex mutex;
  std::vector<TakenBlock> all;
  const uint32_t warps = width() == 1 ? 10 : 4;
  run_crowd({warps + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == warps) {
      for (uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(write_checkpoint(warp, volume(), writer(), false), 0);
      }
      return;
    }
    for (uint32_t turn = 0; turn < 800 / width(); ++turn) {
      OperationSlot slot;
      ASSERT_EQ(begin_operation(warp, {volume(), writer()}, 0, slot), 0);
      // Not always all lanes.
      const uint32_t lanes = warp.ballot((warp.thread_rank() + turn) % 3 != 0 || warp.size() == 1);
      format::SummaryEntry summary{};
      summary.nid = 1000 + index;
      summary.ofs_in_node = static_cast<uint16_t>(turn);
      uint32_t block = 0;
      EXPECT_EQ(allocate_blocks(warp, *slot, lanes, format::kWarmData, summary, block), 0);
      // Some are released at once.
      const uint32_t back = warp.ballot(turn % 5 == 0) & lanes;
      if (back != 0) free_blocks(warp, *slot, back, block);
      end_operation(warp, slot);
      if (((lanes & ~back) >> warp.thread_rank() & 1u) != 0) {
        const std::lock_guard lock(mutex);
        all.push_back({block, 1000 + index, static_cast<uint16_t>(turn)});
      }
    }
  });
  expect_unique(all);
  EXPECT_EQ(valid_blocks(), before + all.size());
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

// Lanes with rows of different lengths, some with none: where a segment ends a row goes on in the
// next one, whether it is an open one or a log's, and where there is none all get nothing.
TEST_P(OpenSegmentsTest, rows_lie_together_but_at_the_end_of_a_segment) {
  using Rows = std::vector<std::vector<TakenBlock>>;
  constexpr uint32_t kMost = 8;
  const uint64_t before = valid_blocks();
  const auto take_rows = [&](uint32_t log, uint32_t turns, Rows& rows) {
    int answer = 0;
    std::mutex mutex;
    run_alone(width(), [&](const simt::Warp& warp) {
      for (uint32_t turn = 0; turn < turns; ++turn) {
        const uint32_t count = (warp.thread_rank() * 5 + turn) % (kMost + 1);
        const uint32_t nid = 2000 + warp.thread_rank();
        format::SummaryEntry summary{};
        summary.nid = nid;
        summary.ofs_in_node = static_cast<uint16_t>(turn % 900);
        uint32_t blocks[kMost];
        const int error = allocate_rows(warp, *TestOperation(warp, volume(), writer()), log,
                                        summary, count, blocks);
        const std::lock_guard lock(mutex);
        answer = error;
        if (error < 0) break;
        rows.emplace_back();
        for (uint32_t i = 0; i < count; ++i) {
          rows.back().push_back({blocks[i], nid, static_cast<uint16_t>(turn % 900 + i)});
        }
      }
    });
    return answer;
  };
  const auto release_rows = [&](const Rows& rows) {
    run_alone(width(), [&](const simt::Warp& warp) {
      for (const auto& row : rows) {
        std::vector<uint32_t> blocks;
        for (const TakenBlock& taken : row) blocks.push_back(taken.block);
        const auto count = static_cast<uint32_t>(warp.thread_rank() == 0 ? row.size() : 0);
        free_rows(warp, *TestOperation(warp, volume(), writer()), count, blocks.data());
      }
    });
    EXPECT_EQ(valid_blocks(), before);
  };
  for (const uint32_t log : {format::kWarmData, format::kHotData}) {
    Rows rows;
    ASSERT_EQ(take_rows(log, 1200 / width(), rows), 0);
    const std::vector<TakenBlock> all = all_of(rows);
    expect_unique(all);
    EXPECT_EQ(valid_blocks(), before + all.size());
    uint32_t breaks = 0;
    for (const auto& row : rows) breaks += breaks_in(row);
    EXPECT_LE(breaks, all.size() / format::kBlocksPerSegment + 1);
    ASSERT_EQ(writing_.checkpoint(false), 0);
    expect_in_ssa(all);
    release_rows(rows);
  }
  Rows rows;
  const uint32_t free = writer().free_count;
  ASSERT_EQ(take_rows(format::kWarmData, 10, rows), 0);
  writer().free_count = 0;  // as it looks to them
  EXPECT_EQ(take_rows(format::kWarmData, ~0u, rows), -ENOSPC);
  writer().free_count = free;
  const std::vector<TakenBlock> all = all_of(rows);
  expect_unique(all);
  EXPECT_EQ(valid_blocks(), before + all.size());
  release_rows(rows);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, a_segment_stays_open_over_a_checkpoint_which_has_its_summary) {
  std::vector<TakenBlock> first = all_of(take(kOpenForTest, 10));
  const std::vector<uint32_t> open = {open_at(0), open_at(1), open_at(2)};
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(first);
  for (const uint32_t segno : open) {
    EXPECT_EQ(writer().segments.segments[segno].valid_count, 10 * width());
    EXPECT_FALSE(detail::segment_bit(writer().free_map, segno));
  }
  const auto second = take(kOpenForTest, 10);
  for (uint32_t i = 0; i < kOpenForTest; ++i) {
    EXPECT_EQ(open_at(i), open[i]);
    EXPECT_EQ(second[i][0].block, volume().geometry.block_of(open[i], 10 * width()));
  }
  const std::vector<TakenBlock> more = all_of(second);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(first);
  expect_in_ssa(more);
  release(first);
  release(more);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, an_open_segment_has_one_owner_also_when_it_is_empty) {
  std::vector<TakenBlock> all = all_of(take(kOpenForTest, 10));
  release(all_of(take(1, 10)));
  release(all);
  all.clear();
  const std::vector<uint32_t> open = {open_at(0), open_at(1), open_at(2)};
  ASSERT_EQ(writing_.checkpoint(false), 0);
  const std::vector<TakenBlock> some = all_of(take(2, 1));
  const auto is_open = [&](uint32_t segno) {
    return std::find(open.begin(), open.end(), segno) != open.end();
  };
  run_alone(width(), [&](const simt::Warp& warp) {
    // No victim of who cleans.
    for (uint32_t lanes = 1; lanes != 0;) {
      uint32_t segno = 0;
      const VictimWish wish{VictimPolicy::kGreedy, format::kBlocksPerSegment - 1};
      SegmentCensus census{};
      ASSERT_EQ(choose_victims(warp, volume(), writer(), wish, census, segno), 0);
      lanes = census.lanes;
      EXPECT_FALSE((lanes >> warp.thread_rank() & 1u) != 0 && is_open(segno)) << segno;
    }
    // And not the place where another log goes, free or partly used.
    for (uint32_t log : {format::kHotData, format::kColdData, format::kWarmNode}) {
      for (uint32_t call = 0; call < 2 * format::kBlocksPerSegment / warp.size(); ++call) {
        uint32_t block = 0;
        ASSERT_EQ(allocate_blocks(warp, *TestOperation(warp, volume(), writer()), warp.ballot(true),
                                  log, format::SummaryEntry{}, block),
                  0);
        ASSERT_FALSE(is_open(volume().geometry.segno_of(block)));
        free_blocks(warp, *TestOperation(warp, volume(), writer()), warp.ballot(true), block);
      }
    }
  });
  const std::vector<TakenBlock> more = all_of(take(1, 1));
  EXPECT_EQ(volume().geometry.segno_of(more[0].block), open[0]);
  release(some);
  release(more);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, a_full_volume_gives_all_it_has) {
  const uint64_t before = valid_blocks();
  std::vector<TakenBlock> all = all_of(take(kOpenForTest, 20));
  int error = 0;
  // Processors that have no segment of their own, too.
  for (const uint32_t warps : {kOpenForTest + 2, 1u}) {
    const std::vector<TakenBlock> more = all_of(take(warps, ~0u, &error));
    EXPECT_EQ(error, -ENOSPC);
    all.insert(all.end(), more.begin(), more.end());
  }
  expect_unique(all);
  EXPECT_EQ(valid_blocks(), before + all.size());
  for (uint32_t i = 0; i < kOpenForTest; ++i) {
    EXPECT_TRUE(detail::is_full(writer().open[i].place)) << i;
  }
  // But for the other logs' segments, what checkpoints may need, and blocks that a call could not
  // have, all.
  const uint64_t size = uint64_t{volume().geometry.main_segments} * format::kBlocksPerSegment;
  const uint64_t kept = format::kLogCount + detail::segments_for_checkpoint(volume());
  EXPECT_GT(valid_blocks(), size - kept * format::kBlocksPerSegment);
  // Holes are used after a checkpoint.
  std::vector<TakenBlock> holes;
  for (size_t i = 0; i < all.size(); i += 3) holes.push_back(all[i]);
  release(holes);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  const std::vector<TakenBlock> again = all_of(take(2, ~0u, &error));
  EXPECT_GE(again.size() + width() * format::kLogCount, holes.size() / 2);
  std::set<uint32_t> mine;
  for (const TakenBlock& taken : all) mine.insert(taken.block);
  for (const TakenBlock& hole : holes) mine.erase(hole.block);
  for (const TakenBlock& taken : again) EXPECT_TRUE(mine.insert(taken.block).second);
  std::vector<TakenBlock> left;
  for (const uint32_t block : mine) left.push_back({block, 0, 0});
  release(left);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, where_few_are_free_the_log_goes_on_behind_what_another_has_written) {
  std::vector<TakenBlock> all = all_of(take(kOpenForTest, 20));
  const std::vector<uint32_t> open = {open_at(0), open_at(1), open_at(2)};
  const uint32_t free = writer().free_count;
  writer().free_count = detail::few_segments(volume(), writer());
  // A processor that shares the first one: to its end, the log's rest, and then the second one's.
  const uint32_t log_left = format::kBlocksPerSegment - writer().logs[format::kWarmData].next;
  const uint32_t calls = (format::kBlocksPerSegment - 20 * width() + log_left) / width() + 2;
  const std::vector<TakenBlock> more = all_of(take(1, calls));
  writer().free_count = free;
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(open_at(1), uint32_t{format::kNullSegno});
  EXPECT_EQ(writer().logs[format::kWarmData].segno, open[1]);
  EXPECT_EQ(writer().logs[format::kWarmData].alloc_type, uint32_t{format::kAllocSsr});
  EXPECT_EQ(volume().geometry.segno_of(more.back().block), open[1]);
  EXPECT_FALSE(detail::segment_bit(writer().open_map, open[1]));
  EXPECT_EQ(open_at(2), open[2]);
  expect_unique(all);
  // The log has the summary of all of it.
  const format::SummaryBlock& summary = writer().summaries[format::kWarmData];
  for (const TakenBlock& taken : all) {
    if (volume().geometry.segno_of(taken.block) != open[1]) continue;
    const format::SummaryEntry& entry =
        summary.entries[volume().geometry.offset_in_segment(taken.block)];
    EXPECT_EQ(uint32_t{entry.nid}, taken.nid);
  }
  release(all);
  expect_nothing_left();
}

// Or all of them would write to one SSD at a time.
TEST_P(OpenSegmentsTest, on_a_striped_volume_processors_begin_at_different_chunks) {
  constexpr uint32_t kChunk = 192;  // blocks, so that one goes round
  volume().array.chunk_mask = kChunk - 1;
  const uint64_t before = valid_blocks();
  const auto of_warps = take(kOpenForTest, format::kBlocksPerSegment / width());
  const std::vector<TakenBlock> all = all_of(of_warps);
  expect_unique(all);
  EXPECT_EQ(valid_blocks(), before + all.size());
  std::set<uint32_t> starts;
  std::set<uint32_t> segments;
  for (const auto& blocks : of_warps) {
    starts.insert(volume().geometry.offset_in_segment(blocks.front().block));
    EXPECT_LE(breaks_in(blocks), 1u) << "where it goes round";
    for (const TakenBlock& taken : blocks) {
      segments.insert(volume().geometry.segno_of(taken.block));
      const uint32_t offset = volume().geometry.offset_in_segment(taken.block);
      EXPECT_TRUE((segment_of(taken.block).valid[offset / 32] >> offset % 32 & 1u) != 0);
    }
  }
  EXPECT_EQ(starts, (std::set<uint32_t>{0, kChunk, 2 * kChunk}));
  EXPECT_EQ(segments.size(), kOpenForTest);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, a_log_takes_over_what_is_left_around_what_another_has_written) {
  volume().array.chunk_mask = 127;
  std::vector<TakenBlock> all = all_of(take(kOpenForTest, 20));
  const std::vector<uint32_t> open = {open_at(0), open_at(1), open_at(2)};
  writer().free_count = 0;  // as it looks to them
  int error = 0;
  const std::vector<TakenBlock> more = all_of(take(kOpenForTest, ~0u, &error));
  EXPECT_EQ(error, -ENOSPC);
  writer().free_count = 0;
  for (uint32_t i = 0; i < volume().geometry.main_segments; ++i) {
    if (detail::segment_bit(writer().free_map, i)) ++writer().free_count;
  }
  all.insert(all.end(), more.begin(), more.end());
  expect_unique(all);
  for (uint32_t i = 0; i < kOpenForTest; ++i) {
    EXPECT_EQ(open_at(i), uint32_t{format::kNullSegno});
    // But for what warps that found too little have released.
    const auto here = std::count_if(all.begin(), all.end(), [&](const TakenBlock& taken) {
      return volume().geometry.segno_of(taken.block) == open[i];
    });
    EXPECT_GE(here + kOpenForTest * width(), format::kBlocksPerSegment);
  }
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, others_take_blocks_while_a_full_ones_summary_is_on_its_way) {
  std::vector<TakenBlock> all = all_of(take(1, format::kBlocksPerSegment / width()));
  const uint32_t full = open_at(0);
  ASSERT_TRUE(detail::is_full(writer().open[0].place));
  const gofs::testing::HeldCommand held(writing_.rig(), 0, all_writes());
  std::mutex mutex;
  // The last warp shares the first one's open segment, and has a queue of its own.
  run_crowd({kOpenForTest + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index != 0 && index != kOpenForTest) return;
    if (index != 0) {
      EXPECT_TRUE(held.wait());
    }
    for (uint32_t call = 0; call < (index == 0 ? 1u : 3u); ++call) {
      format::SummaryEntry summary{};
      summary.nid = 1000 + index;
      summary.ofs_in_node = static_cast<uint16_t>(call);
      uint32_t block = 0;
      EXPECT_EQ(allocate_blocks(warp, *TestOperation(warp, volume(), writer()), warp.ballot(true),
                                format::kWarmData, summary, block),
                0);
      EXPECT_EQ(volume().geometry.segno_of(block), open_at(0));
      EXPECT_NE(open_at(0), full);
      const std::lock_guard lock(mutex);
      all.push_back({block, 1000 + index, static_cast<uint16_t>(call)});
    }
    if (index == 0) return;
    EXPECT_TRUE(detail::segment_bit(writer().open_map, full)) << "it counts as open until then";
    held.release(warp);
  });
  EXPECT_FALSE(detail::segment_bit(writer().open_map, full));
  EXPECT_EQ(writer().open[0].full, uint32_t{format::kNullSegno});
  expect_unique(all);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, a_summary_that_could_not_be_written_is_written_by_the_checkpoint) {
  std::vector<TakenBlock> all = all_of(take(1, format::kBlocksPerSegment / width()));
  const uint32_t full = open_at(0);
  writing_.rig().add_fault(all_writes());
  const std::vector<TakenBlock> more = all_of(take(1, 3));
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_NE(open_at(0), full);
  EXPECT_EQ(writer().open[0].full, full);
  EXPECT_TRUE(detail::segment_bit(writer().open_map, full));
  EXPECT_EQ(writing_.checkpoint(false), -EIO);
  EXPECT_EQ(writer().open[0].full, full);
  EXPECT_TRUE(detail::segment_bit(writer().open_map, full));
  writing_.rig().clear_faults();
  ASSERT_EQ(writing_.checkpoint(false), 0);
  EXPECT_EQ(writer().open[0].full, uint32_t{format::kNullSegno});
  EXPECT_FALSE(detail::segment_bit(writer().open_map, full));
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, a_log_takes_over_what_is_left_behind_one_whose_summary_is_missing) {
  std::vector<TakenBlock> all = all_of(take(1, format::kBlocksPerSegment / width()));
  const uint32_t full = open_at(0);
  writing_.rig().add_fault(all_writes());
  const std::vector<TakenBlock> more = all_of(take(1, 3));
  writing_.rig().clear_faults();
  all.insert(all.end(), more.begin(), more.end());
  const uint32_t open = open_at(0);
  format::SummaryBlock summary{};
  run_alone(width(), [&](const simt::Warp& warp) {
    detail::OpenRest rest{};
    EXPECT_EQ(detail::begin_adoption(warp, *TestOperation(warp, volume(), writer()), summary, rest),
              0);
    if (warp.thread_rank() != 0) return;
    EXPECT_EQ(rest.segno, open);
    for (const TakenBlock& taken : more) {
      EXPECT_EQ(uint32_t{summary.entries[volume().geometry.offset_in_segment(taken.block)].nid},
                taken.nid);
    }
    // It is released as it was.
    writer().open[rest.index].place =
        detail::open_place(open, 1 - writer().open[rest.index].full_summary) + more.size();
    simt::unlock(writer().open[rest.index].lock);
  });
  EXPECT_EQ(writer().open[0].full, full);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST_P(OpenSegmentsTest, where_two_summaries_cannot_be_written_there_is_nothing) {
  const uint64_t before = valid_blocks();
  std::vector<TakenBlock> all = all_of(take(1, (format::kBlocksPerSegment - 2) / width()));
  uint32_t odd = 0;
  run_alone(1, [&](const simt::Warp& warp) {
    format::SummaryEntry summary{};
    summary.nid = 1000;
    EXPECT_EQ(allocate_blocks(warp, *TestOperation(warp, volume(), writer()), 1u, format::kWarmData,
                              summary, odd),
              0);
  });
  all.push_back({odd, 1000, 0});
  writing_.rig().add_fault(all_writes());
  int error = 0;
  const std::vector<TakenBlock> rest = all_of(take(1, 600, &error));
  EXPECT_EQ(error, -EIO);
  all.insert(all.end(), rest.begin(), rest.end());
  expect_unique(all);
  // All that a call wants, or nothing: three blocks are not given to four lanes.
  EXPECT_GT(all.size() + width(), 2 * format::kBlocksPerSegment);
  EXPECT_EQ(valid_blocks(), before + all.size());
  EXPECT_EQ(writing_.checkpoint(false), -EIO);
  writing_.rig().clear_faults();
  const std::vector<TakenBlock> more = all_of(take(1, 10));
  EXPECT_NE(volume().geometry.segno_of(more[0].block), volume().geometry.segno_of(all[0].block));
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(writer().open[0].full, uint32_t{format::kNullSegno}) << "both are there";
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_in_ssa(all);
  release(all);
  expect_nothing_left();
}

TEST(OpenSegments, there_is_one_for_each_part_of_the_volume) {
  format::Geometry geometry{};
  geometry.main_segments = 24;
  EXPECT_EQ(open_segments_for(geometry), 1u);
  geometry.main_segments = 1000;
  EXPECT_EQ(open_segments_for(geometry), 31u);
  geometry.main_segments = 500'000;
  EXPECT_EQ(open_segments_for(geometry), 256u);
}

}  // namespace
}  // namespace gofs::f2fs
