// SPDX-License-Identifier: Apache-2.0
//
// How many reads fill the time of a run, as a first try at each point says: device code counts its
// reads, and looks at no clock between them. The try warms up what there is to warm up, too.
#pragma once

#include <algorithm>
#include <optional>

#include "baseline.hpp"
#include "bench/reads.hpp"
#include "bench/writes.hpp"

namespace gofs::bench {

/// How baselines run that are all device code.
struct DeviceLoad {
  double seconds;                 // of a run
  uint32_t controller_warps = 0;  // bench/controller_warps.h
};

class ReadCount {
 public:
  /// `measure(operations)` reads so often. Its measurement, with the processor time of the host.
  template <typename Measure>
  Expected<Sample> run(const Point& point, double seconds, Measure measure) {
    if (!point_ || !(*point_ == point)) {
      const auto tried = measure(uint64_t{point.outstanding} * kTries);
      if (!tried) return tried.error();
      const double wanted = tried->operations_per_second() * seconds;
      operations_ = std::max(static_cast<uint64_t>(wanted), uint64_t{4} * point.outstanding);
      point_ = point;
    }
    const CpuMeter meter;
    const Expected<ReadMeasurement> done = measure(operations_);
    if (!done) return done.error();
    return Sample{done->outstanding, done->outstanding, done->operations, done->seconds,
                  meter.cores()};
  }

 private:
  static constexpr uint64_t kTries = 16;  // of each lane

  std::optional<Point> point_;
  uint64_t operations_ = 0;
};

/// The plan of such a run, and of a run of writes.
inline ReadPlan read_plan(const Point& point, const DeviceLoad& load, uint64_t operations) {
  ReadPlan plan;
  plan.pattern = point.random ? Pattern::kRandom : Pattern::kSequential;
  plan.outstanding = point.outstanding;
  plan.layout = point.layout;
  plan.operations = operations;
  plan.controller_warps = load.controller_warps;
  return plan;
}

inline WritePlan write_plan(const Point& point, const DeviceLoad& load, uint64_t written_bytes) {
  WritePlan plan;
  plan.pattern = point.random ? WritePattern::kRandom : WritePattern::kSequential;
  plan.outstanding = point.outstanding;
  plan.layout = point.layout;
  plan.seconds = load.seconds;
  plan.controller_warps = load.controller_warps;
  plan.bytes_max = written_bytes / 2;
  return plan;
}

inline Sample sample_of(const WriteMeasurement& done, const CpuMeter& meter) {
  return {done.outstanding, done.outstanding, done.writes, done.seconds, meter.cores()};
}

}  // namespace gofs::bench
