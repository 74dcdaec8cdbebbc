// SPDX-License-Identifier: Apache-2.0
//
// Timing models: the presets against the figures of the drives they stand for, by running closed
// loops of commands through finish_time() in virtual time; the text form of models; and the
// controller's virtual clock.
#include "ssd/timing.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <queue>
#include <random>

#include "simt/workers.h"
#include "ssd/media_host.h"
#include "ssd/test_driver.h"
#include "ssd/virtual_ssd.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint64_t kCapacity = uint64_t{1} << 40;

struct Rates {
  double commands_per_s;
  double bytes_per_s;
  double latency_us_mean;
};

/// `depth` commands outstanding at all times: as one is done, the next is submitted.
Rates run_closed_loop(const TimingModel& model, uint32_t depth, uint32_t count,
                      const std::function<TimedCommand(uint32_t index)>& make) {
  const auto state = std::make_unique<TimingState>();
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> running;
  uint64_t now = 0;
  uint64_t last = 0;
  double latency_sum = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (running.size() == depth) {
      now = running.top();
      running.pop();
    }
    const TimedCommand command = make(i);
    const uint64_t finish = finish_time(model, *state, now, command);
    EXPECT_GE(finish, now);
    latency_sum += static_cast<double>(finish - now);
    bytes += command.bytes;
    last = std::max(last, finish);
    running.push(finish);
  }
  const double seconds = static_cast<double>(last) * 1e-9;
  return {count / seconds, static_cast<double>(bytes) / seconds, latency_sum / count / 1000};
}

Rates run_random(const TimingModel& model, TimedOperation operation, uint32_t depth) {
  std::mt19937_64 random(7);
  return run_closed_loop(model, depth, depth == 1 ? 2000 : 400000, [&](uint32_t) {
    return TimedCommand{operation, false, random() % (kCapacity / 4096) * 4096, 4096};
  });
}

Rates run_sequential(const TimingModel& model, TimedOperation operation, uint32_t bytes,
                     uint32_t depth) {
  return run_closed_loop(model, depth, 100000, [&](uint32_t i) {
    return TimedCommand{operation, false, uint64_t{i} * bytes, bytes};
  });
}

constexpr auto kRead = TimedOperation::kRead;
constexpr auto kWrite = TimedOperation::kWrite;

TEST(TimingPresets, flash_ssd_has_the_figures_of_a_990_pro) {
  const TimingModel model = parse_timing_model("990pro");
  EXPECT_NEAR(run_random(model, kRead, 1).latency_us_mean, 50, 2);
  EXPECT_NEAR(run_random(model, kRead, 1024).commands_per_s, 1.4e6, 0.02e6);
  // 64 outstanding are not enough for that: each takes 50 us.
  EXPECT_NEAR(run_random(model, kRead, 32).commands_per_s, 32 / 50e-6, 0.15 * 32 / 50e-6);
  EXPECT_NEAR(run_sequential(model, kRead, 128 << 10, 32).bytes_per_s, 7.45e9, 0.05e9);
  EXPECT_NEAR(run_sequential(model, kRead, 512 << 10, 8).bytes_per_s, 7.45e9, 0.05e9);
  EXPECT_NEAR(run_sequential(model, kWrite, 128 << 10, 32).bytes_per_s, 6.9e9, 0.1e9);
  EXPECT_LT(run_random(model, kWrite, 1).latency_us_mean, 12);  // the write buffer
  EXPECT_NEAR(run_random(model, kWrite, 1024).commands_per_s, 1.4e6, 0.05e6);
}

