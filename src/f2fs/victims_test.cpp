// SPDX-License-Identifier: Apache-2.0
//
// Summaries: whether they say of each block in use whose it is, after all that can happen to it;
// which segments are chosen to be emptied, and that blocks go where they are moved to.
#include "f2fs/victims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "f2fs/change_directory.h"
#include "f2fs/cleaning_for_test.hpp"
#include "f2fs/make_inode.h"
#include "f2fs/remove_inode.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::TestImage;

constexpr uint32_t kVictimFiles = 4;
constexpr uint32_t kVictimDirectory = kVictimFiles;  // its place among the inodes made
const TimeStamp kVictimNow{1'900'000'000, 1};

class VictimsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  VictimsTest()
      : image_([](image::ImageBuilder& builder) {
          for (uint32_t i = 0; i < kVictimFiles; ++i) {
            image::FileSpec file;
            const std::string name = "file" + std::to_string(i);
            file.name = name;
            file.inline_data = false;
            file.inline_xattr = i % 2 == 0;
            TestImage::must(builder.add_file(builder.root(), file));
          }
          TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
        }),
        inos_(inodes_of(image_)) {
    mount();
    for (uint32_t i = 0; i < kVictimFiles; ++i) {
      files_.emplace_back();
      reopen_file(*writing_, inos_[1 + i], i % 2 == 0, files_[i]);
    }
  }
  uint32_t width() const { return GetParam(); }
  Volume& volume() { return writing_->volume(); }
  Writer& writer() { return writing_->writer(); }
  SegmentInfo& segment(uint32_t segno) { return writer().segments.segments[segno]; }
  void mount() {
    writing_ = std::make_unique<WritingRig>(image_, width());
    ASSERT_EQ(writing_->begin().error, 0);
  }
  void mount_again() {
    ASSERT_EQ(writing_->checkpoint(true), 0);
    writing_.reset();
    EXPECT_TRUE(fsck_likes(image_));
    mount();
    for (OpenFileModel& file : files_) {
      const uint32_t ino = file.inode.ino;
      const bool mapped = file.maps != nullptr;
      reopen_file(*writing_, ino, mapped, file);
    }
  }
  void write_blocks_of(uint32_t i, uint64_t block, uint32_t blocks, std::mt19937_64& random) {
    const std::vector<uint8_t> bytes = random_bytes(random, size_t{blocks} * kBlockBytes);
    int error = write_alone(*writing_, width(), files_[i].inode, block * kBlockBytes, bytes);
    if (error == -ENOSPC) {  // of what was freed, nothing can be had before
      ASSERT_EQ(writing_->checkpoint(false), 0);
      error = write_alone(*writing_, width(), files_[i].inode, block * kBlockBytes, bytes);
    }
    ASSERT_EQ(error, 0);
    files_[i].model.write(block * kBlockBytes, bytes.data(), bytes.size());
  }
  /// Segments full of blocks, most of which have been written elsewhere since.
  void make_holes(std::mt19937_64& random) {
    for (uint32_t i = 0; i < kVictimFiles; ++i) write_blocks_of(i, 0, 300, random);
    for (uint32_t turn = 0; turn < 150; ++turn) {
      write_blocks_of(turn % kVictimFiles, random() % 290, 1 + turn % 9, random);
    }
  }
  std::vector<uint32_t> choose(const VictimWish& wish, SegmentCensus* census = nullptr) {
    std::vector<uint32_t> chosen(width(), format::kNullSegno);
    run_alone(width(), [&](const simt::Warp& warp) {
      uint32_t segno = 0;
      SegmentCensus mine{};
      EXPECT_EQ(choose_victims(warp, volume(), writer(), wish, mine, segno), 0);
      if ((mine.lanes >> warp.thread_rank() & 1u) != 0) chosen[warp.thread_rank()] = segno;
      if (census != nullptr && warp.thread_rank() == 0) *census = mine;
    });
    chosen.erase(std::remove(chosen.begin(), chosen.end(), format::kNullSegno), chosen.end());
    return chosen;
  }
  /// Moves all blocks of files out of a segment, as one that no other thread uses.
  uint32_t move_out(uint32_t segno) {
    std::atomic<uint32_t> count{0};
    run_alone(width(), [&](const simt::Warp& warp) {
      for_owners(
          warp, *writing_, segno,
          [&](const simt::Warp& lanes_of, uint32_t lanes, const BlockOwner& owner) {
            FileBlock found{};
            const int located = locate_blocks(lanes_of, volume(), lanes, owner, found);
            EXPECT_EQ(located, 0);
            for (OpenFileModel& file : files_) {
              const uint32_t its = lanes_of.ballot((lanes >> lanes_of.thread_rank() & 1u) != 0 &&
                                                   found.inode.ino == file.inode.ino);
              if (its == 0) continue;
              OperationSlot operation;
              ASSERT_EQ(begin_operation(lanes_of, {volume(), writer(), &writing_->rig().fs().pool},
                                        pages_to_move(width()), operation),
                        0);
              uint32_t moved = 0;
              EXPECT_EQ(
                  f2fs::move_blocks(lanes_of, *operation, its, testing::hold_alone(file.inode),
                                    found.index, owner, moved),
                  0);
              end_operation(lanes_of, operation);
              if (lanes_of.thread_rank() == 0) count += simt::popcount(moved);
            }
          });
    });
    return count;
  }

  TestImage image_;
  std::vector<uint32_t> inos_;
  std::unique_ptr<WritingRig> writing_;
  std::vector<OpenFileModel> files_;
};
GOFS_AT_BOTH_WIDTHS(VictimsTest);

