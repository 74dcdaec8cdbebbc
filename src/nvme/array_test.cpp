// SPDX-License-Identifier: Apache-2.0
//
// Commands of a volume that is striped over several SSDs: each block comes from, and goes to, the
// place where md has it, whatever the rings are like; one SSD's errors are its own.
#include "nvme/array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::IoOpcode;
using gofs::testing::all_lanes;
using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

constexpr uint32_t kChunkShift = 14;
constexpr uint32_t kChunkBlocks = 1u << (kChunkShift - kBlockShift);
constexpr uint64_t kDiskBytes = uint64_t{1} << 20;
constexpr uint64_t kArrayMillisecondNs = 1'000'000;

struct RigsOptions {
  uint32_t disks = 3;
  uint32_t depth = 64;
  uint32_t lba_shift = 9;
  uint32_t fault_capacity = 0;
  uint32_t last_latency_ns = 0;  // of reads of the last one
};

/// SSDs, each with a pattern of its own, and the array of them.
class ArrayRigs {
 public:
  explicit ArrayRigs(const RigsOptions& options) {
    array_.stripe = {options.disks, kChunkShift, kDiskBytes, {}};
    array_.count = options.disks;
    for (uint32_t disk = 0; disk < options.disks; ++disk) {
      SsdRigOptions rig;
      rig.device.queue_depth = options.depth;
      rig.device.io_queues = 1;
      rig.ssd.lba_shift = options.lba_shift;
      rig.ssd.fault_capacity = options.fault_capacity;
      if (disk + 1 == options.disks) rig.ssd.model.read_latency_ns = options.last_latency_ns;
      rig.pattern_seed = 100 + disk;
      rig.media_bytes = kDiskBytes + 8192 * (disk + 1);
      rigs_.push_back(std::make_unique<SsdRig>(rig));
      array_.devices[disk] = &rigs_.back()->device();
      array_.stripe.start_bytes[disk] = 8192 * (disk + 1);
    }
  }

  BringUpResult bring_up(uint32_t width, uint32_t& failed) {
    BringUpResult result{};
    run_alone(width, [&](const simt::Warp& warp) {
      uint32_t which = 0;
      const BringUpResult mine = nvme::bring_up(warp, array_, which);
      if (warp.thread_rank() != 0) return;
      result = mine;
      failed = which;
    });
    return result;
  }
  void bring_up_ready(uint32_t width) {
    uint32_t failed = 0;
    ASSERT_EQ(bring_up(width, failed).step, BringUpStep::kDone) << failed;
  }

  Array& array() { return array_; }
  SsdRig& rig(uint32_t disk) { return *rigs_[disk]; }
  gofs::testing::TestArena& arena() { return rigs_[0]->arena(); }
  uint32_t blocks() const { return static_cast<uint32_t>(stripe_bytes(array_.stripe) >> 12); }
  uint32_t lbas_of_block() const { return kBlockBytes >> array_.lba_shift; }

  Command command(IoOpcode opcode, uint32_t block, uint32_t count, void* buffer) const {
    return {opcode,
            false,
            count * lbas_of_block(),
            uint64_t{block} * lbas_of_block(),
            buffer,
            count * kBlockBytes};
  }
  /// Where block `block` of the volume lies, as the media has it.
  uint8_t* place(uint32_t block) {
    const auto where = format::place_in_stripe(array_.stripe, uint64_t{block} << kBlockShift);
    return rig(where.disk).media() + where.offset;
  }
  bool holds(const uint8_t* buffer, uint32_t block, uint32_t count) {
    bool same = true;
    for (uint32_t i = 0; i < count; ++i) {
      same = same &&
             std::memcmp(buffer + uint64_t{i} * kBlockBytes, place(block + i), kBlockBytes) == 0;
    }
    return same;
  }

 private:
  std::vector<std::unique_ptr<SsdRig>> rigs_;
  Array array_{};
};

class ArrayTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  std::vector<uint8_t*> buffers(ArrayRigs& rigs, uint32_t count, uint32_t bytes) {
    std::vector<uint8_t*> all;
    for (uint32_t i = 0; i < count; ++i) all.push_back(rigs.arena().bytes(bytes));
    return all;
  }
  /// Reads the first blocks, each lane into its `buffer`: EIO of those on disk `bad`, no error of
  /// others. Collective.
  static void expect_reads(const simt::Warp& warp, ArrayRigs& rigs, uint32_t blocks,
                           uint8_t* buffer, uint32_t bad) {
    const Route route = pick_route(rigs.array());
    for (uint32_t first = 0; first < blocks; first += warp.size()) {
      const uint32_t block = first + warp.thread_rank();
      const CommandStatus status =
          execute(warp, route, all_lanes(warp), rigs.command(IoOpcode::kRead, block, 1, buffer));
      const bool faulty = block / kChunkBlocks % rigs.array().count == bad;
      EXPECT_EQ(to_errno(status), faulty ? -EIO : 0) << block;
    }
  }
};

TEST_P(ArrayTest, its_limits_are_those_of_all) {
  ArrayRigs rigs({.disks = 3});
  rigs.bring_up_ready(width());
  EXPECT_EQ(rigs.array().lba_count, 3 * kDiskBytes >> 9);
  EXPECT_EQ(rigs.array().lba_shift, 9u);
  EXPECT_EQ(rigs.array().chunk_mask, kChunkBlocks - 1);
  EXPECT_EQ(rigs.array().transfer_bytes_max, 1u << kChunkShift) << "a command ends with its chunk";
}

TEST_P(ArrayTest, one_that_is_too_small_is_named) {
  ArrayRigs rigs({.disks = 3});
  rigs.array().stripe.disk_bytes += 1u << kChunkShift;
  uint32_t failed = 0;
  EXPECT_EQ(rigs.bring_up(width(), failed).step, BringUpStep::kCapacity);
  for (uint32_t disk = 0; disk < 3; ++disk) {
    EXPECT_EQ(rigs.rig(disk).device().failure, uint32_t{kFailed});
  }
}

// Many warps, contiguous blocks and alone, on rings down to shorter than a warp.
TEST_P(ArrayTest, each_block_is_read_from_where_it_lies) {
  const uint64_t seed = printed_seed();
  for (const uint32_t disks : {2u, 3u, 8u}) {
    for (const uint32_t depth : {2u, 5u, 64u}) {
      ArrayRigs rigs({.disks = disks, .depth = depth});
      rigs.bring_up_ready(width());
      constexpr uint32_t kWarps = 4;
      const uint32_t turns = width() == 1 ? 200 : 20;
      const auto memory = buffers(rigs, kWarps * width(), kChunkBlocks * kBlockBytes);
      std::atomic<uint32_t> wrong{0};
      run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
        const uint32_t who = index * width() + warp.thread_rank();
        const Route route = pick_route(rigs.array());
        for (uint32_t turn = 0; turn < turns; ++turn) {
          const uint64_t random = image::pattern_word(seed + who, turn);
          const auto block = static_cast<uint32_t>(random % rigs.blocks());
          const uint32_t in_chunk = kChunkBlocks - block % kChunkBlocks;
          const uint32_t count = 1 + static_cast<uint32_t>(random >> 40) % in_chunk;
          const uint32_t lanes =
              all_lanes(warp) &
              static_cast<uint32_t>(image::pattern_word(seed + index, turn) >> 7 | 1);
          const CommandStatus status =
              execute(warp, route, lanes, rigs.command(IoOpcode::kRead, block, count, memory[who]));
          const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
          if (mine && (status != 0 || !rigs.holds(memory[who], block, count))) ++wrong;
        }
      });
      EXPECT_EQ(wrong, 0u) << disks << " disks, depth " << depth << ", seed=" << seed;
    }
  }
}

