// SPDX-License-Identifier: Apache-2.0
//
// Records that many append to one file: each is whole, in one place and in its writer's order,
// whatever else happens to the file, and what fails is not there.
#include "vfs/record_append.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "f2fs/recover_files.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/write_lanes.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kLogBytes = 3 * kBlockBytes + 100;  // ends within a block
constexpr uint32_t kHeadBytes = 16;
constexpr uint32_t kMarkAt = 12;

/// A record that says whose it is, and as his how manieth.
std::string make_record(uint32_t writer, uint32_t number, uint32_t bytes) {
  std::string record(bytes, '\0');
  for (uint32_t at = kHeadBytes; at < bytes; ++at) {
    record[at] = static_cast<char>(writer * 31 + number * 7 + at * 3 + 1);
  }
  auto* const head = reinterpret_cast<uint8_t*>(record.data());
  format::store_u32(head, writer);
  format::store_u32(head + 4, number);
  format::store_u32(head + 8, bytes);
  return record;
}

/// Of different lengths, some longer than a block.
uint32_t bytes_of_record(uint32_t writer, uint32_t number) {
  const uint32_t mixed = (writer * 7919 + number * 104729 + 13) % 1000;
  return kHeadBytes + (mixed % 9 == 0 ? 5000 + mixed : mixed % 17 == 0 ? 4080 : mixed % 400);
}

/// The records in `log` from `at` on: how many of each writer. Each is whole, and those of a writer
/// in order; `sparse`: some may be missing.
std::map<uint32_t, uint32_t> count_records(const std::string& log, uint64_t at, bool sparse = false,
                                           char mark = '\0') {
  std::map<uint32_t, uint32_t> next;
  while (at < log.size()) {
    EXPECT_GE(log.size() - at, kHeadBytes);
    if (log.size() - at < kHeadBytes) break;
    // Records begin at any byte, and a le32 may.
    const auto* const head = reinterpret_cast<const format::le32*>(log.data() + at);
    const uint32_t writer = head[0];
    const uint32_t number = head[1];
    const uint32_t bytes = head[2];
    if (bytes < kHeadBytes || bytes > log.size() - at) {
      ADD_FAILURE() << "no record at " << at << " of " << log.size();
      break;
    }
    std::string wanted = make_record(writer, number, bytes);
    if (bytes > kMarkAt) wanted[kMarkAt] = mark;
    EXPECT_TRUE(log.compare(at, bytes, wanted) == 0) << "at " << at << " of " << log.size();
    EXPECT_TRUE(sparse ? number >= next[writer] : number == next[writer]) << number;
    next[writer] = number + 1;
    at += bytes;
    if (::testing::Test::HasFailure()) break;
  }
  return next;
}

