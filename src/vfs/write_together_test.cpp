// SPDX-License-Identifier: Apache-2.0
//
// Writes that several warps share: against a model in memory, beside others that overlap them, and
// where some of the warps cannot go on.
#include "vfs/write_together.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kSharers = 3;

class WriteTogetherTest : public ChangesTest {
 protected:
  simt::Barrier barrier_{};  // of warps that play a grid
  WriteTogetherTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              for (const bool inlined : {true, false}) {
                image::FileSpec spec;
                spec.name = inlined ? "inline" : "blocks";
                spec.attributes = {.mode = 06777, .uid = 7, .gid = 70};
                spec.inline_data = inlined;
                TestImage::must(builder.add_file(builder.root(), spec));
              }
            },
            testing::with_a_fault()) {}
  /// What `call(group)` says to all warps of a group, which is the same.
  template <typename Call>
  int64_t together(Call call) {
    return answer_of_group(kSharers, width(), barrier_, call);
  }
  int64_t pwrite_shared(int fd, const std::string& bytes, uint64_t offset) {
    return together([&](const simt::GridGroup& group) {
      return pwrite_together(group, fs(), fs().grids.meetings[0].write, fd, bytes.data(),
                             bytes.size(), offset);
    });
  }
  int64_t write_shared(int fd, const std::string& bytes) {
    return together([&](const simt::GridGroup& group) {
      return write_together(group, fs(), fs().grids.meetings[0].write, fd, bytes.data(),
                            bytes.size());
    });
  }
  static std::string random_bytes(std::mt19937& random, size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
};
GOFS_AT_BOTH_WIDTHS(WriteTogetherTest);

TEST_P(WriteTogetherTest, files_hold_what_was_written) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  for (const char* path : {"/inline", "/blocks"}) {
    std::string model;
    const int fd = open_file(path, kOpenReadWrite);
    for (uint32_t step = 0; step < 30; ++step) {
      const uint64_t offset = step < 5 ? random() % 100 : random() % (100 * kBlockBytes);
      const uint64_t count = step < 5 ? random() % 3000 : 1 + random() % (40 * kBlockBytes);
      const std::string bytes = random_bytes(random, count);
      ASSERT_EQ(pwrite_shared(fd, bytes, offset), static_cast<int64_t>(count));
      if (count != 0 && model.size() < offset + count) model.resize(offset + count);
      if (count != 0) model.replace(offset, count, bytes);
      if (step != 4 && step % 10 != 9) continue;
      ASSERT_TRUE(contents(path) == model) << path << " after step " << step;
    }
    mount_again();
    EXPECT_TRUE(contents(path) == model) << path;
  }
}

TEST_P(WriteTogetherTest, parts_become_one_write) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  for (const char* path : {"/inline", "/blocks"}) {
    std::string model;
    const int fd = open_file(path, kOpenReadWrite);
    for (uint32_t step = 0; step < 16; ++step) {
      std::vector<std::string> texts(random() % 6);
      std::string all;
      for (std::string& text : texts) {
        text = random_bytes(random, random() % (step < 4 ? 300 : 9 * kBlockBytes) * (random() % 4));
        all += text;
      }
      std::vector<IoVector> parts;
      for (std::string& text : texts) parts.push_back({text.data(), text.size()});
      const auto count = static_cast<int>(parts.size());
      const uint64_t offset = random() % (model.size() + 5000);
      const int64_t got = step % 2 == 0
                              ? together([&](const simt::GridGroup& group) {
                                  return pwritev_together(group, fs(), fs().grids.meetings[0].write,
                                                          fd, parts.data(), count, offset);
                                })
                              : alone([&](const simt::Warp& warp) {
                                  return pwritev(warp, fs(), fd, parts.data(), count, offset);
                                });
      ASSERT_EQ(got, static_cast<int64_t>(all.size()));
      if (all.empty()) continue;
      if (model.size() < offset + all.size()) model.resize(offset + all.size());
      model.replace(offset, all.size(), all);
      ASSERT_TRUE(contents(path) == model) << path << " after step " << step;
    }
    std::string word = "word";
    const IoVector twice[2] = {{word.data(), 4}, {word.data(), 4}};
    const int at_end = open_file(path, kOpenWriteOnly | kOpenAppend);
    EXPECT_EQ(together([&](const simt::GridGroup& group) {
                return writev_together(group, fs(), fs().grids.meetings[0].write, at_end, twice, 2);
              }),
              8);
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return writev(warp, fs(), fd, twice, 2); }), 8);
    model += "wordword";
    model.replace(0, 8, "wordword");
    std::vector<IoVector> many(kIoVectorsMax + 1, twice[0]);
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return pwritev(warp, fs(), fd, many.data(), kIoVectorsMax + 1, 0);
              }),
              -EINVAL);
    many[0].bytes = many[1].bytes = kOffsetMax;
    EXPECT_EQ(together([&](const simt::GridGroup& group) {
                return pwritev_together(group, fs(), fs().grids.meetings[0].write, fd, many.data(),
                                        2, 0);
              }),
              -EINVAL);
    mount_again();
    EXPECT_TRUE(contents(path) == model) << path;
  }
}

