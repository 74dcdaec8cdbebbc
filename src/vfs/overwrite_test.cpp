// SPDX-License-Identifier: Apache-2.0
//
// Parts of blocks that are written over where they lie: which are, which go to new blocks instead,
// and what those find who read without a lock.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "testing/hold_alone.hpp"
#include "vfs/async.h"
#include "vfs/batch.h"
#include "vfs/change_attributes.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/fallocate.h"
#include "vfs/write_lanes.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kOverwrittenBlocks = 40;
constexpr uint64_t kOverwrittenBytes =
    kOverwrittenBlocks * kBlockBytes + 700;  // the last block is a part

class OverwriteTest : public ChangesTest {
 protected:
  explicit OverwriteTest(const VolumeRigOptions& options = testing::with_a_fault())
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "file";
              spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
              spec.size_bytes = kOverwrittenBytes;
              spec.content = image::pattern_content(9);
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            options) {
    fd_ = open_file("/file", kOpenReadWrite);
    model_ = contents("/file");
  }
  f2fs::Writer& writer() { return *fs().writer; }
  OpenInode& opened() { return fs().open_inodes[fs().descriptors[fd_].open_inode]; }
  uint32_t block_of(uint64_t index) {
    f2fs::BlockPlace found{};
    alone([&](const simt::Warp& warp) {
      f2fs::BlockPlace place{};
      EXPECT_EQ(f2fs::map_blocks(warp, fs().volume, 1u, opened().inode, index, place), 0);
      if (warp.thread_rank() == 0) found = place;
      return 0;
    });
    return found.block;
  }
  /// Writes `bytes` bytes at `offset`; whether that went over what was there.
  bool goes_over(uint64_t offset, uint64_t bytes) {
    const uint64_t index = offset / kBlockBytes;
    const uint32_t before = block_of(index);
    const std::string text(bytes, next_++);
    if (straight_) note_times();
    EXPECT_EQ(pwrite_file(fd_, text, offset), static_cast<int64_t>(bytes));
    if (model_.size() < offset + bytes) model_.resize(offset + bytes);
    model_.replace(offset, bytes, text);
    EXPECT_EQ(opened().lock.holder_counts, 0u);
    return block_of(index) == before;
  }
  /// Who writes finds the times set, as most do within one tick of the clock.
  void note_times() {
    opened().inode.times_set_ns = f2fs::nanoseconds_of(time_now(fs())) + 500'000'000;
  }
  void expect_contents() { EXPECT_TRUE(contents("/file") == model_); }

  int fd_ = -1;
  bool straight_ = false;  // with times that are set already
  std::string model_;
  char next_ = 'a';
};
INSTANTIATE_TEST_SUITE_P(width, OverwriteTest,
                         ::testing::ValuesIn(gofs::testing::widths({1, 4, 32})),
                         ::testing::PrintToStringParamName());