class RecordAppendTest : public ChangesTest {
 protected:
  explicit RecordAppendTest(const VolumeRigOptions& options = testing::with_a_fault())
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              const auto add = [&](const char* name, bool inlined, uint64_t bytes) {
                image::FileSpec spec;
                spec.name = name;
                spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
                spec.inline_data = inlined;
                spec.size_bytes = bytes;
                spec.content = image::pattern_content(9);
                TestImage::must(builder.add_file(builder.root(), spec));
              };
              add("log", false, kLogBytes);
              add("new", true, 0);
              add("other", false, 5 * kBlockBytes - 7);
              add("third", false, kBlockBytes);
            },
            options) {
    model_ = contents("/log");
    reopen();
  }
  void reopen() {
    // The seconds of all times are the same, whatever the test takes.
    fs().time_granularity_ns = 1'000'000'000'000'000;
    fd_ = open_file("/log", kOpenReadWrite | kOpenAppend);
    plain_ = open_file("/log", kOpenReadWrite);
  }
  f2fs::Writer& writer() { return *fs().writer; }
  OpenInode& opened(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode]; }
  OpenInode& opened() { return opened(fd_); }
  RecordBuffer& buffer() { return fs().records.buffers[opened().records - 1]; }
  int64_t append(int fd, const std::string& record) {
    return alone([&](const simt::Warp& warp) {
      return write(warp, fs(), fd, record.data(), record.size());
    });
  }
  /// Appends to the log and to what it should be.
  void append_to_model(const std::string& record) {
    EXPECT_EQ(append(fd_, record), static_cast<int64_t>(record.size()));
    model_ += record;
    EXPECT_EQ(opened().inode.size_bytes, model_.size());
  }
  void expect_nothing_held() {
    EXPECT_EQ(opened().lock.holder_counts, 0u);
    EXPECT_EQ(opened().lock.growing, 0u);
    EXPECT_EQ(opened().inode.times_lock, 0u);
    for (const auto& side : writer().checkpoint_lock.sides) EXPECT_EQ(side.inside, 0u);
    for (uint32_t i = 0; i < fs().records.count; ++i) {
      EXPECT_EQ(fs().records.buffers[i].flushing, 0u);
      EXPECT_EQ(fs().records.buffers[i].syncing, 0u);
    }
  }
  void expect_contents() {
    EXPECT_TRUE(contents("/log") == model_);
    EXPECT_EQ(opened().inode.size_bytes, model_.size());
    expect_nothing_held();
  }
  void expect_kept() {
    expect_contents();
    mount_again();
    reopen();
    expect_contents();
  }
  /// One warp's records, with write(): of the first that fails, the errno.
  int append_some(const simt::Warp& warp, int fd, uint32_t index, uint32_t count,
                  std::vector<uint32_t>& done) {
    for (uint32_t number = 0; number < count; ++number) {
      const std::string record = make_record(index, number, bytes_of_record(index, number));
      const int64_t put = write(warp, fs(), fd, record.data(), record.size());
      if (put < 0) return static_cast<int>(put);
      EXPECT_EQ(put, static_cast<int64_t>(record.size()));
      if (warp.thread_rank() == 0) ++done[index];
    }
    return 0;
  }
  void expect_records(const std::string& path, uint64_t from, const std::vector<uint32_t>& done) {
    std::map<uint32_t, uint32_t> counts = count_records(contents(path), from);
    for (uint32_t i = 0; i < done.size(); ++i) EXPECT_EQ(counts[i], done[i]) << i;
  }
  uint32_t steps(uint32_t of_one_lane) const {
    return width() == 1 ? of_one_lane : of_one_lane / 4;
  }

  int fd_ = -1;
  int plain_ = -1;  // without that it appends
  std::string model_;
};
GOFS_AT_BOTH_WIDTHS(RecordAppendTest);

TEST_P(RecordAppendTest, records_of_many_are_whole_and_in_order) {
  constexpr uint32_t kWarps = 6;
  std::vector<uint32_t> done(kWarps);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    EXPECT_EQ(append_some(warp, fd_, index, steps(160), done), 0);
  });
  expect_nothing_held();
  EXPECT_NE(opened().records, 0u);
  expect_records("/log", kLogBytes, done);
  EXPECT_TRUE(contents("/log").compare(0, kLogBytes, model_) == 0);
  mount_again();
  reopen();
  expect_records("/log", kLogBytes, done);
}

TEST_P(RecordAppendTest, a_new_log_leaves_its_inode_when_it_has_to) {
  const int fd = open_file("/new", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(append(fd, make_record(0, 0, 100)), 100);
  EXPECT_TRUE(opened(fd).inode.has_inline_data());
  constexpr uint32_t kWarps = 5;
  std::vector<uint32_t> done(kWarps);
  done[0] = 1;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t number = index == 0 ? 1 : 0; number < steps(60); ++number) {
      const std::string record = make_record(index, number, 40 + index);
      EXPECT_EQ(write(warp, fs(), fd, record.data(), record.size()),
                static_cast<int64_t>(record.size()));
      if (warp.thread_rank() == 0) ++done[index];
    }
  });
  EXPECT_EQ(close_file(fd), 0);
  expect_records("/new", 0, done);
  mount_again();
  expect_records("/new", 0, done);
}

