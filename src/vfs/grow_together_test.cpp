// SPDX-License-Identifier: Apache-2.0
//
// Many warps that make one file longer at the same time, each behind the end at places of its own:
// what a file holds then, where some of them fail, and beside appends, truncation and readers.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"
#include "vfs/write_together.h"
namespace gofs::vfs {
namespace {

constexpr uint32_t kWriters = 6;

class GrowTogetherTest : public ChangesTest {
 protected:
  GrowTogetherTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "new";
              TestImage::must(builder.add_file(builder.root(), spec));
              // Its last block has something behind its end, as other systems may leave it.
              spec.name = "old";
              spec.size_bytes = 3 * kBlockBytes + 1000;
              spec.content = image::pattern_content(5);
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            testing::with_a_fault()) {}

  std::mt19937 random_{static_cast<uint32_t>(printed_seed())};

  std::string random_bytes(size_t count) {
    std::string bytes(count, '\0');
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>('a' + random_() % 26);
    return bytes;
  }
  void expect_lock_free(int fd) {
    const RangeLock& lock = fs().open_inodes[find_file(simt::Warp(), fs(), fd)->open_inode].lock;
    EXPECT_EQ(lock.holder_counts, 0u);
    EXPECT_EQ(lock.growing, 0u);
    for (uint32_t i = 0; i <= fs().block_queue_mask; ++i) {
      ASSERT_EQ(fs().block_queues[i].next, fs().block_queues[i].serving) << i;
    }
  }
};
GOFS_AT_BOTH_WIDTHS(GrowTogetherTest);

struct Piece {
  uint64_t offset;
  std::string bytes;
};

// In any order, with holes, borders within blocks, pieces of few blocks and of many.
TEST_P(GrowTogetherTest, each_piece_is_where_it_was_written_and_the_rest_is_zeros) {
  for (const char* const path : {"/new", "/old"}) {
    std::string model = contents(path);
    std::vector<Piece> pieces;
    uint64_t at = model.size();
    for (uint32_t i = 0; i < 60; ++i) {
      if (random_() % 4 == 0) at += random_() % (5 * kBlockBytes);
      const bool aligned = random_() % 2 == 0;
      if (aligned) at = simt::align_up(at, uint64_t{kBlockBytes});
      uint64_t count = 1 + random_() % (random_() % 8 == 0 ? 50 * kBlockBytes : 4 * kBlockBytes);
      if (aligned) count = simt::align_up(count, uint64_t{kBlockBytes});
      pieces.push_back({at, random_bytes(count)});
      at += count;
    }
    model.resize(at, '\0');
    for (const Piece& piece : pieces) model.replace(piece.offset, piece.bytes.size(), piece.bytes);
    std::shuffle(pieces.begin(), pieces.end(), random_);
    const int fd = open_file(path, kOpenReadWrite);
    std::atomic<uint32_t> next{0};
    run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t) {
      for (;;) {
        uint32_t number = 0;
        if (warp.thread_rank() == 0) number = next.fetch_add(1);
        number = warp.shfl(number, 0);
        if (number >= pieces.size()) return;
        const Piece& piece = pieces[number];
        const auto count = static_cast<int64_t>(piece.bytes.size());
        EXPECT_EQ(pwrite(warp, fs(), fd, piece.bytes.data(), piece.bytes.size(), piece.offset),
                  count);
      }
    });
    ASSERT_EQ(stat_of_path(path).size_bytes, model.size());
    ASSERT_TRUE(contents(path) == model);
    expect_lock_free(fd);
  }
  const std::string whole[] = {contents("/new"), contents("/old")};
  mount_again();
  EXPECT_TRUE(contents("/new") == whole[0]);
  EXPECT_TRUE(contents("/old") == whole[1]);
}

TEST_P(GrowTogetherTest, what_a_write_has_returned_for_is_read_at_once) {
  const int fd = open_file("/new", kOpenReadWrite);
  constexpr uint32_t kRounds = 12;
  std::vector<std::string> all_bytes;
  std::vector<std::string> all_found(kWriters, std::string(2 * kBlockBytes, '\0'));
  for (uint32_t i = 0; i < kWriters; ++i) {
    all_bytes.emplace_back(2 * kBlockBytes, static_cast<char>('A' + i));
  }
  run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const std::string& bytes = all_bytes[index];
    std::string& found = all_found[index];
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t offset = uint64_t{round * kWriters + index} * bytes.size();
      const auto count = static_cast<int64_t>(bytes.size());
      EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset), count);
      char* const to = found.data();
      EXPECT_EQ(pread(warp, fs(), fd, to, found.size(), offset), count);
      warp.sync();
      if (warp.thread_rank() == 0) {
        EXPECT_TRUE(found == bytes);
      }
      warp.sync();
    }
  });
  EXPECT_EQ(stat_of_path("/new").size_bytes, uint64_t{kRounds} * kWriters * 2 * kBlockBytes);
  expect_lock_free(fd);
}