TEST_P(VictimsTest, summaries_say_whose_each_block_is) {
  std::mt19937_64 random(printed_seed());
  for (uint32_t round = 0; round < 3; ++round) {
    make_holes(random);
    const uint64_t known = expect_right_owners(*writing_, width());
    EXPECT_GT(known, uint64_t{kVictimFiles} * 300);
    ASSERT_EQ(writing_->checkpoint(false), 0);
    expect_right_owners(*writing_, width());
    mount_again();
    expect_right_owners(*writing_, width());
  }
  // Where logs go on in the holes of segments that others have left.
  for (uint32_t turn = 0; writer().logs[format::kWarmData].alloc_type != format::kAllocSsr;
       ++turn) {
    ASSERT_LT(turn, 1000u);
    write_blocks_of(turn % kVictimFiles, random() % 250, 40, random);
  }
  for (uint32_t turn = 0; turn < 60; ++turn) write_blocks_of(turn % 4, random() % 290, 9, random);
  expect_right_owners(*writing_, width());
  mount_again();
  expect_right_owners(*writing_, width());
  expect_files(*writing_, width(), files_);
}

TEST_P(VictimsTest, the_emptiest_segments_are_chosen_and_each_by_one) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const VictimWish wish{VictimPolicy::kGreedy, format::kBlocksPerSegment - 1};
  std::vector<uint32_t> left;
  for (uint32_t segno = 0; segno < volume().geometry.main_segments; ++segno) {
    const uint32_t valid = segment(segno).valid_count;
    const bool usable = valid != 0 && valid < format::kBlocksPerSegment;
    if (usable && !detail::is_written_to(writer(), segno)) left.push_back(segno);
  }
  ASSERT_GE(left.size(), 3u);
  while (!left.empty()) {
    uint32_t least = format::kBlocksPerSegment;
    for (const uint32_t segno : left) least = std::min(least, segment(segno).valid_count);
    const std::vector<uint32_t> chosen = choose(wish);
    ASSERT_FALSE(chosen.empty());
    uint32_t least_chosen = format::kBlocksPerSegment;
    for (const uint32_t segno : chosen) {
      least_chosen = std::min(least_chosen, segment(segno).valid_count);
      ASSERT_EQ(std::count(left.begin(), left.end(), segno), 1) << segno;
      left.erase(std::find(left.begin(), left.end(), segno));
    }
    EXPECT_EQ(least_chosen, least);
  }
  EXPECT_TRUE(choose(wish).empty());
}

