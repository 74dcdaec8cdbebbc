// SPDX-License-Identifier: Apache-2.0
#include "cli/command_delays.h"

#include <algorithm>

namespace gofs::cli {

namespace {

constexpr double kNsPerMs = 1e6;
constexpr double kMsPerUs = 1e-3;
constexpr double kNsPerSecond = 1e9;

bool is_less(const TimedCommands& one, const TimedCommands& other) {
  for (uint32_t i = 0; i < kTimeBuckets; ++i) {
    if (one.counts[i] < other.counts[i]) return true;
  }
  return one.total_ns < other.total_ns;
}

bool has_begun_anew(const CommandTimes& before, const CommandTimes& now) {
  if (before.ssds != now.ssds) return true;
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    if (is_less(now.kinds[kind], before.kinds[kind])) return true;
  }
  return false;
}

/// Adds what has ended between two looks.
void add(TimedCommands& sum, const TimedCommands& before, const TimedCommands& now) {
  for (uint32_t i = 0; i < kTimeBuckets; ++i) sum.counts[i] += now.counts[i] - before.counts[i];
  sum.total_ns += now.total_ns - before.total_ns;
}

uint64_t count_of(const TimedCommands& commands) {
  uint64_t sum = 0;
  for (const uint64_t count : commands.counts) sum += count;
  return sum;
}

std::optional<double> await_ms(const TimedCommands& before, const TimedCommands& now) {
  TimedCommands ended{};
  add(ended, before, now);
  const uint64_t count = count_of(ended);
  if (count == 0) return std::nullopt;
  return static_cast<double>(ended.total_ns) / kNsPerMs / static_cast<double>(count);
}

/// How long the fastest `part` of them took at most, if times within a bucket are spread evenly. Of
/// those beyond the last bucket's beginning no more is known than that.
std::optional<double> quantile_ms(const TimedCommands& ended, double part) {
  const uint64_t count = count_of(ended);
  if (count == 0) return std::nullopt;
  double left = part * static_cast<double>(count);
  for (uint32_t i = 0; i < kTimeBuckets; ++i) {
    const auto here = static_cast<double>(ended.counts[i]);
    const double begin_us = i == 0 ? 0 : static_cast<double>(uint64_t{1} << (i - 1));
    if (i + 1 == kTimeBuckets) return begin_us * kMsPerUs;
    const double end_us = static_cast<double>(uint64_t{1} << i);
    if (left <= here) return (begin_us + (end_us - begin_us) * left / here) * kMsPerUs;
    left -= here;
  }
  return std::nullopt;
}

}  // namespace

CommandDelays delays_between(const CommandTimes& earlier, const CommandTimes& now, double seconds) {
  CommandDelays delays;
  if (now.ssds == 0) return delays;
  const CommandTimes before = has_begun_anew(earlier, now) ? CommandTimes{} : earlier;
  TimedCommands all{};
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    add(all, before.kinds[kind], now.kinds[kind]);
  }
  const auto one_await = [&](CommandKind kind) {
    const auto index = static_cast<uint32_t>(kind);
    return await_ms(before.kinds[index], now.kinds[index]);
  };
  delays.read_await_ms = one_await(CommandKind::kRead);
  delays.write_await_ms = one_await(CommandKind::kWrite);
  delays.p50_ms = quantile_ms(all, 0.5);
  delays.p99_ms = quantile_ms(all, 0.99);
  const double ns = seconds * kNsPerSecond;
  delays.queue = static_cast<double>(all.total_ns) / ns;
  // Threads look at their clocks before what they note is seen: it may seem to go back a little.
  const uint64_t busy_ns = std::max(now.busy_ns, before.busy_ns) - before.busy_ns;
  delays.busy_percent = std::min(100.0, 100.0 * static_cast<double>(busy_ns) / ns / now.ssds);
  return delays;
}

}  // namespace gofs::cli
