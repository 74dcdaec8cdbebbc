// SPDX-License-Identifier: Apache-2.0
//
// What is made of two looks at a volume's counts, also where these began anew in between.
#include "cli/statistics_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace gofs::cli {
namespace {

constexpr auto kRead = static_cast<uint32_t>(CommandKind::kRead);
constexpr auto kWrite = static_cast<uint32_t>(CommandKind::kWrite);
constexpr auto kFlush = static_cast<uint32_t>(CommandKind::kFlush);
constexpr uint64_t kMsInNs = 1'000'000;

/// One SSD that has read and flushed.
CommandTimes some_times() {
  CommandTimes times{};
  times.ssds = 1;
  times.kinds[kRead].counts[6] = 98;  // 32 to 64 us
  times.kinds[kRead].total_ns = 98 * kMsInNs / 20;
  times.kinds[kFlush].counts[11] = 2;  // 1,024 to 2,048 us
  times.kinds[kFlush].total_ns = 2 * kMsInNs;
  times.busy_ns = 500 * kMsInNs;
  return times;
}

TEST(CommandDelays, are_of_what_has_ended_between_two_looks) {
  CommandTimes now = some_times();
  const CommandDelays first = delays_between(CommandTimes{}, now, 2);
  EXPECT_DOUBLE_EQ(first.read_await_ms.value(), 0.05);
  EXPECT_FALSE(first.write_await_ms);
  EXPECT_NEAR(first.p50_ms.value(), 0.032 + 0.032 * 50 / 98, 1e-9);
  EXPECT_NEAR(first.p99_ms.value(), 1.024 + 1.024 / 2, 1e-9);
  EXPECT_DOUBLE_EQ(first.queue.value(), (98 * 0.05 + 2) / 2000);
  EXPECT_DOUBLE_EQ(first.busy_percent.value(), 25);
  const CommandTimes before = now;
  now.kinds[kWrite].counts[0] = 1;
  now.kinds[kWrite].total_ns = 1000;
  now.busy_ns += 2 * kMsInNs;
  const CommandDelays second = delays_between(before, now, 0.001);
  EXPECT_FALSE(second.read_await_ms);
  EXPECT_DOUBLE_EQ(second.write_await_ms.value(), 0.001);
  EXPECT_LE(second.p99_ms.value(), 0.001);
  EXPECT_EQ(second.busy_percent.value(), 100) << "of a time that was looked at a little later";
}

TEST(CommandDelays, of_no_commands_are_not_known_but_for_the_queue) {
  const CommandDelays idle = delays_between(some_times(), some_times(), 1);
  EXPECT_FALSE(idle.read_await_ms || idle.write_await_ms || idle.p50_ms || idle.p99_ms);
  EXPECT_EQ(idle.queue.value(), 0);
  EXPECT_EQ(idle.busy_percent.value(), 0);
  const CommandDelays untimed = delays_between(CommandTimes{}, CommandTimes{}, 1);
  EXPECT_FALSE(untimed.queue || untimed.busy_percent || untimed.p50_ms);
}

TEST(CommandDelays, beyond_the_last_bucket_are_its_beginning) {
  CommandTimes now{};
  now.ssds = 1;
  now.kinds[kRead].counts[kTimeBuckets - 1] = 1;
  EXPECT_DOUBLE_EQ(delays_between(CommandTimes{}, now, 1).p50_ms.value(), 16777.216);
}

TEST(CommandDelays, of_counts_that_began_anew_are_of_all_of_them) {
  CommandTimes before = some_times();
  before.kinds[kRead].counts[6] = 1000;
  before.kinds[kFlush].counts[11] = 0;  // it has grown all the same
  before.busy_ns *= 7;
  const CommandDelays delays = delays_between(before, some_times(), 2);
  EXPECT_DOUBLE_EQ(delays.read_await_ms.value(), 0.05);
  EXPECT_DOUBLE_EQ(delays.busy_percent.value(), 25);
}

TEST(CommandDelays, of_a_busy_time_that_seems_to_go_back_are_none) {
  CommandTimes before = some_times();
  before.busy_ns += 1000;
  EXPECT_EQ(delays_between(before, some_times(), 2).busy_percent.value(), 0);
}

TEST(Rates, of_counts_that_began_anew_are_of_all_of_them) {
  Statistics before{};
  before.calls[static_cast<uint32_t>(CallKind::kRead)].succeeded = 100;
  before.bytes_read = 5'000'000;
  before.lookups[0] = {10, 90};
  Statistics now{};
  now.calls[static_cast<uint32_t>(CallKind::kRead)].succeeded = 8;
  now.bytes_read = 6'000'000;  // more than before, and not the million that it looks like
  now.lookups[0] = {30, 10};
  const Rates rates = rates_between(before, now, 2);
  EXPECT_EQ(rates.reads, 4);
  EXPECT_EQ(rates.read_mb, 3);
  EXPECT_EQ(rates.hit_percent, 75);
}

TEST(RatesText, says_what_is_not_known) {
  const Statistics now{};
  const Rates rates = rates_between(now, now, 1);
  const std::string unknown = rates_line(rates, now, CommandDelays{});
  EXPECT_EQ(unknown.size(), rates_header().size());
  EXPECT_NE(unknown.find(" - "), std::string::npos) << unknown;
  const auto object =
      nlohmann::json::parse(rates_json(rates, now, CommandDelays{}, CommandTimes{}));
  EXPECT_TRUE(object["delays"]["p99_ms"].is_null());
  EXPECT_TRUE(object["command_times"].is_null());

  const CommandTimes times = some_times();
  const CommandDelays delays = delays_between(CommandTimes{}, times, 2);
  EXPECT_NE(rates_line(rates, now, delays).find(" 0.050 "), std::string::npos);
  const auto known = nlohmann::json::parse(rates_json(rates, now, delays, times));
  EXPECT_EQ(known["delays"]["busy_percent"].get<double>(), 25);
  EXPECT_EQ(known["command_times"]["kinds"]["read"]["counts"][6].get<uint64_t>(), 98u);
  EXPECT_EQ(known["command_times"]["kinds"]["read"]["counts"].size(), kTimeBuckets);
}

}  // namespace
}  // namespace gofs::cli