// Each of those who append gets a place of its own, wherever others make the file longer.
TEST_P(GrowTogetherTest, appends_beside_them_are_whole) {
  const int fd = open_file("/new", kOpenReadWrite);
  const int log = open_file("/new", kOpenWriteOnly | kOpenAppend);
  constexpr uint32_t kRounds = 10;
  run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const std::string bytes(kBlockBytes, static_cast<char>('A' + index));
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t offset = uint64_t{round} * 4 * kBlockBytes + 100 * kBlockBytes;
      const auto count = static_cast<int64_t>(bytes.size());
      if (index % 2 == 0) {
        EXPECT_EQ(write(warp, fs(), log, bytes.data(), bytes.size()), count);
      } else {
        EXPECT_EQ(
            pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset + index * 200 * kBlockBytes),
            count);
      }
    }
  });
  const std::string found = contents("/new");
  ASSERT_EQ(found.size() % kBlockBytes, 0u);
  uint32_t blocks[kWriters] = {};
  for (size_t at = 0; at < found.size(); at += kBlockBytes) {
    const char letter = found[at];
    EXPECT_TRUE(std::all_of(found.begin() + static_cast<int64_t>(at),
                            found.begin() + static_cast<int64_t>(at + kBlockBytes),
                            [&](char byte) { return byte == letter; }));
    if (letter != '\0') ++blocks[letter - 'A'];
  }
  // A write at a fixed place may go over what was appended there before it.
  for (uint32_t i = 1; i < kWriters; i += 2) EXPECT_EQ(blocks[i], kRounds);
  expect_lock_free(fd);
}

TEST_P(GrowTogetherTest, truncation_beside_them_leaves_no_byte_of_others) {
  const int fd = open_file("/new", kOpenReadWrite);
  run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const std::string bytes(3 * kBlockBytes / 2, static_cast<char>('A' + index));
    for (uint32_t round = 0; round < 12; ++round) {
      if (index == 0) {
        EXPECT_EQ(ftruncate(warp, fs(), fd, round % 3 * kBlockBytes + 17), 0);
        continue;
      }
      const uint64_t offset = uint64_t{index} * 64 * kBlockBytes + round * 2 * kBlockBytes;
      EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset),
                static_cast<int64_t>(bytes.size()));
    }
  });
  const std::string found = contents("/new");
  for (size_t at = 0; at < found.size(); ++at) {
    const uint64_t owner = at / (64 * kBlockBytes);
    ASSERT_TRUE(found[at] == '\0' || found[at] == static_cast<char>('A' + owner)) << at;
  }
  expect_lock_free(fd);
}

// A device that fails now and then: a piece is there as far as its write said, and no other byte
// changes; the file ends with the last good one.
TEST_P(GrowTogetherTest, of_a_failed_write_nothing_stays_behind_what_it_said) {
  const int fd = open_file("/new", kOpenReadWrite);
  constexpr uint64_t kEach = 40;  // blocks: more than are held by their queues
  std::string model;
  for (uint32_t round = 0; round < 6; ++round) {
    std::vector<int64_t> answers(kWriters);
    std::vector<std::string> bytes;
    const uint64_t start = simt::align_up(uint64_t{model.size()}, uint64_t{kBlockBytes});
    for (uint32_t i = 0; i < kWriters; ++i) bytes.push_back(random_bytes(kEach * kBlockBytes));
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = random_() % 20;
    rule.count = 1;
    rule.status = format::nvme::kWriteFault;
    rule.action = ssd::FaultAction::kStatus;
    writing_->rig().add_fault(rule);
    run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const int64_t answer = pwrite(warp, fs(), fd, bytes[index].data(), bytes[index].size(),
                                    start + index * kEach * kBlockBytes);
      if (warp.thread_rank() == 0) answers[index] = answer;
    });
    writing_->rig().clear_faults();
    for (uint32_t i = 0; i < kWriters; ++i) {
      const auto good = static_cast<uint64_t>(std::max<int64_t>(answers[i], 0));
      if (good == 0) continue;
      const uint64_t offset = start + i * kEach * kBlockBytes;
      model.resize(std::max<size_t>(model.size(), offset + good), '\0');
      model.replace(offset, good, bytes[i].substr(0, good));
    }
    ASSERT_EQ(stat_of_path("/new").size_bytes, model.size()) << round;
    ASSERT_TRUE(contents("/new") == model) << round;
  }
  expect_lock_free(fd);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return sync(warp, fs()); }), 0);
  mount_again();
  EXPECT_TRUE(contents("/new") == model);
}

