// SPDX-License-Identifier: Apache-2.0
#include "cli/statistics_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace gofs::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMegabyte = 1e6;

OutcomeCounts since(const OutcomeCounts& before, const OutcomeCounts& now) {
  return {now.succeeded - before.succeeded, now.failed - before.failed};
}

uint64_t all_of(const OutcomeCounts& counts) { return counts.succeeded + counts.failed; }

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

bool is_less(const OutcomeCounts& one, const OutcomeCounts& other) {
  return one.succeeded < other.succeeded || one.failed < other.failed;
}
bool is_less(const LookupCounts& one, const LookupCounts& other) {
  return one.hits < other.hits || one.misses < other.misses;
}
template <typename Count, size_t kKinds>
bool any_is_less(const Count (&counts)[kKinds], const Count (&others)[kKinds]) {
  for (size_t i = 0; i < kKinds; ++i) {
    if (is_less(counts[i], others[i])) return true;
  }
  return false;
}

/// Counts only grow while a volume is mounted.
bool has_begun_anew(const Statistics& before, const Statistics& now) {
  return any_is_less(now.calls, before.calls) || any_is_less(now.commands, before.commands) ||
         any_is_less(now.lookups, before.lookups) || now.bytes_read < before.bytes_read ||
         now.bytes_written < before.bytes_written || now.ssd_bytes_read < before.ssd_bytes_read ||
         now.ssd_bytes_written < before.ssd_bytes_written;
}

uint64_t segments_in(const Statistics& now, SegmentState state) {
  return now.segments[static_cast<uint32_t>(state)];
}

/// An object with a member for each of some kinds.
template <typename Count, size_t kKinds, typename JsonOf>
Json by_kind(const Count (&counts)[kKinds], const char* const (&names)[kKinds], JsonOf json_of) {
  Json object = Json::object();
  for (size_t i = 0; i < kKinds; ++i) object[names[i]] = json_of(counts[i]);
  return object;
}

Json json_of(const OutcomeCounts& counts) {
  return {{"succeeded", counts.succeeded}, {"failed", counts.failed}};
}

Json json_of(const Statistics& now) {
  const auto outcome = [](const OutcomeCounts& counts) { return json_of(counts); };
  const auto lookups = [](const LookupCounts& counts) {
    return Json{{"hits", counts.hits}, {"misses", counts.misses}};
  };
  return {
      {"calls", by_kind(now.calls, kCallKindNames, outcome)},
      {"bytes_read", now.bytes_read},
      {"bytes_written", now.bytes_written},
      {"commands", by_kind(now.commands, kCommandKindNames, outcome)},
      {"ssd_bytes_read", now.ssd_bytes_read},
      {"ssd_bytes_written", now.ssd_bytes_written},
      {"command_timeouts", now.command_timeouts},
      {"commands_under_way", now.commands_under_way},
      {"lookups", by_kind(now.lookups, kCacheKindNames, lookups)},
      {"cache_pages", now.cache_pages},
      {"dirty_pages", now.dirty_pages},
      {"dirty_node_pages", now.dirty_node_pages},
      {"segments", by_kind(now.segments, kSegmentStateNames, [](uint64_t count) { return count; })},
      {"checkpoints", now.checkpoints},
      {"cleaned_segments", now.cleaned_segments},
      {"moved_blocks", now.moved_blocks}};
}

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json json_of(const CommandDelays& delays) {
  return {{"read_await_ms", json_of(delays.read_await_ms)},
          {"write_await_ms", json_of(delays.write_await_ms)},
          {"p50_ms", json_of(delays.p50_ms)},
          {"p99_ms", json_of(delays.p99_ms)},
          {"queue", json_of(delays.queue)},
          {"busy_percent", json_of(delays.busy_percent)}};
}

Json json_of(const CommandTimes& times) {
  if (times.ssds == 0) return {};
  const auto timed = [](const TimedCommands& kind) {
    return Json{{"counts", kind.counts}, {"total_ns", kind.total_ns}};
  };
  return {{"ssds", times.ssds},
          {"kinds", by_kind(times.kinds, kCommandKindNames, timed)},
          {"busy_ns", times.busy_ns},
          {"under_way", times.under_way}};
}

/// Of a number that is not known, or of nothing.
std::string text_of(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

}  // namespace

