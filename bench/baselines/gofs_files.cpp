// SPDX-License-Identifier: Apache-2.0
#include "gofs_files.hpp"

#include "slots.hpp"

namespace gofs::bench {

Expected<Sample> GofsFiles::measure(const Point& point) {
  if (!point.writes) {
    return count_.run(point, load_.seconds,
                      [&](uint64_t operations) { return read(point, operations); });
  }
  if (auto room = volume_.make_room(); !room) return room.error();
  const CpuMeter meter;
  const auto done = host::measure_file_writes(
      volume_.state(), write_plan(point, load_, volume_.written().bytes_each()), volume_.written());
  if (!done) return done.error();
  return sample_of(*done, meter);
}

Expected<host::ReadMeasurement> GofsFiles::read(const Point& point, uint64_t operations) {
  host::ReadPlan plan = read_plan(point, load_, operations);
  plan.check_stamps = true;
  auto done = host::measure_file(volume_.state(), plan, volume_.large(), volume_.large_bytes());
  if (done && done->wrong_stamps != 0) return wrong_blocks(done->wrong_stamps, "of /large");
  return done;
}

}  // namespace gofs::bench
