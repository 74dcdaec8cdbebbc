// SPDX-License-Identifier: Apache-2.0
#include "bench/reads.hpp"

#include <algorithm>
#include <cerrno>

#include "bench/bodies.h"
#include "bench/controller_launch.hpp"
#include "bench/cpu_meter.hpp"
#include "host/messages.h"
#include "host/run_job.h"
#include "kernels/batch.h"
#include "kernels/bodies.h"

namespace gofs::bench {

namespace {

constexpr uint64_t kRawReadersMax = 1 << 20;

Error bad_argument(const std::string& message) { return Error{EINVAL, message}; }

Actors plan_readers(const kernels::Backend& backend, const ReadPlan& plan) {
  if (plan.scope == ReadScope::kThread) {
    return actors_by_lane(backend, plan.outstanding, plan.layout);
  }
  if (plan.scope == ReadScope::kWarp) return actors_by_warp(backend, plan.outstanding);
  const uint32_t width = backend.warp_width();
  const kernels::Grid full = backend.full_grid();
  const bool one = plan.scope == ReadScope::kGrid;
  const uint32_t blocks = one ? full.blocks : std::clamp(plan.outstanding, 1u, full.blocks);
  return {one ? 1 : blocks,
          blocks * full.threads_per_block / width,
          width,
          {blocks, full.threads_per_block, one}};
}

Expected<ReadMeasurement> run_once(host::VolumeState& volume, const kernels::Body& body,
                                   const ReadPlan& plan, const Actors& readers,
                                   uint32_t operations_each, uint8_t* buffers, BenchParams params) {
  params.fs = volume.filesystem();
  params.pattern = plan.pattern;
  params.scope = plan.scope;
  params.warps = readers.warps;
  params.lanes_per_warp = readers.lanes_per_warp;
  params.operations = operations_each;
  params.block_bytes = plan.block_bytes;
  params.seed = plan.seed;
  params.stamp_check = plan.check_stamps ? 1 : 0;
  params.buffers = buffers;
  const bool wide = &body == &bodies::kWideRead;
  const ControllerLaunch launch(volume.backend(), readers, wide ? 0 : plan.controller_warps);
  params.controllers = launch.warps();
  BenchJob job{params, {}, {}};
  const CpuMeter meter;
  if (!host::run_job(volume, body, launch.grid(), job)) {
    return volume.explain(host::VolumeState::kNotRun, "bench");
  }
  const BenchResults& done = job.results;
  if (done.error != 0) return volume.explain(done.error, "bench");
  ReadMeasurement result;
  result.outstanding = readers.count;
  result.block_bytes = plan.block_bytes;
  result.operations = uint64_t{readers.count} * operations_each;
  result.bytes = done.bytes;
  result.cpu_seconds = meter.seconds();
  result.seconds = static_cast<double>(done.last_ns - done.first_ns) * 1e-9;
  result.checksum = done.checksum;
  result.wrong_stamps = done.wrong_stamps;
  return result;
}

Expected<ReadMeasurement> measure(host::VolumeState& volume, const kernels::Body& body,
                                  const ReadPlan& plan, BenchParams params) {
  if (plan.block_bytes == 0 || plan.block_bytes % 512 != 0) {
    return bad_argument("the block size must be a multiple of 512 bytes");
  }
  if (params.span_bytes < plan.block_bytes) {
    return bad_argument("the range is smaller than one block");
  }
  const Actors readers = plan_readers(volume.backend(), plan);
  const uint64_t round_bytes = uint64_t{readers.count} * plan.block_bytes;
  params.rounds = static_cast<uint32_t>(std::max<uint64_t>(plan.buffer_bytes / round_bytes, 1));
  const BackendArray buffers(volume.backend().memory(), round_bytes * params.rounds);
  uint64_t each = simt::divide_up(plan.operations, readers.count);
  if (each == 0) {
    // A first try warms everything up, the maps of the file's blocks above all, and tells how long
    // the real one must be.
    constexpr uint64_t kTriedReads = 16384;
    constexpr uint64_t kTriedBytes = uint64_t{1} << 30;
    const uint64_t reads = std::min(kTriedReads, kTriedBytes / plan.block_bytes);
    const auto tries = static_cast<uint32_t>(std::max<uint64_t>(8, reads / readers.count));
    const auto tried = run_once(volume, body, plan, readers, tries, buffers.data(), params);
    if (!tried) return tried;
    const double each_seconds = std::max(tried->seconds / tries, 1e-7);
    each = static_cast<uint64_t>(std::clamp(plan.seconds / each_seconds, 4.0, 4e6));
  }
  return run_once(volume, body, plan, readers, static_cast<uint32_t>(each), buffers.data(), params);
}

}  // namespace

Expected<ReadMeasurement> measure_raw(host::VolumeState& volume, const ReadPlan& plan,
                                      uint64_t start_byte, uint64_t span_bytes) {
  BenchParams params{};
  params.start_byte = start_byte;
  params.span_bytes = span_bytes;
  ReadPlan raw = plan;
  raw.scope = ReadScope::kThread;
  params.command_bytes = std::min(plan.block_bytes, volume.info().transfer_bytes_max);
  if (params.command_bytes != 0 && !volume.is_within_chunks(start_byte, params.command_bytes)) {
    return host::make_error(EINVAL, volume.spec().text,
                            "raw reads of this size do not fit into the chunks of the stripe");
  }
  if (plan.scope != ReadScope::kThread && params.command_bytes != 0) {
    // Of what is read by a group, each lane reads a part.
    const uint64_t commands = plan.block_bytes / params.command_bytes;
    const uint64_t readers = plan_readers(volume.backend(), plan).count;
    raw.block_bytes = params.command_bytes;
    raw.outstanding = static_cast<uint32_t>(std::min(readers * commands, kRawReadersMax));
    raw.operations = plan.operations * commands;
  }
  return measure(volume, bodies::kRawRead, raw, params);
}

Expected<ReadMeasurement> measure_file(host::VolumeState& volume, const ReadPlan& plan,
                                       int descriptor, uint64_t size_bytes) {
  BenchParams params{};
  params.descriptor = descriptor;
  params.span_bytes = size_bytes;
  const bool wide = plan.scope == ReadScope::kBlock || plan.scope == ReadScope::kGrid;
  return measure(volume, wide ? bodies::kWideRead : bodies::kFileRead, plan, params);
}

namespace {

/// What is in use of the file system's memory, but for the page cache, which keeps what it likes.
Expected<uint64_t> memory_in_use(host::VolumeState& volume) {
  const auto report = volume.memory();
  if (!report) return report.error();
  uint64_t bytes = 0;
  for (const MemoryPartReport& part : report->parts) {
    if (part.name != "page_cache") bytes += part.in_use.value_or(0);
  }
  return bytes;
}

/// One open batch.
class BatchRun {
 public:
  BatchRun(host::VolumeState& volume, const std::string& directory)
      : volume_(volume),
        directory_(directory),
        path_(volume.backend().shared_memory(), directory.size() + 1) {
    std::copy(directory.begin(), directory.end(), path_.data());
    params_.fs = volume.filesystem();
    params_.path = path_.data();
  }
  ~BatchRun() {
    if (open_) (void)step(kernels::BatchStep::kEnd, true);
  }
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  kernels::BatchParams& params() { return params_; }