Rates rates_between(const Statistics& earlier, const Statistics& now, double seconds) {
  const Statistics before = has_begun_anew(earlier, now) ? Statistics{} : earlier;
  const auto rate = [seconds](uint64_t count) { return static_cast<double>(count) / seconds; };
  Rates rates{};
  rates.seconds = seconds;
  for (uint32_t i = 0; i < kCallKinds; ++i) {
    const OutcomeCounts made = since(before.calls[i], now.calls[i]);
    rates.failed += rate(made.failed);
    switch (static_cast<CallKind>(i)) {
      case CallKind::kRead:
        rates.reads = rate(all_of(made));
        break;
      case CallKind::kWrite:
        rates.writes = rate(all_of(made));
        break;
      case CallKind::kOpen:
        rates.opens = rate(all_of(made));
        break;
      default:
        rates.others += rate(all_of(made));
    }
  }
  for (uint32_t i = 0; i < kCommandKinds; ++i) {
    rates.commands += rate(all_of(since(before.commands[i], now.commands[i])));
  }
  rates.read_mb = rate(now.bytes_read - before.bytes_read) / kMegabyte;
  rates.written_mb = rate(now.bytes_written - before.bytes_written) / kMegabyte;
  rates.ssd_read_mb = rate(now.ssd_bytes_read - before.ssd_bytes_read) / kMegabyte;
  rates.ssd_written_mb = rate(now.ssd_bytes_written - before.ssd_bytes_written) / kMegabyte;
  uint64_t hits = 0;
  uint64_t looked_up = 0;
  for (uint32_t i = 0; i < kCacheKinds; ++i) {
    const uint64_t found = now.lookups[i].hits - before.lookups[i].hits;
    hits += found;
    looked_up += found + now.lookups[i].misses - before.lookups[i].misses;
  }
  rates.hit_percent = looked_up == 0 ? 100 : percent(hits, looked_up);
  return rates;
}

std::string rates_header() {
  return fmt::format(
      "{:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>6} {:>9} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} "
      "{:>7} {:>5} {:>5} {:>6} {:>8}\n",
      "read/s", "rMB/s", "write/s", "wMB/s", "open/s", "other/s", "fail/s", "cmd/s", "ssd-rMB",
      "ssd-wMB", "queued", "r_await", "w_await", "p50", "p99", "aqu-sz", "%util", "%hit", "%dirty",
      "free-seg");
}

std::string rates_line(const Rates& rates, const Statistics& now, const CommandDelays& delays) {
  return fmt::format(
      "{:>9.0f} {:>8.1f} {:>9.0f} {:>8.1f} {:>8.0f} {:>8.0f} {:>6.0f} {:>9.0f} {:>8.1f} {:>8.1f} "
      "{:>6} {:>8} {:>8} {:>8} {:>8} {:>7} {:>5} {:>5.1f} {:>6.1f} {:>8}\n",
      rates.reads, rates.read_mb, rates.writes, rates.written_mb, rates.opens, rates.others,
      rates.failed, rates.commands, rates.ssd_read_mb, rates.ssd_written_mb, now.commands_under_way,
      text_of(delays.read_await_ms, 3), text_of(delays.write_await_ms, 3),
      text_of(delays.p50_ms, 3), text_of(delays.p99_ms, 3), text_of(delays.queue, 2),
      text_of(delays.busy_percent, 1), rates.hit_percent, percent(now.dirty_pages, now.cache_pages),
      segments_in(now, SegmentState::kFree));
}

std::string rates_json(const Rates& rates, const Statistics& now, const CommandDelays& delays,
                       const CommandTimes& times) {
  const Json object = {{"seconds", rates.seconds},
                       {"rates",
                        {{"reads", rates.reads},
                         {"read_mb", rates.read_mb},
                         {"writes", rates.writes},
                         {"written_mb", rates.written_mb},
                         {"opens", rates.opens},
                         {"others", rates.others},
                         {"failed", rates.failed},
                         {"commands", rates.commands},
                         {"ssd_read_mb", rates.ssd_read_mb},
                         {"ssd_written_mb", rates.ssd_written_mb},
                         {"hit_percent", rates.hit_percent}}},
                       {"delays", json_of(delays)},
                       {"statistics", json_of(now)},
                       {"command_times", json_of(times)}};
  return object.dump() + "\n";
}

}  // namespace gofs::cli
