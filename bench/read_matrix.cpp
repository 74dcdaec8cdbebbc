// SPDX-License-Identifier: Apache-2.0
//
// The measurements that README and docs/performance.md quote: 4 KiB reads through the file API
// beside raw NVMe commands, by SSD model, pattern and number of outstanding reads, then many small
// files in a batch. Raw and file reads take turns on one mounted volume; the ratio of their medians
// is the file system's own cost. The volume is made by gofs_bench_image.
//
// usage: gofs_read_matrix IMAGE [BACKEND [SECONDS [MODEL ...]]]
//   BACKEND auto, cpu or cuda; SECONDS of each single measurement (default 0.3)
// Prints a table, and one JSON object a line between `-- json` lines.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/bench.h"

namespace {

using gofs::host::BatchMeasurement;
using gofs::host::ReadMeasurement;
using gofs::host::ReadPlan;
using gofs::host::VolumeState;

constexpr int kRepetitions = 3;
constexpr const char* kScattered = "/scattered";
std::vector<std::string> json_lines;

[[noreturn]] void fail(const gofs::Error& error) {
  std::fprintf(stderr, "gofs_read_matrix: %s\n", error.message.c_str());
  std::exit(1);
}

bool slower(const ReadMeasurement& a, const ReadMeasurement& b) {
  return a.operations_per_second() < b.operations_per_second();
}

ReadMeasurement median(std::vector<ReadMeasurement> runs) {
  std::sort(runs.begin(), runs.end(), slower);
  return runs[runs.size() / 2];
}

struct OpenFile {
  int descriptor;
  uint64_t bytes;
};

OpenFile open_file(VolumeState& volume, const std::string& path) {
  VolumeState::Request request{gofs::work::CallKind::kOpen};
  request.path = &path;
  const int64_t descriptor = volume.call(request).result;
  if (descriptor < 0) fail(volume.explain(descriptor, path));
  VolumeState::Request stat{gofs::work::CallKind::kFstat};
  stat.descriptor = static_cast<int>(descriptor);
  return {static_cast<int>(descriptor), volume.call(stat).stat.size_bytes};
}

void compare_reads(VolumeState& volume, const std::string& model, const std::string& path,
                   gofs::work::Pattern pattern, uint32_t outstanding, double seconds) {
  const OpenFile file = open_file(volume, path);
  ReadPlan plan;
  plan.pattern = pattern;
  plan.outstanding = outstanding;
  plan.seconds = seconds;
  ReadPlan stamped = plan;
  stamped.check_stamps = true;
  // Raw reads go to the same number of bytes in the main area, past the metadata, and as far from
  // each other as the blocks of the file are.
  if (path == kScattered) plan.pattern = gofs::work::Pattern::kRandom;
  const uint64_t start = uint64_t{256} << 20;
  std::vector<ReadMeasurement> raw_runs;
  std::vector<ReadMeasurement> file_runs;
  for (int i = 0; i < kRepetitions; ++i) {
    auto raw = measure_raw(volume, plan, start, file.bytes);
    if (!raw) fail(raw.error());
    raw_runs.push_back(*raw);
    auto through_file = measure_file(volume, stamped, file.descriptor, file.bytes);
    if (!through_file) fail(through_file.error());
    file_runs.push_back(*through_file);
    if (through_file->wrong_stamps != 0) {
      fail({EIO, path + ": " + std::to_string(through_file->wrong_stamps) + " wrong blocks read"});
    }
  }
  const ReadMeasurement raw = median(raw_runs);
  const ReadMeasurement read = median(file_runs);
  const char* pattern_name = pattern == gofs::work::Pattern::kRandom ? "random" : "sequential";
  std::printf("%-8s %-10s %-10s %8u %12.0f %12.0f %7.3f %9.2f %9.2f %8.2f\n", model.c_str(),
              path.c_str(), pattern_name, raw.outstanding, raw.operations_per_second(),
              read.operations_per_second(),
              read.operations_per_second() / raw.operations_per_second(), raw.latency_us(),
              read.latency_us(), read.bytes_per_second() / 1e9);
  std::fflush(stdout);
  char line[512];
  std::snprintf(line, sizeof(line),
                "{\"bench\":\"read\",\"model\":\"%s\",\"file\":\"%s\",\"pattern\":\"%s\","
                "\"outstanding\":%u,\"raw_ops_per_s\":%.0f,\"file_ops_per_s\":%.0f,\"ratio\":%.4f,"
                "\"raw_latency_us\":%.3f,\"file_latency_us\":%.3f,\"file_bytes_per_s\":%.0f}",
                model.c_str(), path.c_str(), pattern_name, raw.outstanding,
                raw.operations_per_second(), read.operations_per_second(),
                read.operations_per_second() / raw.operations_per_second(), raw.latency_us(),
                read.latency_us(), read.bytes_per_second());
  json_lines.emplace_back(line);
  VolumeState::Request close{gofs::work::CallKind::kClose};
  close.descriptor = file.descriptor;
  (void)volume.call(close);
}

void compare_batch(VolumeState& volume, const std::string& model) {
  auto batch = measure_batch(volume, "/small", 1u << 17, kRepetitions);
  if (!batch) fail(batch.error());
  if (batch->files == 0) return;
  ReadPlan plan;
  plan.outstanding = 16384;
  plan.block_bytes = static_cast<uint32_t>(batch->bytes / batch->files) & ~4095u;
  // As the batch: so many, started from a standstill, each to a place of its own, best of all runs.
  plan.operations = batch->files;
  plan.buffer_bytes = batch->bytes;
  const uint64_t span = std::max<uint64_t>(batch->bytes, plan.block_bytes);
  std::vector<ReadMeasurement> raw_runs;
  for (int i = 0; i < kRepetitions; ++i) {
    auto raw = measure_raw(volume, plan, uint64_t{256} << 20, span);
    if (!raw) fail(raw.error());
    raw_runs.push_back(*raw);
  }
  const ReadMeasurement raw = *std::max_element(raw_runs.begin(), raw_runs.end(), slower);
  const double rate = static_cast<double>(batch->bytes) / batch->read_seconds;
  std::printf(
      "%-8s batch of %lu files, %lu bytes (%lu failed): list %.1f ms, inodes %.1f ms, read "
      "%.1f ms = %.2f GB/s; raw %.2f GB/s; ratio %.3f; memory %.1f MiB\n",
      model.c_str(), batch->files, batch->bytes, batch->failed_files, batch->list_seconds * 1e3,
      batch->load_seconds * 1e3, batch->read_seconds * 1e3, rate / 1e9,
      raw.bytes_per_second() / 1e9, rate / raw.bytes_per_second(),
      static_cast<double>(batch->memory_bytes) / (1 << 20));
  std::fflush(stdout);
  char line[512];
  std::snprintf(line, sizeof(line),
                "{\"bench\":\"batch\",\"model\":\"%s\",\"files\":%lu,\"bytes\":%lu,"
                "\"failed_files\":%lu,\"list_s\":%.6f,\"inodes_s\":%.6f,\"read_s\":%.6f,"
                "\"batch_bytes_per_s\":%.0f,\"raw_bytes_per_s\":%.0f,\"ratio\":%.4f}",
                model.c_str(), batch->files, batch->bytes, batch->failed_files, batch->list_seconds,
                batch->load_seconds, batch->read_seconds, rate, raw.bytes_per_second(),
                rate / raw.bytes_per_second());
  json_lines.emplace_back(line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s IMAGE [BACKEND [SECONDS [MODEL ...]]]\n", argv[0]);
    return 2;
  }
  const std::string image = argv[1];
  gofs::MountOptions options;
  options.backend = argc > 2 ? argv[2] : "auto";
  options.queues = 64;
  options.queue_depth = 1024;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 0.3;
  std::vector<std::string> models(argv + std::min(argc, 4), argv + argc);
  if (models.empty()) models = {"none", "990pro", "p5800x"};

  bool described = false;
  for (const std::string& model : models) {
    const bool hbm = model == "hbm";
    const std::string spec = image + (hbm ? "?media=hbm" : "?model=" + model);
    auto mounted = VolumeState::mount(spec, options, gofs::host::MountKind::kVolume);
    if (!mounted) fail(mounted.error());
    VolumeState& volume = **mounted;
    if (!described) {
      const gofs::VolumeInfo info = volume.info();
      std::printf("backend %s: %s\nssd %s, %u queue pairs of depth %u, LBA %u bytes\n\n",
                  info.backend.c_str(), info.backend_detail.c_str(), info.ssd.c_str(), info.queues,
                  info.queue_depth, info.lba_bytes);
      std::printf("%-8s %-10s %-10s %8s %12s %12s %7s %9s %9s %8s\n", "model", "file", "pattern",
                  "outst.", "raw/s", "file/s", "ratio", "raw us", "file us", "GB/s");
      described = true;
    }
    for (const char* path : {"/large", kScattered}) {
      for (const auto pattern : {gofs::work::Pattern::kRandom, gofs::work::Pattern::kSequential}) {
        for (const uint32_t outstanding : {1u, 32u, 1024u, 32768u}) {
          compare_reads(volume, model, path, pattern, outstanding, seconds);
        }
      }
    }
    compare_batch(volume, model);
  }
  std::printf("-- json\n");
  for (const std::string& line : json_lines) std::printf("%s\n", line.c_str());
  std::printf("-- json\n");
  return 0;
}
