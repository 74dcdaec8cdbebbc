// SPDX-License-Identifier: Apache-2.0
#include "raw.hpp"

#include <algorithm>

namespace gofs::bench {

Expected<Sample> Raw::measure(const Point& point) {
  if (point.files) return read_files();
  if (point.writes) {
    const uint64_t bytes = volume_.written().bytes_each();
    const CpuMeter meter;
    const auto done = host::measure_raw_writes(volume_.state(), write_plan(point, load_, bytes),
                                               volume_.raw_start(), bytes);
    if (!done) return done.error();
    return sample_of(*done, meter);
  }
  return count_.run(point, load_.seconds, [&](uint64_t operations) {
    return host::measure_raw(volume_.state(), read_plan(point, load_, operations),
                             volume_.main_start(), volume_.large_bytes());
  });
}

/// Commands that do the same: so many, from a standstill, each to a place of its own.
Expected<Sample> Raw::read_files() {
  constexpr uint32_t kOutstanding = 16'384;
  host::ReadPlan plan;
  plan.outstanding = std::min(kOutstanding, volume_.small_files());
  plan.block_bytes = kSmallFileBytes;
  plan.operations = volume_.small_files();
  plan.buffer_bytes = plan.operations * kSmallFileBytes;
  const CpuMeter meter;
  const auto done =
      host::measure_raw(volume_.state(), plan, volume_.main_start(), plan.buffer_bytes);
  if (!done) return done.error();
  return Sample{done->outstanding, done->outstanding, done->operations, done->seconds,
                meter.cores()};
}

}  // namespace gofs::bench