TEST_P(RecordAppendTest, flushes_within_an_inode_stay_there) {
  const int fd = open_file("/new", kOpenWriteOnly | kOpenAppend);
  OpenInode& open = opened(fd);
  open.lock.growing = 1;  // as if others were there
  std::string all;
  for (uint32_t i = 0; i < 30; ++i) {
    const std::string record = make_record(0, i, 150);
    EXPECT_EQ(append(fd, record), 150);
    all += record;
    open.lock.growing = 0;
    EXPECT_NE(open.records, 0u);
    EXPECT_EQ(open.inode.has_inline_data(), all.size() <= open.inode.inline_bytes);
    EXPECT_TRUE(contents("/new") == all);
  }
  EXPECT_FALSE(open.inode.has_inline_data());
  mount_again();
  EXPECT_TRUE(contents("/new") == all);
}

TEST_P(RecordAppendTest, one_alone_goes_over_the_last_block_until_it_is_full) {
  append_to_model(make_record(0, 0, 50));
  const uint64_t used = fs().volume.valid_block_count;
  std::vector<uint32_t> entered;
  for (const auto& open :
       std::vector<f2fs::OpenSegment>(writer().open, writer().open + writer().open_count)) {
    entered.push_back(open.entered);
  }
  for (uint32_t i = 1; i < 30; ++i) append_to_model(make_record(0, i, 100));
  EXPECT_EQ(fs().volume.valid_block_count, used);
  for (uint32_t i = 0; i < writer().open_count; ++i) {
    EXPECT_EQ(writer().open[i].entered, entered[i]) << "a block was taken";
  }
  // Across its end, to one that is full, and on behind that.
  for (uint32_t i = 30; i < 80; ++i) append_to_model(make_record(0, i, 511));
  while (model_.size() % kBlockBytes > kBlockBytes - 16) append_to_model("x");
  append_to_model(std::string(kBlockBytes - model_.size() % kBlockBytes, 'f'));
  append_to_model("y");
  append_to_model(std::string(kBlockBytes, 'z'));
  expect_kept();
}

// A larger command than one of 4 KiB need not be written block by block.
TEST_P(RecordAppendTest, what_is_written_over_has_a_command_of_its_own) {
  if (width() == 1) GTEST_SKIP() << "each block has a command of its own";
  append_to_model(make_record(0, 0, kBlockBytes));  // its last block is new, and a page has it
  const nvme::Device& device = writing_->rig().device();
  const auto commands = [&] {
    uint64_t count = 0;
    for (uint32_t i = 0; i < device.io_queue_count; ++i) count += device.io[i].next_ticket;
    return count;
  };
  for (uint32_t number = 1; number <= 2; ++number) {  // each of the two pages has the end once
    const uint64_t last = model_.size() >> kBlockShift;
    const uint32_t block = block_of(fd_, last);
    const uint64_t before = commands();
    append_to_model(make_record(0, number, kBlockBytes));
    EXPECT_EQ(commands() - before, 2u);
    EXPECT_EQ(block_of(fd_, last), block);
    EXPECT_EQ(block_of(fd_, last + 1), block + 1) << "they could not have been one";
  }
  expect_kept();
}

TEST_P(RecordAppendTest, nothing_is_written_over_where_that_must_not_be) {
  writer().writes_over = 0;
  for (uint32_t i = 0; i < 40; ++i) append_to_model(make_record(0, i, 300));
  EXPECT_EQ(writer().written_over, 0u);
  expect_kept();
}

TEST_P(RecordAppendTest, all_sizes_up_to_the_largest_record) {
  std::mt19937 random(3);
  for (const uint64_t bytes : {1ul, 2ul, 4095ul, 4096ul, 4097ul, 12289ul, 65535ul, 65536ul, 65537ul,
                               100'000ul, 8192ul, 3ul}) {
    std::string record(bytes, '\0');
    for (char& byte : record) byte = static_cast<char>(random());
    append_to_model(record);
  }
  expect_kept();
}

TEST_P(RecordAppendTest, parts_are_one_record_and_the_position_is_behind_it) {
  append_to_model("a");
  const std::string first(5000, 'b');
  const std::string second(777, 'c');
  const IoVector parts[] = {detail::one_part(first.data(), first.size()),
                            detail::one_part(nullptr, 0),
                            detail::one_part(second.data(), second.size())};
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return writev(warp, fs(), fd_, parts, 3); }), 5777);
  model_ += first + second;
  EXPECT_EQ(fs().descriptors[fd_].position, model_.size());
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return pwritev(warp, fs(), fd_, parts, 3, 7); }),
            5777);
  model_ += first + second;
  EXPECT_EQ(fs().descriptors[fd_].position, model_.size() - 5777);
  expect_kept();
}