// Two writes behind the end, of several rounds each, under way at the same time: the first one up
// to where the second begins.
class TwoGrowersTest : public GrowTogetherTest {
 protected:
  static constexpr uint64_t kEach = 12 * kBlockBytes;
  static constexpr uint64_t kFirst = 10 * kBlockBytes;
  static constexpr uint64_t kSecond = kFirst + kEach;

  /// Begins both; `body` writes and ends them.
  template <typename Body>
  void with_both(Body body) {
    fd_ = open_file("/new", kOpenReadWrite);
    ASSERT_EQ(pwrite_file(fd_, "before", 0), 6);
    OpenInode& open = fs().open_inodes[find_file(simt::Warp(), fs(), fd_)->open_inode];
    alone([&](const simt::Warp& warp) {
      SharedWrite first{};
      SharedWrite second{};
      detail::begin_request(warp, fs(), open, kEach, false, kFirst, first);
      detail::begin_request(warp, fs(), open, kEach, false, kSecond, second);
      EXPECT_EQ(first.result, 0);
      EXPECT_EQ(second.result, 0);
      body(warp, first, second);
      return 0;
    });
  }
  void write_all_of(const simt::Warp& warp, SharedWrite& write) {
    const auto* const from = reinterpret_cast<const uint8_t*>(bytes_.data());
    const IoFailure failed = detail::write_part(warp, fs(), write, from, kEach, 0, 0, 1);
    EXPECT_EQ(failed.error, 0);
  }
  int64_t end(const simt::Warp& warp, SharedWrite& write) {
    return detail::end_request(warp, fs(), write);
  }
  int64_t fail(const simt::Warp& warp, SharedWrite& write, uint64_t at) {
    write.failure = detail::pack_failure({at, -ENOSPC});
    return end(warp, write);
  }
  void expect(const std::string& wanted) {
    EXPECT_EQ(stat_of_path("/new").size_bytes, wanted.size());
    EXPECT_TRUE(contents("/new") == wanted);
    expect_lock_free(fd_);
    EXPECT_EQ(close_file(fd_), 0);
    mount_again();
    EXPECT_TRUE(contents("/new") == wanted);
  }
  std::string with_zeros(uint64_t size) const { return std::string("before").append(size - 6, 0); }

  const std::string bytes_ = std::string(kEach, 'n');
  int fd_ = -1;
};
GOFS_AT_BOTH_WIDTHS(TwoGrowersTest);

TEST_P(TwoGrowersTest, that_fail_leave_the_file_as_it_was) {
  GOFS_NEED_TOOL("fsck.f2fs");
  with_both([&](const simt::Warp& warp, SharedWrite& first, SharedWrite& second) {
    write_all_of(warp, first);
    write_all_of(warp, second);
    EXPECT_EQ(fail(warp, first, 0), -ENOSPC);
    EXPECT_EQ(fail(warp, second, 0), -ENOSPC);
  });
  expect("before");
}

TEST_P(TwoGrowersTest, that_fail_behind_some_bytes_leave_these) {
  GOFS_NEED_TOOL("fsck.f2fs");
  with_both([&](const simt::Warp& warp, SharedWrite& first, SharedWrite& second) {
    write_all_of(warp, first);
    write_all_of(warp, second);
    EXPECT_EQ(fail(warp, first, 3 * kBlockBytes), int64_t{3 * kBlockBytes});
    EXPECT_EQ(fail(warp, second, 0), -ENOSPC);
  });
  expect(with_zeros(kFirst) + bytes_.substr(0, 3 * kBlockBytes));
}

TEST_P(TwoGrowersTest, of_which_the_second_fails_leave_the_first_that_is_under_way) {
  GOFS_NEED_TOOL("fsck.f2fs");
  with_both([&](const simt::Warp& warp, SharedWrite& first, SharedWrite& second) {
    write_all_of(warp, first);
    write_all_of(warp, second);
    EXPECT_EQ(fail(warp, second, 0), -ENOSPC);
    EXPECT_EQ(end(warp, first), int64_t{kEach});
  });
  expect(with_zeros(kFirst) + bytes_);
}

TEST_P(TwoGrowersTest, of_which_the_first_fails_leave_a_hole_before_the_second) {
  GOFS_NEED_TOOL("fsck.f2fs");
  with_both([&](const simt::Warp& warp, SharedWrite& first, SharedWrite& second) {
    write_all_of(warp, first);
    EXPECT_EQ(fail(warp, first, 0), -ENOSPC);
    write_all_of(warp, second);
    EXPECT_EQ(end(warp, second), int64_t{kEach});
  });
  expect(with_zeros(kSecond) + bytes_);
}

}  // namespace
}  // namespace gofs::vfs
