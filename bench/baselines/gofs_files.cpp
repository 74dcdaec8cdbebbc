// SPDX-License-Identifier: Apache-2.0
#include "gofs_files.hpp"

#include <cerrno>

#include "host/messages.h"
#include "slots.hpp"

namespace gofs::bench {

Expected<Sample> GofsFiles::measure(const Point& point) {
  if (point.files) return read_files();
  if (!point.writes) {
    return count_.run(point, load_.seconds,
                      [&](uint64_t operations) { return read(point, operations); });
  }
  if (auto room = volume_.make_room(); !room) return room.error();
  const CpuMeter meter;
  const auto done = measure_file_writes(
      volume_.state(), write_plan(point, load_, volume_.written().bytes_each()), volume_.written());
  if (!done) return done.error();
  return sample_of(*done, meter);
}

Expected<ReadMeasurement> GofsFiles::read(const Point& point, uint64_t operations) {
  ReadPlan plan = read_plan(point, load_, operations);
  plan.check_stamps = true;
  auto done = measure_file(volume_.state(), plan, volume_.large(), volume_.large_bytes());
  if (done && done->wrong_stamps != 0) return wrong_blocks(done->wrong_stamps, "of /large");
  return done;
}

/// As one batch, from its names on.
Expected<Sample> GofsFiles::read_files() {
  const CpuMeter meter;
  const auto batch = measure_batch(volume_.state(), "/small", volume_.small_files(), 1);
  if (!batch) return batch.error();
  const double cores = meter.cores();
  const auto files = static_cast<uint32_t>(batch->files);
  if (batch->failed_files != 0 || files != volume_.small_files()) {
    return host::make_error(EIO, "/small", "not all files were read");
  }
  return Sample{files, files, files,
                batch->list_seconds + batch->load_seconds + batch->read_seconds, cores};
}

}  // namespace gofs::bench