TEST_P(RecordAppendTest, lanes_append_side_by_side_in_order_of_rank) {
  for (const uint32_t bytes : {1u, 300u, 4000u, 5000u, 4096u}) {
    std::vector<std::string> records(width());
    std::vector<int64_t> results(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      records[lane] = std::string(bytes + (bytes == 300 ? lane : 0), static_cast<char>('a' + lane));
    }
    run_alone(width(), [&](const simt::Warp& warp) {
      const std::string& mine = records[warp.thread_rank()];
      results[warp.thread_rank()] =
          write_lanes(warp, fs(), WriteRequest{fd_, mine.data(), mine.size(), 0});
    });
    for (uint32_t lane = 0; lane < width(); ++lane) {
      EXPECT_EQ(results[lane], static_cast<int64_t>(records[lane].size()));
      model_ += records[lane];
    }
    EXPECT_EQ(fs().descriptors[fd_].position, model_.size());
    EXPECT_TRUE(contents("/log") == model_) << bytes;
  }
  expect_kept();
}

TEST_P(RecordAppendTest, lanes_of_many_warps_keep_their_order) {
  constexpr uint32_t kWarps = 4;
  const uint32_t count = steps(80);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t me = index * width() + warp.thread_rank();
    for (uint32_t number = 0; number < count; ++number) {
      const std::string record = make_record(me, number, bytes_of_record(me, number));
      EXPECT_EQ(write_lanes(warp, fs(), WriteRequest{fd_, record.data(), record.size(), 0}),
                static_cast<int64_t>(record.size()));
    }
  });
  expect_records("/log", kLogBytes, std::vector<uint32_t>(kWarps * width(), count));
  mount_again();
}

// What else is done to the file, before and behind its end, between two records.
TEST_P(RecordAppendTest, others_change_the_file_in_between) {
  const auto write_plain = [&](const std::string& bytes, uint64_t offset) {
    EXPECT_EQ(pwrite_file(plain_, bytes, offset), static_cast<int64_t>(bytes.size()));
    if (model_.size() < offset + bytes.size()) model_.resize(offset + bytes.size());
    model_.replace(offset, bytes.size(), bytes);
  };
  const auto resize = [&](uint64_t size) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), plain_, size); }),
              0);
    model_.resize(size);
  };
  uint32_t number = 0;
  const auto some_records = [&] {
    for (uint32_t i = 0; i < 3; ++i, ++number) append_to_model(make_record(0, number, 333));
    EXPECT_TRUE(contents("/log") == model_);
  };
  for (const bool over : {true, false}) {
    writer().writes_over = over ? 1 : 0;
    some_records();
    write_plain("over the last block", model_.size() - 30);  // as block writers do
    some_records();
    const uint64_t before = std::min<uint64_t>(model_.size(), 2 * kBlockBytes + 5);
    write_plain(std::string(before - 5, 'r'), model_.size() - before);
    some_records();
    write_plain("behind the end", model_.size());
    some_records();
    write_plain("far behind the end", model_.size() + 10'000);
    some_records();
    resize(model_.size() - 100);
    some_records();
    resize(model_.size() + 5000);
    some_records();
    // Away and back again: the size is the same, the bytes are not.
    const uint64_t size = model_.size();
    resize(size - 50);
    resize(size);
    some_records();
    write_plain(std::string(70'000, 'l'), model_.size());
    some_records();
    EXPECT_EQ(append(fd_, std::string(100'000, 'L')), 100'000);  // no record, but appended
    model_.append(100'000, 'L');
    some_records();
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return sync(warp, fs()); }), 0);
    some_records();
    resize(0);
    some_records();
  }
  expect_kept();
}

// No write to a block is lost for a record that is appended to it, nor the other way round.
TEST_P(RecordAppendTest, bytes_that_are_written_over_stay_when_records_follow) {
  constexpr uint32_t kWarps = 5;
  const uint32_t count = steps(160);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t number = 0; number < count; ++number) {
      const std::string record = make_record(index, number, 40 + index);
      const IoVector part = detail::one_part(record.data(), record.size());
      uint64_t offset = 0;
      int64_t put =
          detail::append_record(warp, fs(), fs().descriptors[fd_], &part, 1, record.size(), offset);
      EXPECT_TRUE(put > 0 || put == -EAGAIN) << put;
      if (put == -EAGAIN) put = detail::write_at(warp, fs(), fd_, &part, 1, offset);
      const char mark = 'M';
      EXPECT_EQ(pwrite(warp, fs(), plain_, &mark, 1, offset + kMarkAt), 1);
    }
  });
  std::map<uint32_t, uint32_t> counts = count_records(contents("/log"), kLogBytes, false, 'M');
  for (uint32_t i = 0; i < kWarps; ++i) EXPECT_EQ(counts[i], count);
  mount_again();
}