  /// Seconds that the step took.
  Expected<double> step(kernels::BatchStep what, bool one_warp) {
    params_.step = what;
    params_.first_ns = ~uint64_t{0};
    params_.last_ns = 0;
    params_.result = 0;
    const kernels::Backend& backend = volume_.backend();
    const kernels::Grid grid =
        one_warp ? kernels::Grid{1, backend.warp_width()} : backend.full_grid();
    if (!host::run_job(volume_, kernels::bodies::kBatch, grid, params_)) {
      return volume_.explain(host::VolumeState::kNotRun, directory_);
    }
    if (params_.result < 0) return volume_.explain(params_.result, directory_);
    if (what == kernels::BatchStep::kBegin) {
      params_.descriptor = static_cast<int>(params_.result);
      open_ = true;
    }
    if (what == kernels::BatchStep::kEnd) open_ = false;
    return params_.last_ns <= params_.first_ns
               ? 0.0
               : static_cast<double>(params_.last_ns - params_.first_ns) * 1e-9;
  }

 private:
  host::VolumeState& volume_;
  const std::string directory_;
  kernels::BatchParams params_{};
  host::SharedArray<char> path_;
  bool open_ = false;
};

}  // namespace

ReadPlan plan_like_files(uint32_t files, uint32_t bytes) {
  ReadPlan plan;
  plan.outstanding = std::min(kBatchOutstanding, files);
  plan.block_bytes = bytes;
  plan.operations = files;
  plan.buffer_bytes = uint64_t{files} * bytes;
  return plan;
}

Expected<BatchMeasurement> measure_batch(host::VolumeState& volume, const std::string& directory,
                                         uint32_t files_max, uint32_t repetitions) {
  kernels::Backend& backend = volume.backend();
  simt::MemorySpace& memory = backend.memory();
  BatchRun run(volume, directory);
  run.params().count = files_max;
  const auto used_before = memory_in_use(volume);
  if (!used_before) return used_before.error();
  if (auto begun = run.step(kernels::BatchStep::kBegin, true); !begun) {
    return begun.error();
  }

  BatchMeasurement result;
  const auto surveyed = run.step(kernels::BatchStep::kSurvey, false);
  if (!surveyed) return surveyed.error();
  const auto listed = run.step(kernels::BatchStep::kList, false);
  if (!listed) return listed.error();
  result.list_seconds = *surveyed + *listed;
  result.files = static_cast<uint64_t>(run.params().result);
  const auto loaded = run.step(kernels::BatchStep::kLoad, false);
  if (!loaded) return loaded.error();
  result.load_seconds = *loaded;
  const auto used = memory_in_use(volume);
  if (!used) return used.error();
  result.memory_bytes = *used - *used_before;

  // Where each file goes: one after another, from block to block.
  const vfs::Filesystem fs = memory.read_object(volume.filesystem());
  const vfs::BatchTable table = memory.read_object(fs.batches);
  const vfs::Batch batch = table.batches[run.params().descriptor];
  std::vector<vfs::BatchEntry> files(result.files);
  memory.read(files.data(), table.files + batch.first, files.size() * sizeof(vfs::BatchEntry));
  std::vector<uint64_t> offsets(result.files);
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    offsets[i] = total;
    total += simt::align_up(files[i].size_bytes, kBlockBytes);
  }
  const BackendArray placed(memory, std::max<uint64_t>(offsets.size(), 1) * sizeof(uint64_t));
  memory.write(placed.data(), offsets.data(), offsets.size() * sizeof(uint64_t));
  const BackendArray buffer(memory, std::max<uint64_t>(total, kBlockBytes));
  run.params().buffer = buffer.data();
  run.params().offsets = reinterpret_cast<const uint64_t*>(placed.data());
  for (uint32_t i = 0; i < std::max(repetitions, 1u); ++i) {
    run.params().bytes = 0;
    const auto read = run.step(kernels::BatchStep::kRead, false);
    if (!read) return read.error();
    result.bytes = run.params().bytes;
    if (i == 0 || *read < result.read_seconds) result.read_seconds = *read;
  }
  memory.read(files.data(), table.files + batch.first, files.size() * sizeof(vfs::BatchEntry));
  for (const vfs::BatchEntry& file : files) result.failed_files += file.error != 0;
  return result;
}

}  // namespace gofs::bench
