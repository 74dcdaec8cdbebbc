// SPDX-License-Identifier: Apache-2.0
//
// Large writes and reads by one warp: few commands and few operations, and where one of them cannot
// go on, what lies before is written to the last block that could be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>

#include "vfs/resize.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

using gofs::testing::printed_seed;

class WriteRowsTest : public WritingVfsTest {
 protected:
  WriteRowsTest() : WritingVfsTest([](image::ImageBuilder&) {}, gofs::testing::with_a_fault()) {
    fd_ = open_file("/file", kOpenReadWrite | kOpenCreate);
    EXPECT_GE(fd_, 0);
  }
  gofs::testing::VolumeRig& rig() { return writing_->rig(); }
  int64_t write_at(uint64_t offset, const std::string& bytes) {
    return pwrite_file(fd_, bytes, offset);
  }
  std::string read_at(uint64_t offset, uint64_t bytes) {
    std::string got(bytes, '?');
    const int64_t count = alone(
        [&](const simt::Warp& warp) { return pread(warp, fs(), fd_, got.data(), bytes, offset); });
    EXPECT_GE(count, 0);
    got.resize(static_cast<size_t>(std::max<int64_t>(count, 0)));
    return got;
  }
  /// Has `count` write commands fail behind the next `skip`.
  void fail_writes(uint64_t skip, uint64_t count) {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = skip;
    rule.count = count;
    rule.status = format::nvme::kWriteFault;
    rig().add_fault(rule);
  }

  int fd_ = -1;
};
INSTANTIATE_TEST_SUITE_P(width, WriteRowsTest,
                         ::testing::ValuesIn(gofs::testing::widths({1, 4, 32})),
                         ::testing::PrintToStringParamName());

TEST_P(WriteRowsTest, takes_few_commands) {
  constexpr uint64_t kBlocks = 512;
  const std::string bytes(kBlocks * kBlockBytes, 'a');
  for (uint32_t turn = 0; turn < 2; ++turn) {
    const ssd::VirtualSsdCounters before = rig().counters();
    EXPECT_EQ(write_at(0, bytes), static_cast<int64_t>(bytes.size()));
    EXPECT_TRUE(read_at(0, bytes.size()) == bytes);
    const ssd::VirtualSsdCounters after = rig().counters();
    const uint64_t each = width() == 1 ? 32 : width();
    EXPECT_LE(after.write_commands - before.write_commands, kBlocks / each + 2);
    EXPECT_LE(after.read_commands - before.read_commands, kBlocks / each + 2);
  }
  EXPECT_EQ(stat_of_path("/file").blocks_512, kBlocks * 8);
}

// Chunks of a stripe that are smaller than a row, with a node's end in the middle.
TEST_P(WriteRowsTest, go_round_the_chunks_of_a_stripe) {
  GOFS_NEED_TOOL("fsck.f2fs");
  constexpr uint64_t kFirst = 910;
  std::string model(kFirst * kBlockBytes, '\0');
  for (const uint32_t mask : {0u, 1u, 3u}) {
    volume().array.chunk_mask = mask;
    for (const uint64_t blocks : {3u, 30u, 300u}) {
      std::string bytes;
      for (uint64_t i = 0; i < blocks; ++i)
        bytes.append(kBlockBytes, static_cast<char>('a' + i % 23));
      const uint64_t commands = rig().counters().write_commands;
      ASSERT_EQ(write_at(kFirst * kBlockBytes, bytes), static_cast<int64_t>(bytes.size()));
      EXPECT_GE(rig().counters().write_commands - commands, blocks / (mask + 1));
      model.resize(std::max(model.size(), kFirst * kBlockBytes + bytes.size()));
      model.replace(kFirst * kBlockBytes, bytes.size(), bytes);
    }
  }
  volume().array.chunk_mask = ~0u;
  EXPECT_TRUE(read_at(0, model.size()) == model);
  mount_again();
  EXPECT_TRUE(contents("/file") == model);
}