TEST_P(OverwriteTest, parts_of_blocks_stay_where_they_are) {
  const uint64_t used = fs().volume.valid_block_count;
  for (const bool straight : {false, true}) {
    straight_ = straight;
    EXPECT_TRUE(goes_over(3 * kBlockBytes, kBlockBytes));
    EXPECT_TRUE(goes_over(5 * kBlockBytes + 1024, 512));
    EXPECT_TRUE(goes_over(7 * kBlockBytes + 77, 100));
    EXPECT_TRUE(goes_over(kOverwrittenBlocks * kBlockBytes, 700));
    EXPECT_TRUE(goes_over(kOverwrittenBlocks * kBlockBytes + 512, 3));
    EXPECT_EQ(fs().volume.valid_block_count, used);
    expect_contents();
  }
  // What grows the file, or takes several blocks, goes elsewhere.
  EXPECT_FALSE(goes_over(kOverwrittenBlocks * kBlockBytes + 600, 200));
  EXPECT_FALSE(goes_over(9 * kBlockBytes - 1, 2));
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(OverwriteTest, lanes_write_over_blocks_of_their_own) {
  for (const bool straight : {false, true}) {
    std::vector<std::string> bytes(width());
    std::vector<uint32_t> before(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      bytes[lane].assign((lane + 1) % 3 * (straight ? 2048 : 100),
                         static_cast<char>('A' + lane + (straight ? 1 : 0)));
      before[lane] = block_of(lane);
      model_.replace(lane * kBlockBytes, bytes[lane].size(), bytes[lane]);
    }
    if (straight) note_times();
    run_alone(width(), [&](const simt::Warp& warp) {
      const std::string& mine = bytes[warp.thread_rank()];
      const WriteRequest request{fd_, mine.data(), mine.size(), warp.thread_rank() * kBlockBytes};
      if (straight) {
        EXPECT_TRUE(try_to_overwrite(warp, fs(), request));
      } else {
        EXPECT_EQ(pwrite_lanes(warp, fs(), request), static_cast<int64_t>(mine.size()));
      }
    });
    for (uint32_t lane = 0; lane < width(); ++lane) EXPECT_EQ(block_of(lane), before[lane]) << lane;
    expect_contents();
  }
}

TEST_P(OverwriteTest, the_straight_way_is_left_where_something_stands_in_it) {
  const std::string text(2 * kBlockBytes, 'x');
  const auto goes = [&](int fd, const char* from, uint64_t bytes, uint64_t offset) {
    note_times();
    bool answer = false;
    run_alone(width(), [&](const simt::Warp& warp) {
      const bool leader = warp.thread_rank() == 0;
      const bool mine = try_to_overwrite(warp, fs(), {fd, from, leader ? bytes : 0, offset});
      if (leader) answer = mine;
    });
    return answer;
  };
  const char* const from = text.data();
  ASSERT_TRUE(goes(fd_, from, kBlockBytes, 0));
  EXPECT_FALSE(goes(fd_, from, 0, 0));
  EXPECT_FALSE(goes(fd_, from, 100, 0));      // no LBA
  EXPECT_FALSE(goes(fd_, from + 1, 512, 0));  // no place that the device reads from
  EXPECT_FALSE(goes(fd_, nullptr, 512, 0));
  EXPECT_FALSE(goes(fd_, from, 2 * kBlockBytes, 0));
  EXPECT_FALSE(goes(fd_, from, 512, kBlockBytes - 256));
  EXPECT_FALSE(goes(fd_, from, kBlockBytes, kOverwrittenBlocks * kBlockBytes));  // behind the end
  EXPECT_FALSE(goes(-1, from, 512, 0));
  EXPECT_FALSE(goes(77, from, 512, 0));
  for (const uint32_t flags : {kOpenReadOnly, kOpenReadWrite | kOpenAppend,
                               kOpenReadWrite | kOpenDataSync, kOpenReadWrite | kOpenPath}) {
    const int other = open_file("/file", flags);
    EXPECT_FALSE(goes(other, from, 512, 0)) << flags;
    EXPECT_EQ(close_file(other), 0);
  }
  fs().credentials = who(1000, 1000);
  EXPECT_TRUE(goes(fd_, from, 512, 0));
  fs().credentials = who(0, 0);
  f2fs::enter_address_readers(writer());
  EXPECT_FALSE(goes(fd_, from, 512, 0));
  f2fs::leave_address_readers(writer());
  // Another thread writes that block, or reads the file.
  BlockQueue& queue = detail::queue_of_block(fs(), opened(), 0);
  const uint32_t ticket = detail::queue_up(queue);
  EXPECT_FALSE(goes(fd_, from, 512, 0));
  EXPECT_TRUE(goes(fd_, from, 512, kBlockBytes));
  detail::serve_next(simt::Release(), queue, ticket);
  const auto read = [&](bool begins) {
    run_alone(width(), [&](const simt::Warp& warp) {
      if (begins) {
        EXPECT_TRUE(try_join_readers(warp, opened().lock));
      } else {
        leave_readers(warp, opened().lock);
      }
    });
  };
  read(true);
  EXPECT_FALSE(goes(fd_, from, 512, 0));
  read(false);
  EXPECT_TRUE(goes(fd_, from, 512, 0));
  EXPECT_EQ(opened().lock.holder_counts, 0u);
  for (uint32_t i = 0; i <= fs().block_queue_mask; ++i) {
    ASSERT_EQ(fs().block_queues[i].next, fs().block_queues[i].serving) << i;
  }
}

// Each goes after the other, in any order.
TEST_P(OverwriteTest, lanes_that_write_the_same_block_take_turns) {
  note_times();
  std::vector<std::string> bytes(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes[lane].assign(kBlockBytes, static_cast<char>('A' + lane));
  }
  run_alone(width(), [&](const simt::Warp& warp) {
    const WriteRequest request{fd_, bytes[warp.thread_rank()].data(), kBlockBytes, kBlockBytes};
    EXPECT_EQ(pwrite_lanes(warp, fs(), request), int64_t{kBlockBytes});
  });
  const std::string found = contents("/file").substr(kBlockBytes, kBlockBytes);
  EXPECT_EQ(found, std::string(kBlockBytes, found[0]));
  EXPECT_LT(found[0] - 'A', static_cast<int>(width()));
}

// Many warps write whole blocks, each of one letter, while others read: no thread finds two letters
// in one block.
TEST_P(OverwriteTest, readers_and_writers_of_one_block_see_whole_ones) {
  fs().time_granularity_ns = 4'000'000;
  constexpr uint64_t kFew = 6;
  constexpr uint32_t kWarps = 4;
  const uint32_t steps = width() == 1 ? 400 : 40;
  for (uint64_t block = 0; block < kFew; ++block) {
    EXPECT_EQ(pwrite_file(fd_, std::string(kBlockBytes, 'A'), block * kBlockBytes),
              int64_t{kBlockBytes});
  }
  std::vector<std::vector<std::string>> buffers(
      kWarps, std::vector<std::string>(width(), std::string(kBlockBytes, ' ')));
  std::atomic<uint32_t> torn = 0;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t lane = warp.thread_rank();
    std::string& mine = buffers[index][lane];
    for (uint32_t step = 0; step < steps; ++step) {
      const uint64_t offset = (step * 7 + lane * 5 + index) % kFew * kBlockBytes;
      if (index != 0) {
        mine.assign(kBlockBytes, static_cast<char>('A' + (step + lane + index) % 26));
        EXPECT_EQ(pwrite_lanes(warp, fs(), {fd_, mine.data(), kBlockBytes, offset}),
                  int64_t{kBlockBytes});
        continue;
      }
      EXPECT_EQ(pread_lanes(warp, fs(), {fd_, mine.data(), kBlockBytes, offset}),
                int64_t{kBlockBytes});
      if (mine.find_first_not_of(mine[0]) != std::string::npos) ++torn;
    }
  });
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(opened().lock.holder_counts, 0u);
  EXPECT_NE(writer().written_over, 0u);
  mount_again();
}

