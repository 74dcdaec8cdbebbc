// SPDX-License-Identifier: Apache-2.0
//
// Records appended to one log by many warps or threads, with or without a reader beside them, each
// durable at once or not, on a volume of its own. Afterwards the log is read: it has each record
// once and whole, and those of a writer in its order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/records_body.h"
#include "bench/spread.hpp"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

struct RecordShape {
  bool by_threads;   // else by warps
  uint32_t writers;  // a CPU has no more than threads
  uint32_t bytes;    // of a record
  bool reader;
  bool durable;  // opened with O_DSYNC

  friend bool operator==(const RecordShape&, const RecordShape&) = default;
};

/// Those that are measured if nothing else is asked for.
std::vector<RecordShape> usual_records();

struct RecordOptions {
  std::string folder;  // takes the image meanwhile, some 3 GiB
  std::string backend = "auto";
  std::vector<std::string> models = {"none"};
  std::vector<RecordShape> shapes = usual_records();
  uint32_t runs = 5;                       // of each row, of which the median counts
  double seconds = 0.05;                   // of each run
  uint64_t log_bytes = uint64_t{1} << 29;  // of each run, at most
};

struct RecordRow {
  std::string model;
  RecordShape shape;
  uint32_t writers;
  Spread records;     // a second
  double longest_us;  // of one write, in all runs
  uint64_t read;      // records that the reader found, in all runs
};

struct RecordSinks {
  std::function<void(const host::VolumeState&)> volume = [](const host::VolumeState&) {};
  std::function<void(const RecordRow&)> row = [](const RecordRow&) {};
};

/// Errors: those of the calls; EIO: the log does not hold what was written to it.
Expected<void> run_records(const RecordOptions& options, const RecordSinks& sinks);

}  // namespace gofs::bench