TEST_P(WriteTogetherTest, positions_appends_and_refusals) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const std::string one = random_bytes(random, 50'000);
  const std::string two = random_bytes(random, 70'000);
  const int fd = open_file("/blocks", kOpenReadWrite);
  const int appending = open_file("/blocks", kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(write_shared(fd, one), 50'000);
  EXPECT_EQ(write_shared(appending, two), 70'000);
  EXPECT_EQ(write_shared(fd, one), 50'000);
  EXPECT_EQ(pwrite_shared(appending, one, 0), 50'000) << "at the end all the same";
  EXPECT_TRUE(contents("/blocks") == one + one + two.substr(50'000) + one);
  EXPECT_EQ(
      alone([&](const simt::Warp& warp) { return lseek(warp, fs(), appending, 0, kSeekCurrent); }),
      120'000);
  EXPECT_EQ(write_shared(fd, ""), 0);
  EXPECT_EQ(pwrite_shared(-1, one, 0), -EBADF);
  EXPECT_EQ(write_shared(open_file("/blocks", kOpenReadOnly), one), -EBADF);
  EXPECT_EQ(pwrite_shared(fd, one, uint64_t{1} << 63), -EINVAL);
  EXPECT_EQ(pwrite_shared(fd, one, uint64_t{1} << 60), -EFBIG);
  fs().credentials = who(8, 8);
  EXPECT_EQ(pwrite_shared(open_file("/blocks", kOpenWriteOnly), "x", 0), 1);
  EXPECT_EQ(stat_of_path("/blocks").mode & format::kModePermissionMask, 0777u);
}

TEST_P(WriteTogetherTest, overlapping_writes_do_not_mix) {
  constexpr uint64_t kRecord = 20 * kBlockBytes + 500;
  constexpr uint32_t kRounds = 8;
  const int fd = open_file("/blocks", kOpenReadWrite);
  std::vector<std::string> buffers(kSharers + 2, std::string(kRecord, '\0'));
  std::string& shared = buffers[0];
  // Three write together, one alone, and one reads.
  run_crowd({kSharers + 2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (index < kSharers) {
        const simt::GridGroup group(warp, index, kSharers, barrier_);
        group.sync();
        if (index == 0 && warp.thread_rank() == 0) {
          shared.assign(kRecord, static_cast<char>('a' + round));
        }
        EXPECT_EQ(pwrite_together(group, fs(), fs().grids.meetings[0].write, fd, shared.data(),
                                  kRecord, 100),
                  kRecord);
        continue;
      }
      std::string& mine = buffers[index];
      if (index == kSharers) {
        if (warp.thread_rank() == 0) mine.assign(kRecord, static_cast<char>('A' + round));
        warp.sync();
        EXPECT_EQ(pwrite(warp, fs(), fd, mine.data(), kRecord, 100), kRecord);
      } else {
        const int64_t got = pread(warp, fs(), fd, mine.data(), kRecord, 100);
        warp.sync();
        if (warp.thread_rank() == 0 && got > 0) {
          EXPECT_EQ(std::count(mine.begin(), mine.begin() + got, mine[0]), got);
        }
        warp.sync();
      }
    }
  });
  mount_again();
}

TEST_P(WriteTogetherTest, a_full_volume_keeps_what_it_has_said) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const std::string before = random_bytes(random, 10'000);
  const std::string bytes = random_bytes(random, 200 * kBlockBytes);
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(pwrite_shared(fd, before, 0), 10'000);
  const uint64_t whole = fs().volume.user_block_count;
  const uint64_t used = fs().volume.valid_block_count;
  fs().volume.user_block_count = used + 150;
  const int64_t got = pwrite_shared(fd, bytes, 5000);
  fs().volume.user_block_count = whole;
  // Each warp may have been refused a round that others had room for.
  ASSERT_TRUE(got > 0 && got <= static_cast<int64_t>(153 * kBlockBytes)) << got;
  const auto good = static_cast<uint64_t>(got);
  const std::string wanted = good < 5000 ? before : before.substr(0, 5000) + bytes.substr(0, good);
  EXPECT_EQ(stat_of_path("/blocks").size_bytes, wanted.size());
  EXPECT_TRUE(contents("/blocks") == wanted);
  EXPECT_EQ(fs().volume.valid_block_count,
            used - 3 + (wanted.size() + kBlockBytes - 1) / kBlockBytes);
  mount_again();
  EXPECT_TRUE(contents("/blocks") == wanted);
}

TEST_P(WriteTogetherTest, where_the_disk_fails_the_bytes_before_are_good) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const std::string before = random_bytes(random, 3 * kBlockBytes);
  const std::string bytes = random_bytes(random, 300 * kBlockBytes);
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(pwrite_shared(fd, before, 0), 3 * kBlockBytes);
  // Commands are large, and the blocks of one that failed are tried by themselves.
  for (const uint32_t passed : {0, 1, 3}) {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = passed;
    rule.count = 400;
    rule.status = format::nvme::kWriteFault;
    rule.action = ssd::FaultAction::kStatus;
    writing_->rig().add_fault(rule);
    const int64_t got = pwrite_shared(fd, bytes, kBlockBytes);
    writing_->rig().clear_faults();
    if (got < 0) {
      EXPECT_EQ(got, -EIO);
      EXPECT_EQ(stat_of_path("/blocks").size_bytes, before.size());
      EXPECT_EQ(contents("/blocks").substr(0, kBlockBytes), before.substr(0, kBlockBytes));
    } else {
      EXPECT_LT(got, static_cast<int64_t>(bytes.size()));
      const std::string all = contents("/blocks");
      EXPECT_GE(all.size(), kBlockBytes + static_cast<uint64_t>(got));
      EXPECT_TRUE(all.substr(kBlockBytes, static_cast<uint64_t>(got)) ==
                  bytes.substr(0, static_cast<uint64_t>(got)));
    }
    EXPECT_EQ(
        alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, before.size()); }), 0);
    ASSERT_EQ(pwrite_shared(fd, before, 0), 3 * kBlockBytes);
  }
  mount_again();
  EXPECT_TRUE(contents("/blocks") == before);
}

}  // namespace
}  // namespace gofs::vfs