TEST_P(RecordAppendTest, longer_writes_that_append_go_on_beside_records) {
  constexpr uint32_t kWarps = 5;
  const uint32_t count = steps(48);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t number = 0; number < count; ++number) {
      const uint32_t bytes = index < 2 && number % 6 == 0 ? 80'000 : bytes_of_record(index, number);
      const std::string record = make_record(index, number, bytes);
      EXPECT_EQ(write(warp, fs(), fd_, record.data(), bytes), bytes);
    }
  });
  expect_records("/log", kLogBytes, std::vector<uint32_t>(kWarps, count));
  mount_again();
}

TEST_P(RecordAppendTest, a_reader_beside_finds_whole_records) {
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kBytes = 300;
  const uint32_t count = steps(200);
  std::atomic<uint32_t> left = kWarps - 1;
  const int reader = open_file("/log", kOpenReadOnly);
  std::string found;
  std::string part(10 * kBytes, '\0');
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      for (uint64_t at = kLogBytes;;) {
        const uint32_t before = warp.shfl(left.load(), 0);
        const int64_t got = pread(warp, fs(), reader, part.data(), part.size(), at);
        EXPECT_GE(got, 0);
        EXPECT_EQ(got % kBytes, 0);
        if (warp.thread_rank() == 0) found.append(part, 0, static_cast<size_t>(got));
        warp.sync();
        at += static_cast<uint64_t>(got);
        if (got <= 0 && before == 0) return;
      }
    }
    for (uint32_t number = 0; number < count; ++number) {
      const std::string record = make_record(index, number, kBytes);
      EXPECT_EQ(write(warp, fs(), fd_, record.data(), kBytes), int64_t{kBytes});
    }
    if (warp.thread_rank() == 0) --left;
  });
  std::map<uint32_t, uint32_t> counts = count_records(found, 0);
  for (uint32_t i = 1; i < kWarps; ++i) EXPECT_EQ(counts[i], count);
  EXPECT_EQ(close_file(reader), 0);
  mount_again();
}

TEST_P(RecordAppendTest, records_that_find_no_room_are_not_there) {
  // Leaves some blocks.
  const uint64_t free_blocks = fs().volume.user_block_count - fs().volume.valid_block_count;
  const int other = open_file("/other", kOpenWriteOnly);
  const std::string mebibyte(1 << 20, 'o');
  for (uint64_t left = free_blocks; left > 600; left -= 256) {
    ASSERT_EQ(pwrite_file(other, mebibyte, stat_of_path("/other").size_bytes), 1 << 20);
  }
  constexpr uint32_t kWarps = 4;
  std::vector<uint32_t> done(kWarps);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    EXPECT_EQ(append_some(warp, fd_, index, 10'000, done), -ENOSPC);
  });
  expect_nothing_held();
  expect_records("/log", kLogBytes, done);
  // With room again it goes on.
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), other, 0); }), 0);
  model_ = contents("/log");
  for (uint32_t i = 0; i < 3; ++i) append_to_model(make_record(9, i, 700));
  expect_kept();
}

