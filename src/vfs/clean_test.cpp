// SPDX-License-Identifier: Apache-2.0
//
// Cleaning: files hold the same before and after it, also for those who read and write them at that
// time, nearly full volumes go on taking what is written, and who keeps where blocks lie finds them
// there.
#include "vfs/clean.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "f2fs/cleaning_for_test.hpp"
#include "testing/repetitions.hpp"
#include "vfs/async.h"
#include "vfs/batch.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kCleanedFiles = 4;
constexpr uint32_t kWordsPerBlock = kBlockBytes / 4;

std::string cleaned_path(uint32_t file) {
  return std::string("/file") + static_cast<char>('0' + file);
}
/// Every word of a block says whose it is and which of its contents.
uint32_t stamp_of(uint32_t file, uint64_t block, uint32_t version) {
  return file << 30 | static_cast<uint32_t>(block) << 16 | (version & 0xffff);
}

class CleanTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  CleanTest()
      : image_([](image::ImageBuilder& builder) {
          for (uint32_t i = 0; i < kCleanedFiles; ++i) {
            image::FileSpec spec;
            const std::string path = cleaned_path(i);
            spec.name = std::string_view(path).substr(1);
            spec.inline_data = false;
            TestImage::must(builder.add_file(builder.root(), spec));
          }
        }),
        versions_(kCleanedFiles) {
    mount();
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_->rig().fs(); }
  f2fs::Volume& volume() { return fs().volume; }
  f2fs::Writer& writer() { return *fs().writer; }
  void mount() {
    writing_ = std::make_unique<f2fs::WritingRig>(image_, width(), options_, wanted_);
    ASSERT_EQ(writing_->begin().error, 0);
    fs().writer = &writing_->writer();
    fds_.clear();
    for (uint32_t i = 0; i < kCleanedFiles; ++i) {
      fds_.push_back(static_cast<int>(alone([&](const simt::Warp& warp) {
        return open(warp, fs(), cleaned_path(i).c_str(), kOpenReadWrite);
      })));
      ASSERT_GE(fds_[i], 0);
    }
  }
  void mount_again() {
    ASSERT_EQ(writing_->checkpoint(true), 0);
    writing_.reset();
    EXPECT_TRUE(f2fs::fsck_likes(image_));
    mount();
  }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  /// Writes `blocks` blocks with their next contents, as one warp; `buffer` is that warp's.
  int64_t write_next(const simt::Warp& warp, uint32_t file, uint64_t block, uint32_t blocks,
                     std::vector<uint32_t>& buffer) {
    warp.sync();
    if (warp.thread_rank() == 0) {
      std::vector<uint32_t>& versions = versions_[file];
      if (versions.size() < block + blocks) versions.resize(block + blocks);
      buffer.resize(size_t{blocks} * kWordsPerBlock);
      for (uint32_t i = 0; i < blocks; ++i) {
        std::fill_n(buffer.begin() + static_cast<ptrdiff_t>(i * kWordsPerBlock), kWordsPerBlock,
                    stamp_of(file, block + i, ++versions[block + i]));
      }
    }
    warp.sync();
    return pwrite(warp, fs(), fds_[file], buffer.data(), uint64_t{blocks} * kBlockBytes,
                  block * kBlockBytes);
  }
  void write_ok(uint32_t file, uint64_t block, uint32_t blocks) {
    std::vector<uint32_t> buffer;
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return write_next(warp, file, block, blocks, buffer);
              }),
              int64_t{blocks} * kBlockBytes);
  }
  /// Whether a block that was read is one of the file's, and the last one if `latest`.
  bool is_right(uint32_t file, uint64_t block, const uint32_t* words, bool latest) {
    const bool same =
        std::all_of(words, words + kWordsPerBlock, [&](uint32_t word) { return word == words[0]; });
    const uint32_t any_version = stamp_of(file, block, 0) >> 16;
    return same && words[0] >> 16 == any_version &&
           (!latest || words[0] == stamp_of(file, block, versions_[file][block]));
  }
  void expect_contents() {
    std::vector<uint32_t> words;
    for (uint32_t file = 0; file < kCleanedFiles; ++file) {
      const size_t blocks = versions_[file].size();
      words.assign(blocks * kWordsPerBlock, 0);
      EXPECT_EQ(alone([&](const simt::Warp& warp) {
                  return pread(warp, fs(), fds_[file], words.data(), words.size() * 4, 0);
                }),
                static_cast<int64_t>(words.size() * 4));
      for (size_t block = 0; block < blocks; ++block) {
        EXPECT_TRUE(is_right(file, block, &words[block * kWordsPerBlock], true))
            << "file " << file << ", block " << block << " of " << blocks;
      }
    }
    EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
  }
  /// The SSD knows of all free segments, and of no others.
  void expect_discarded() {
    const std::vector<uint8_t> zeros(kBlockBytes);
    uint32_t kept = 0;
    for (uint32_t segno = 0; segno < volume().geometry.main_segments; ++segno) {
      const bool free = f2fs::detail::segment_bit(writer().free_map, segno);
      for (uint32_t i = 0; i < format::kBlocksPerSegment; ++i) {
        const uint8_t* const block = image_.block(volume().geometry.block_of(segno, i));
        const bool empty = std::memcmp(block, zeros.data(), kBlockBytes) == 0;
        if (free) {
          EXPECT_TRUE(empty) << segno << ' ' << i;
        } else if (!empty) {
          ++kept;
        }
      }
    }
    EXPECT_GE(kept, volume().valid_block_count);
  }
  void make_holes(std::mt19937& random) {
    for (uint32_t file = 0; file < kCleanedFiles; ++file) write_ok(file, 0, 300);
    for (uint32_t turn = 0; turn < 150; ++turn) {
      write_ok(turn % kCleanedFiles, random() % 290, 1 + turn % 9);
    }
  }
  int clean_all(f2fs::VictimPolicy policy = f2fs::VictimPolicy::kCostBenefit) {
    const uint32_t all = volume().geometry.main_segments;
    const CleanWish wish{{policy, format::kBlocksPerSegment - 1}, all, all};
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return clean_segments(warp, fs(), wish).error; }));
  }
  /// Fills the volume to `percent` of what users have.
  void fill_to(uint32_t percent) {
    const uint64_t wanted = volume().user_block_count * percent / 100;
    for (uint64_t block = 0; volume().valid_block_count + 2 * kCleanedFiles < wanted; ++block) {
      for (uint32_t file = 0; file < kCleanedFiles; ++file) write_ok(file, block, 1);
    }
  }

  VolumeRigOptions options_{};
  f2fs::WriterOptions wanted_{0, true};
  TestImage image_;
  std::unique_ptr<f2fs::WritingRig> writing_;
  std::vector<int> fds_;
  std::vector<std::vector<uint32_t>> versions_;
};
GOFS_AT_BOTH_WIDTHS(CleanTest);

