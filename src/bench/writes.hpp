// SPDX-License-Identifier: Apache-2.0
//
// Measurements of writing: the same writes as raw NVMe commands and through the file API of one
// mounted volume, fsync, and how long checkpoints keep writers. Times are the backend's own, from
// the first warp's start to the last one's end. After each measurement the last write of every
// lane or warp is read back and compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/actors.hpp"
#include "bench/pauses_body.h"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

struct WritePlan {
  WritePattern pattern = WritePattern::kRandom;
  WriteScope scope = WriteScope::kThread;  // raw writes are always by threads
  uint32_t outstanding = 1024;             // threads or warps that write at a time
  Layout layout{};                         // of writers that are threads
  uint32_t block_bytes = 4096;             // of one write; whole blocks
  double seconds = 0.2;
  uint64_t bytes_max = ~uint64_t{0};  // in all; but each writes once
  bool sync_each = false;             // fsync after each write
  uint32_t controller_warps = 0;      // beside the writers
};

struct WriteMeasurement {
  uint32_t outstanding = 0;  // what the backend could give
  uint32_t block_bytes = 0;
  uint64_t writes = 0;
  double seconds = 0;
  double cpu_seconds = 0;   // of the host, launch included
  uint64_t longest_ns = 0;  // of one write

  double writes_per_second() const {
    return seconds > 0 ? static_cast<double>(writes) / seconds : 0;
  }
  double bytes_per_second() const { return writes_per_second() * block_bytes; }
  /// Mean time of one write as its issuer sees it.
  double latency_us() const {
    return writes > 0 ? seconds * 1e6 * outstanding / static_cast<double>(writes) : 0;
  }
};

/// Open files to be written to, in a directory of their own.
class BenchFiles {
 public:
  /// Makes them, empty. `append`: opened with O_APPEND.
  static Expected<std::unique_ptr<BenchFiles>> make(host::VolumeState& volume,
                                                    const std::string& directory, uint32_t count,
                                                    bool append);
  /// Closes them; they stay.
  ~BenchFiles();
  BenchFiles(const BenchFiles&) = delete;
  BenchFiles& operator=(const BenchFiles&) = delete;

  uint32_t count() const { return static_cast<uint32_t>(descriptors_.size()); }
  uint64_t bytes_each() const { return bytes_each_; }
  /// In memory of the backend.
  const int* descriptors() const { return shared_.as<int>(); }

  /// Sets the size of each; what is added are holes.
  Expected<void> resize(uint64_t bytes_each);
  /// Gives each blocks up to there, by fallocate().
  Expected<void> allocate(uint64_t bytes_each);
  Expected<void> fsync() const;
  /// Writes all of each, 128 KiB at a time if it is a multiple of that. `warps`: who write to one
  /// file.
  Expected<WriteMeasurement> fill(uint32_t warps = 1024);

 private:
  BenchFiles(host::VolumeState& volume, std::string directory, uint32_t count);

  host::VolumeState& volume_;
  const std::string directory_;
  std::vector<int> descriptors_;
  BackendArray shared_;
  uint64_t bytes_each_ = 0;
};

/// Writes to `span_bytes` from `start_byte` of the device on, which no other thread uses. Errors:
/// EIO also for blocks that do not hold what was written to them; EINVAL: not a block for each.
Expected<WriteMeasurement> measure_raw_writes(host::VolumeState& volume, const WritePlan& plan,
                                              uint64_t start_byte, uint64_t span_bytes);

/// Writes to a file for each warp, or to the only one of `files` by all. To append the files have
/// to be empty.
Expected<WriteMeasurement> measure_file_writes(host::VolumeState& volume, const WritePlan& plan,
                                               const BenchFiles& files);

struct PauseMeasurement {
  WriteMeasurement writes;
  uint32_t syncs = 0;
  uint32_t dirty_pages = 0;  // of metadata, most before a checkpoint
  double sync_seconds = 0;   // of one, on average
  double sync_longest_seconds = 0;
};

/// Warps write as `plan` says, while one makes `syncs` checkpoints, with pauses of
/// plan.seconds / (syncs + 1) in between.
Expected<PauseMeasurement> measure_pauses(host::VolumeState& volume, const WritePlan& plan,
                                          const BenchFiles& files, uint32_t syncs);

/// A checkpoint by the backend. The image on the host is not written, unlike by
/// host::VolumeState::sync(). Seconds.
Expected<double> time_checkpoint(host::VolumeState& volume);

}  // namespace gofs::bench