TEST_P(ArrayTest, each_block_is_written_to_where_it_lies) {
  ArrayRigs rigs({.disks = 3});
  rigs.bring_up_ready(width());
  const auto memory = buffers(rigs, width(), kBlockBytes);
  std::atomic<uint32_t> wrong{0};
  run_alone(width(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    const Route route = pick_route(rigs.array());
    for (uint32_t first = 0; first < rigs.blocks(); first += warp.size()) {
      const uint32_t block = first + rank;
      const uint32_t lanes = warp.ballot(block < rigs.blocks());
      image::fill_pattern(7, uint64_t{block} * kBlockBytes, memory[rank], kBlockBytes);
      const CommandStatus status =
          execute(warp, route, lanes, rigs.command(IoOpcode::kWrite, block, 1, memory[rank]));
      if ((lanes >> rank & 1u) != 0 && status != 0) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  std::vector<uint8_t> wanted(kBlockBytes);
  for (uint32_t block = 0; block < rigs.blocks(); ++block) {
    image::fill_pattern(7, uint64_t{block} * kBlockBytes, wanted.data(), kBlockBytes);
    ASSERT_EQ(std::memcmp(rigs.place(block), wanted.data(), kBlockBytes), 0) << block;
  }
  // Nothing before the data of any disk has changed.
  for (uint32_t disk = 0; disk < 3; ++disk) {
    EXPECT_TRUE(rigs.rig(disk).holds(rigs.rig(disk).media(), 0, 16 * (disk + 1)));
  }
}

TEST_P(ArrayTest, a_mailbox_counts_the_commands_of_all) {
  for (const uint32_t depth : {3u, 64u}) {
    ArrayRigs rigs({.disks = 3, .depth = depth});
    rigs.bring_up_ready(width());
    constexpr uint32_t kEach = 5;
    const auto memory = buffers(rigs, width() * kEach, kBlockBytes);
    Mailbox mailbox{};
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t rank = warp.thread_rank();
      const Route route = pick_route(rigs.array());
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t block = (rank * kEach + i) * 3 % rigs.blocks();
        EXPECT_EQ(start(warp, route, all_lanes(warp),
                        rigs.command(IoOpcode::kRead, block, 1, memory[rank * kEach + i]), mailbox),
                  0);
      }
      simt::Backoff backoff;
      while (!warp.all(simt::load_acquire(mailbox.remaining) == 0)) {
        progress(warp, rigs.array(), 0);
        backoff.pause();
      }
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t block = (rank * kEach + i) * 3 % rigs.blocks();
        EXPECT_TRUE(rigs.holds(memory[rank * kEach + i], block, 1)) << block;
      }
    });
    EXPECT_EQ(mailbox.status, 0u);
  }
}

TEST_P(ArrayTest, an_error_is_told_to_who_asked_that_disk) {
  ArrayRigs rigs({.disks = 3, .fault_capacity = 1});
  rigs.bring_up_ready(width());
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(IoOpcode::kRead);
  rule.lba_first = 0;
  rule.lba_last = ~uint64_t{0};
  rule.action = ssd::FaultAction::kStatus;
  rule.status = format::nvme::kUnrecoveredReadError;
  rule.count = ~0u;
  rigs.rig(1).add_fault(rule);
  const auto memory = buffers(rigs, width(), kBlockBytes);
  run_alone(width(), [&](const simt::Warp& warp) {
    expect_reads(warp, rigs, 3 * kChunkBlocks, memory[warp.thread_rank()], 1);
  });
  EXPECT_EQ(rigs.rig(1).device().failure, uint32_t{kWorking});
}

TEST_P(ArrayTest, one_that_falls_silent_fails_alone) {
  ArrayRigs rigs({.disks = 3});
  rigs.bring_up_ready(width());
  rigs.rig(2).device().limits = {50 * kArrayMillisecondNs, 50 * kArrayMillisecondNs};
  rigs.rig(2).device().controller.controller = nullptr;
  const auto memory = buffers(rigs, width(), kBlockBytes);
  Mailbox mailbox{};
  run_alone(width(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    const Route route = pick_route(rigs.array());
    expect_reads(warp, rigs, 6 * kChunkBlocks, memory[rank], 2);
    // Those that report to a mailbox: the others come, and it is known that these do not.
    (void)start(warp, route, all_lanes(warp),
                rigs.command(IoOpcode::kRead, rank * kChunkBlocks % rigs.blocks(), 1, memory[rank]),
                mailbox);
    simt::Backoff backoff;
    while (!warp.all(simt::load_acquire(mailbox.remaining) == 0) &&
           !is_lost(warp, rigs.array(), 0, mailbox)) {
      progress(warp, rigs.array(), 0);
      backoff.pause();
    }
  });
  EXPECT_EQ(rigs.rig(0).device().failure, uint32_t{kWorking});
  EXPECT_EQ(rigs.rig(1).device().failure, uint32_t{kWorking});
  EXPECT_EQ(rigs.rig(2).device().failure, uint32_t{kFailed});
}

