// SPDX-License-Identifier: Apache-2.0
//
// The engine: queues of all depths, wrap-around, full completion queues, shared ones, several warps
// on one queue, reset in flight. Each test plays the driver and holds the controller to what NVMe
// says of heads, tails and phases.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <set>
#include <tuple>

#include "ssd/media_host.h"
#include "ssd/prp_buffer.h"
#include "ssd/test_driver.h"
#include "testing/teams.hpp"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint64_t kMediaBytes = 1 << 20;
constexpr uint32_t kMediaBlocks = kMediaBytes / 512;

VirtualSsdConfig config_for(CompletionMode mode) {
  VirtualSsdConfig config;
  config.queue_pairs_max = 4;
  if (mode == CompletionMode::kPending) config.fault_capacity = 1;
  return config;
}

class Engine : public ::testing::Test {
 protected:
  Engine() {
    const std::vector<uint8_t> data = pattern(kMediaBytes, 1);
    std::memcpy(media_.media().base, data.data(), data.size());
  }

  bool is_block(const uint8_t* data, uint32_t lba) const {
    return std::memcmp(data, media_.media().base + size_t{lba} * 512, 512) == 0;
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), kMediaBytes};
};

class EngineModes : public Engine, public ::testing::WithParamInterface<CompletionMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineModes,
                         ::testing::Values(CompletionMode::kDirect, CompletionMode::kPending));

TEST_P(EngineModes, reads_what_it_wrote) {
  TestDriver driver(config_for(GetParam()), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16);
  const std::vector<uint8_t> data = pattern(4096, 7);
  uint8_t* const out = memory_.bytes(4096);
  std::memcpy(out, data.data(), 4096);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 8, 8, out)), kSuccess);
  EXPECT_EQ(std::memcmp(media_.media().base + 4096, data.data(), 4096), 0);
  uint8_t* const back = memory_.bytes(4096);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 8, 8, back)), kSuccess);
  EXPECT_EQ(std::memcmp(back, data.data(), 4096), 0);
}

TEST_P(EngineModes, does_nothing_without_a_queue) {
  TestDriver driver(config_for(GetParam()), media_.media());
  for (uint32_t qid : {0u, 1u, 4u, 5u, 70000u}) driver.step(qid, 3);
  driver.enable_ready();
  for (uint32_t qid : {0u, 1u, 4u, 5u, 70000u}) driver.step(qid, 3);
  EXPECT_EQ(driver.csts(), kCstsReady);
}

class EngineDepths
    : public Engine,
      public ::testing::WithParamInterface<std::tuple<CompletionMode, uint32_t, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(
    Depths, EngineDepths,
    ::testing::Combine(::testing::Values(CompletionMode::kDirect, CompletionMode::kPending),
                       ::testing::Values(2u, 3u, 7u, 13u, 64u, 1000u),
                       ::testing::Values(0u, 2u, 5u, 100u)));  // completion depth; 0: the same

// The driver keeps the queue as full as the reported head allows, which is the only thing that it
// trusts, for many times round the ring.
TEST_P(EngineDepths, every_command_completes_once_many_times_round) {
  const auto [mode, depth, other_depth] = GetParam();
  TestDriver driver(config_for(mode), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, depth, other_depth);
  uint8_t* const data = memory_.bytes(512);
  const uint32_t total = depth * 9 + 5;
  std::set<uint16_t> outstanding;
  uint32_t submitted = 0;
  uint32_t completed = 0;
  for (uint32_t round = 0; completed < total; ++round) {
    ASSERT_LT(round, total * 4) << "no progress after " << completed;
    while (submitted < total && (queue.tail + 1) % depth != queue.sq_head) {
      auto entry = TestDriver::io_entry(IoOpcode::kRead, submitted % kMediaBlocks, 1, data);
      entry.cid = static_cast<uint16_t>(submitted);
      outstanding.insert(entry.cid);
      TestDriver::put(queue, entry);
      ++submitted;
    }
    driver.ring(queue);
    driver.step(1);
    while (const auto done = TestDriver::take(queue)) {
      ASSERT_EQ(TestDriver::status_of(*done), kSuccess);
      ASSERT_EQ(done->sq_id, 1);
      ASSERT_LT(done->sq_head, depth);
      ASSERT_EQ(outstanding.erase(done->cid), 1u) << done->cid;
      ++completed;
    }
    driver.ring_completion(queue);
  }
  EXPECT_TRUE(outstanding.empty());
  EXPECT_EQ(queue.sq_head, queue.tail);
  driver.step(1, 3);
  EXPECT_FALSE(TestDriver::peek(queue));
}