TEST_P(RecordAppendTest, records_that_the_device_refuses_are_not_there) {
  constexpr uint32_t kWarps = 4;
  append_to_model(make_record(kWarps, 0, 300));
  for (uint32_t round = 0; round < 4; ++round) {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = 5 + 7 * round;
    rule.count = 3 + round;
    writing_->rig().add_fault(rule);
    std::atomic<uint32_t> failed = 0;
    std::vector<uint32_t> good(kWarps);
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t number = 0; number < steps(80); ++number) {
        // Only those that are good count.
        const std::string record =
            make_record(round * kWarps + index + 10, good[index], bytes_of_record(index, number));
        warp.sync();
        const int64_t put = write(warp, fs(), fd_, record.data(), record.size());
        if (put != static_cast<int64_t>(record.size())) {
          EXPECT_EQ(put, -EIO);
          ++failed;
        } else if (warp.thread_rank() == 0) {
          ++good[index];
        }
        warp.sync();
      }
    });
    writing_->rig().clear_faults();
    EXPECT_GT(failed, 0u);
    expect_nothing_held();
    std::map<uint32_t, uint32_t> counts = count_records(contents("/log"), model_.size());
    for (uint32_t i = 0; i < kWarps; ++i) EXPECT_EQ(counts[round * kWarps + i + 10], good[i]);
    model_ = contents("/log");
  }
  expect_kept();
}

TEST_P(RecordAppendTest, nothing_is_appended_when_nothing_becomes_durable_any_more) {
  append_to_model(make_record(0, 0, 300));
  append_to_model(make_record(0, 1, 300));
  writer().failed = -EIO;
  EXPECT_EQ(append(fd_, make_record(0, 2, 300)), -EROFS);
  EXPECT_EQ(append(fd_, std::string(5000, 'x')), -EROFS);
  writer().failed = 0;
  expect_contents();
  append_to_model(make_record(0, 2, 300));
  expect_kept();
}

TEST_P(RecordAppendTest, appending_clears_the_set_id_bits) {
  append_to_model("a");
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return chmod(warp, fs(), "/log", 04777); }), 0);
  append_to_model("b");
  EXPECT_EQ(stat_of_path("/log").mode & 07777u, 04777u);  // which user 0 may leave
  fs().credentials = who(1000, 1000);
  append_to_model("c");
  EXPECT_EQ(stat_of_path("/log").mode & 07777u, 0777u);
  fs().credentials = who(0, 0);
  expect_kept();
}

TEST_P(RecordAppendTest, more_logs_than_buffers_take_turns) {
  const std::vector<std::string> paths = {"/log", "/other", "/third"};
  ASSERT_GT(paths.size(), fs().records.count);
  std::vector<int> fds;
  std::vector<std::string> before;
  for (const std::string& path : paths) {
    fds.push_back(open_file(path, kOpenWriteOnly | kOpenAppend));
    before.push_back(contents(path));
  }
  constexpr uint32_t kWarps = 6;
  const uint32_t count = steps(80);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t number = 0; number < count; ++number) {
      // With pauses in which a buffer may go to another.
      if (number % 20 == index) {
        const uint64_t until = simt::now_ns() + 2 * detail::kRecordIdleNs;
        for (simt::Backoff backoff; simt::now_ns() < until;) backoff.pause();
      }
      const std::string record = make_record(index, number, bytes_of_record(index, number));
      EXPECT_EQ(write(warp, fs(), fds[(index + number) % 3], record.data(), record.size()),
                static_cast<int64_t>(record.size()));
    }
  });
  std::map<uint32_t, uint32_t> all;
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string found = contents(paths[i]);
    EXPECT_TRUE(found.compare(0, before[i].size(), before[i]) == 0);
    EXPECT_EQ(count_records(found, before[i].size(), true).size(), kWarps);
  }
  mount_again();
}

