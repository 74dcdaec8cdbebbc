// SPDX-License-Identifier: Apache-2.0
//
// A controller that reaches a part of memory alone, under addresses of its own: commands on other
// buffers go through staging areas, those on memory that was mapped go straight there, and the data
// is the same. Where a command fails, its buffer stays as it was.
#include "ssd/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "nvme/array.h"
#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::IoOpcode;
using gofs::testing::all_lanes;
using gofs::testing::MappedApart;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

constexpr uint32_t kAreaBytes = 16384;

SsdRigOptions staged(uint32_t depth) {
  SsdRigOptions options;
  options.device.queue_depth = depth;
  options.ssd.fault_capacity = 8;
  options.go_through_staging(kAreaBytes);
  return options;
}

class StagingTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
};

GOFS_AT_BOTH_WIDTHS(StagingTest);

TEST_P(StagingTest, a_command_moves_no_more_than_an_area_holds) {
  SsdRig rig(staged(8));
  rig.bring_up_ready(width());
  EXPECT_EQ(rig.device().transfer_bytes_max, kAreaBytes);
}

// Each lane has its own LBAs, and a buffer that the controller reaches, or one that it does not.
TEST_P(StagingTest, what_was_written_is_read_whatever_the_buffers) {
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kTurns = 40;
  constexpr uint32_t kLbas = kAreaBytes / 512;
  for (const uint32_t depth : {2u, 3u, 64u}) {
    SsdRig rig(staged(depth));
    rig.bring_up_ready(width());
    MappedApart mapped(uint64_t{kWarps} * 4 * 2 * kAreaBytes);
    rig.dma_map().ranges[1] = mapped.range();
    simt::store_system_release(rig.dma_map().count, 2u);
    std::atomic<uint32_t> wrong{0};
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t who = index * width() + warp.thread_rank();
      QueuePair& queue = rig.queue(index % 2);
      std::vector<uint8_t> own(2 * kAreaBytes + 4);
      for (uint32_t turn = 0; turn < kTurns; ++turn) {
        const uint64_t chosen = image::pattern_word(who, turn);
        uint8_t* source = own.data() + (chosen & 1) * 4;
        uint8_t* target = own.data() + kAreaBytes;
        if ((chosen & 2) != 0) source = mapped.warp_base() + uint64_t{who} * 2 * kAreaBytes;
        if ((chosen & 4) != 0) target = mapped.warp_base() + (uint64_t{who} * 2 + 1) * kAreaBytes;
        const uint32_t count = static_cast<uint32_t>(chosen >> 8) % (kLbas - 1) + 1;
        image::fill_pattern(chosen, 0, source, uint64_t{count} * 512);
        std::memset(target, 0xa5, uint64_t{count} * 512);
        Command command = rig.command(IoOpcode::kWrite, uint64_t{who} * kLbas, count, source);
        if (execute(warp, rig.device(), queue, all_lanes(warp), command) != 0) ++wrong;
        command = rig.read(uint64_t{who} * kLbas, count, target);
        if (execute(warp, rig.device(), queue, all_lanes(warp), command) != 0) ++wrong;
        if (std::memcmp(source, target, uint64_t{count} * 512) != 0) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0u) << depth;
  }
}

TEST_P(StagingTest, commands_that_report_to_a_mailbox_hand_on_their_data_before) {
  SsdRig rig(staged(16));
  rig.bring_up_ready(width());
  std::vector<Mailbox> mailboxes(4);
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * width() + warp.thread_rank();
    Mailbox& mailbox = mailboxes[index];
    std::vector<uint8_t> buffer(1024);
    for (uint32_t turn = 0; turn < 50; ++turn) {
      const uint64_t lba = (who * 131 + turn * 7) % 1000;
      warp.sync();
      if (warp.thread_rank() == 0) mailbox = Mailbox{};
      warp.sync();
      std::fill(buffer.begin(), buffer.end(), 0);
      ASSERT_EQ(start(warp, rig.device(), rig.queue(), all_lanes(warp),
                      rig.read(lba, 2, buffer.data()), mailbox),
                0);
      while (warp.any(simt::load_acquire(mailbox.remaining) != 0)) {
        progress(warp, rig.device(), rig.queue());
      }
      warp.sync();
      ASSERT_EQ(simt::load_relaxed(mailbox.status), 0u);
      ASSERT_TRUE(rig.holds(buffer.data(), lba, 2));
    }
  });
}