TEST_P(EngineModes, the_head_of_a_single_command_is_the_next_entry) {
  TestDriver driver(config_for(GetParam()), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(2, 5);
  uint8_t* const data = memory_.bytes(512);
  for (uint32_t i = 0; i < 40; ++i) {
    driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, i, 1, data));
    EXPECT_EQ(queue.sq_head, queue.tail);
    EXPECT_TRUE(is_block(data, i));
  }
}

TEST_P(EngineModes, a_full_completion_queue_holds_completions_back) {
  for (const uint32_t completion_depth : {16u, 4u}) {
    TestDriver driver(config_for(GetParam()), media_.media());
    driver.enable_ready();
    TestQueue queue = driver.create_pair(1, 16, completion_depth);
    uint8_t* const data = memory_.bytes(15 * 512);
    const auto submit = [&](uint16_t cid) {
      auto entry = TestDriver::io_entry(IoOpcode::kRead, cid, 1, data + cid % 15 * 512);
      entry.cid = cid;
      driver.submit(queue, entry);
    };
    for (uint16_t cid = 0; cid < 15; ++cid) submit(cid);
    driver.step(1, 50);
    // All but one entry may be in use, and none is written twice.
    const std::vector<uint8_t> before(queue.completions, queue.completions + completion_depth * 16);
    uint32_t completed = 0;
    std::set<uint16_t> seen;
    TestQueue look = queue;
    while (const auto done = TestDriver::take(look)) {
      seen.insert(done->cid);
      ++completed;
    }
    EXPECT_EQ(completed, completion_depth - 1);
    driver.step(1, 50);
    EXPECT_EQ(std::memcmp(before.data(), queue.completions, before.size()), 0);
    // As the driver consumes, one at a time, the others follow.
    for (completed = 0; completed < 15; ++completed) {
      const auto done = TestDriver::take(queue);
      ASSERT_TRUE(done) << completed;
      seen.insert(done->cid);
      driver.ring_completion(queue);
      driver.step(1, 20);
    }
    EXPECT_EQ(seen.size(), 15u);
    for (uint16_t cid = 0; cid < 15; ++cid) EXPECT_TRUE(is_block(data + cid * 512, cid));
  }
}

TEST_P(EngineModes, invalid_doorbells_are_counted_and_ignored) {
  TestDriver driver(config_for(GetParam()), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const data = memory_.bytes(512);
  driver.write_tail(1, 8);
  driver.step(1, 5);
  driver.write_tail(1, 0xffffffff);
  driver.step(1, 5);
  EXPECT_FALSE(TestDriver::peek(queue));
  EXPECT_EQ(read_counters(driver.memory().space(), driver.ref()).invalid_doorbells, 2u);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 3, 1, data)), kSuccess);
  EXPECT_TRUE(is_block(data, 3));
  // A head outside the queue leaves no room; the right one brings the completion.
  driver.write_head(1, 8);
  driver.submit(queue, TestDriver::io_entry(IoOpcode::kRead, 4, 1, data));
  driver.step(1, 5);
  EXPECT_FALSE(TestDriver::peek(queue));
  driver.ring_completion(queue);
  driver.wait(queue);
  EXPECT_TRUE(is_block(data, 4));
  driver.write_tail(0, 4000);
  driver.step(0, 5);
  EXPECT_EQ(read_counters(driver.memory().space(), driver.ref()).invalid_doorbells, 3u);
  EXPECT_EQ(driver.csts(), kCstsReady);
}

