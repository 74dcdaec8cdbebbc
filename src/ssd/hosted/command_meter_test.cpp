// SPDX-License-Identifier: Apache-2.0
//
// What is made of the times that a controller's threads look at; here they are given.
#include "ssd/hosted/command_meter.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace gofs::ssd {
namespace {

using format::nvme::IoOpcode;

constexpr auto kRead = static_cast<uint8_t>(IoOpcode::kRead);
constexpr auto kFlush = static_cast<uint8_t>(IoOpcode::kFlush);
constexpr uint64_t kUs = 1000;

MeasuredCommands sum_of(const CommandMeter& meter) {
  MeasuredCommands sum{};
  meter.add_to(sum);
  return sum;
}

TEST(CommandMeter, a_bucket_ends_with_a_power_of_two_of_microseconds) {
  EXPECT_EQ(CommandMeter::bucket_of(0), 0u);
  for (uint32_t i = 0; i + 1 < MeasuredCommands::kBuckets; ++i) {
    const uint64_t end_ns = (uint64_t{1} << i) * kUs;
    EXPECT_EQ(CommandMeter::bucket_of(end_ns), i);
    EXPECT_EQ(CommandMeter::bucket_of(end_ns + 1), i + 1);
  }
  EXPECT_EQ(CommandMeter::bucket_of(~uint64_t{0}), MeasuredCommands::kBuckets - 1);
}

TEST(CommandMeter, each_command_is_counted_once_with_its_kind_and_time) {
  BusyTime busy;
  CommandMeter meter(busy);
  meter.begin(1000 * kUs);
  meter.begin(1000 * kUs);
  EXPECT_EQ(sum_of(meter).under_way, 2u);
  meter.end(kRead, 1000 * kUs, 1003 * kUs);
  meter.end(kFlush, 1000 * kUs, 1100 * kUs);
  meter.begin(2000 * kUs);
  meter.end(kRead, 2000 * kUs, 2004 * kUs);
  meter.begin(2000 * kUs);
  meter.end(static_cast<uint8_t>(IoOpcode::kWriteZeroes), 2000 * kUs, 2001 * kUs);
  const MeasuredCommands sum = sum_of(meter);
  const auto& read = sum.kinds[static_cast<uint32_t>(CommandKind::kRead)];
  const auto& flush = sum.kinds[static_cast<uint32_t>(CommandKind::kFlush)];
  EXPECT_EQ(read.counts[2], 2u);
  EXPECT_EQ(read.total_ns, 7 * kUs);
  EXPECT_EQ(flush.counts[7], 1u);
  EXPECT_EQ(flush.total_ns, 100 * kUs);
  EXPECT_EQ(sum.under_way, 0u);
  uint64_t counted = 0;
  for (const auto& kind : sum.kinds) {
    for (const uint64_t count : kind.counts) counted += count;
  }
  EXPECT_EQ(counted, 3u) << "the driver writes no zeroes, so they have no kind";
}

TEST(CommandMeter, a_clock_that_went_back_is_no_time) {
  BusyTime busy;
  CommandMeter meter(busy);
  meter.begin(10 * kUs);
  meter.end(kRead, 10 * kUs, 9 * kUs);
  EXPECT_EQ(sum_of(meter).kinds[static_cast<uint32_t>(CommandKind::kRead)].counts[0], 1u);
  EXPECT_EQ(busy.until(10 * kUs), 0u);
}

TEST(BusyTime, is_that_of_any_thread_and_counts_once) {
  BusyTime busy;
  CommandMeter one(busy);
  CommandMeter other(busy);
  EXPECT_EQ(busy.until(50 * kUs), 0u);
  one.begin(100 * kUs);
  EXPECT_EQ(busy.until(110 * kUs), 10 * kUs);
  other.begin(120 * kUs);
  one.end(kRead, 100 * kUs, 130 * kUs);
  EXPECT_EQ(busy.until(140 * kUs), 40 * kUs);
  other.end(kRead, 120 * kUs, 150 * kUs);
  EXPECT_EQ(busy.until(1000 * kUs), 50 * kUs);
  one.begin(2000 * kUs);
  EXPECT_EQ(busy.until(2000 * kUs), 50 * kUs);
  EXPECT_EQ(busy.until(1900 * kUs), 0u) << "who looks may have looked at his clock before";
  one.begin(2000 * kUs);
  one.stop(2010 * kUs);
  one.stop(2020 * kUs);
  EXPECT_EQ(busy.until(3000 * kUs), 60 * kUs);
}

TEST(BusyTime, comes_out_even_when_many_threads_begin_and_end) {
  BusyTime busy;
  constexpr uint64_t kSteps = 20'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&busy] {
      for (uint64_t step = 0; step < kSteps; ++step) {
        busy.begin(7000 * kUs);
        busy.end(7000 * kUs);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(busy.until(9000 * kUs), 0u);
  busy.begin(9000 * kUs);
  EXPECT_EQ(busy.until(9005 * kUs), 5 * kUs);
}

}  // namespace
}  // namespace gofs::ssd