TEST_P(OverwriteTest, holes_and_reserved_blocks_become_new_ones) {
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return fallocate(warp, fs(), fd_, kFallocatePunchHole | kFallocateKeepSize,
                               2 * kBlockBytes, 2 * kBlockBytes);
            }),
            0);
  model_.replace(2 * kBlockBytes, 2 * kBlockBytes, std::string(2 * kBlockBytes, '\0'));
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return fallocate(warp, fs(), fd_, 0, 3 * kBlockBytes, kBlockBytes);
            }),
            0);
  straight_ = true;
  for (const uint64_t index : {2u, 3u}) {
    EXPECT_FALSE(goes_over(index * kBlockBytes + 512, 512));
    EXPECT_TRUE(goes_over(index * kBlockBytes + 1024, 512));
  }
  expect_contents();
}

TEST_P(OverwriteTest, times_are_set_each_time) {
  // The image is older than the clock.
  const f2fs::TimeStamp made = stat_of_path("/file").modified;
  EXPECT_TRUE(goes_over(0, 10));
  const f2fs::TimeStamp first = stat_of_path("/file").modified;
  EXPECT_GT(first.seconds, made.seconds);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(goes_over(0, 10));
  const Stat stat = stat_of_path("/file");
  EXPECT_GT(f2fs::nanoseconds_of(stat.modified), f2fs::nanoseconds_of(first));
  EXPECT_EQ(f2fs::nanoseconds_of(stat.modified), f2fs::nanoseconds_of(stat.changed));
}

TEST_P(OverwriteTest, a_write_clears_the_set_id_bits) {
  const auto mode = [&] { return stat_of_path("/file").mode & 07777u; };
  // The times have been set in this moment, but what else was changed since is seen.
  for (const uint32_t setid : {04000u, 02000u, 06000u}) {
    EXPECT_EQ(
        alone([&](const simt::Warp& warp) { return chmod(warp, fs(), "/file", setid | 0777); }), 0);
    EXPECT_TRUE(goes_over(0, kBlockBytes));
    EXPECT_TRUE(goes_over(0, kBlockBytes));
    EXPECT_EQ(mode(), setid | 0777u);  // which user 0 may leave
    EXPECT_EQ(opened().inode.times_set_ns, 0);
    fs().credentials = who(1000, 1000);
    EXPECT_TRUE(goes_over(kBlockBytes, kBlockBytes));
    EXPECT_TRUE(goes_over(kBlockBytes, kBlockBytes));
    fs().credentials = who(0, 0);
    EXPECT_EQ(mode(), 0777u);
    EXPECT_NE(opened().inode.times_set_ns, 0);
  }
  expect_contents();
}