TEST_P(CleanTest, files_hold_the_same_and_segments_are_free) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const uint32_t free_before = writer().free_count;
  const uint64_t valid_before = volume().valid_block_count;
  EXPECT_EQ(clean_all(), 0);
  const f2fs::CleaningCounts& counts = writer().cleaning.counts;
  EXPECT_GT(writer().free_count, free_before);
  EXPECT_GT(counts.segments, 0u);
  EXPECT_GT(counts.data_blocks, 0u);
  EXPECT_EQ(counts.left_blocks, 0u);
  expect_discarded();
  EXPECT_EQ(volume().valid_block_count, valid_before);
  expect_contents();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  expect_contents();
  // What has no more holes is left alone.
  EXPECT_EQ(clean_all(), 0);
  EXPECT_EQ(clean_all(), 0);
  mount_again();
  expect_contents();
}

TEST_P(CleanTest, who_reads_and_writes_meanwhile_notices_nothing) {
  std::mt19937 seeds(static_cast<uint32_t>(printed_seed()));
  make_holes(seeds);
  const uint32_t seed = static_cast<uint32_t>(seeds());
  std::atomic<uint32_t> working{2};
  std::atomic<uint32_t> cleaned{0};
  std::atomic<uint32_t> wrong{0};
  std::vector<std::vector<uint32_t>> buffers(5);
  run_crowd({5, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const simt::Deadline deadline = simt::Deadline::after_ns(60'000'000'000);
    std::mt19937 random(seed + index);
    std::vector<uint32_t>& buffer = buffers[index];
    const auto goes_on = [&] { return warp.shfl(working.load(std::memory_order_relaxed), 0) != 0; };
    // On a busy machine who cleans may come late.
    const auto is_cleaned = [&] {
      const bool over = cleaned.load(std::memory_order_relaxed) != 0 || deadline.passed();
      return warp.shfl(over ? 1u : 0u, 0) != 0;
    };
    if (index < 2) {  // each writes files of its own
      for (uint32_t turn = 0; turn < 120 || !is_cleaned(); ++turn) {
        const uint32_t file = 2 * index + turn % 2;
        const uint32_t blocks = 1 + static_cast<uint32_t>(random() % 8);
        EXPECT_EQ(write_next(warp, file, random() % 290, blocks, buffer),
                  int64_t{blocks} * kBlockBytes);
      }
      if (warp.thread_rank() == 0) --working;
    } else if (index < 4) {
      if (warp.thread_rank() == 0) buffer.resize(8 * size_t{kWordsPerBlock});
      warp.sync();
      while (goes_on()) {
        const auto file = static_cast<uint32_t>(random() % kCleanedFiles);
        const uint64_t block = random() % 290;
        EXPECT_EQ(
            pread(warp, fs(), fds_[file], buffer.data(), 8 * kBlockBytes, block * kBlockBytes),
            8 * kBlockBytes);
        warp.sync();
        for (uint32_t i = warp.thread_rank(); i < 8; i += warp.size()) {
          if (!is_right(file, block + i, &buffer[i * size_t{kWordsPerBlock}], false)) ++wrong;
        }
        warp.sync();
      }
    } else {
      const uint32_t all = volume().geometry.main_segments;
      const CleanWish wish{{f2fs::VictimPolicy::kGreedy, format::kBlocksPerSegment - 1}, all, 3};
      while (goes_on()) {
        EXPECT_EQ(clean_segments(warp, fs(), wish).error, 0);
        const uint64_t moved = simt::load_relaxed(writer().cleaning.counts.data_blocks);
        if (warp.thread_rank() == 0 && moved != 0) cleaned = 1;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(writer().cleaning.counts.data_blocks, 0u);
  expect_contents();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  expect_contents();
}

TEST_P(CleanTest, several_clean_side_by_side) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t) {
    const uint32_t all = volume().geometry.main_segments;
    const CleanWish wish{{f2fs::VictimPolicy::kGreedy, format::kBlocksPerSegment - 1}, all, all};
    EXPECT_EQ(clean_segments(warp, fs(), wish).error, 0);
  });
  expect_contents();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  expect_contents();
}

TEST_P(CleanTest, an_address_reader_finds_what_was_there) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  for (uint32_t file = 0; file < 2; ++file) write_ok(file, 0, 300);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  BatchTable& table = *fs().batches;
  const char* const names[] = {"file0", "file1"};
  const auto bd = static_cast<int>(
      alone([&](const simt::Warp& warp) { return begin_batch(warp, fs(), table, "/", 2); }));
  ASSERT_GE(bd, 0);
  run_alone(width(), [&](const simt::Warp& warp) {
    find_batch(warp, fs(), table, table.batches[bd], names, 0, 1);
    warp.sync();
    load_batch(warp, fs(), table, table.batches[bd], 0, 1);
  });
  EXPECT_EQ(table.files[table.batches[bd].first].kind, BatchEntryKind::kRuns);
  // Others write over all that is free meanwhile.
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(clean_all(f2fs::VictimPolicy::kGreedy), 0);
    for (uint64_t block = 0; block < 290; block += 10) write_ok(2 + turn % 2, block, 10);
  }
  std::vector<uint32_t> words(2 * size_t{300} * kWordsPerBlock);
  const uint64_t offsets[] = {0, uint64_t{300} * kBlockBytes};
  run_alone(width(), [&](const simt::Warp& warp) {
    read_batch(warp, fs(), table, table.batches[bd], reinterpret_cast<uint8_t*>(words.data()),
               offsets, 0, 1);
  });
  for (uint32_t file = 0; file < 2; ++file) {
    for (uint32_t block = 0; block < 300; ++block) {
      EXPECT_TRUE(
          is_right(file, block, &words[(file * size_t{300} + block) * kWordsPerBlock], true));
    }
  }
  EXPECT_EQ(writer().cleaning.address_readers, 1u);
  alone([&](const simt::Warp& warp) { return end_batch(warp, table, bd); });
  EXPECT_EQ(writer().cleaning.address_readers, 0u);
  const Ticket ticket = [&] {
    Ticket mine{};
    run_alone(width(), [&](const simt::Warp& warp) {
      const Ticket its = pread_async(warp, fs(), fds_[0], words.data(), 4 * kBlockBytes, 0);
      if (warp.thread_rank() == 0) mine = its;
    });
    return mine;
  }();
  EXPECT_EQ(writer().cleaning.address_readers, 1u);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return wait(warp, fs(), ticket); }),
            4 * kBlockBytes);
  EXPECT_EQ(writer().cleaning.address_readers, 0u);
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(CleanTest, what_cannot_be_moved_stays_and_is_not_tried_for_ever) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  Stat stat_of{};
  alone([&](const simt::Warp& warp) {
    Stat mine{};
    const int error = fstat(warp, fs(), fds_[3], mine);
    if (warp.thread_rank() == 0) stat_of = mine;
    return error;
  });
  const auto ino = static_cast<uint32_t>(stat_of.ino);
  run_alone(1, [&](const simt::Warp& warp) {
    f2fs::OperationSlot operation;
    ASSERT_EQ(f2fs::begin_operation(warp, {volume(), writer()}, 1, operation), 0);
    EXPECT_EQ(f2fs::change_nodes(warp, *operation, 1u, ino, ino,
                                 [](format::NodeBlock& node) {
                                   node.inode.i_inline =
                                       node.inode.i_inline | uint8_t{format::kInlinePinned};
                                 }),
              0);
    f2fs::end_operation(warp, operation);
  });
  const auto places = [&] {
    std::vector<uint32_t> blocks;
    run_alone(1, [&](const simt::Warp& warp) {
      f2fs::Inode inode{};
      ASSERT_EQ(f2fs::load_inodes(warp, volume(), 1u, ino, inode), 0);
      for (uint64_t index = 0; index < versions_[3].size(); ++index) {
        f2fs::BlockPlace place{};
        ASSERT_EQ(f2fs::map_blocks(warp, volume(), 1u, inode, index, place), 0);
        blocks.push_back(place.block);
      }
    });
    return blocks;
  };
  const std::vector<uint32_t> before = places();
  EXPECT_EQ(clean_all(), 0);
  EXPECT_EQ(places(), before);
  EXPECT_GT(writer().cleaning.counts.left_blocks, 0u);
  expect_contents();
  mount_again();
  expect_contents();
}

