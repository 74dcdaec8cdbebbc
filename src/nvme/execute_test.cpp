// SPDX-License-Identifier: Apache-2.0
//
// Commands from many warps at once on the virtual controller: every depth, several queues, with and
// without waiting, buffers of every shape. What was read is compared byte for byte.
#include "nvme/execute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <vector>

#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::IoOpcode;
using gofs::testing::all_lanes;
using gofs::testing::failed_commands;
using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

/// A different number for each caller and turn.
uint64_t mixed(uint64_t a, uint64_t b) { return image::pattern_word(a, b); }

SsdRigOptions with_depth(uint32_t depth, uint32_t queues = 1) {
  SsdRigOptions options;
  options.device.queue_depth = depth;
  options.device.io_queues = queues;
  return options;
}

/// Lets `queue`, which is unused, go on at lap `lap` (even): the laps before might have been.
void start_at_lap(QueuePair& queue, uint32_t lap) {
  queue.next_ticket = queue.tail = queue.head = uint64_t{lap} * queue.depth();
  for (uint32_t i = 0; i < queue.depth(); ++i) {
    queue.slots[i].lap = queue.slots[i].issued = lap;
    queue.slots[i].done = uint64_t{lap} << 32;
  }
}

struct Load {
  uint32_t warps;
  uint32_t width;
  uint32_t turns;  // executes of a warp
};

/// Every warp reads random places again and again; true bytes and no error, or the test fails.
void read_random(SsdRig& rig, const Load& load, uint32_t queues, uint64_t seed) {
  const uint32_t lbas = static_cast<uint32_t>(rig.device().lba_count);
  std::atomic<uint32_t> wrong{0};
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < load.warps * load.width; ++i) buffers.push_back(rig.arena().bytes(2048));
  run_crowd({load.warps, load.width}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * load.width + warp.thread_rank();
    QueuePair& queue = rig.queue(index % queues);
    for (uint32_t turn = 0; turn < load.turns; ++turn) {
      // Not every lane every time, but one at least.
      const uint32_t lanes =
          all_lanes(warp) & static_cast<uint32_t>(mixed(seed + index, turn) >> 7 | 1);
      const uint32_t count = static_cast<uint32_t>(mixed(seed, turn) % 4) + 1;
      const uint64_t lba = mixed(seed + who, turn) % (lbas - count);
      const CommandStatus status =
          execute(warp, rig.device(), queue, lanes, rig.read(lba, count, buffers[who]));
      const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
      if (mine && (status != 0 || !rig.holds(buffers[who], lba, count))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u) << "seed=" << seed;
}

void expect_idle(const QueuePair& queue) {
  EXPECT_EQ(queue.tail, queue.next_ticket);
  EXPECT_EQ(queue.head, queue.next_ticket);
  EXPECT_EQ(queue.spurious, 0u);
  EXPECT_EQ(failed_commands(queue), 0u);
  for (uint32_t i = 0; i < queue.depth(); ++i) {
    ASSERT_EQ(queue.slots[i].lap, queue.slots[i].issued) << "slot " << i << " is not retired";
  }
}

class ExecuteDepthTest : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  uint32_t depth() const { return std::get<0>(GetParam()); }
  uint32_t width() const { return std::get<1>(GetParam()); }
  /// Turns that bring the queue some laps on, at a depth that allows it.
  Load load() const {
    return width() == 1 ? Load{8, 1, std::max(150u, depth() / 2)} : Load{2, 4, 12};
  }
};

