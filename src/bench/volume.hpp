// SPDX-License-Identifier: Apache-2.0
//
// The volume that benchmarks use, made without f2fs-tools: large files whose blocks say where they
// belong, so that a read of the wrong one is found out, many small files, room for what is written,
// and behind the volume a range for raw writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

struct BenchContents {
  /// Of /large, in one piece; every 4 KiB block begins with its index in the file.
  uint64_t large_bytes = uint64_t{4} << 30;
  uint32_t small_count = 100'000;
  uint32_t small_bytes = 16'384;  // of each file in /small
  uint64_t spare_bytes = 0;       // that stay free for files to come
  uint64_t raw_bytes = 0;         // that belong to no volume
};

/// Makes it on an image, or striped over several in chunks of 512 KiB; what they held is lost.
/// Where the raw range begins, in bytes of the SSD or the array. Errors: those of files; ENOSPC.
Expected<uint64_t> make_bench_volume(const std::vector<std::string>& images,
                                     const BenchContents& contents);

/// To mount it for writing, with queues for all that a GPU has outstanding.
MountOptions bench_mount(const std::string& backend);

/// Mounts it, on SSDs of a timing model, or with `hbm` in the memory of the GPU; all of it can be
/// written. Errors: those of a mount.
Expected<std::unique_ptr<host::VolumeState>> mount_bench_volume(
    const std::vector<std::string>& images, const std::string& model, const MountOptions& mount);

/// Of the `index`-th of the small files.
std::string small_file_path(uint32_t index);

}  // namespace gofs::bench
