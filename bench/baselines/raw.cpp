// SPDX-License-Identifier: Apache-2.0
#include "raw.hpp"

namespace gofs::bench {

Expected<Sample> Raw::measure(const Point& point) {
  if (point.files) return read_files();
  if (point.writes) {
    const uint64_t bytes = volume_.written().bytes_each();
    const CpuMeter meter;
    const auto done = measure_raw_writes(volume_.state(), write_plan(point, load_, bytes),
                                         volume_.raw_start(), bytes);
    if (!done) return done.error();
    return sample_of(*done, meter);
  }
  return count_.run(point, load_.seconds, [&](uint64_t operations) {
    return measure_raw(volume_.state(), read_plan(point, load_, operations), volume_.main_start(),
                       volume_.large_bytes());
  });
}

Expected<Sample> Raw::read_files() {
  const ReadPlan plan = plan_like_files(volume_.small_files(), kSmallFileBytes);
  const CpuMeter meter;
  const auto done = measure_raw(volume_.state(), plan, volume_.main_start(), plan.buffer_bytes);
  if (!done) return done.error();
  return Sample{done->outstanding, done->outstanding, done->operations, done->seconds,
                meter.cores()};
}

}  // namespace gofs::bench