// After a checkpoint of ours every file holds what it held at one of them, wherever the power
// fails.
TEST_P(CleanTest, a_power_cut_while_cleaning_loses_nothing) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  options_.ssd.logged_commands = 16384;
  options_.ssd.logged_bytes = 64 << 20;
  ASSERT_EQ(writing_->checkpoint(true), 0);
  writing_.reset();
  const TestImage before(image_);
  mount();
  const auto trace = [&] {
    return ssd::read_trace(writing_->rig().arena().space(), writing_->rig().controller());
  };
  std::vector<std::vector<std::vector<uint32_t>>> durable{versions_};
  std::vector<uint32_t> events{trace().events};
  for (uint32_t round = 0; round < 3; ++round) {
    EXPECT_EQ(clean_all(), 0);
    for (uint32_t turn = 0; turn < 4; ++turn) write_ok(turn, random() % 290, 9);
    ASSERT_EQ(writing_->checkpoint(false), 0);
    durable.push_back(versions_);
    events.push_back(trace().events);
  }
  EXPECT_GT(writer().cleaning.counts.data_blocks, 0u);
  const ssd::WriteTrace log = trace();
  TestImage left(before);
  const std::vector<uint32_t> inos = f2fs::inodes_of(left);
  const auto shows = [&](f2fs::WritingRig& reading, size_t state) {
    bool right = true;
    std::vector<uint32_t> words(kWordsPerBlock);
    run_alone(1, [&](const simt::Warp& warp) {
      for (uint32_t file = 0; file < kCleanedFiles && right; ++file) {
        const f2fs::Inode inode = f2fs::load_inode(reading, inos[1 + file]);
        for (uint64_t block = 0; block < durable[state][file].size() && right; ++block) {
          const f2fs::Piece piece{block * kBlockBytes, kBlockBytes,
                                  reinterpret_cast<uint8_t*>(words.data())};
          right = f2fs::read_pieces(warp, reading.volume(), reading.rig().fs().pool, 1u, inode,
                                    piece) == 0 &&
                  words == std::vector<uint32_t>(
                               kWordsPerBlock, stamp_of(file, block, durable[state][file][block]));
        }
      }
    });
    return right;
  };
  uint32_t step = 0;
  for (uint32_t event = 0; event <= log.events;
       event += 1 + static_cast<uint32_t>(random() % (log.events / 25))) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    size_t least = 0;
    while (least + 1 < events.size() && events[least + 1] <= event) ++least;
    {
      f2fs::WritingRig reading(left, 1);
      EXPECT_TRUE(shows(reading, least) ||
                  (least + 1 < durable.size() && shows(reading, least + 1)))
          << event;
    }
    if (step++ % 5 == 0) {
      EXPECT_TRUE(f2fs::fsck_likes(left, true)) << event;
    }
    f2fs::put_back(left, before, log);
  }
}