TEST_P(OverwriteTest, one_of_many_sets_the_times) {
  // While one is about to, the others wait; and go on when it is done, or when he gives up.
  opened().inode.times_pending = 1;
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const int64_t now_ns = f2fs::nanoseconds_of(time_now(fs()));
    simt::store_relaxed(opened().inode.times_set_ns, now_ns + 500'000'000);
    simt::unlock(opened().inode.times_pending);
  });
  EXPECT_TRUE(goes_over(0, kBlockBytes));
  setter.join();
  EXPECT_EQ(opened().inode.times_pending, 0u);
  expect_contents();
}

TEST_P(OverwriteTest, what_is_synced_is_flushed_though_no_node_has_changed) {
  const auto flushes = [&] { return writing_->rig().counters().flush_requests; };
  const auto sync_data = [&] {
    return alone([&](const simt::Warp& warp) { return fdatasync(warp, fs(), fd_); });
  };
  const auto sync_all = [&] {
    return alone([&](const simt::Warp& warp) { return sync(warp, fs()); });
  };
  EXPECT_EQ(sync_all(), 0);
  EXPECT_EQ(sync_all(), 0);
  uint64_t before = flushes();
  EXPECT_EQ(sync_all(), 0);
  EXPECT_EQ(flushes(), before);  // nothing was written
  EXPECT_TRUE(goes_over(0, kBlockBytes));
  EXPECT_EQ(sync_data(), 0);
  EXPECT_GT(flushes(), before);
  EXPECT_EQ(sync_all(), 0);
  // No operation has begun since then.
  note_times();
  EXPECT_TRUE(goes_over(0, kBlockBytes));
  EXPECT_EQ(writer().changed, 0u);
  for (const bool all : {false, true}) {
    before = flushes();
    EXPECT_EQ(all ? sync_all() : sync_data(), 0);
    EXPECT_GT(flushes(), before);
  }
  // Another file's node has changed.
  for (const bool data : {false, true}) {
    EXPECT_EQ(sync_all(), 0);
    note_times();
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return chmod(warp, fs(), "/", 0755); }), 0);
    EXPECT_NE(writer().changed, 0u);
    EXPECT_TRUE(goes_over(0, kBlockBytes));
    before = flushes();
    EXPECT_EQ(
        data ? sync_data() : alone([&](const simt::Warp& warp) { return fsync(warp, fs(), fd_); }),
        0);
    EXPECT_GT(flushes(), before);
  }
}

TEST_P(OverwriteTest, what_cannot_be_written_over_goes_to_a_new_block) {
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  for (const bool straight : {false, true}) {
    straight_ = straight;
    // The fast path's command, and that of who writes over it more carefully.
    rule.count = straight ? 2 : 1;
    writing_->rig().add_fault(rule);
    EXPECT_FALSE(goes_over(4 * kBlockBytes, kBlockBytes));
    writing_->rig().clear_faults();
    EXPECT_TRUE(goes_over(4 * kBlockBytes, kBlockBytes));
  }
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(OverwriteTest, what_the_segment_table_has_as_nodes_is_left_alone) {
  const uint32_t block = block_of(6);
  f2fs::SegmentInfo& segment = writer().segments.segments[fs().volume.geometry.segno_of(block)];
  const auto attempt = [&] {
    const std::string text(kBlockBytes, 'x');
    return alone([&](const simt::Warp& warp) {
      return f2fs::write_over(
          warp, fs().volume, writer(), fs().pool, 1u, testing::hold_alone(opened().inode),
          {6 * kBlockBytes, kBlockBytes, reinterpret_cast<const uint8_t*>(text.data())});
    });
  };
  const uint32_t type = segment.type;
  segment.type = format::kWarmNode;
  EXPECT_EQ(attempt(), 0);
  segment.type = type;
  const uint32_t offset = fs().volume.geometry.offset_in_segment(block);
  segment.valid[offset / 32] ^= 1u << offset % 32;
  EXPECT_EQ(attempt(), 0);
  segment.valid[offset / 32] ^= 1u << offset % 32;
  expect_contents();
}

TEST_P(OverwriteTest, nothing_is_written_over_while_addresses_are_read) {
  const auto batches = [&]() -> BatchTable& { return *fs().batches; };
  const char* const names[] = {"file"};
  const std::string before = model_;
  int bd = -1;
  run_alone(width(), [&](const simt::Warp& warp) {
    const int mine = begin_batch(warp, fs(), batches(), "/", 1);
    Batch& batch = batches().batches[mine];
    find_batch(warp, fs(), batches(), batch, names, 0, 1);
    load_batch(warp, fs(), batches(), batch, 0, 1);
    if (warp.thread_rank() == 0) bd = mine;
  });
  EXPECT_FALSE(goes_over(8 * kBlockBytes, kBlockBytes));
  EXPECT_FALSE(goes_over(8 * kBlockBytes, 512));
  std::string read(kOverwrittenBytes, '\0');
  const uint64_t offset = 0;
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(read_batch(warp, fs(), batches(), batches().batches[bd],
                         reinterpret_cast<uint8_t*>(read.data()), &offset, 0, 1),
              kOverwrittenBytes);
  });
  EXPECT_TRUE(read == before);
  alone([&](const simt::Warp& warp) { return end_batch(warp, batches(), bd); });
  EXPECT_TRUE(goes_over(8 * kBlockBytes, kBlockBytes));
  expect_contents();
}

