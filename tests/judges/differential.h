// SPDX-License-Identifier: Apache-2.0
//
// The differential test: long random sequences of calls by several threads, each in a directory of
// its own, where every answer and later all that is there is compared with a model; and in a
// directory that they share, where what one does must not lose what another did. Every so often the
// volume is unmounted, judged by fsck.f2fs and mounted again; after some time it is a new one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "disk.h"

namespace gofs::judges {

/// What a volume is, and how it is mounted.
struct Variation {
  uint64_t volume_bytes = uint64_t{160} << 20;
  std::string mkfs_options;
  Striping striping;
  uint32_t threads = 1;
  uint32_t width = 1;  // lanes of a warp
  uint32_t cache_pages = 512;
  uint32_t lba_shift = 9;
  uint32_t queue_depth = 64;
  int64_t time_granularity_ns = 1;
  bool served = false;                             // calls go through channels
  uint64_t kernel_part_bytes = uint64_t{2} << 20;  // if so: as SessionOptions has it
  bool strangers = true;  // calls by several users, at once where there are several threads

  std::string words() const;
};

struct DifferentialOptions {
  uint64_t seed = 1;
  uint64_t operations = 100'000;  // of all threads together
  Variation variation;
  bool vary = false;               // each volume has another, which goes by its seed
  uint32_t check_every = 300;      // operations of one thread
  uint32_t checks_per_mount = 4;   // then it is mounted again
  uint32_t mounts_per_volume = 5;  // then there is a new one
  bool progress = false;           // a line for each volume
};

struct DifferentialResult {
  uint64_t operations = 0;
  uint64_t refused = 0;  // of those, answered with an error, as the model had it
  uint64_t full = 0;     // and ENOSPC, which the model does not foresee
  uint64_t mounts = 0;
  uint64_t volumes = 0;
  std::vector<uint64_t> counts;  // by kind: Walker::operations_table()
  std::string difference;        // the first one, and how to see it again
};

DifferentialResult run_differential(const DifferentialOptions& options);

/// The same calls of a tmpfs of Linux, by user 0 and others: whether the model is right. The
/// process sees nothing but that tmpfs from then on. Throws std::system_error where it may not.
DifferentialResult judge_model(const DifferentialOptions& options);

}  // namespace gofs::judges