TEST_P(StagingTest, a_read_that_fails_leaves_its_buffer_alone) {
  SsdRig rig(staged(16));
  rig.bring_up_ready(width());
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(IoOpcode::kRead);
  rule.lba_first = rule.lba_last = 5;
  rule.action = ssd::FaultAction::kStatus;
  rule.status = format::nvme::kUnrecoveredReadError;
  rig.add_fault(rule);
  run_alone(width(), [&](const simt::Warp& warp) {
    std::vector<uint8_t> buffer(512, 0x77);
    // The area was used before: what is in it belongs to another command.
    for (uint32_t turn = 0; turn < 40; ++turn) {
      EXPECT_EQ(execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                        rig.read(20 + turn, 1, buffer.data())),
                0u);
    }
    std::fill(buffer.begin(), buffer.end(), 0x77);
    EXPECT_NE(
        execute(warp, rig.device(), rig.queue(), all_lanes(warp), rig.read(5, 1, buffer.data())),
        0u);
    EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 0x77), 512);
  });
}

// ThreadSanitizer sees whoever hands on data afterwards.
TEST_P(StagingTest, nothing_is_handed_on_once_the_device_has_failed) {
  for (uint32_t round = 0; round < 10; ++round) {
    SsdRigOptions options = staged(16);
    options.device.command_timeout_ns = 20'000'000;
    SsdRig rig(options);
    rig.bring_up_ready(width());
    std::atomic<uint32_t> wrong{0};
    run_crowd({5, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 4) {
        fail_device(warp, rig.device());
        return;
      }
      std::vector<uint8_t> buffer(4096);
      for (uint32_t turn = 0; turn < 200; ++turn) {
        const uint64_t lba = (turn * 8 + index) % 4096;
        const CommandStatus status = execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                                             rig.read(lba, 8, buffer.data()));
        if (status == 0 && !rig.holds(buffer.data(), lba, 8)) ++wrong;
        if (status == kStatusDeviceFailed) {
          std::fill(buffer.begin(), buffer.end(), 1);
          if (std::count(buffer.begin(), buffer.end(), 1) != 4096) ++wrong;
        }
      }
    });
    EXPECT_EQ(wrong, 0u);
  }
}

TEST_P(StagingTest, ranges_to_deallocate_go_the_same_way) {
  SsdRig rig(staged(16));
  rig.bring_up_ready(width());
  Array array = array_of(rig.device());
  format::nvme::DatasetRange ranges[2] = {{0, 8, 16}, {0, 8, 64}};
  format::nvme::DatasetRange spare[2];
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(deallocate(warp, array, ranges, 2, spare), 0);
  });
  EXPECT_EQ(std::count(rig.media() + 16 * 512, rig.media() + 24 * 512, 0), 8 * 512);
  EXPECT_EQ(std::count(rig.media() + 64 * 512, rig.media() + 72 * 512, 0), 8 * 512);
}

TEST(DmaMapTest, finds_what_lies_in_one_range_as_a_whole) {
  ssd::DmaMap map{};
  map.count = 2;
  map.ranges[0] = {0x10000, 0x20000, 0x1000};
  map.ranges[1] = {0x20000, 0x30000, 0x9000};
  const auto find = [&](uint64_t begin, uint64_t bytes) -> uint64_t {
    uint64_t address = 0;
    return map.find(reinterpret_cast<const void*>(begin), bytes, address) ? address : 0;
  };
  EXPECT_EQ(find(0x10000, 0x10000), 0x1000u);
  EXPECT_EQ(find(0x1ff00, 0x100), 0x10f00u);
  EXPECT_EQ(find(0x1ff00, 0x101), 0u);
  EXPECT_EQ(find(0xffff, 1), 0u);
  EXPECT_EQ(find(0x20000, 1), 0x9000u);
  EXPECT_EQ(find(0x30000, 1), 0u);
  EXPECT_EQ(find(0x20000, ~uint64_t{0}), 0u);
  map.ranges[1].end = map.ranges[1].begin;
  EXPECT_EQ(find(0x20000, 1), 0u);
}

TEST(DmaMemoryTest, gives_out_what_it_has_and_takes_it_back) {
  MappedApart source(16 * kBlockBytes);
  ssd::DmaMemory memory(source);
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(memory.allocate(1));
    std::memset(blocks.back(), 1, kBlockBytes);
  }
  EXPECT_THROW(memory.allocate(1), std::bad_alloc);
  for (int i = 0; i < 16; i += 2) memory.release(blocks[i]);
  EXPECT_THROW(memory.allocate(kBlockBytes + 1), std::bad_alloc);
  for (int i = 1; i < 16; i += 2) memory.release(blocks[i]);
  EXPECT_EQ(memory.bytes_taken(), 0u);
  auto* const all = static_cast<uint8_t*>(memory.allocate(16 * kBlockBytes));
  EXPECT_EQ(std::count(all, all + 16 * kBlockBytes, 0), int64_t{16 * kBlockBytes});
  memory.release(all);
}

}  // namespace
}  // namespace gofs::nvme