TEST_P(VictimsTest, of_two_alike_the_older_one_is_chosen) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  std::vector<uint32_t> segments;
  const VictimWish wish{VictimPolicy::kCostBenefit, format::kBlocksPerSegment - 1};
  for (;;) {
    const std::vector<uint32_t> chosen = choose(wish);
    if (chosen.empty()) break;
    segments.insert(segments.end(), chosen.begin(), chosen.end());
  }
  ASSERT_GE(segments.size(), 2u);
  for (const uint32_t segno : segments) spare_victim(writer(), segno);
  volume().elapsed_seconds = 1'000'000;
  for (const uint32_t old : segments) {
    for (const uint32_t segno : segments) segment(segno).mtime = segno == old ? 1 : 999'999;
    const std::vector<uint32_t> chosen = choose(wish);
    EXPECT_EQ(std::count(chosen.begin(), chosen.end(), old), 1);
    for (const uint32_t segno : chosen) spare_victim(writer(), segno);
  }
}

TEST_P(VictimsTest, none_is_chosen_while_a_checkpoint_makes_segments_free) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  CheckpointLock& lock = writer().checkpoint_lock;
  run_alone(width(),
            [&](const simt::Warp& warp) { ASSERT_EQ(lock_for_checkpoint(warp, lock), 0); });
  std::vector<uint32_t> chosen;
  std::thread chooser([&] {
    chosen = choose({VictimPolicy::kGreedy, format::kBlocksPerSegment - 1});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  uint32_t victims = 0;
  for (uint32_t i = 0; i < volume().geometry.main_segments; ++i) {
    victims += detail::segment_bit(writer().cleaning.victims, i) ? 1 : 0;
  }
  EXPECT_EQ(victims, 0u);
  run_alone(width(), [&](const simt::Warp& warp) { unlock_after_checkpoint(warp, lock); });
  chooser.join();
  EXPECT_FALSE(chosen.empty());
  for (const uint32_t segno : chosen) spare_victim(writer(), segno);
}

TEST_P(VictimsTest, segments_have_the_age_of_what_is_in_them) {
  std::mt19937_64 random(printed_seed());
  volume().elapsed_seconds = 5'000;
  write_blocks_of(0, 0, 1, random);
  const uint32_t before = open_segment(writer());
  make_holes(random);
  ASSERT_NE(open_segment(writer()), before);
  EXPECT_GE(segment(before).mtime, 5'000u);
  EXPECT_LT(segment(before).mtime, 5'000u + 600);
  mount_again();
  EXPECT_GE(segment(before).mtime, 5'000u);
  EXPECT_GE(volume().elapsed_seconds, 5'000u);
}

TEST_P(VictimsTest, what_was_moved_is_there_and_its_segment_free) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  const uint64_t valid = volume().valid_block_count;
  ASSERT_EQ(writing_->checkpoint(false), 0);
  uint32_t emptied = 0;
  const VictimWish wish{VictimPolicy::kGreedy, format::kBlocksPerSegment - 1};
  std::vector<uint32_t> victims;
  for (uint32_t turn = 0; turn < 4; ++turn) {
    for (const uint32_t segno : choose(wish)) {
      if (format::is_node_log(segment(segno).type)) {
        spare_victim(writer(), segno);
        continue;
      }
      const uint32_t before = segment(segno).valid_count;
      EXPECT_EQ(move_out(segno), before);
      EXPECT_EQ(segment(segno).valid_count, 0u);
      EXPECT_FALSE(detail::segment_bit(writer().free_map, segno));
      release_victim(writer(), segno, false);
      victims.push_back(segno);
      ++emptied;
    }
  }
  EXPECT_NE(emptied, 0u);
  EXPECT_EQ(volume().valid_block_count, valid);
  // Who keeps where blocks lay finds them there.
  enter_address_readers(writer());
  ASSERT_EQ(writing_->checkpoint(false), 0);
  for (const uint32_t segno : victims) EXPECT_FALSE(detail::segment_bit(writer().free_map, segno));
  leave_address_readers(writer());
  write_blocks_of(0, 0, 1, random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  for (const uint32_t segno : victims) EXPECT_TRUE(detail::segment_bit(writer().free_map, segno));
  expect_files(*writing_, width(), files_);
  expect_right_owners(*writing_, width());
  mount_again();
  expect_files(*writing_, width(), files_);
}

// Blocks that were overwritten may hold what a reader without a lock is about to read.
TEST_P(VictimsTest, nothing_is_written_over_what_was_given_up_while_a_place_is_held) {
  std::mt19937_64 random(printed_seed());
  write_blocks_of(0, 0, 60, random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const auto place_of = [&](uint64_t index) {
    uint32_t address = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      BlockPlace place{};
      EXPECT_EQ(map_blocks(warp, volume(), 1u, files_[0].inode, index, place), 0);
      if (warp.thread_rank() == 0) address = place.block;
    });
    return address;
  };
  const auto is_writable = [&](uint32_t block) {
    const uint32_t offset = volume().geometry.offset_in_segment(block);
    const SegmentInfo& info = segment(volume().geometry.segno_of(block));
    return (detail::writable(info, offset / 32) >> offset % 32 & 1u) != 0;
  };
  const uint32_t first = place_of(5);
  enter_address_readers(writer());
  write_blocks_of(0, 5, 1, random);
  ASSERT_NE(place_of(5), first);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  EXPECT_FALSE(is_writable(first)) << "it may be being read";
  // Also not at a checkpoint that has nothing to do with it.
  const uint32_t second = place_of(40);
  write_blocks_of(0, 40, 1, random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  EXPECT_FALSE(is_writable(first));
  EXPECT_FALSE(is_writable(second));
  leave_address_readers(writer());
  EXPECT_FALSE(is_writable(first)) << "before a checkpoint";
  write_blocks_of(0, 50, 1, random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  EXPECT_TRUE(is_writable(first));
  EXPECT_TRUE(is_writable(second));
  expect_files(*writing_, width(), files_);
  mount_again();
  expect_files(*writing_, width(), files_);
}

// Readers that follow each other so closely that there is always one must not keep a full volume
// from getting its room back.
TEST_P(VictimsTest, where_few_segments_are_free_a_checkpoint_waits_for_readers) {
  std::mt19937_64 random(printed_seed());
  write_blocks_of(0, 0, 60, random);
  std::atomic<bool> ended{false};
  std::atomic<uint32_t> turns{0};
  const auto read = [&] {
    while (!ended) {
      enter_address_readers(writer());
      ++turns;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      leave_address_readers(writer());
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(read);
  while (turns < 10) std::this_thread::yield();
  writer().free_count = 0;
  ASSERT_EQ(writing_->checkpoint(false), 0);
  EXPECT_EQ(writer().cleaning.reuse_deferred, 0u);
  EXPECT_EQ(writer().cleaning.address_readers_awaited, 0u);
  ended = true;
  for (std::thread& reader : readers) reader.join();
  // One that stays does not stop it.
  enter_address_readers(writer());
  write_blocks_of(0, 5, 1, random);
  writer().free_count = 0;
  ASSERT_EQ(writing_->checkpoint(false), 0);
  EXPECT_EQ(writer().cleaning.reuse_deferred, 1u);
  leave_address_readers(writer());
}

TEST_P(VictimsTest, nodes_and_directories_are_moved_by_a_checkpoint) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  const uint32_t directory = inos_[1 + kVictimDirectory];
  run_alone(width(), [&](const simt::Warp& warp) {
    Inode inode{};
    for (uint32_t i = 0; i < 400; ++i) {
      ASSERT_EQ(load_inodes(warp, volume(), warp.ballot(true), directory, inode), 0);
      OperationSlot operation;
      ASSERT_EQ(begin_operation(
                    warp, {volume(), writer()}, pages_to_add_entry(inode),
                    [&] { return kVictimNow; }, operation),
                0);
      char name[8];
      const int length = std::snprintf(name, sizeof(name), "n%u", i);
      EXPECT_EQ(add_entry(warp, *operation, inode, {name, static_cast<uint32_t>(length)},
                          {inos_[1], format::kTypeRegular}),
                0);
      end_operation(warp, operation);
    }
  });
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const uint64_t valid = volume().valid_block_count;
  uint32_t nodes = 0;
  uint32_t blocks = 0;
  std::vector<uint32_t> segments;
  for (uint32_t segno = 0; segno < volume().geometry.main_segments; ++segno) {
    if (segment(segno).valid_count != 0) segments.push_back(segno);
  }
  run_alone(width(), [&](const simt::Warp& warp) {
    for (const uint32_t segno : segments) {
      for_owners(
          warp, *writing_, segno,
          [&](const simt::Warp& lanes_of, uint32_t lanes, const BlockOwner& owner) {
            OperationSlot operation;
            ASSERT_EQ(begin_operation(lanes_of, {volume(), writer()}, 2 * width(), operation), 0);
            FileBlock found{};
            if (format::is_node_log(segment(segno).type)) {
              const int moved = f2fs::move_nodes(lanes_of, *operation, lanes, owner);
              EXPECT_EQ((lanes >> lanes_of.thread_rank() & 1u) != 0 ? moved : 0, 0);
              if (lanes_of.thread_rank() == 0) nodes += simt::popcount(lanes);
            } else {
              const int located = locate_blocks(lanes_of, volume(), lanes, owner, found);
              EXPECT_EQ((lanes >> lanes_of.thread_rank() & 1u) != 0 ? located : 0, 0);
              for (uint32_t left = lanes; left != 0; left &= left - 1) {
                const uint32_t lane = simt::lowest_bit(left);
                if (lanes_of.shfl(found.inode.ino, lane) != directory) continue;
                const BlockOwner one{lanes_of.shfl(owner.block, lane),
                                     lanes_of.shfl(owner.nid, lane), 0, 0};
                Inode inode{};
                ASSERT_EQ(load_inodes(lanes_of, volume(), lanes_of.ballot(true), directory, inode),
                          0);
                EXPECT_EQ(move_directory_block(lanes_of, *operation, inode,
                                               lanes_of.shfl(found.index, lane), one),
                          0);
                EXPECT_EQ(move_directory_block(lanes_of, *operation, inode,
                                               lanes_of.shfl(found.index, lane),
                                               {one.block + 1, one.nid, 0, 0}),
                          -ENOENT);
                if (lanes_of.thread_rank() == 0) ++blocks;
              }
            }
            end_operation(lanes_of, operation);
          });
    }
  });
  EXPECT_GT(nodes, kVictimFiles);
  EXPECT_GE(blocks, 2u);
  std::vector<uint32_t> counts;
  for (const uint32_t segno : segments) counts.push_back(segment(segno).valid_count);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool nodes_only = format::is_node_log(segment(segments[i]).type);
    if (nodes_only && !detail::is_written_to(writer(), segments[i])) {
      EXPECT_EQ(segment(segments[i]).valid_count, 0u) << "of " << counts[i];
    }
  }
  EXPECT_EQ(volume().valid_block_count, valid);
  expect_right_owners(*writing_, width());
  expect_files(*writing_, width(), files_);
}

TEST_P(VictimsTest, a_summary_that_cannot_be_one_is_reported) {
  std::mt19937_64 random(printed_seed());
  make_holes(random);
  uint32_t segno = 0;
  while (segment(segno).valid_count == 0 || detail::is_written_to(writer(), segno) ||
         format::is_node_log(segment(segno).type)) {
    ++segno;
  }
  auto& summary = *reinterpret_cast<format::SummaryBlock*>(
      image_.block(volume().geometry.summary_block(segno)));
  uint32_t offset = 0;
  while ((segment(segno).valid[offset / 32] >> offset % 32 & 1u) == 0) ++offset;
  summary.entries[offset].nid = volume().geometry.nid_count();
  std::vector<uint8_t> page(kBlockBytes);
  std::memcpy(page.data(), &summary, kBlockBytes);
  BlockOwner owner{};
  int error = 0;
  EXPECT_FALSE(owner_of(volume(), writer(), segno, offset, page.data(), owner, error));
  EXPECT_EQ(error, -EUCLEAN);
  EXPECT_EQ(count_findings(*volume().corruptions), 1u);
  summary.footer.entry_type = format::kSummaryNode;
  run_alone(width(), [&](const simt::Warp& warp) {
    SpareBlocks<1> spare{};
    ASSERT_TRUE(take_spares(warp, writing_->rig().fs().pool, kFrameTimeoutNs, spare));
    EXPECT_EQ(load_owners(warp, volume(), writer(), segno, spare.blocks[0]), -EUCLEAN);
    release_spares(warp, writing_->rig().fs().pool, spare);
  });
  EXPECT_EQ(count_findings(*volume().corruptions), 2u);
}

}  // namespace
}  // namespace gofs::f2fs