TEST_P(CleanTest, a_disk_that_fails_loses_nothing) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  make_holes(random);
  options_.ssd.fault_capacity = 1;
  mount_again();
  const uint32_t shift = kBlockShift - writing_->rig().device().lba_shift;
  uint32_t failures = 0;
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    ssd::FaultRule rule;
    const bool writes = attempt % 3 != 0;
    rule.opcode_mask = 1u << static_cast<uint32_t>(writes ? format::nvme::IoOpcode::kWrite
                                                          : format::nvme::IoOpcode::kRead);
    rule.lba_first = uint64_t{volume().geometry.ssa_blkaddr} << shift;
    rule.skip = random() % 200;
    rule.count = 1 + random() % 3;
    rule.status = writes ? format::nvme::kWriteFault : format::nvme::kUnrecoveredReadError;
    writing_->rig().add_fault(rule);
    const int error = clean_all();
    EXPECT_TRUE(error == 0 || error == -EIO) << error;
    failures += error == 0 ? 0 : 1;
    writing_->rig().clear_faults();
    expect_contents();
    for (uint32_t turn = 0; turn < 8; ++turn) write_ok(turn % 4, random() % 290, 9);
  }
  EXPECT_NE(failures, 0u);
  EXPECT_EQ(clean_all(), 0);
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  expect_contents();
}