TEST_P(EngineModes, two_submission_queues_share_a_completion_queue) {
  TestDriver driver(config_for(GetParam()), media_.media());
  driver.enable_ready();
  TestQueue first = driver.create_pair(1, 8);
  uint8_t* const data = memory_.bytes(64 * 512);
  // Some completions in the first mode, so that the queue is converted in the middle of a lap.
  for (uint32_t i = 0; i < 11; ++i) {
    driver.run(first, TestDriver::io_entry(IoOpcode::kRead, i, 1, data));
  }
  TestQueue second = driver.make_queue(3, 5, 8);
  second.completion_qid = 1;
  ASSERT_EQ(driver.run(driver.admin(), TestDriver::create_submission_queue(second)), kSuccess);

  TestQueue* const queues[2] = {&first, &second};
  uint32_t submitted[2] = {};
  uint32_t completed[2] = {};
  uint32_t heads[2] = {first.sq_head, 0};
  for (uint32_t round = 0; completed[0] + completed[1] < 200; ++round) {
    ASSERT_LT(round, 2000u);
    for (uint32_t k = 0; k < 2; ++k) {
      TestQueue& queue = *queues[k];
      while (submitted[k] < 100 && (queue.tail + 1) % queue.depth != heads[k]) {
        const uint32_t buffer = k * 32 + submitted[k] % 32;
        auto entry = TestDriver::io_entry(IoOpcode::kRead, submitted[k], 1, data + buffer * 512);
        entry.cid = static_cast<uint16_t>(submitted[k]++);
        driver.submit(queue, entry);
      }
      if (round % 3 != k) driver.step(queue.qid, 2);
    }
    // The completion queue is that of `first`.
    while (const auto done = TestDriver::take(first)) {
      const uint32_t k = done->sq_id == 1 ? 0 : 1;
      ASSERT_EQ(done->sq_id, queues[k]->qid);
      ASSERT_EQ(TestDriver::status_of(*done), kSuccess);
      ASSERT_EQ(done->cid, completed[k]);
      ASSERT_TRUE(is_block(data + (k * 32 + completed[k] % 32) * 512, completed[k]));
      heads[k] = done->sq_head;
      ++completed[k];
    }
    driver.ring_completion(first);
  }
  EXPECT_EQ(completed[0], 100u);
  EXPECT_EQ(completed[1], 100u);
  EXPECT_EQ(heads[0], first.tail);
  EXPECT_EQ(heads[1], second.tail);
}

TEST_P(EngineModes, a_submission_queue_made_again_continues_its_completion_queue) {
  TestDriver driver(config_for(GetParam()), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const data = memory_.bytes(512);
  for (uint32_t round = 0; round < 5; ++round) {
    for (uint32_t i = 0; i < 3 + round; ++i) {
      EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, i, 1, data)), kSuccess);
      EXPECT_TRUE(is_block(data, i));
    }
    ASSERT_EQ(driver.run(driver.admin(),
                         TestDriver::delete_queue(AdminOpcode::kDeleteSubmissionQueue, 1)),
              kSuccess);
    queue.tail = 0;
    ASSERT_EQ(driver.run(driver.admin(), TestDriver::create_submission_queue(queue)), kSuccess);
  }
}

TEST_P(EngineModes, queue_entries_as_large_as_may_be) {
  VirtualSsdConfig config = config_for(GetParam());
  config.queue_entries_max = 65535;
  config.queue_pairs_max = 1;
  TestDriver driver(config, media_.media());
  EXPECT_EQ(driver.registers().cap & 0xffff, 65534u);
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 65535);
  uint8_t* const data = memory_.bytes(512);
  for (uint32_t i = 0; i < 65534; ++i) {
    TestDriver::put(queue, TestDriver::io_entry(IoOpcode::kRead, i % kMediaBlocks, 1, data));
  }
  driver.ring(queue);
  uint32_t completed = 0;
  for (uint32_t round = 0; round < 140000 && completed < 65534; ++round) {
    driver.step(1);
    while (TestDriver::take(queue)) ++completed;
  }
  EXPECT_EQ(completed, 65534u);
}

// Several warps step one queue while one of them also plays the driver, with flow control by the
// reported head alone: an entry reported as consumed too early would be overwritten while it is
// read.
class EngineTeams
    : public Engine,
      public ::testing::WithParamInterface<std::tuple<CompletionMode, uint32_t, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(Teams, EngineTeams,
                         ::testing::Combine(::testing::Values(CompletionMode::kDirect,
                                                              CompletionMode::kPending),
                                            ::testing::Values(1u, 4u),     // width
                                            ::testing::Values(5u, 32u)));  // depth

