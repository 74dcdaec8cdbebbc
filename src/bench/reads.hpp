// SPDX-License-Identifier: Apache-2.0
//
// Measurements behind `gofs bench`: the same reads as raw NVMe commands and through the file API of
// one mounted volume, so that both see the same SSD and the same queues. Times are the backend's
// own, from the first warp's start to the last one's end; launches are not counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/actors.hpp"
#include "bench/read_body.h"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

struct ReadPlan {
  Pattern pattern = Pattern::kRandom;
  ReadScope scope = ReadScope::kThread;
  uint32_t outstanding = 1024;  // lanes (warps, blocks) that read at the same time; one grid does
  Layout layout{};              // of readers that are threads
  uint32_t block_bytes = 4096;
  uint64_t operations = 0;  // in all; 0: as many as fill `seconds` at the rate of a first try
  double seconds = 1.0;
  uint64_t seed = 1;
  bool check_stamps = false;  // each 4 KiB block of the file begins with its index
  /// Raw: memory that the reads go round in, where that is to be more than a block for each reader.
  uint64_t buffer_bytes = 0;
  uint32_t controller_warps = 0;  // beside readers that are threads or warps
};

struct ReadMeasurement {
  uint32_t outstanding = 0;  // what the backend could give
  uint32_t block_bytes = 0;  // of each operation
  uint64_t operations = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // of the host, launch included
  uint64_t checksum = 0;
  uint64_t wrong_stamps = 0;

  double operations_per_second() const { return per_second(operations); }
  double bytes_per_second() const { return per_second(bytes); }
  /// Mean time of one read as its issuer sees it.
  double latency_us() const {
    return operations > 0 ? seconds * 1e6 * outstanding / static_cast<double>(operations) : 0;
  }

 private:
  double per_second(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

/// Reads `span_bytes` from `start_byte` of the device: the same lanes that would read by `plan`,
/// each with one command under way, or one after the other where a read takes several; of a group
/// that reads together, a lane for each command.
Expected<ReadMeasurement> measure_raw(host::VolumeState& volume, const ReadPlan& plan,
                                      uint64_t start_byte, uint64_t span_bytes);

/// Reads an open file of `size_bytes`.
Expected<ReadMeasurement> measure_file(host::VolumeState& volume, const ReadPlan& plan,
                                       int descriptor, uint64_t size_bytes);

/// At most so many raw commands are outstanding beside files of a batch.
inline constexpr uint32_t kBatchOutstanding = 16'384;
/// Of raw commands that do what reading `files` whole files of `bytes` bytes does: so many, from a
/// standstill, each to a place of its own.
ReadPlan plan_like_files(uint32_t files, uint32_t bytes);

struct BatchMeasurement {
  uint64_t files = 0;
  uint64_t failed_files = 0;
  uint64_t bytes = 0;
  double list_seconds = 0;
  double load_seconds = 0;
  double read_seconds = 0;    // the best of the repetitions
  uint64_t memory_bytes = 0;  // that the open batch takes
};

/// Opens the regular files of a directory as one batch and reads them all, `repetitions` times.
Expected<BatchMeasurement> measure_batch(host::VolumeState& volume, const std::string& directory,
                                         uint32_t files_max, uint32_t repetitions);

}  // namespace gofs::bench