TEST_P(CleanTest, nearly_full_a_volume_is_overwritten_again_and_again) {
  const auto seed = static_cast<uint32_t>(printed_seed());
  writer().cleaning.free_wanted = volume().geometry.main_segments / 20;
  fill_to(95);
  const uint64_t blocks = versions_[0].size();
  std::atomic<uint32_t> working{2};
  std::atomic<uint32_t> wrong{0};
  std::vector<std::vector<uint32_t>> buffers(3);
  const uint64_t wanted = testing::repetitions(10, 3) * blocks * kCleanedFiles;
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::mt19937 random(seed + index);
    std::vector<uint32_t>& buffer = buffers[index];
    if (index < 2) {
      for (uint64_t done = 0; done < wanted / 2;) {
        const auto count = static_cast<uint32_t>(1 + random() % 16);
        const uint32_t file = 2 * index + static_cast<uint32_t>(random() % 2);
        const uint64_t block = random() % (blocks - count);
        const int64_t got = write_next(warp, file, block, count, buffer);
        EXPECT_EQ(got, int64_t{count} * kBlockBytes);
        if (got != int64_t{count} * kBlockBytes) break;
        done += count;
      }
      if (warp.thread_rank() == 0) --working;
    } else {
      if (warp.thread_rank() == 0) buffer.resize(4 * size_t{kWordsPerBlock});
      warp.sync();
      while (warp.shfl(working.load(std::memory_order_relaxed), 0) != 0) {
        const auto file = static_cast<uint32_t>(random() % kCleanedFiles);
        const uint64_t block = random() % (blocks - 4);
        EXPECT_EQ(
            pread(warp, fs(), fds_[file], buffer.data(), 4 * kBlockBytes, block * kBlockBytes),
            4 * kBlockBytes);
        warp.sync();
        for (uint32_t i = warp.thread_rank(); i < 4; i += warp.size()) {
          if (!is_right(file, block + i, &buffer[i * size_t{kWordsPerBlock}], false)) ++wrong;
        }
        // The writers' cores are few.
        if (warp.thread_rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        warp.sync();
      }
    }
  });
  const f2fs::CleaningCounts& counts = writer().cleaning.counts;
  std::cout << "blocks written " << wanted << ", segments cleaned " << counts.segments
            << ", blocks moved " << counts.data_blocks << std::endl;
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(counts.segments, 0u);
  expect_contents();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  expect_contents();
}

}  // namespace
}  // namespace gofs::vfs