TEST(TimingPresets, low_latency_ssd_has_the_figures_of_a_p5800x) {
  const TimingModel model = parse_timing_model("p5800x");
  EXPECT_NEAR(run_random(model, kRead, 1).latency_us_mean, 7, 0.5);
  EXPECT_NEAR(run_random(model, kWrite, 1).latency_us_mean, 7, 0.5);
  EXPECT_NEAR(run_random(model, kRead, 1024).commands_per_s, 1.5e6, 0.02e6);
  EXPECT_NEAR(run_sequential(model, kRead, 128 << 10, 32).bytes_per_s, 7.0e9, 0.2e9);
  EXPECT_NEAR(run_sequential(model, kWrite, 128 << 10, 32).bytes_per_s, 6.1e9, 0.1e9);
}

TEST(TimingPresets, none_takes_no_time) {
  EXPECT_TRUE(parse_timing_model("none").is_none());
  EXPECT_FALSE(parse_timing_model("990pro").is_none());
  const auto state = std::make_unique<TimingState>();
  EXPECT_EQ(finish_time(TimingModel{}, *state, 77, {kRead, false, 0, 4096}), 77u);
}

TEST(TimingModel, each_resource_limits_alone) {
  EXPECT_NEAR(run_random(parse_timing_model("iops=100000"), kRead, 64).commands_per_s, 1e5, 1e3);
  EXPECT_NEAR(run_random(parse_timing_model("link_mb_s=1000"), kRead, 64).bytes_per_s, 1e9, 1e7);
  EXPECT_NEAR(run_random(parse_timing_model("units=8,unit_ns=5700,latency_ns=40000"), kRead, 1024)
                  .commands_per_s,
              8 / 5.7e-6, 0.02e6);
  EXPECT_NEAR(run_random(parse_timing_model("latency_ns=100000"), kRead, 10).commands_per_s, 1e5,
              1e3);
}

TEST(TimingModel, reads_and_writes_have_links_of_their_own) {
  const TimingModel model = parse_timing_model("link_read_mb_s=2000,link_write_mb_s=1000");
  const auto mixed = run_closed_loop(model, 64, 100000, [](uint32_t i) {
    return TimedCommand{i % 2 == 0 ? kRead : kWrite, false, 0, 4096};
  });
  EXPECT_NEAR(mixed.bytes_per_s, 2e9, 2e7);  // the writes take 1 GB/s, as many reads beside them
}

TEST(TimingModel, a_command_occupies_every_unit_that_it_touches_for_its_part) {
  const TimingModel model =
      parse_timing_model("units=3,stripe_bytes=8192,read_ns=1000,read_fixed_ns=10");
  const auto state = std::make_unique<TimingState>();
  // Bytes 4096 to 40960: half a stripe on unit 0, then 1, 2, 0, and all of stripe 4 on unit 1.
  EXPECT_EQ(finish_time(model, *state, 0, {kRead, false, 4096, 36864}), 4010u);
  EXPECT_EQ(state->units[0], 3010u);
  EXPECT_EQ(state->units[1], 4010u);
  EXPECT_EQ(state->units[2], 2010u);
  // 512 bytes take as long as a block.
  EXPECT_EQ(finish_time(model, *state, 10000, {kRead, false, 8192 + 512, 512}), 11010u);
  EXPECT_EQ(state->units[1], 11010u);
  EXPECT_EQ(state->units[0], 3010u);
}

TEST(TimingModel, a_flush_waits_for_all_units_and_durable_writes_for_theirs) {
  const TimingModel model =
      parse_timing_model("units=4,write_ns=10000,write_buffer_ns=1000000,flush_latency_ns=5");
  const auto state = std::make_unique<TimingState>();
  EXPECT_EQ(finish_time(model, *state, 0, {TimedOperation::kFlush, true, 0, 0}), 5u);
  EXPECT_EQ(finish_time(model, *state, 0, {kWrite, false, 0, 4096}), 0u);
  EXPECT_EQ(finish_time(model, *state, 0, {kWrite, true, 0, 4096}), 20000u);
  EXPECT_EQ(finish_time(model, *state, 0, {TimedOperation::kFlush, true, 0, 0}), 20005u);
  // The buffer holds 1 ms of work for a unit: 100 writes.
  uint64_t finish = 0;
  for (int i = 0; i < 110; ++i) finish = finish_time(model, *state, 0, {kWrite, false, 0, 4096});
  EXPECT_EQ(finish, 112u * 10000 - 1000000);
}

