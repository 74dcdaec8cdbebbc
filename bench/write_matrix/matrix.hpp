// SPDX-License-Identifier: Apache-2.0
//
// The parts of gofs_write_matrix. Each measures on one mounted volume and tells the report.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/volume_state.h"
#include "report.hpp"

namespace gofs::bench {

/// How many warps measure what many do at once.
inline constexpr uint32_t kWarpsMax = 1024;

struct Options {
  std::string folder;
  std::string backend = "auto";
  std::vector<std::string> models = {"none", "990pro", "p5800x"};
  std::vector<std::string> what = {"overwrite", "append", "fsync", "pause",
                                   "create",    "batch",  "clean"};
  double seconds = 0.2;                      // of each single measurement
  uint64_t cache_bytes = uint64_t{1} << 30;  // of metadata
  uint64_t image_bytes = uint64_t{8} << 30;  // the volume, and behind it the raw range
  uint64_t span_bytes = uint64_t{1} << 30;   // of the raw range, and of all files together
  uint32_t files = 1024;                     // that share it
  uint32_t batch_files = 100'000;
  uint64_t clean_image_bytes = uint64_t{512} << 20;
  uint64_t clean_cache_bytes = uint64_t{16} << 20;
  bool json = false;

  bool wants(const std::string& part) const;
};

/// One volume under measurement.
struct Bench {
  const Options& options;
  Report& report;
  host::VolumeState& volume;
  const std::string& model;
};

/// 4 KiB overwrites and appends beside raw commands, fsync, and the pauses of checkpoints: those of
/// them that are wanted. The files are made for it and are empty afterwards.
void measure_writes(const Bench& bench);
/// Files and directories one by one.
void measure_names(const Bench& bench);
/// Many files at once.
void measure_batches(const Bench& bench);

/// Overwrites of volumes that are nearly full, each on a volume of its own.
void measure_cleaning(const Options& options, Report& report, const std::string& model);

/// Makes the image anew: a volume, and `raw_bytes` behind it that belong to no volume.
void make_image(const std::string& path, uint64_t bytes, uint64_t raw_bytes);
/// Mounts it for writing.
std::unique_ptr<host::VolumeState> mount_image(const Options& options, const std::string& path,
                                               const std::string& model, uint64_t cache_bytes,
                                               bool log_structured);

}  // namespace gofs::bench
