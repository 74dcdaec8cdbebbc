// SPDX-License-Identifier: Apache-2.0
//
// 4 KiB writes through the file API beside raw commands.
#include "bench/writes.hpp"

#include <fmt/format.h>

#include "matrix.hpp"

namespace gofs::bench {

namespace {

constexpr uint32_t kOutstanding[] = {1, 32, 1024, 32768};
/// A measurement stops there, so that what it leaves behind fits on the volume.
constexpr uint64_t kBytesMax = uint64_t{512} << 20;

const char* name_of(WritePattern pattern) {
  if (pattern == WritePattern::kAppend) return "append";
  return pattern == WritePattern::kRandom ? "random" : "sequential";
}
const char* name_of(WriteScope scope) { return scope == WriteScope::kWarp ? "warp" : "thread"; }

class Writes {
 public:
  explicit Writes(const Bench& bench)
      : bench_(bench),
        volume_(bench.volume),
        raw_start_(bench.volume.info().ssd_bytes - bench.options.span_bytes) {}

  void run() {
    const bool overwrites = wants("overwrite");
    if (overwrites || wants("fsync") || wants("pause")) {
      own_ = make("/own", bench_.options.files, false);
      if (own_ == nullptr || !fill(*own_, "files of their own")) return;
    }
    if (overwrites) {
      one_ = make("/large", 1, false);
      if (one_ == nullptr || !fill(*one_, "one large file")) return;
      say_heading();
      for (const WritePattern pattern : {WritePattern::kSequential, WritePattern::kRandom}) {
        compare_all(pattern, *own_, "own");
        compare_all(pattern, *one_, "one");
      }
    }
    if (wants("append")) {
      appended_ = make("/append", bench_.options.files, true);
      if (appended_ == nullptr) return;
      if (!overwrites) say_heading();
      compare_all(WritePattern::kAppend, *appended_, "own");
    }
    if (wants("fsync")) measure_fsync();
    if (wants("pause")) measure_pause();
    for (auto* const files : {&own_, &one_, &appended_}) {
      if (*files != nullptr) take("emptying files", (*files)->resize(0));
    }
    checkpoint();
  }

 private:
  bool wants(const char* part) const { return bench_.options.wants(part); }
  std::string named(const std::string& what) const { return bench_.model + ", " + what; }
  template <typename T>
  auto take(const std::string& what, Expected<T> result) {
    return bench_.report.take(named(what), std::move(result));
  }
  bool take(const std::string& what, Expected<void> result) {
    if (!result) bench_.report.failure(named(what), result.error());
    return result.has_value();
  }
  void checkpoint() { (void)take("checkpoint", time_checkpoint(volume_)); }

  std::unique_ptr<BenchFiles> make(const std::string& directory, uint32_t count, bool append) {
    auto files = take(directory, BenchFiles::make(volume_, directory, count, append));
    return files ? std::move(*files) : nullptr;
  }

  /// Gives each file its size, and writes all of it.
  bool fill(BenchFiles& files, const char* name) {
    const uint64_t bytes = bench_.options.span_bytes / files.count() / kBlockBytes * kBlockBytes;
    if (!take(name, files.resize(bytes))) return false;
    const auto filled = take(name, files.fill(kWarpsMax));
    checkpoint();
    if (!filled) return false;
    const double rate = filled->bytes_per_second();
    bench_.report.row(fmt::format("{:<8} fill {}: {} bytes, {} at a time by {} warps: {:.2f} GB/s",
                                  bench_.model, name, filled->writes * filled->block_bytes,
                                  filled->block_bytes, filled->outstanding, rate / 1e9),
                      {{"bench", "fill"},
                       {"model", bench_.model},
                       {"files", files.count()},
                       {"write_bytes", filled->block_bytes},
                       {"warps", filled->outstanding},
                       {"bytes", filled->writes * filled->block_bytes},
                       {"bytes_per_s", rate}});
    return true;
  }

  /// Overwriting leaves segments partly empty: they are emptied before anybody has to clean, who
  /// would be measured.
  void make_room() {
    checkpoint();
    const auto segments = volume_.info().main_segments;
    if (volume_.free_segments() >= segments / 2) return;
    for (auto* const files : {&own_, &one_}) {
      if (*files == nullptr) continue;
      const uint64_t bytes = (*files)->bytes_each();
      if (!take("emptying", (*files)->resize(0))) return;
      checkpoint();
      if (!take("resizing", (*files)->resize(bytes))) return;
      (void)take("filling again", (*files)->fill(kWarpsMax));
      checkpoint();
    }
  }

  void say_heading() {
    bench_.report.say(fmt::format(
        "{:<8} {:<10} {:<5} {:<6} {:>8} {:>11} {:>11} {:>7} {:>9} {:>9} {:>11}", "model", "pattern",
        "files", "scope", "outst.", "raw/s", "file/s", "ratio", "raw us", "file us", "longest us"));
  }

  void compare_all(WritePattern pattern, BenchFiles& files, const char* which) {
    const kernels::Backend& backend = volume_.backend();
    for (const WriteScope scope : {WriteScope::kThread, WriteScope::kWarp}) {
      if (backend.is_host() && scope == WriteScope::kWarp) continue;  // a thread is a warp
      uint32_t last = 0;
      for (const uint32_t outstanding : kOutstanding) {
        const uint32_t actors = actors_by_lane(backend, outstanding).count;
        if (actors == last || (scope == WriteScope::kWarp && outstanding > kWarpsMax)) continue;
        last = actors;
        compare(pattern, scope, outstanding, files, which);
      }
    }
  }