TEST_P(WriteRowsTest, agree_with_a_model_wherever_they_begin_and_end) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  std::string model;
  const uint32_t steps = width() == 1 ? 60 : 25;
  for (uint32_t step = 0; step < steps; ++step) {
    const uint64_t aligned = random() % 700 * kBlockBytes;
    const uint64_t offset = step % 3 == 0 ? aligned + random() % kBlockBytes : aligned;
    const uint64_t count = 1 + random() % (300 * kBlockBytes);
    const bool odd = step % 5 == 0;  // memory that the device does not take
    std::string bytes(count + 1, '\0');
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
    const char* const source = bytes.data() + (odd ? 1 : 0);
    ASSERT_EQ(alone([&](const simt::Warp& warp) {
                return pwrite(warp, fs(), fd_, source, count, offset);
              }),
              static_cast<int64_t>(count));
    if (model.size() < offset + count) model.resize(offset + count);
    model.replace(offset, count, source, count);
    if (step % 4 == 1) {
      const uint64_t size = random() % model.size();
      ASSERT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd_, size); }), 0);
      model.resize(size);
    }
    const uint64_t from = model.empty() ? 0 : random() % model.size();
    ASSERT_TRUE(read_at(from, model.size()) == model.substr(from)) << step;
  }
  EXPECT_EQ(close_file(fd_), 0);
  mount_again();
  EXPECT_TRUE(contents("/file") == model);
}

TEST_P(WriteRowsTest, fill_a_volume_to_its_last_block) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint64_t room : {1, 37, 200}) {
    // With nodes at hand, so that no other block is taken.
    ASSERT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd_, 0); }), 0);
    ASSERT_EQ(write_at(0, std::string(10 * kBlockBytes, 'x')), int64_t{10 * kBlockBytes});
    const uint64_t user_blocks = volume().user_block_count;
    volume().user_block_count = volume().valid_block_count + room;
    const std::string bytes(300 * kBlockBytes, 'y');
    const int64_t written = write_at(10 * kBlockBytes, bytes);
    const uint64_t round = width();
    EXPECT_EQ(written,
              room < round ? -ENOSPC : static_cast<int64_t>(room / round * round * kBlockBytes))
        << room;
    EXPECT_EQ(volume().user_block_count - volume().valid_block_count, room % round);
    volume().user_block_count = user_blocks;
    const uint64_t good = static_cast<uint64_t>(std::max<int64_t>(written, 0));
    EXPECT_TRUE(read_at(0, 400 * kBlockBytes) ==
                std::string(10 * kBlockBytes, 'x') + std::string(good, 'y'));
  }
  EXPECT_EQ(close_file(fd_), 0);
  mount_again();
}

TEST_P(WriteRowsTest, of_which_a_command_fails_leave_old_blocks_behind_it) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const std::string old(300 * kBlockBytes, 'o');
  // From the file's beginning on, and over the end of a node.
  for (const uint64_t first : {0, 800}) {
    for (const uint64_t skip : {0, 1, 2}) {
      const uint64_t offset = first * kBlockBytes;
      ASSERT_EQ(write_at(offset, old), static_cast<int64_t>(old.size()));
      const uint64_t used = volume().valid_block_count;
      fail_writes(skip, ~uint64_t{0} - skip);
      const std::string bytes(old.size(), 'n');
      const int64_t written = write_at(offset, bytes);
      rig().clear_faults();
      if (skip == 0) {
        EXPECT_EQ(written, -EIO);
      }
      const uint64_t good = static_cast<uint64_t>(std::max<int64_t>(written, 0));
      EXPECT_LT(good, old.size());
      EXPECT_TRUE(read_at(offset, old.size()) == bytes.substr(0, good) + old.substr(good));
      EXPECT_EQ(volume().valid_block_count, used);
      mount_again();
      fd_ = open_file("/file", kOpenReadWrite);
    }
  }
}

TEST_P(WriteRowsTest, go_on_behind_a_command_that_failed_once) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const std::string bytes(300 * kBlockBytes, 'n');
  fail_writes(1, 1);
  const int64_t written = write_at(0, bytes);
  rig().clear_faults();
  EXPECT_EQ(written, static_cast<int64_t>(bytes.size())) << "its blocks are tried one by one";
  EXPECT_TRUE(read_at(0, bytes.size()) == bytes);
  EXPECT_EQ(close_file(fd_), 0);
  mount_again();
}

}  // namespace
}  // namespace gofs::vfs
