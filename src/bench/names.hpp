// SPDX-License-Identifier: Apache-2.0
//
// Measurements of making and removing names: one by one by many warps, each in a directory of its
// own or all in one, and many files as a batch. All answers are checked, and of what was made a
// part is looked at.
#pragma once

#include <cstdint>
#include <string>

#include "bench/actors.hpp"
#include "bench/names_body.h"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

struct NamesMeasurement {
  uint32_t warps = 0;  // what the backend could give
  uint64_t names = 0;
  double make_seconds = 0;
  double remove_seconds = 0;  // 0: they were not removed

  double made_per_second() const { return rate(make_seconds); }
  double removed_per_second() const { return rate(remove_seconds); }

 private:
  double rate(double seconds) const {
    return seconds > 0 ? static_cast<double>(names) / seconds : 0;
  }
};

/// What is made one by one, and where.
struct NamesPlan {
  NameKind kind = NameKind::kFile;
  NamePlace place = NamePlace::kOwnHome;
  uint32_t warps = 1;
  uint32_t file_bytes = 0;  // that each file holds, whole blocks
  double seconds = 0;       // each warp makes one at least
  uint64_t names_max = 1;   // in all, but one by each warp
};

/// Files and directories made one by one.
class NamesBench {
 public:
  /// For up to `warps_max` warps, and files of up to `file_bytes_max` bytes.
  NamesBench(host::VolumeState& volume, uint32_t warps_max, uint32_t file_bytes_max);

  /// Each warp makes its home, a directory in the root. First of all, and once.
  Expected<NamesMeasurement> make_homes();
  /// Each warp makes names, then, after a checkpoint, removes them.
  Expected<NamesMeasurement> make_and_remove(const NamesPlan& plan);

 private:
  Expected<double> step(NameStep step, const Actors& actors, NamesParams params, uint64_t& names);
  NamesParams params_of(NameKind kind, uint32_t file_bytes);

  host::VolumeState& volume_;
  const Actors all_;
  const uint32_t file_bytes_max_;
  const BackendArray paths_;
  const BackendArray buffers_;
  const BackendArray done_;
  const BackendArray stats_;
  uint64_t runs_ = 0;
};

struct BatchCreation {
  uint64_t files = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

/// Makes `files` files of `file_bytes` bytes (whole blocks, or 0) in the new directory `directory`,
/// as one batch. Their contents are in memory of the backend before. Some are read back.
Expected<BatchCreation> measure_batch_creation(host::VolumeState& volume,
                                               const std::string& directory, uint32_t files,
                                               uint32_t file_bytes);
/// Where the file `index` of such a batch is.
std::string batch_path(const std::string& directory, uint32_t index);

}  // namespace gofs::bench