INSTANTIATE_TEST_SUITE_P(depth, ExecuteDepthTest,
                         ::testing::Combine(::testing::Values(2u, 3u, 7u, 13u, 64u, 100u, 1000u),
                                            ::testing::Values(1u, 4u)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_width_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_P(ExecuteDepthTest, many_warps_share_a_queue) {
  SsdRig rig(with_depth(depth()));
  rig.bring_up_ready();
  ASSERT_EQ(rig.queue().depth(), depth());
  read_random(rig, load(), 1, depth());
  expect_idle(rig.queue());
}

TEST_P(ExecuteDepthTest, laps_run_over_the_end_of_32_bits) {
  SsdRig rig(with_depth(depth()));
  rig.bring_up_ready();
  start_at_lap(rig.queue(), 0xfffffffe);
  read_random(rig, load(), 1, depth() + 1);
  expect_idle(rig.queue());
}

// With records of completions instead of completions at once.
TEST_P(ExecuteDepthTest, controller_with_fault_rules_serves_the_same) {
  SsdRigOptions options = with_depth(depth());
  options.ssd.fault_capacity = 1;
  SsdRig rig(options);
  rig.bring_up_ready();
  read_random(rig, load(), 1, depth() + 2);
  expect_idle(rig.queue());
}

class ExecuteTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  bool narrow() const { return GetParam() == 1; }
};
GOFS_AT_BOTH_WIDTHS(ExecuteTest);

TEST_P(ExecuteTest, several_queues_work_side_by_side) {
  SsdRig rig(with_depth(7, 3));
  rig.bring_up_ready();
  ASSERT_EQ(rig.device().io_queue_count, 3u);
  read_random(rig, narrow() ? Load{9, 1, 60} : Load{3, 4, 12}, 3, printed_seed());
  for (uint32_t i = 0; i < 3; ++i) expect_idle(rig.queue(i));
}

TEST_P(ExecuteTest, a_modelled_ssd_takes_its_time_and_serves_the_same) {
  SsdRigOptions options = with_depth(13);
  options.ssd.model.units = 4;
  options.ssd.model.read_fixed_ns = 20'000;
  options.ssd.model.read_latency_ns = 50'000;
  SsdRig rig(options);
  rig.bring_up_ready();
  read_random(rig, narrow() ? Load{6, 1, 20} : Load{2, 4, 8}, 1, 5);
  expect_idle(rig.queue());
}

TEST_P(ExecuteTest, what_is_written_is_read_back_and_nothing_else_changes) {
  SsdRig rig(with_depth(13, 2));
  rig.bring_up_ready();
  const uint32_t width = GetParam();
  const uint32_t turns = narrow() ? 30 : 8;
  constexpr uint32_t kWarps = 4;
  // Each lane owns every second LBA of a stretch of its own.
  const uint32_t stretch = 2 * turns;
  std::atomic<uint32_t> wrong{0};
  run_crowd({kWarps, width}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * width + warp.thread_rank();
    std::vector<uint32_t> out(128);
    std::vector<uint32_t> in(128);
    for (uint32_t turn = 0; turn < turns; ++turn) {
      std::fill(out.begin(), out.end(), who * 1000 + turn);
      const uint64_t lba = uint64_t{who} * stretch + 2 * turn;
      const uint32_t lanes = all_lanes(warp);
      Command command = rig.command(IoOpcode::kWrite, lba, 1, out.data());
      command.force_unit_access = turn % 2 == 0;
      if (execute(warp, rig.device(), rig.queue(index % 2), lanes, command) != 0) ++wrong;
      command = rig.read(lba, 1, in.data());
      if (execute(warp, rig.device(), rig.queue((index + 1) % 2), lanes, command) != 0) ++wrong;
      if (in != out) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (uint32_t lba = 1; lba < kWarps * width * stretch; lba += 2) {
    ASSERT_TRUE(rig.holds(rig.media() + lba * 512, lba, 1)) << lba;
  }
}

TEST_P(ExecuteTest, commands_without_data_need_no_buffer) {
  SsdRig rig(with_depth(4));
  rig.bring_up_ready();
  run_alone(GetParam(), [&](const simt::Warp& warp) {
    Command command{IoOpcode::kFlush, false, 0, 0, nullptr, 0};
    EXPECT_EQ(execute(warp, rig.device(), rig.queue(), 1u, command), 0u);
    command = Command{IoOpcode::kWriteZeroes, false, 3, 10u + 3 * warp.thread_rank(), nullptr, 0};
    EXPECT_EQ(execute(warp, rig.device(), rig.queue(), all_lanes(warp), command), 0u);
  });
  EXPECT_EQ(rig.counters().flush_requests, 1u);
  const uint32_t end = 10 + 3 * GetParam();
  for (uint32_t lba = 9; lba <= end; ++lba) {
    const bool zeroed = std::all_of(rig.media() + lba * 512, rig.media() + lba * 512 + 512,
                                    [](uint8_t byte) { return byte == 0; });
    EXPECT_EQ(zeroed, lba >= 10 && lba < end) << lba;
  }
}

TEST_P(ExecuteTest, buffers_of_any_dword_offset_and_up_to_65_pages) {
  SsdRigOptions options = with_depth(5);
  options.media_bytes = uint64_t{2} << 20;
  SsdRig rig(options);
  rig.bring_up_ready();
  ASSERT_EQ(rig.device().transfer_bytes_max, kPrpBytesMax);
  const uint64_t seed = printed_seed();
  const uint32_t width = GetParam();
  constexpr uint32_t kRoom = kPrpBytesMax + 2 * kBlockBytes;
  std::vector<uint8_t*> rooms;
  for (uint32_t i = 0; i < width; ++i) rooms.push_back(rig.arena().bytes(kRoom));
  const uint32_t lbas_max = kPrpBytesMax / 512;
  run_alone(width, [&](const simt::Warp& warp) {
    uint8_t* const room = rooms[warp.thread_rank()];
    const uint64_t own_seed = seed + warp.thread_rank();
    for (uint32_t turn = 0; turn < (width == 1 ? 120u : 25u); ++turn) {
      const uint64_t random = mixed(own_seed, turn);
      const uint32_t offset = static_cast<uint32_t>(random % 1024) * 4;
      // The longest one, all pages, and short ones.
      uint32_t count = static_cast<uint32_t>(random >> 20) % (turn % 3 == 0 ? lbas_max : 24) + 1;
      if (turn == 0) count = lbas_max;
      const uint64_t lba = (random >> 40) % (rig.device().lba_count - count);
      std::memset(room, 0x5c, kRoom);
      const CommandStatus status = execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                                           rig.read(lba, count, room + offset));
      ASSERT_EQ(status, 0u) << status_name(status);
      ASSERT_TRUE(rig.holds(room + offset, lba, count))
          << "offset " << offset << ", " << count << " LBAs";
      const uint32_t end = offset + count * 512;
      for (uint32_t i = 0; i < offset; ++i) ASSERT_EQ(room[i], 0x5c) << i;
      for (uint32_t i = end; i < kRoom; ++i) ASSERT_EQ(room[i], 0x5c) << i;
    }
  });
}

TEST_P(ExecuteTest, blocks_of_4096_bytes) {
  SsdRigOptions options = with_depth(9);
  options.ssd.lba_shift = 12;
  SsdRig rig(options);
  rig.bring_up_ready();
  ASSERT_EQ(rig.device().lba_bytes(), 4096u);
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < GetParam(); ++i) buffers.push_back(rig.arena().bytes(4 * 4096));
  run_alone(GetParam(), [&](const simt::Warp& warp) {
    uint8_t* const buffer = buffers[warp.thread_rank()] + 4;
    for (uint32_t count = 1; count <= 3; ++count) {
      const uint64_t lba = 17 * count + 100 * warp.thread_rank();
      ASSERT_EQ(
          execute(warp, rig.device(), rig.queue(), all_lanes(warp), rig.read(lba, count, buffer)),
          0u);
      ASSERT_TRUE(rig.holds(buffer, lba, count));
    }
  });
}

TEST_P(ExecuteTest, errors_are_those_of_the_lane_that_made_them) {
  SsdRig rig(with_depth(8));
  rig.bring_up_ready();
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < GetParam(); ++i) buffers.push_back(rig.arena().bytes(4096));
  for (uint32_t turn = 0; turn < 10; ++turn) {
    run_alone(GetParam(), [&](const simt::Warp& warp) {
      const uint32_t rank = warp.thread_rank();
      const bool bad = rank % 2 == 0;
      const uint64_t lba = bad ? rig.device().lba_count - 1 : 40 + rank;
      const CommandStatus status = execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                                           rig.read(lba, 2, buffers[rank]));
      EXPECT_EQ(to_errno(status), bad ? -ENOSPC : 0);
      if (!bad) {
        EXPECT_TRUE(rig.holds(buffers[rank], lba, 2));
      }
    });
  }
  EXPECT_EQ(failed_commands(rig.queue()), 10 * ((GetParam() + 1) / 2));
}