TEST_P(OverwriteTest, an_address_reader_waits_for_those_who_write_over) {
  const uint32_t& awaited = writer().cleaning.overwriters_awaited;
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_TRUE(try_join_block_writers(warp, opened().lock, awaited));
  });
  const auto wait_for_them = [&] {
    return alone([&](const simt::Warp& warp) {
      return detail::wait_for_overwriters(warp, fs(), 1u, opened().inode.ino);
    });
  };
  const uint64_t patience_ns = fs().lock_timeout_ns;
  fs().lock_timeout_ns = 5'000'000;
  EXPECT_EQ(wait_for_them(), -ETIMEDOUT);
  std::string read(100, '\0');
  const auto read_later = [&]() -> int64_t {
    return alone([&](const simt::Warp& warp) {
      return wait(warp, fs(), pread_async(warp, fs(), fd_, read.data(), read.size(), 0));
    });
  };
  EXPECT_EQ(read_later(), -ETIMEDOUT);
  EXPECT_EQ(writer().cleaning.address_readers, 0u);
  fs().lock_timeout_ns = patience_ns;
  std::atomic<bool> left = false;
  std::thread waiter([&] {
    EXPECT_EQ(wait_for_them(), 0);
    EXPECT_TRUE(left);
  });
  left = true;
  run_alone(width(), [&](const simt::Warp& warp) { leave_block_writers(warp, opened().lock); });
  waiter.join();
  EXPECT_EQ(awaited, 0u);
  EXPECT_EQ(read_later(), static_cast<int64_t>(read.size()));
  EXPECT_EQ(read, model_.substr(0, read.size()));
  // As long as one waits, none joins those that are waited for: it takes the ring.
  writer().cleaning.overwriters_awaited = 1;
  EXPECT_FALSE(goes_over(3 * kBlockBytes, kBlockBytes));
  straight_ = true;
  EXPECT_FALSE(goes_over(3 * kBlockBytes, kBlockBytes));
  writer().cleaning.overwriters_awaited = 0;
  EXPECT_TRUE(goes_over(3 * kBlockBytes, kBlockBytes));
  expect_contents();
}

TEST_P(OverwriteTest, after_a_checkpoint_that_failed_nothing_is_written_any_more) {
  EXPECT_TRUE(goes_over(0, kBlockBytes));
  writer().failed = -EIO;
  EXPECT_EQ(pwrite_file(fd_, "x", 0), -EROFS);
  note_times();
  EXPECT_EQ(pwrite_file(fd_, "x", 0), -EROFS);
  EXPECT_EQ(pwrite_file(fd_, std::string(512, 'x'), 0), -EROFS);
  writer().failed = 0;
  expect_contents();
}

VolumeRigOptions of_sectors() {
  VolumeRigOptions options;
  options.ssd.atomic_bytes = 512;
  return options;
}

class TornBlocksTest : public OverwriteTest {
 protected:
  TornBlocksTest() : OverwriteTest(of_sectors()) {}
};
INSTANTIATE_TEST_SUITE_P(width, TornBlocksTest, ::testing::ValuesIn(gofs::testing::widths({1, 4})),
                         ::testing::PrintToStringParamName());

TEST_P(TornBlocksTest, an_ssd_that_may_leave_blocks_half_written_gets_new_ones) {
  EXPECT_EQ(fs().volume.array.atomic_blocks, 0u);
  EXPECT_FALSE(goes_over(0, kBlockBytes));
  EXPECT_FALSE(goes_over(0, 512));
  expect_contents();
}

}  // namespace
}  // namespace gofs::vfs