TEST_P(RecordAppendTest, an_idle_buffer_goes_to_the_next_file_and_a_closed_ones_is_free) {
  append_to_model("a");
  const int other = open_file("/other", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(append(other, "b"), 1);
  ASSERT_NE(opened().records, 0u);
  ASSERT_NE(opened(other).records, 0u);
  EXPECT_NE(opened().records, opened(other).records);
  EXPECT_EQ(close_file(other), 0);
  const auto owned = [&] {
    uint32_t count = 0;
    for (uint32_t i = 0; i < fs().records.count; ++i) {
      count += fs().records.buffers[i].owner != 0 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(owned(), 1u);
  const int third = open_file("/third", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(append(third, "c"), 1);
  EXPECT_EQ(owned(), 2u);
  const uint64_t until = simt::now_ns() + 2 * detail::kRecordIdleNs;
  while (simt::now_ns() < until) {
  }
  const int again = open_file("/other", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(append(again, "d"), 1);
  EXPECT_NE(opened(again).records, 0u);
  EXPECT_TRUE(opened().records == 0 || opened(third).records == 0);
  for (uint32_t i = 0; i < 5; ++i) append_to_model(make_record(0, i, 99));
  EXPECT_EQ(append(third, "e"), 1);
  EXPECT_EQ(contents("/third").substr(kBlockBytes), "ce");
  EXPECT_EQ(contents("/other").substr(5 * kBlockBytes - 7), "bd");
  for (const int fd : {again, third, fd_, plain_}) EXPECT_EQ(close_file(fd), 0);
  EXPECT_EQ(owned(), 0u);
  reopen();
  expect_kept();
}

// As it is for a moment when another file takes the buffer.
TEST_P(RecordAppendTest, a_place_in_another_files_stream_is_given_up) {
  append_to_model("a");
  const int other = open_file("/other", kOpenWriteOnly | kOpenAppend);
  for (uint32_t i = 0; i < 3; ++i) {
    opened(other).records = opened().records;
    EXPECT_EQ(append(other, "b"), 1);
    append_to_model(make_record(0, i, 99));
  }
  EXPECT_EQ(contents("/other").substr(5 * kBlockBytes - 7), "bbb");
  constexpr uint32_t kWarps = 5;
  std::vector<uint32_t> done(kWarps);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index != 0) {
      EXPECT_EQ(append_some(warp, fd_, index, steps(80), done), 0);
      return;
    }
    for (uint32_t i = 0; i < steps(80); ++i) {
      if (warp.thread_rank() == 0) {
        const uint32_t theirs = simt::load_relaxed(opened().records);
        if (theirs != detail::kRecordsSought) simt::store_relaxed(opened(other).records, theirs);
      }
      warp.sync();
      EXPECT_EQ(write(warp, fs(), other, "b", 1), 1);
    }
  });
  expect_records("/log", model_.size(), done);
  EXPECT_EQ(contents("/other").size(), 5 * kBlockBytes - 7 + 3 + steps(80));
  mount_again();
}

TEST_P(RecordAppendTest, streams_are_made_anew_before_they_run_over) {
  for (uint32_t i = 0; i < fs().records.count; ++i) fs().records.buffers[i].tickets_max = 7;
  constexpr uint32_t kWarps = 5;
  std::vector<uint32_t> done(kWarps);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    EXPECT_EQ(append_some(warp, fd_, index, steps(160), done), 0);
  });
  expect_nothing_held();
  EXPECT_GT(buffer().first_tag, 7u);
  expect_records("/log", kLogBytes, done);
  mount_again();
}

TEST_P(RecordAppendTest, a_file_that_is_as_long_as_can_be_takes_no_buffer) {
  const uint64_t far = detail::kRecordFileBytesMax + 5;
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), plain_, far); }), 0);
  EXPECT_EQ(append(fd_, "last"), 4);
  EXPECT_EQ(opened().records, 0u);
  EXPECT_EQ(stat_of_path("/log").size_bytes, far + 4);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return ftruncate(warp, fs(), plain_, f2fs::kFileBytesMax);
            }),
            0);
  EXPECT_EQ(append(fd_, "more"), -EFBIG);
  mount_again();
}