TEST_P(EngineTeams, share_a_queue) {
  const auto [mode, width, depth] = GetParam();
  TestDriver driver(config_for(mode), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, depth);
  constexpr uint32_t kTotal = 600;
  constexpr uint32_t kBuffers = 64;
  uint8_t* const data = memory_.bytes(kBuffers * 512);
  std::atomic<bool> finished{false};
  uint32_t submitted = 0;
  uint32_t completed = 0;
  uint32_t wrong = 0;
  std::deque<uint16_t> free_buffers;
  for (uint16_t i = 0; i < kBuffers; ++i) free_buffers.push_back(i);
  std::vector<uint32_t> lba_of(kBuffers);

  const auto drive = [&, depth = depth] {
    while (submitted < kTotal && !free_buffers.empty() &&
           (queue.tail + 1) % depth != queue.sq_head) {
      const uint16_t buffer = free_buffers.front();
      free_buffers.pop_front();
      lba_of[buffer] = submitted * 31 % kMediaBlocks;
      auto entry = TestDriver::io_entry(IoOpcode::kRead, lba_of[buffer], 1, data + buffer * 512);
      entry.cid = buffer;
      TestDriver::put(queue, entry);
      ++submitted;
    }
    driver.ring(queue);
    while (const auto done = TestDriver::take(queue)) {
      if (TestDriver::status_of(*done) != kSuccess || done->cid >= kBuffers ||
          !is_block(data + done->cid * 512, lba_of[done->cid])) {
        ++wrong;
      }
      free_buffers.push_back(done->cid);
      ++completed;
    }
    driver.ring_completion(queue);
  };
  const simt::Deadline deadline = simt::Deadline::after_ns(60'000'000'000);
  testing::run_teams(width == 1 ? 4 : 2, width, [&](const simt::Warp& warp, uint32_t index) {
    uint32_t stop = 0;
    while (stop == 0) {
      if (warp.thread_rank() == 0) {
        if (index == 0) {
          drive();
          if (completed == kTotal || deadline.passed()) finished = true;
        }
        stop = finished ? 1 : 0;
      }
      warp.sync();
      driver.step(warp, 1);
      stop = warp.shfl(stop, 0);
    }
  });
  EXPECT_EQ(completed, kTotal);
  EXPECT_EQ(wrong, 0u);
}

TEST_P(EngineTeams, reset_in_flight_touches_no_memory_afterwards) {
  const auto [mode, width, depth] = GetParam();
  VirtualSsdConfig config = config_for(mode);
  if (mode == CompletionMode::kPending) {
    config.model = parse_timing_model("units=2,unit_ns=20000");
  }
  TestDriver driver(config, media_.media());
  uint8_t* const data = memory_.bytes(depth * 4096);
  std::atomic<bool> finished{false};
  uint32_t touched = 0;
  uint32_t resets = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(60'000'000'000);

  const auto drive = [&, depth = depth] {
    driver.enable();
    TestQueue queue = driver.create_pair(1, depth);
    for (uint32_t i = 0; i + 1 < depth; ++i) {
      TestDriver::put(queue, TestDriver::io_entry(IoOpcode::kRead, i * 8, 8, data + i * 4096));
    }
    driver.ring(queue);
    driver.step(1, resets % 3);
    driver.write_cc(0);
    while (driver.csts() != 0 && !deadline.passed()) driver.step(0);
    // What the controller may not touch any more is ours alone, which ThreadSanitizer also checks.
    std::memset(data, 0x55, depth * 4096);
    std::memset(queue.completions, 0x55, depth * 16);
    driver.step(1, 3);
    simt::Backoff().pause();
    for (uint32_t i = 0; i < depth * 4096; ++i) touched += data[i] != 0x55;
    for (uint32_t i = 0; i < depth * 16; ++i) touched += queue.completions[i] != 0x55;
    ++resets;
  };
  testing::run_teams(width == 1 ? 4 : 2, width, [&](const simt::Warp& warp, uint32_t index) {
    uint32_t stop = 0;
    while (stop == 0) {
      if (warp.thread_rank() == 0) {
        if (index == 0) {
          drive();
          if (resets == 40 || deadline.passed()) finished = true;
        }
        stop = finished ? 1 : 0;
      }
      if (index != 0) driver.step(warp, 1);
      stop = warp.shfl(stop, 0);
    }
  });
  EXPECT_EQ(resets, 40u);
  EXPECT_EQ(touched, 0u);
}

}  // namespace
}  // namespace gofs::ssd