TEST_P(ExecuteTest, what_is_counted_is_what_the_ssd_has_counted) {
  SsdRig rig(with_depth(64, 2));
  rig.bring_up_ready();
  const auto seen = [&](CommandKind kind) {
    CommandCounts sum{};
    for (uint32_t i = 0; i < rig.device().io_queue_count; ++i) {
      const CommandCounts& counts = rig.queue(i).counts[static_cast<uint32_t>(kind)];
      sum = {sum.succeeded + counts.succeeded, sum.failed + counts.failed, sum.lbas + counts.lbas};
    }
    return sum;
  };
  read_random(rig, {4, GetParam(), 20}, 2, 5);
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < GetParam(); ++i) buffers.push_back(rig.arena().bytes(4096));
  run_alone(GetParam(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    const uint64_t lba = rank == 0 ? rig.device().lba_count : rank * 8;
    const auto write = rig.command(format::nvme::IoOpcode::kWrite, lba, 3, buffers[rank]);
    (void)execute(warp, rig.device(), rig.queue(1), all_lanes(warp), write);
    Command flush{};
    flush.opcode = format::nvme::IoOpcode::kFlush;
    EXPECT_EQ(execute(warp, rig.device(), rig.queue(0), 1u, flush), 0u);
  });
  const ssd::VirtualSsdCounters ssd = rig.counters();
  const CommandCounts reads = seen(CommandKind::kRead);
  const CommandCounts writes = seen(CommandKind::kWrite);
  EXPECT_GT(reads.succeeded, 0u);
  EXPECT_EQ(reads.succeeded + reads.failed, ssd.read_commands);
  EXPECT_EQ(reads.lbas, ssd.blocks_read);
  EXPECT_EQ(writes.succeeded, GetParam() - 1);
  EXPECT_EQ(writes.succeeded + writes.failed, ssd.write_commands);
  EXPECT_EQ(writes.lbas, ssd.blocks_written);
  EXPECT_EQ(writes.failed, ssd.errors);
  EXPECT_EQ(seen(CommandKind::kFlush).succeeded, ssd.flush_requests);
  EXPECT_EQ(failed_commands(rig.queue(0)) + failed_commands(rig.queue(1)), 1u);
}