TEST(TimingModel, a_slow_command_does_not_keep_others_from_the_link) {
  const TimingModel model = parse_timing_model("units=2,unit_ns=1000000,link_mb_s=4096");
  const auto state = std::make_unique<TimingState>();
  for (int i = 0; i < 10; ++i) finish_time(model, *state, 0, {kRead, false, 0, 4096});
  EXPECT_EQ(finish_time(model, *state, 0, {kRead, false, 4096, 4096}), 1001000u);
}

TEST(TimingText, names_may_be_changed_by_settings) {
  const TimingModel model = parse_timing_model("990pro,iops=7,units=9");
  EXPECT_EQ(model.iops, 7u);
  EXPECT_EQ(model.units, 9u);
  EXPECT_EQ(model.link_bytes_per_us, 7450u);
}

TEST(TimingText, nonsense_is_named) {
  for (const char* text : {"", "995pro", "units", "units=", "units=x", "units=8x", "units=-1",
                           "units=5000000000", "units=2000", "speed=3", "iops=1,990pro",
                           "stripe_bytes=0", "units=8,", "iops=2000000000"}) {
    EXPECT_THROW(parse_timing_model(text), std::invalid_argument) << text;
  }
  try {
    parse_timing_model("units=8,speed=3");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("speed"), std::string::npos);
  }
}

class TimedController : public ::testing::Test {
 protected:
  VirtualSsdConfig config(const char* model) {
    VirtualSsdConfig config;
    config.queue_pairs_max = 2;
    config.model = parse_timing_model(model);
    config.virtual_clock = true;
    return config;
  }
  uint64_t now(TestDriver& driver) {
    return read_counters(driver.memory().space(), driver.ref()).virtual_now_ns;
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), 1 << 20};
};

TEST_F(TimedController, one_read_takes_the_models_time) {
  TestDriver driver(config("990pro"), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16);
  uint8_t* const data = memory_.bytes(4096);
  for (uint64_t i = 1; i <= 20; ++i) {
    driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, i * 8, 8, data));
    EXPECT_EQ(now(driver), i * 49550);  // 40 us, 9 us, and 4 KiB at 7.45 GB/s
  }
}

TEST_F(TimedController, nothing_completes_before_its_time) {
  TestDriver driver(config("units=1,unit_ns=1000"), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16);
  uint8_t* const data = memory_.bytes(512);
  for (uint16_t cid = 0; cid < 5; ++cid) {
    auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, 1, data);
    entry.cid = cid;
    driver.submit(queue, entry);
  }
  uint16_t completed = 0;
  for (int i = 0; i < 100 && completed < 5; ++i) {
    driver.step(1);
    while (const auto done = TestDriver::take(queue)) {
      EXPECT_EQ(done->cid, completed);
      ++completed;
      EXPECT_GE(now(driver), completed * 1000u);
    }
  }
  EXPECT_EQ(completed, 5);
  EXPECT_EQ(now(driver), 5000u);
}

TEST_F(TimedController, completes_in_the_order_of_time_not_of_submission) {
  TestDriver driver(config("units=2,read_ns=1000,write_ns=50000"), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16);
  uint8_t* const data = memory_.bytes(4096);
  auto slow = TestDriver::io_entry(IoOpcode::kWrite, 0, 8, data);
  slow.cid = 1;
  auto fast = TestDriver::io_entry(IoOpcode::kRead, 8, 8, data);
  fast.cid = 2;
  driver.submit(queue, slow);
  driver.submit(queue, fast);
  EXPECT_EQ(driver.wait(queue).cid, 2);
  EXPECT_EQ(now(driver), 1000u);
  EXPECT_EQ(driver.wait(queue).cid, 1);
  EXPECT_EQ(now(driver), 50000u);
}

