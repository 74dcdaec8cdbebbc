// SPDX-License-Identifier: Apache-2.0
//
// A measurement of files that are opened, read and closed one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

struct FilesMeasurement {
  uint32_t warps = 0;  // what the backend could give
  uint64_t bytes = 0;
  double seconds = 0;  // from the first open to the last close, on the backend's clock

  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

/// Has `warps` warps open, read and close the files of `paths`, each of `file_bytes` bytes whose
/// blocks begin with their index in the file. Errors: EIO also for wrong bytes; EINVAL for a path
/// that is too long.
Expected<FilesMeasurement> measure_files_one_by_one(host::VolumeState& volume,
                                                    const std::vector<std::string>& paths,
                                                    uint32_t file_bytes, uint32_t warps);

}  // namespace gofs::bench