TEST_P(ExecuteTest, commands_are_started_and_looked_after_later) {
  for (const uint32_t depth : {2u, 5u, 64u}) {
    SsdRig rig(with_depth(depth));
    rig.bring_up_ready();
    const uint32_t width = GetParam();
    constexpr uint32_t kWarps = 3;
    constexpr uint32_t kEach = 6;
    std::vector<uint8_t*> buffers;
    for (uint32_t i = 0; i < kWarps * width * kEach; ++i) {
      buffers.push_back(rig.arena().bytes(512));
    }
    std::vector<Mailbox> mailboxes(kWarps);
    std::atomic<uint32_t> wrong{0};
    run_crowd({kWarps, width}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t who = (index * width + warp.thread_rank()) * kEach;
      Mailbox& mailbox = mailboxes[index];
      for (uint32_t i = 0; i < kEach; ++i) {
        EXPECT_EQ(start(warp, rig.device(), rig.queue(), all_lanes(warp),
                        rig.read(who + i, 1, buffers[who + i]), mailbox),
                  0);
      }
      simt::Backoff backoff;
      while (!warp.all(simt::load_acquire(mailbox.remaining) == 0)) {
        progress(warp, rig.device(), rig.queue());
        backoff.pause();
      }
      if (simt::load_relaxed(mailbox.status) != 0) ++wrong;
      for (uint32_t i = 0; i < kEach; ++i) {
        if (!rig.holds(buffers[who + i], who + i, 1)) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0u) << depth;
    expect_idle(rig.queue());
  }
}

TEST_P(ExecuteTest, a_mailbox_learns_of_an_error) {
  SsdRig rig(with_depth(4));
  rig.bring_up_ready();
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < GetParam(); ++i) buffers.push_back(rig.arena().bytes(512));
  Mailbox mailbox{};
  run_alone(GetParam(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    const uint64_t lba = rank == 0 ? rig.device().lba_count : rank;
    EXPECT_EQ(start(warp, rig.device(), rig.queue(), all_lanes(warp),
                    rig.read(lba, 1, buffers[rank]), mailbox),
              0);
    while (!warp.all(simt::load_acquire(mailbox.remaining) == 0)) {
      progress(warp, rig.device(), rig.queue());
    }
    EXPECT_EQ(to_errno(simt::load_relaxed(mailbox.status)), -ENOSPC);
  });
}

