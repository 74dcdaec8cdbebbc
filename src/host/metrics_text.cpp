// SPDX-License-Identifier: Apache-2.0
#include "host/metrics_text.h"

#include <fmt/format.h>

#include <utility>

#include "gofs/metrics.hpp"
#include "gofs/version.h"

namespace gofs {
namespace host {

namespace {

class Exposition {
 public:
  /// Begins a metric; its samples follow.
  void begin(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  /// `labels` as they stand in braces, or none. `suffix`: of the metric's name.
  template <typename Value>
  void sample(const std::string& labels, Value value, const char* suffix = "") {
    text_ += labels.empty() ? fmt::format("{}{} {}\n", name_, suffix, value)
                            : fmt::format("{}{}{{{}}} {}\n", name_, suffix, labels, value);
  }
  void counter(const char* name, const char* help, uint64_t value) {
    begin(name, "counter", help);
    sample("", value);
  }
  void gauge(const char* name, const char* help, uint64_t value) {
    begin(name, "gauge", help);
    sample("", value);
  }
  /// A sample for each outcome of each kind.
  template <size_t kKinds>
  void outcomes(const OutcomeCounts (&counts)[kKinds], const char* const (&names)[kKinds],
                const char* outcome) {
    for (size_t i = 0; i < kKinds; ++i) {
      sample(fmt::format("op=\"{}\",{}=\"success\"", names[i], outcome), counts[i].succeeded);
      sample(fmt::format("op=\"{}\",{}=\"error\"", names[i], outcome), counts[i].failed);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  const char* name_ = "";
  std::string text_;
};

void tell_calls(Exposition& out, const Statistics& seen) {
  out.begin("gofs_operations_total", "counter", "Calls of the file system.");
  out.outcomes(seen.calls, kCallKindNames, "result");
  out.counter("gofs_read_bytes_total", "Bytes that calls have read.", seen.bytes_read);
  out.counter("gofs_written_bytes_total", "Bytes that calls have written.", seen.bytes_written);
}

void tell_commands(Exposition& out, const Statistics& seen) {
  out.begin("gofs_nvme_commands_total", "counter", "NVMe commands that have completed.");
  out.outcomes(seen.commands, kCommandKindNames, "status");
  out.counter("gofs_nvme_read_bytes_total", "Bytes that NVMe commands have read.",
              seen.ssd_bytes_read);
  out.counter("gofs_nvme_written_bytes_total", "Bytes that NVMe commands have written.",
              seen.ssd_bytes_written);
  out.counter("gofs_nvme_timeouts_total", "NVMe commands that did not complete in time.",
              seen.command_timeouts);
  out.gauge("gofs_nvme_commands_under_way", "NVMe commands under way.", seen.commands_under_way);
}

constexpr double kNsPerSecond = 1e9;

/// Of one kind. Each bucket of Prometheus's holds those before it as well.
void tell_times(Exposition& out, const std::string& labels, const TimedCommands& timed) {
  constexpr double kUsPerSecond = 1e6;
  uint64_t count = 0;
  for (uint32_t i = 0; i < kTimeBuckets; ++i) {
    count += timed.counts[i];
    const bool last = i + 1 == kTimeBuckets;
    const std::string end =
        last ? "+Inf" : fmt::format("{}", static_cast<double>(uint64_t{1} << i) / kUsPerSecond);
    out.sample(fmt::format("{},le=\"{}\"", labels, end), count, "_bucket");
  }
  out.sample(labels, static_cast<double>(timed.total_ns) / kNsPerSecond, "_sum");
  out.sample(labels, count, "_count");
}

void tell_times(Exposition& out, const CommandTimes& times) {
  out.gauge("gofs_nvme_timed_ssds", "SSDs whose commands are timed.", times.ssds);
  if (times.ssds == 0) return;
  out.begin("gofs_nvme_command_seconds", "histogram", "How long NVMe commands have taken.");
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    tell_times(out, fmt::format("op=\"{}\"", kCommandKindNames[kind]), times.kinds[kind]);
  }
  out.begin("gofs_nvme_busy_seconds_total", "counter",
            "Time in which an SSD had a command under way, summed up over SSDs.");
  out.sample("", static_cast<double>(times.busy_ns) / kNsPerSecond);
}

void tell_caches(Exposition& out, const Statistics& seen) {
  const auto label = [](size_t i) { return fmt::format("kind=\"{}\"", kCacheKindNames[i]); };
  out.begin("gofs_cache_hits_total", "counter", "Look-ups that were answered from memory.");
  for (size_t i = 0; i < kCacheKinds; ++i) out.sample(label(i), seen.lookups[i].hits);
  out.begin("gofs_cache_misses_total", "counter", "Look-ups that were not.");
  for (size_t i = 0; i < kCacheKinds; ++i) out.sample(label(i), seen.lookups[i].misses);
  out.gauge("gofs_cache_pages", "Blocks of metadata that the page cache has room for.",
            seen.cache_pages);
  out.gauge("gofs_cache_dirty_pages", "Of these, newer than the SSD.", seen.dirty_pages);
  out.gauge("gofs_cache_dirty_node_pages", "Of these, nodes.", seen.dirty_node_pages);
}

void tell_segments(Exposition& out, const Statistics& seen) {
  out.begin("gofs_segments", "gauge", "Segments of the main area, of 2 MiB.");
  for (size_t i = 0; i < kSegmentStates; ++i) {
    out.sample(fmt::format("state=\"{}\"", kSegmentStateNames[i]), seen.segments[i]);
  }
  out.counter("gofs_checkpoints_total", "Checkpoints that were made.", seen.checkpoints);
  out.counter("gofs_cleaned_segments_total", "Segments that cleaning has emptied.",
              seen.cleaned_segments);
  out.counter("gofs_moved_blocks_total", "Blocks that cleaning has moved.", seen.moved_blocks);
}

}  // namespace

std::string metrics_text(const Statistics& statistics, const CommandTimes& times,
                         std::optional<uint64_t> clients) {
  Exposition out;
  out.begin("gofs_build_info", "gauge", "The version of GoFS.");
  out.sample("version=\"" GOFS_VERSION "\"", 1);
  if (clients) out.gauge("gofs_clients", "Processes that are attached.", *clients);
  tell_calls(out, statistics);
  tell_commands(out, statistics);
  tell_times(out, times);
  tell_caches(out, statistics);
  tell_segments(out, statistics);
  return out.take();
}

}  // namespace host

Expected<std::string> metrics(Volume& volume) {
  const auto statistics = volume.statistics();
  if (!statistics) return statistics.error();
  const auto times = command_times(volume);
  if (!times) return times.error();
  return host::metrics_text(*statistics, *times);
}

}  // namespace gofs