TEST_P(ArrayTest, each_has_the_time_of_its_own_commands) {
  constexpr uint32_t kSlowNs = 30 * kArrayMillisecondNs;
  for (const uint32_t hasty : {0u, 1u}) {
    ArrayRigs rigs({.disks = 3, .last_latency_ns = kSlowNs});
    rigs.bring_up_ready(width());
    rigs.rig(hasty).device().limits.command_timeout_ns = kSlowNs / 10;
    EXPECT_EQ(longest_timeout_ns(rigs.array()), rigs.rig(2).device().limits.command_timeout_ns);
    uint8_t* const memory = rigs.arena().bytes(uint64_t{width()} * kBlockBytes);
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t block = 2 * kChunkBlocks;
      uint8_t* const mine = memory + uint64_t{warp.thread_rank()} * kBlockBytes;
      const CommandStatus status = execute(warp, pick_route(rigs.array()), all_lanes(warp),
                                           rigs.command(IoOpcode::kRead, block, 1, mine));
      EXPECT_EQ(status, 0u);
    });
    EXPECT_TRUE(rigs.holds(memory, 2 * kChunkBlocks, 1));
    for (uint32_t disk = 0; disk < 3; ++disk) EXPECT_EQ(rigs.rig(disk).device().timeouts, 0u);
  }
}

TEST_P(ArrayTest, a_flush_reaches_all) {
  for (const uint32_t disks : {1u, 2u, 8u}) {
    ArrayRigs rigs({.disks = disks});
    rigs.bring_up_ready(width());
    run_alone(width(), [&](const simt::Warp& warp) { EXPECT_EQ(flush(warp, rigs.array()), 0); });
    for (uint32_t disk = 0; disk < disks; ++disk) {
      EXPECT_EQ(rigs.rig(disk).counters().flush_requests, 1u) << disk;
    }
  }
}

TEST_P(ArrayTest, what_is_deallocated_reads_zeros_and_nothing_else_does) {
  for (const uint32_t disks : {2u, 3u, 8u}) {
    ArrayRigs rigs({.disks = disks});
    rigs.bring_up_ready(width());
    // Within a chunk, over a few, over many.
    const std::vector<std::pair<uint32_t, uint32_t>> wanted = {
        {1, 2}, {kChunkBlocks + 3, 2}, {5 * kChunkBlocks, kChunkBlocks}, {40, 60}};
    auto* const ranges =
        reinterpret_cast<format::nvme::DatasetRange*>(rigs.arena().bytes(kBlockBytes));
    for (size_t i = 0; i < wanted.size(); ++i) {
      ranges[i] = {0, wanted[i].second * rigs.lbas_of_block(),
                   uint64_t{wanted[i].first} * rigs.lbas_of_block()};
    }
    std::vector<bool> gone(rigs.blocks(), false);
    for (const auto& [first, count] : wanted) {
      for (uint32_t block = first; block < first + count; ++block) gone[block] = true;
    }
    std::vector<std::vector<uint8_t>> before;
    for (uint32_t block = 0; block < rigs.blocks(); ++block) {
      before.emplace_back(rigs.place(block), rigs.place(block) + kBlockBytes);
    }
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(
          deallocate(warp, rigs.array(), ranges, static_cast<uint32_t>(wanted.size()), ranges + 64),
          0);
    });
    const std::vector<uint8_t> zeros(kBlockBytes, 0);
    for (uint32_t block = 0; block < rigs.blocks(); ++block) {
      const auto& expected = gone[block] ? zeros : before[block];
      ASSERT_EQ(std::memcmp(rigs.place(block), expected.data(), kBlockBytes), 0) << block;
    }
  }
}

GOFS_AT_BOTH_WIDTHS(ArrayTest);

}  // namespace
}  // namespace gofs::nvme