  void compare(WritePattern pattern, WriteScope scope, uint32_t outstanding, BenchFiles& files,
               const char* which) {
    const std::string what =
        fmt::format("{} by {} {}s", name_of(pattern), outstanding, name_of(scope));
    WritePlan plan;
    plan.pattern = pattern;
    plan.scope = scope;
    plan.outstanding = outstanding;
    plan.seconds = bench_.options.seconds;
    WritePlan raw_plan = plan;
    raw_plan.seconds /= 2;  // it varies less
    plan.bytes_max = kBytesMax;
    const auto raw = take("raw " + what, measure_raw_writes(volume_, raw_plan, raw_start_,
                                                            bench_.options.span_bytes));
    if (pattern == WritePattern::kAppend && !take(what, files.resize(0))) return;
    const auto file = take(what, measure_file_writes(volume_, plan, files));
    make_room();
    if (!raw || !file) return;
    const double ratio = file->writes_per_second() / raw->writes_per_second();
    bench_.report.row(
        fmt::format("{:<8} {:<10} {:<5} {:<6} {:>8} {:>11.0f} {:>11.0f} {:>7.3f} {:>9.2f} {:>9.2f} "
                    "{:>11.1f}",
                    bench_.model, name_of(pattern), which, name_of(scope), file->outstanding,
                    raw->writes_per_second(), file->writes_per_second(), ratio, raw->latency_us(),
                    file->latency_us(), static_cast<double>(file->longest_ns) / 1e3),
        {{"bench", "write"},
         {"model", bench_.model},
         {"pattern", name_of(pattern)},
         {"files", which},
         {"scope", name_of(scope)},
         {"outstanding", file->outstanding},
         {"raw_outstanding", raw->outstanding},
         {"raw_writes_per_s", raw->writes_per_second()},
         {"file_writes_per_s", file->writes_per_second()},
         {"ratio", ratio},
         {"raw_latency_us", raw->latency_us()},
         {"file_latency_us", file->latency_us()},
         {"file_longest_us", static_cast<double>(file->longest_ns) / 1e3},
         {"writes", file->writes},
         {"seconds", file->seconds}});
  }

  void measure_fsync() {
    uint32_t last = 0;
    for (const uint32_t warps : {1u, 32u, kWarpsMax}) {
      WritePlan plan;
      plan.pattern = WritePattern::kSequential;
      plan.scope = WriteScope::kWarp;
      plan.outstanding = warps;
      plan.seconds = bench_.options.seconds;
      plan.bytes_max = kBytesMax;
      if (actors_by_warp(volume_.backend(), warps).count == last) continue;
      last = actors_by_warp(volume_.backend(), warps).count;
      const std::string what = fmt::format("fsync by {} warps", warps);
      const auto without = take(what, measure_file_writes(volume_, plan, *own_));
      make_room();
      plan.sync_each = true;
      const auto with = take(what, measure_file_writes(volume_, plan, *own_));
      make_room();
      if (!without || !with) continue;
      const double fsync_us = with->latency_us() - without->latency_us();
      bench_.report.row(
          fmt::format("{:<8} fsync after each 4 KiB overwrite, {} warps: {:.0f} /s; {:.1f} us with "
                      "the overwrite, {:.1f} us without it",
                      bench_.model, with->outstanding, with->writes_per_second(),
                      with->latency_us(), fsync_us),
          {{"bench", "fsync"},
           {"model", bench_.model},
           {"warps", with->outstanding},
           {"fsyncs_per_s", with->writes_per_second()},
           {"overwrite_and_fsync_us", with->latency_us()},
           {"overwrite_us", without->latency_us()},
           {"fsync_us", fsync_us}});
    }
  }

  void measure_pause() {
    constexpr uint32_t kWriters = 256;
    constexpr double kSecondsMin = 0.3;
    for (const uint32_t syncs : {0u, 4u}) {
      WritePlan plan;
      plan.outstanding = std::min(kWriters, bench_.options.files);
      plan.seconds = std::max(bench_.options.seconds, kSecondsMin);
      plan.bytes_max = 2 * kBytesMax;
      const auto pause = take(fmt::format("pauses of {} checkpoints", syncs),
                              measure_pauses(volume_, plan, *own_, syncs));
      make_room();
      if (!pause) continue;
      const double longest_us = static_cast<double>(pause->writes.longest_ns) / 1e3;
      bench_.report.row(
          fmt::format("{:<8} {} warps overwrite 4 KiB beside {} checkpoints: longest write {:.1f} "
                      "us, mean {:.1f} us; checkpoint {:.2f} ms, longest {:.2f} ms, {} dirty pages",
                      bench_.model, pause->writes.outstanding, pause->syncs, longest_us,
                      pause->writes.latency_us(), pause->sync_seconds * 1e3,
                      pause->sync_longest_seconds * 1e3, pause->dirty_pages),
          {{"bench", "pause"},
           {"model", bench_.model},
           {"warps", pause->writes.outstanding},
           {"checkpoints", pause->syncs},
           {"writes", pause->writes.writes},
           {"write_longest_us", longest_us},
           {"write_mean_us", pause->writes.latency_us()},
           {"checkpoint_ms", pause->sync_seconds * 1e3},
           {"checkpoint_longest_ms", pause->sync_longest_seconds * 1e3},
           {"dirty_pages", pause->dirty_pages}});
    }
  }

  const Bench& bench_;
  host::VolumeState& volume_;
  const uint64_t raw_start_;
  std::unique_ptr<BenchFiles> own_;
  std::unique_ptr<BenchFiles> one_;
  std::unique_ptr<BenchFiles> appended_;
};

}  // namespace

void measure_writes(const Bench& bench) {
  bool any = false;
  for (const char* const part : {"overwrite", "append", "fsync", "pause"}) {
    any = any || bench.options.wants(part);
  }
  if (any) Writes(bench).run();
}

}  // namespace gofs::bench