// Waiting and not waiting on one short queue: those who wait for admission must not hold up the
// others, nor the other way round.
TEST_P(ExecuteTest, both_ways_share_a_short_queue) {
  SsdRig rig(with_depth(3));
  rig.bring_up_ready();
  const uint32_t width = GetParam();
  const uint32_t turns = narrow() ? 40 : 10;
  constexpr uint32_t kWarps = 4;
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < kWarps * width; ++i) buffers.push_back(rig.arena().bytes(512));
  std::vector<Mailbox> mailboxes(kWarps);
  std::atomic<uint32_t> wrong{0};
  run_crowd({kWarps, width}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * width + warp.thread_rank();
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const Command command = rig.read(who + turn, 1, buffers[who]);
      if (index % 2 == 0) {
        if (execute(warp, rig.device(), rig.queue(), all_lanes(warp), command) != 0) ++wrong;
      } else {
        if (start(warp, rig.device(), rig.queue(), all_lanes(warp), command, mailboxes[index]) !=
            0) {
          ++wrong;
        }
        while (!warp.all(simt::load_acquire(mailboxes[index].remaining) == 0)) {
          progress(warp, rig.device(), rig.queue());
        }
      }
      if (!rig.holds(buffers[who], who + turn, 1)) ++wrong;
      warp.sync();
    }
  });
  EXPECT_EQ(wrong, 0u);
  expect_idle(rig.queue());
}

TEST_P(ExecuteTest, what_another_kept_from_being_rung_is_rung_by_who_waits) {
  const uint32_t width = GetParam();
  SsdRigOptions options;
  options.device.command_timeout_ns = 50'000'000;
  SsdRig rig(options);
  rig.bring_up_ready(width);
  QueuePair& queue = rig.queue();
  uint8_t* const buffer = rig.arena().bytes(kBlockBytes * width);
  Mailbox mailbox{};
  run_alone(width, [&](const simt::Warp& warp) {
    const Command command =
        rig.read(warp.thread_rank(), 1, buffer + warp.thread_rank() * rig.lba_bytes());
    const uint32_t lanes = all_lanes(warp);
    // Another warp has looked already, and has not let go of the tail yet.
    const auto kept = [&](Mailbox* to, Token& token) {
      EXPECT_TRUE(warp.thread_rank() != 0 || simt::try_lock(queue.tail_lock));
      warp.sync();
      EXPECT_EQ(submit(warp, rig.device(), queue, lanes, command, to, token), 0);
      EXPECT_FALSE(is_rung(queue, token.position));
      warp.sync();
      if (warp.thread_rank() == 0) simt::unlock(queue.tail_lock);
      warp.sync();
    };
    Token token{};
    kept(nullptr, token);
    EXPECT_EQ(wait(warp, rig.device(), queue, lanes, token), 0u);
    if (warp.thread_rank() == 0) mailbox.remaining = width;
    warp.sync();
    kept(&mailbox, token);
    progress(warp, rig.device(), queue);
    EXPECT_EQ(simt::load_acquire(mailbox.remaining), 0u);
  });
  EXPECT_TRUE(rig.holds(buffer, 0, width));
  expect_idle(queue);
}

}  // namespace
}  // namespace gofs::nvme
