// SPDX-License-Identifier: Apache-2.0
#include "companion.hpp"

#include <algorithm>
#include <cerrno>

#include "bench/bodies.h"
#include "bench/controller_launch.hpp"
#include "bodies.hpp"
#include "host/messages.h"
#include "host/run_job.h"
#include "host_load.hpp"
#include "slots.hpp"

namespace gofs::bench {
namespace {

constexpr const char* kCompanionSubject = "companion";

}  // namespace

Expected<Sample> Companion::measure(const Point& point) {
  if (auto opened = open(point.writes); !opened) return opened.error();
  auto sample =
      point.writes ? write(point) : count_.run(point, load_.seconds, [&](uint64_t operations) {
        return read(point, operations);
      });
  if (!sample) return sample;
  return in_flight(*sample, point);
}

/// The file of the point, if it is not open yet.
Expected<void> Companion::open(bool writes) {
  if (map_ != nullptr && map_writes_ == writes) return {};
  simt::MemorySpace& memory = device_.backend().memory();
  const BenchFiles& written = volume_.in_place();
  const int descriptor = writes ? memory.read_object(written.descriptors()) : volume_.large();
  const uint64_t bytes = writes ? written.bytes_each() : volume_.large_bytes();
  auto map = BlockMap::make(device_, volume_.state(), descriptor, bytes);
  if (!map) return map.error();
  map_ = std::move(*map);
  map_writes_ = writes;
  return {};
}

/// Those who wait for the lock of their warp have no request under way.
Sample Companion::in_flight(Sample sample, const Point& point) const {
  if (lock_ == WarpLock::kHeld) {
    sample.in_flight = actors_by_lane(device_.backend(), point.outstanding, point.layout).warps;
  }
  return sample;
}

BenchParams Companion::read_params(const Point& point, const Actors& actors,
                                   uint64_t operations) const {
  const uint64_t each = simt::divide_up(operations, actors.count);
  BenchParams params{};
  params.fs = volume_.state().filesystem();
  params.pattern = point.random ? Pattern::kRandom : Pattern::kSequential;
  params.warps = actors.warps;
  params.lanes_per_warp = actors.lanes_per_warp;
  params.operations = static_cast<uint32_t>(std::min<uint64_t>(each, UINT32_MAX));
  params.block_bytes = kBlockBytes;
  params.span_bytes = volume_.large_bytes();
  params.seed = ReadPlan().seed;
  params.stamp_check = 1;
  return params;
}

Expected<ReadMeasurement> Companion::read(const Point& point, uint64_t operations) {
  kernels::Backend& backend = device_.backend();
  const Actors actors = actors_by_lane(backend, point.outstanding, point.layout);
  const BackendArray buffers(backend.memory(), uint64_t{actors.count} * kBlockBytes);
  CompanionRead companion{
      {read_params(point, actors, operations), {}, {}}, map_->blocks(), warp_lock()};
  BenchParams& params = companion.job.params;
  params.buffers = buffers.data();
  const ControllerLaunch launch(backend, actors, load_.controller_warps);
  params.controllers = launch.warps();
  if (!host::run_in(backend.memory(), companion, [&](CompanionRead* placed) {
        return device_.run(bodies::kCompanionRead, launch.grid(), placed);
      })) {
    return host::make_error(EIO, kCompanionSubject, device_.error());
  }
  const BenchResults& done = companion.job.results;
  if (done.error != 0) return volume_.state().explain(done.error, kCompanionSubject);
  if (done.wrong_stamps != 0) return wrong_blocks(done.wrong_stamps, "of /large by its map");
  ReadMeasurement result;
  result.outstanding = actors.count;
  result.block_bytes = kBlockBytes;
  result.operations = uint64_t{actors.count} * params.operations;
  result.bytes = done.bytes;
  result.seconds = static_cast<double>(done.last_ns - done.first_ns) * 1e-9;
  return result;
}

WriteParams Companion::write_params(const Point& point, const Actors& actors) const {
  const BenchFiles& file = volume_.in_place();
  const WritePlan plan = write_plan(point, load_, file.bytes_each());
  const uint64_t each = plan.bytes_max / kBlockBytes / actors.count;
  WriteParams params{};
  params.fs = volume_.state().filesystem();
  params.pattern = plan.pattern;
  params.warps = actors.warps;
  params.lanes_per_warp = actors.lanes_per_warp;
  params.operations = static_cast<uint32_t>(std::clamp<uint64_t>(each, 1, UINT32_MAX));
  params.time_ns = static_cast<uint64_t>(plan.seconds * 1e9);
  params.block_bytes = kBlockBytes;
  params.span_bytes = file.bytes_each();
  params.descriptors = file.descriptors();
  params.files = 1;
  params.run = next_stamp_run();
  return params;
}

Expected<Sample> Companion::write(const Point& point) {
  kernels::Backend& backend = device_.backend();
  const Actors actors = actors_by_lane(backend, point.outstanding, point.layout);
  const BackendArray buffers(backend.memory(), uint64_t{actors.count} * kBlockBytes);
  const BackendArray counts(backend.memory(), uint64_t{actors.count} * sizeof(uint32_t));
  WriteParams params = write_params(point, actors);
  params.buffers = buffers.data();
  params.done = counts.as<uint32_t>();
  CompanionWrite companion{{params, {}}, map_->blocks(), warp_lock()};
  const ControllerLaunch launch(backend, actors, load_.controller_warps);
  companion.job.params.controllers = launch.warps();
  const CpuMeter meter;
  if (!host::run_in(backend.memory(), companion, [&](CompanionWrite* placed) {
        return device_.run(bodies::kCompanionWrite, launch.grid(), placed);
      })) {
    return host::make_error(EIO, kCompanionSubject, device_.error());
  }
  const double cores = meter.cores();
  const WriteResults& done = companion.job.results;
  if (done.error != 0) return volume_.state().explain(done.error, kCompanionSubject);
  if (auto checked = check_writes(params, actors); !checked) return checked.error();
  const double seconds = static_cast<double>(done.last_ns - done.first_ns) * 1e-9;
  return Sample{actors.count, actors.count, done.writes, seconds, cores};
}

/// The file system, which knows nothing of the map, reads what each lane wrote last.
Expected<void> Companion::check_writes(const WriteParams& params, const Actors& actors) {
  WriteJob job{params, {}};
  job.params.step = WriteStep::kCheck;
  if (!host::run_job(volume_.state(), bodies::kFileWrite, actors.grid, job)) {
    return volume_.state().explain(-EIO, kCompanionSubject);
  }
  const WriteResults& found = job.results;
  if (found.error != 0) return volume_.state().explain(found.error, kCompanionSubject);
  if (found.wrong != 0) return wrong_blocks(found.wrong, "that were written in place");
  return {};
}

}  // namespace gofs::bench