/// With all commands that the SSD gets.
class RecordCutTest : public RecordAppendTest {
 protected:
  RecordCutTest() : RecordAppendTest(logging()), before_(image_) {}
  static VolumeRigOptions logging() {
    VolumeRigOptions options = testing::with_a_fault();
    options.ssd.logged_commands = 1 << 15;
    options.ssd.logged_bytes = 64 << 20;
    return options;
  }
  ssd::WriteTrace trace() {
    return ssd::read_trace(writing_->rig().arena().space(), writing_->rig().controller());
  }
  /// Cuts the power after every `step`-th event: `check(log)` of what is there then.
  template <typename Check>
  void cut_everywhere(uint32_t step, Check check) {
    const ssd::WriteTrace log = trace();
    TestImage left(before_);
    std::mt19937 random(5);
    uint32_t cuts = 0;
    for (uint32_t event = 0; event <= log.events && !HasFailure(); event += step, ++cuts) {
      SCOPED_TRACE("cut after event " + std::to_string(event));
      ssd::PowerCut(log, event)
          .apply({left.data(), left.bytes()}, kBlockBytes, [&](uint32_t, uint64_t) {
            return cuts % 3 == 0 ? false : cuts % 3 == 1 ? true : random() % 2 == 0;
          });
      check(left, event);
      put_back_all(left);
    }
  }
  void put_back_all(TestImage& left) { left.file().assign(before_.file()); }
  /// What the log is on a volume that was cut, recovered.
  std::string recovered(TestImage& left) {
    f2fs::WritingRig rig(left, width());
    EXPECT_EQ(rig.begin().error, 0);
    rig.rig().fs().writer = &rig.writer();
    std::string found;
    run_alone(width(), [&](const simt::Warp& warp) {
      Filesystem& cut = rig.rig().fs();
      EXPECT_GE(f2fs::recover_files(warp, cut.volume, *cut.writer), 0);
      const int fd = open(warp, cut, "/log", kOpenReadOnly);
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
GOFS_AT_BOTH_WIDTHS(RecordCutTest);

TEST_P(RecordCutTest, the_file_ends_with_a_record_after_any_cut) {
  GOFS_NEED_TOOL("fsck.f2fs");
  constexpr uint32_t kWarps = 4;
  std::vector<uint32_t> done(kWarps);
  std::atomic<uint32_t> left = kWarps - 1;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      for (uint32_t i = 0; i < 60 && warp.shfl(left.load(), 0) != 0; ++i) {
        EXPECT_EQ(sync(warp, fs()), 0);
      }
      return;
    }
    EXPECT_EQ(append_some(warp, fd_, index, steps(80), done), 0);
    if (warp.thread_rank() == 0) --left;
  });
  const uint32_t events = trace().events;
  cut_everywhere(std::max(events / 40, 1u), [&](TestImage& image, uint32_t event) {
    count_records(recovered(image), kLogBytes);
    if (event % 5 == 0) {
      EXPECT_TRUE(f2fs::fsck_likes(image, true));
    }
  });
}

TEST_P(RecordCutTest, durable_records_are_there_after_a_cut) {
  constexpr uint32_t kWarps = 4;
  const int durable = open_file("/log", kOpenWriteOnly | kOpenAppend | kOpenDataSync);
  const int all = open_file("/log", kOpenWriteOnly | kOpenAppend | kOpenSync);
  std::vector<uint32_t> done(kWarps);
  for (const uint32_t round : {0u, 1u}) {
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t i = 0; i < steps(16); ++i) {
        const uint32_t number = round * steps(16) + i;
        const std::string record = make_record(index, number, bytes_of_record(index, number));
        EXPECT_EQ(write(warp, fs(), index % 2 == 0 ? durable : all, record.data(), record.size()),
                  static_cast<int64_t>(record.size()));
        if (warp.thread_rank() == 0) ++done[index];
      }
    });
    // Of what nothing is promised nothing is left.
    const ssd::WriteTrace log = trace();
    TestImage left(before_);
    ssd::PowerCut(log, log.events)
        .apply({left.data(), left.bytes()}, kBlockBytes, [](uint32_t, uint64_t) { return false; });
    std::map<uint32_t, uint32_t> counts = count_records(recovered(left), kLogBytes);
    for (uint32_t i = 0; i < kWarps; ++i) EXPECT_EQ(counts[i], done[i]) << i;
  }
}

}  // namespace
}  // namespace gofs::vfs
