// SPDX-License-Identifier: Apache-2.0
#include "cli/statistics_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gofs::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMegabyte = 1e6;

uint64_t since(uint64_t before, uint64_t now) { return now >= before ? now - before : now; }

OutcomeCounts since(const OutcomeCounts& before, const OutcomeCounts& now) {
  return {since(before.succeeded, now.succeeded), since(before.failed, now.failed)};
}

uint64_t all_of(const OutcomeCounts& counts) { return counts.succeeded + counts.failed; }

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
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

}  // namespace

Rates rates_between(const Statistics& before, const Statistics& now, double seconds) {
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
  rates.read_mb = rate(since(before.bytes_read, now.bytes_read)) / kMegabyte;
  rates.written_mb = rate(since(before.bytes_written, now.bytes_written)) / kMegabyte;
  rates.ssd_read_mb = rate(since(before.ssd_bytes_read, now.ssd_bytes_read)) / kMegabyte;
  rates.ssd_written_mb = rate(since(before.ssd_bytes_written, now.ssd_bytes_written)) / kMegabyte;
  uint64_t hits = 0;
  uint64_t looked_up = 0;
  for (uint32_t i = 0; i < kCacheKinds; ++i) {
    const uint64_t found = since(before.lookups[i].hits, now.lookups[i].hits);
    hits += found;
    looked_up += found + since(before.lookups[i].misses, now.lookups[i].misses);
  }
  rates.hit_percent = looked_up == 0 ? 100 : percent(hits, looked_up);
  return rates;
}

std::string rates_header() {
  return fmt::format(
      "{:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>6} {:>9} {:>8} {:>8} {:>6} {:>5} {:>6} {:>8}\n",
      "read/s", "rMB/s", "write/s", "wMB/s", "open/s", "other/s", "fail/s", "cmd/s", "ssd-rMB",
      "ssd-wMB", "queued", "%hit", "%dirty", "free-seg");
}

std::string rates_line(const Rates& rates, const Statistics& now) {
  return fmt::format(
      "{:>9.0f} {:>8.1f} {:>9.0f} {:>8.1f} {:>8.0f} {:>8.0f} {:>6.0f} {:>9.0f} {:>8.1f} {:>8.1f} "
      "{:>6} {:>5.1f} {:>6.1f} {:>8}\n",
      rates.reads, rates.read_mb, rates.writes, rates.written_mb, rates.opens, rates.others,
      rates.failed, rates.commands, rates.ssd_read_mb, rates.ssd_written_mb, now.commands_under_way,
      rates.hit_percent, percent(now.dirty_pages, now.cache_pages),
      segments_in(now, SegmentState::kFree));
}

std::string rates_json(const Rates& rates, const Statistics& now) {
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
                       {"statistics", json_of(now)}};
  return object.dump() + "\n";
}

}  // namespace gofs::cli
