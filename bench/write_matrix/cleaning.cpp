// SPDX-License-Identifier: Apache-2.0
//
// Random overwrites of a volume that is nearly full: who writes has to clean.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "bench/writes.hpp"
#include "matrix.hpp"

namespace gofs::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kFilesMax = 64;  // each has a warp that writes
constexpr double kSecondsMax = 3;   // then it ends, however little was written
constexpr uint32_t kTimesOverwritten = 2;
constexpr uint32_t kPortions = 16;

uint64_t device_blocks(const host::VolumeState& volume) {
  return volume.ssd_counters().blocks_written * volume.info().lba_bytes / kBlockBytes;
}

struct Overwritten {
  uint64_t writes = 0;
  double seconds = 0;
  uint64_t longest_ns = 0;
};

/// Overwrites twice as many bytes as the files have, if there is time.
Expected<Overwritten> overwrite(host::VolumeState& volume, const BenchFiles& files) {
  const uint64_t data_bytes = files.bytes_each() * files.count();
  WritePlan plan;
  plan.pattern = WritePattern::kRandom;
  plan.scope = WriteScope::kWarp;
  plan.outstanding = files.count();
  plan.bytes_max = data_bytes * kTimesOverwritten / kPortions;
  Overwritten all;
  while (all.writes * kBlockBytes < data_bytes * kTimesOverwritten && all.seconds < kSecondsMax) {
    plan.seconds = kSecondsMax - all.seconds;
    const auto portion = measure_file_writes(volume, plan, files);
    if (!portion) return portion.error();
    all.writes += portion->writes;
    all.seconds += portion->seconds;
    all.longest_ns = std::max(all.longest_ns, portion->longest_ns);
  }
  return all;
}

class Cleaning {
 public:
  Cleaning(const Options& options, Report& report, const std::string& model)
      : options_(options), report_(report), model_(model) {}

  void run(uint32_t percent) {
    const std::string path = options_.folder + "/gofs-write-clean.img";
    make_image(path, options_.clean_image_bytes, 0);
    {
      // Who writes over blocks where they lie leaves nothing to be cleaned.
      const auto volume = mount_image(options_, path, model_, options_.clean_cache_bytes, true);
      measure(*volume, percent);
    }
    (void)unlink(path.c_str());
  }

 private:
  template <typename T>
  auto take(uint32_t percent, Expected<T> result) {
    return report_.take(fmt::format("{}, cleaning at {} %", model_, percent), std::move(result));
  }

  void measure(host::VolumeState& volume, uint32_t percent) {
    FilesystemStat space{};
    (void)volume.call({.verb = request::Verb::kStatfs}, space);
    const uint64_t room = space.blocks_free;
    const uint32_t warps = actors_by_warp(volume.backend(), kFilesMax).count;
    auto files = take(percent, BenchFiles::make(volume, "/files", warps, false));
    if (!files) return;
    // Nodes take some of it too: one for each 1,018 blocks of a file, and its inode.
    const uint64_t blocks = room * percent / 100 / warps;
    const uint64_t nodes = 2 + blocks / 1018 + 1;
    const uint64_t bytes = (blocks - nodes) * kBlockBytes;
    if (auto sized = (*files)->resize(bytes); !sized) {
      report_.failure("sizing", sized.error());
      return;
    }
    if (!take(percent, (*files)->fill())) return;
    if (!take(percent, time_checkpoint(volume))) return;
    const CleaningReport before = volume.cleaning_totals();
    const uint64_t written_before = device_blocks(volume);
    const auto done = take(percent, overwrite(volume, **files));
    if (!done || !take(percent, time_checkpoint(volume))) return;
    const CleaningReport after = volume.cleaning_totals();
    const uint64_t written = device_blocks(volume) - written_before;
    FilesystemStat after_space{};
    (void)volume.call({.verb = request::Verb::kStatfs}, after_space);
    const double full =
        1 - static_cast<double>(after_space.blocks_free) / static_cast<double>(room);
    tell(percent, full, warps, *done, before, after, written);
  }

  void tell(uint32_t percent, double full, uint32_t warps, const Overwritten& done,
            const CleaningReport& before, const CleaningReport& after, uint64_t device_written) {
    const auto writes = static_cast<double>(done.writes);
    const uint64_t data_moved = after.data_blocks - before.data_blocks;
    const uint64_t nodes_moved =
        after.node_blocks - before.node_blocks + after.directory_blocks - before.directory_blocks;
    const double segments = static_cast<double>(after.segments - before.segments) / done.seconds;
    const double amplification = static_cast<double>(device_written) / writes;
    report_.row(
        fmt::format("{:<8} {} % full (measured {:.1f}): {:.0f} random 4 KiB overwrites/s by {} "
                    "warps, {} in {:.2f} s, longest {:.1f} ms; cleaned {:.0f} segments/s, moved {} "
                    "blocks of data and {} of nodes; write amplification {:.2f}",
                    model_, percent, full * 100, writes / done.seconds, warps, done.writes,
                    done.seconds, static_cast<double>(done.longest_ns) / 1e6, segments, data_moved,
                    nodes_moved, amplification),
        {{"bench", "clean"},
         {"model", model_},
         {"percent", percent},
         {"full", full},
         {"warps", warps},
         {"writes", done.writes},
         {"seconds", done.seconds},
         {"writes_per_s", writes / done.seconds},
         {"write_longest_ms", static_cast<double>(done.longest_ns) / 1e6},
         {"segments_cleaned", after.segments - before.segments},
         {"segments_cleaned_per_s", segments},
         {"data_blocks_moved", data_moved},
         {"node_blocks_moved", nodes_moved},
         {"device_blocks_written", device_written},
         {"write_amplification", amplification}});
  }

  const Options& options_;
  Report& report_;
  const std::string& model_;
};

}  // namespace

void measure_cleaning(const Options& options, Report& report, const std::string& model) {
  if (!options.wants("clean")) return;
  for (const uint32_t percent : {70u, 85u, 95u}) Cleaning(options, report, model).run(percent);
}

}  // namespace gofs::bench