TEST_F(TimedController, a_run_can_be_repeated_exactly) {
  uint64_t ends[2] = {};
  for (uint64_t& end : ends) {
    TestDriver driver(config("p5800x"), media_.media());
    driver.enable_ready();
    // Deep enough that no command has to wait for the slow one whose place it would take.
    TestQueue queue = driver.create_pair(1, 1024);
    uint8_t* const data = memory_.bytes(4096);
    std::mt19937 random(3);
    uint32_t outstanding = 0;
    for (int i = 0; i < 2000 || outstanding > 0;) {
      while (i < 2000 && outstanding < 63) {
        driver.submit(queue, TestDriver::io_entry(IoOpcode::kRead, random() % 256 * 8, 8, data));
        ++i;
        ++outstanding;
      }
      driver.step(1);
      while (TestDriver::take(queue)) --outstanding;
      driver.ring_completion(queue);
    }
    end = now(driver);
  }
  EXPECT_EQ(ends[0], ends[1]);
  // And it is the closed loop of the model alone.
  std::mt19937 random(3);
  const Rates loop = run_closed_loop(parse_timing_model("p5800x"), 63, 2000, [&](uint32_t) {
    return TimedCommand{kRead, false, random() % 256 * 4096, 4096};
  });
  EXPECT_NEAR(static_cast<double>(ends[0]), 2000 / loop.commands_per_s * 1e9, 1000);
}

TEST_F(TimedController, more_outstanding_than_one_scan_looks_at) {
  VirtualSsdConfig config = this->config("units=16,unit_ns=10000");
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 1000);
  uint8_t* const data = memory_.bytes(4096);
  for (uint32_t i = 0; i < 999; ++i) {
    auto entry = TestDriver::io_entry(IoOpcode::kRead, i * 37 % 256 * 8, 8, data);
    entry.cid = static_cast<uint16_t>(i);
    TestDriver::put(queue, entry);
  }
  driver.ring(queue);
  std::vector<bool> seen(999);
  uint32_t completed = 0;
  for (uint32_t i = 0; i < 100000 && completed < 999; ++i) {
    driver.step(1);
    while (const auto done = TestDriver::take(queue)) {
      ASSERT_FALSE(seen[done->cid]);
      seen[done->cid] = true;
      ++completed;
    }
  }
  EXPECT_EQ(completed, 999u);
}

TEST_F(TimedController, real_time_holds_completions_back) {
  VirtualSsdConfig config = this->config("latency_ns=3000000");
  config.virtual_clock = false;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const data = memory_.bytes(512);
  const uint64_t start = simt::now_ns();
  driver.submit(queue, TestDriver::io_entry(IoOpcode::kRead, 0, 1, data));
  while (!TestDriver::peek(queue) && simt::now_ns() < start + 10'000'000'000) driver.step(1);
  EXPECT_TRUE(TestDriver::peek(queue));
  EXPECT_GE(simt::now_ns() - start, 3000000u);
}

// Threads share the words of the model: none of the time that they take may be lost.
TEST(TimingModel, threads_share_the_resources) {
  const TimingModel model = parse_timing_model("units=3,unit_ns=100,iops=1000000,link_mb_s=4096");
  const auto state = std::make_unique<TimingState>();
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 1000;
  simt::run_workers(kThreads, [&](const simt::Warp&, uint32_t) {
    for (uint32_t i = 0; i < kEach; ++i) {
      finish_time(model, *state, 0, {kRead, false, uint64_t{i % 3} * 4096, 4096});
    }
  });
  EXPECT_EQ(state->token, uint64_t{kThreads} * kEach * 1000);
  EXPECT_EQ(state->link_read, uint64_t{kThreads} * kEach * 1000);
}

}  // namespace
}  // namespace gofs::ssd
