// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of many files on the backend (kernels/hash.h), from the host's side.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "host/volume_state.h"
#include "kernels/hash.h"

namespace gofs::host {

struct FileToHash {
  uint64_t ino;
  uint64_t size_bytes;  // as far as known: decides the order of work
};

/// Sums `files`; the answers are in their order. `progress(bytes)` is called now and then from
/// another thread, with what has been read so far. Errors: ENOMEM, EIO when the backend fails.
Expected<std::vector<kernels::HashFile>> hash_files(
    VolumeState& volume, const std::vector<FileToHash>& files,
    const std::function<void(uint64_t bytes)>& progress);

}  // namespace gofs::host
