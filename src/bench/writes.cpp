// SPDX-License-Identifier: Apache-2.0
#include "bench/writes.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>

#include "bench/bodies.h"
#include "bench/controller_launch.hpp"
#include "bench/cpu_meter.hpp"
#include "host/messages.h"
#include "host/run_job.h"

namespace gofs::bench {

namespace {

constexpr const char* kSubject = "bench";

uint64_t next_run() {
  static std::atomic<uint64_t> runs{0};
  return ++runs;
}

/// What one measurement needs beside its parameters.
struct WriteMemory {
  WriteMemory(simt::MemorySpace& memory, const Actors& actors, uint32_t block_bytes)
      : buffers(memory, uint64_t{actors.count} * block_bytes),
        done(memory, uint64_t{actors.count} * sizeof(uint32_t)),
        stop(memory, sizeof(uint32_t)) {}
  BackendArray buffers;
  BackendArray done;
  BackendArray stop;
};

Actors plan_writers(const kernels::Backend& backend, const WritePlan& plan) {
  if (plan.scope == WriteScope::kThread) {
    return actors_by_lane(backend, plan.outstanding, plan.layout);
  }
  Actors actors = actors_by_warp(backend, plan.outstanding);
  actors.lanes_per_warp = 1;  // that count as actors
  return actors;
}

Error wrong_blocks(uint64_t wrong, uint64_t of) {
  return host::make_error(EIO, kSubject,
                          fmt::format("{} of {} blocks do not hold what was written", wrong, of));
}

WriteMeasurement measured(const WriteJob& job, uint32_t outstanding) {
  WriteMeasurement result;
  result.outstanding = outstanding;
  result.block_bytes = job.params.block_bytes;
  result.writes = job.results.writes;
  result.longest_ns = job.results.longest_ns;
  if (job.results.last_ns > job.results.first_ns) {
    result.seconds = static_cast<double>(job.results.last_ns - job.results.first_ns) * 1e-9;
  }
  return result;
}

/// One launch.
Expected<WriteMeasurement> run_writes(host::VolumeState& volume, const kernels::Body& body,
                                      const Actors& actors, const WriteParams& params,
                                      uint32_t controller_warps) {
  const ControllerLaunch launch(volume.backend(), actors, controller_warps);
  WriteJob job{params, {}};
  job.params.controllers = launch.warps();
  const CpuMeter meter;
  if (!host::run_job(volume, body, launch.grid(), job))
    return volume.explain(host::VolumeState::kNotRun, kSubject);
  const WriteResults& done = job.results;
  if (done.error != 0) return volume.explain(done.error, kSubject);
  if (done.wrong != 0) return wrong_blocks(done.wrong, actors.count);
  WriteMeasurement result = measured(job, actors.count);
  result.cpu_seconds = meter.seconds();
  return result;
}

/// Parameters of a plan, but for the files or the range. Members are those who share a file or the
/// range.
Expected<WriteParams> params_of(host::VolumeState& volume, const WritePlan& plan,
                                const Actors& actors, uint64_t span_bytes, uint32_t members,
                                const WriteMemory& memory) {
  if (plan.block_bytes == 0 || plan.block_bytes % kBlockBytes != 0) {
    return host::make_error(EINVAL, kSubject, "the block size must be a multiple of 4096 bytes");
  }
  if (plan.pattern != WritePattern::kAppend && span_bytes / plan.block_bytes / members == 0) {
    return host::make_error(EINVAL, kSubject, "fewer blocks than there are writers");
  }
  WriteParams params{};
  params.fs = volume.filesystem();
  params.pattern = plan.pattern;
  params.scope = plan.scope;
  params.warps = actors.warps;
  params.lanes_per_warp = actors.lanes_per_warp;
  const uint64_t each = plan.bytes_max / plan.block_bytes / actors.count;
  params.operations = static_cast<uint32_t>(std::clamp<uint64_t>(each, 1, UINT32_MAX));
  params.time_ns = static_cast<uint64_t>(plan.seconds * 1e9);
  params.block_bytes = plan.block_bytes;
  params.span_bytes = span_bytes;
  params.sync_each = plan.sync_each ? 1 : 0;
  params.run = next_run();
  params.buffers = memory.buffers.data();
  params.done = memory.done.as<uint32_t>();
  return params;
}

/// Writes, then looks.
Expected<WriteMeasurement> write_and_check(host::VolumeState& volume, const kernels::Body& body,
                                           const Actors& actors, WriteParams params,
                                           uint32_t controller_warps) {
  auto result = run_writes(volume, body, actors, params, controller_warps);
  if (!result) return result;
  params.step = WriteStep::kCheck;
  const auto checked = run_writes(volume, body, actors, params, 0);
  if (!checked) return checked;
  return result;
}

/// The parameters of writes to `files`, from the `first` on.
Expected<WriteParams> file_params(host::VolumeState& volume, const WritePlan& plan,
                                  const Actors& actors, const BenchFiles& files, uint32_t first,
                                  uint32_t count, const WriteMemory& memory) {
  const bool own = count > 1;
  if (own && actors.warps > count) {
    return host::make_error(EINVAL, kSubject, "fewer files than there are warps");
  }
  const bool append = plan.pattern == WritePattern::kAppend;
  if (append && !own && actors.warps > 1) {
    return host::make_error(EINVAL, kSubject, "only files of their own can be appended to");
  }
  auto params = params_of(volume, plan, actors, files.bytes_each(),
                          own ? actors.lanes_per_warp : actors.count, memory);
  if (!params) return params;
  params->descriptors = files.descriptors() + first;
  params->files = count;
  return params;
}

}  // namespace

Expected<WriteMeasurement> measure_raw_writes(host::VolumeState& volume, const WritePlan& plan,
                                              uint64_t start_byte, uint64_t span_bytes) {
  WritePlan raw = plan;
  raw.scope = WriteScope::kThread;
  const uint32_t command_bytes = std::min(plan.block_bytes, volume.info().transfer_bytes_max);
  if (command_bytes != 0 && !volume.is_within_chunks(start_byte, command_bytes)) {
    return host::make_error(EINVAL, volume.spec().text,
                            "raw writes of this size do not fit into the chunks of the stripe");
  }
  if (plan.scope != WriteScope::kThread && command_bytes != 0) {
    // Of what is written by a warp, each lane writes a part.
    raw.block_bytes = command_bytes;
    raw.outstanding *= plan.block_bytes / command_bytes;
  }
  const Actors actors = plan_writers(volume.backend(), raw);
  const WriteMemory memory(volume.backend().memory(), actors, raw.block_bytes);
  if (raw.pattern == WritePattern::kAppend) raw.pattern = WritePattern::kSequential;
  auto params = params_of(volume, raw, actors, span_bytes, actors.count, memory);
  if (!params) return params.error();
  params->command_bytes = command_bytes;
  params->start_byte = start_byte;
  return write_and_check(volume, bodies::kRawWrite, actors, *params, plan.controller_warps);
}

Expected<WriteMeasurement> measure_file_writes(host::VolumeState& volume, const WritePlan& plan,
                                               const BenchFiles& files) {
  const Actors actors = plan_writers(volume.backend(), plan);
  const WriteMemory memory(volume.backend().memory(), actors, plan.block_bytes);
  const auto params = file_params(volume, plan, actors, files, 0, files.count(), memory);
  if (!params) return params.error();
  return write_and_check(volume, bodies::kFileWrite, actors, *params, plan.controller_warps);
}

Expected<PauseMeasurement> measure_pauses(host::VolumeState& volume, const WritePlan& plan,
                                          const BenchFiles& files, uint32_t syncs) {
  WritePlan writes = plan;
  writes.scope = WriteScope::kWarp;
  ++writes.outstanding;
  Actors actors = plan_writers(volume.backend(), writes);
  if (actors.warps < 2) return host::make_error(EOPNOTSUPP, kSubject, "needs two threads");
  const kernels::Grid grid = actors.grid;
  --actors.warps;  // one makes checkpoints
  --actors.count;
  const WriteMemory memory(volume.backend().memory(), actors, plan.block_bytes);
  auto params = file_params(volume, writes, actors, files, 0, files.count(), memory);
  if (!params) return params.error();
  constexpr uint64_t kWritersTimeNs = 60'000'000'000;  // they are told to stop long before
  params->time_ns = kWritersTimeNs;
  params->stop = memory.stop.as<uint32_t>();
  WriteAndSyncParams done{};
  done.writes = {*params, {}};
  done.syncs = syncs;
  done.gap_ns = static_cast<uint64_t>(plan.seconds * 1e9 / (syncs + 1));
  if (!host::run_job(volume, bodies::kWriteAndSync, grid, done))
    return volume.explain(host::VolumeState::kNotRun, kSubject);
  if (done.error != 0) return volume.explain(done.error, kSubject);
  if (done.writes.results.error != 0) return volume.explain(done.writes.results.error, kSubject);
  params->step = WriteStep::kCheck;
  const auto checked = run_writes(volume, bodies::kFileWrite, actors, *params, 0);
  if (!checked) return checked.error();
  PauseMeasurement result;
  result.writes = measured(done.writes, actors.count);
  result.syncs = done.syncs_done;
  result.dirty_pages = done.dirty_pages;
  if (done.syncs_done != 0) {
    result.sync_seconds = static_cast<double>(done.sync_ns) * 1e-9 / done.syncs_done;
  }
  result.sync_longest_seconds = static_cast<double>(done.sync_longest_ns) * 1e-9;
  return result;
}

Expected<double> time_checkpoint(host::VolumeState& volume) {
  const auto before = std::chrono::steady_clock::now();
  const auto answer = volume.call({.verb = request::Verb::kSync});
  if (answer.result < 0) return volume.explain(answer.result, volume.spec().text);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

BenchFiles::BenchFiles(host::VolumeState& volume, std::string directory, uint32_t count)
    : volume_(volume),
      directory_(std::move(directory)),
      shared_(volume.backend().memory(), uint64_t{count} * sizeof(int)) {}

BenchFiles::~BenchFiles() {
  for (const int descriptor : descriptors_) {
    (void)volume_.call({.verb = request::Verb::kClose, .descriptor = descriptor});
  }
}

Expected<std::unique_ptr<BenchFiles>> BenchFiles::make(host::VolumeState& volume,
                                                       const std::string& directory, uint32_t count,
                                                       bool append) {
  std::unique_ptr<BenchFiles> files(new BenchFiles(volume, directory, count));
  const auto made = volume.call({.verb = request::Verb::kMkdir, .path = &directory, .mode = 0755});
  if (made.result < 0) return volume.explain(made.result, directory);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string path = fmt::format("{}/{:06}", directory, i);
    const uint32_t flags =
        vfs::kOpenReadWrite | vfs::kOpenCreate | (append ? vfs::kOpenAppend : 0u);
    const auto opened =
        volume.call({.verb = request::Verb::kOpen, .path = &path, .flags = flags, .mode = 0644});
    if (opened.result < 0) return volume.explain(opened.result, path);
    files->descriptors_.push_back(static_cast<int>(opened.result));
  }
  volume.backend().memory().write(files->shared_.data(), files->descriptors_.data(),
                                  count * sizeof(int));
  return files;
}

Expected<void> BenchFiles::resize(uint64_t bytes_each) {
  for (const int descriptor : descriptors_) {
    const auto answer = volume_.call(
        {.verb = request::Verb::kFtruncate, .descriptor = descriptor, .bytes = bytes_each});
    if (answer.result < 0) return volume_.explain(answer.result, directory_);
  }
  bytes_each_ = bytes_each;
  return {};
}

Expected<void> BenchFiles::allocate(uint64_t bytes_each) {
  for (const int descriptor : descriptors_) {
    const auto answer = volume_.call(
        {.verb = request::Verb::kFallocate, .descriptor = descriptor, .bytes = bytes_each});
    if (answer.result < 0) return volume_.explain(answer.result, directory_);
  }
  bytes_each_ = bytes_each;
  return {};
}

Expected<void> BenchFiles::fsync() const {
  for (const int descriptor : descriptors_) {
    const auto answer = volume_.call({.verb = request::Verb::kFsync, .descriptor = descriptor});
    if (answer.result < 0) return volume_.explain(answer.result, directory_);
  }
  return {};
}

Expected<WriteMeasurement> BenchFiles::fill(uint32_t warps) {
  constexpr uint32_t kLargeWrite = 128 << 10;
  WritePlan plan;
  plan.pattern = WritePattern::kSequential;
  plan.scope = WriteScope::kWarp;
  plan.block_bytes = bytes_each_ % kLargeWrite == 0 ? kLargeWrite : kBlockBytes;
  plan.seconds = 3600;
  const uint64_t pieces = bytes_each_ / plan.block_bytes;
  const bool own = count() > 1;
  plan.outstanding =
      own ? std::min(count(), warps) : static_cast<uint32_t>(std::min<uint64_t>(pieces, warps));
  WriteMeasurement all;
  for (uint32_t first = 0; first < count();) {
    const uint32_t left = count() - first;
    if (own) plan.outstanding = std::min(plan.outstanding, left);
    const Actors actors = plan_writers(volume_.backend(), plan);
    const uint32_t files = own ? actors.warps : 1;
    const uint32_t members = own ? 1 : actors.count;
    if (pieces % members != 0) {
      return host::make_error(EINVAL, directory_, "the warps cannot share the file evenly");
    }
    const WriteMemory memory(volume_.backend().memory(), actors, plan.block_bytes);
    auto params = file_params(volume_, plan, actors, *this, first, files, memory);
    if (!params) return params.error();
    params->operations = static_cast<uint32_t>(pieces / members);
    const auto written = write_and_check(volume_, bodies::kFileWrite, actors, *params, 0);
    if (!written) return written;
    all.outstanding = std::max(all.outstanding, written->outstanding);
    all.block_bytes = plan.block_bytes;
    all.writes += written->writes;
    all.seconds += written->seconds;
    all.longest_ns = std::max(all.longest_ns, written->longest_ns);
    first += files;
  }
  return all;
}

}  // namespace gofs::bench
