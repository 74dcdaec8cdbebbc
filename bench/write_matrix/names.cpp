// SPDX-License-Identifier: Apache-2.0
//
// Files and directories, one by one and in batches.
#include "bench/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/writes.hpp"
#include "matrix.hpp"

namespace gofs::bench {

namespace {

constexpr uint32_t kFileBytes = 16 << 10;

std::string named(const Bench& bench, const std::string& what) { return bench.model + ", " + what; }

/// Raw writes of the size of a file. Bytes per second.
std::optional<double> raw_rate(const Bench& bench, uint32_t outstanding, uint64_t bytes_max) {
  WritePlan plan;
  plan.pattern = WritePattern::kSequential;
  plan.outstanding = outstanding;
  plan.block_bytes = kFileBytes;
  plan.bytes_max = bytes_max;
  plan.seconds = bytes_max == ~uint64_t{0} ? bench.options.seconds : 60;
  const uint64_t start = bench.volume.info().ssd_bytes - bench.options.span_bytes;
  const auto raw =
      bench.report.take(named(bench, "raw writes of 16 KiB"),
                        measure_raw_writes(bench.volume, plan, start, bench.options.span_bytes));
  if (!raw) return std::nullopt;
  return raw->bytes_per_second();
}

void measure_plan(const Bench& bench, NamesBench& names, const NamesPlan& plan) {
  const std::string what = plan.kind == NameKind::kDirectory ? "directories"
                           : plan.file_bytes == 0            ? "empty files"
                                                             : "16 KiB files";
  const std::string noun = what + (plan.place == NamePlace::kFirstHome ? " in one directory" : "");
  const auto done = bench.report.take(named(bench, fmt::format("{} by {} warps", noun, plan.warps)),
                                      names.make_and_remove(plan));
  (void)bench.report.take(named(bench, "checkpoint"), time_checkpoint(bench.volume));
  if (!done) return;
  Row row = {{"bench", "names"},
             {"model", bench.model},
             {"what", noun},
             {"warps", done->warps},
             {"names", done->names},
             {"made_per_s", done->made_per_second()},
             {"removed_per_s", done->removed_per_second()}};
  std::string beside;
  if (plan.file_bytes != 0) {
    const double rate = done->made_per_second() * plan.file_bytes;
    const auto raw = raw_rate(bench, done->warps, ~uint64_t{0});
    if (!raw) return;
    row["bytes_per_s"] = rate;
    row["raw_bytes_per_s"] = *raw;
    row["ratio"] = rate / *raw;
    beside = fmt::format("; {:.3f} GB/s, raw {:.3f} GB/s, ratio {:.3f}", rate / 1e9, *raw / 1e9,
                         rate / *raw);
  }
  bench.report.row(
      fmt::format("{:<8} {} one by one, {} warps: made {:.0f} /s, removed {:.0f} /s{}", bench.model,
                  noun, done->warps, done->made_per_second(), done->removed_per_second(), beside),
      row);
}

void measure_batch(const Bench& bench, const std::string& directory, uint32_t file_bytes) {
  const uint32_t files = bench.options.batch_files;
  const auto made = bench.report.take(
      named(bench, directory), measure_batch_creation(bench.volume, directory, files, file_bytes));
  const auto checkpoint =
      bench.report.take(named(bench, "checkpoint"), time_checkpoint(bench.volume));
  if (!made || !checkpoint) return;
  const double rate = static_cast<double>(made->files) / made->seconds;
  Row row = {{"bench", "batch_create"},    {"model", bench.model},     {"files", made->files},
             {"file_bytes", file_bytes},   {"seconds", made->seconds}, {"files_per_s", rate},
             {"checkpoint_s", *checkpoint}};
  std::string beside;
  if (file_bytes != 0) {
    constexpr uint32_t kRawOutstanding = 16384;
    double best = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      const auto raw = raw_rate(bench, kRawOutstanding, made->bytes);
      if (!raw) return;
      best = std::max(best, *raw);
    }
    const double bytes_rate = rate * file_bytes;
    row["bytes_per_s"] = bytes_rate;
    row["raw_bytes_per_s"] = best;
    row["ratio"] = bytes_rate / best;
    beside = fmt::format(", {:.2f} GB/s; raw {:.2f} GB/s, ratio {:.3f}", bytes_rate / 1e9,
                         best / 1e9, bytes_rate / best);
  }
  bench.report.row(fmt::format("{:<8} batch of {} files of {} bytes: {:.1f} ms, {:.0f} files/s{}; "
                               "checkpoint after it {:.1f} ms",
                               bench.model, made->files, file_bytes, made->seconds * 1e3, rate,
                               beside, *checkpoint * 1e3),
                   row);
}

}  // namespace

void measure_names(const Bench& bench) {
  if (!bench.options.wants("create")) return;
  NamesBench names(bench.volume, kWarpsMax, kFileBytes);
  const auto homes = bench.report.take(named(bench, "mkdir in one directory"), names.make_homes());
  if (!homes) return;
  bench.report.row(fmt::format("{:<8} mkdir in one directory, {} warps one each: {:.0f} /s",
                               bench.model, homes->warps, homes->made_per_second()),
                   {{"bench", "names"},
                    {"model", bench.model},
                    {"what", "mkdir in one directory"},
                    {"warps", homes->warps},
                    {"names", homes->names},
                    {"made_per_s", homes->made_per_second()}});
  using enum NameKind;
  using enum NamePlace;
  const double seconds = bench.options.seconds;
  const uint64_t many = bench.options.batch_files;
  // Of one directory they are removed one after the other, which takes the longest.
  const uint64_t some = std::min<uint64_t>(many, 32'768);
  for (NamesPlan plan : {NamesPlan{kFile, kOwnHome, 0, 0, seconds, many},
                         NamesPlan{kFile, kOwnHome, 0, kFileBytes, seconds, many},
                         NamesPlan{kDirectory, kOwnHome, 0, 0, seconds, many},
                         NamesPlan{kFile, kFirstHome, 0, 0, seconds, some},
                         NamesPlan{kDirectory, kFirstHome, 0, 0, seconds, some}}) {
    uint32_t last = 0;
    for (const uint32_t warps : {1u, 32u, kWarpsMax}) {
      const uint32_t actors = actors_by_warp(bench.volume.backend(), warps).count;
      if (actors == last) continue;
      last = actors;
      plan.warps = warps;
      measure_plan(bench, names, plan);
    }
  }
}

void measure_batches(const Bench& bench) {
  if (!bench.options.wants("batch")) return;
  measure_batch(bench, "/batch_empty", 0);
  measure_batch(bench, "/batch_filled", kFileBytes);
}

}  // namespace gofs::bench
