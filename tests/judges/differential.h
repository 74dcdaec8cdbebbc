// SPDX-License-Identifier: Apache-2.0
//
// The differential test: long random sequences of calls by several threads, each in a directory of
// its own, where every answer and later all that is there is compared with a model; and in a
// directory that they share, where what one does must not lose what another did. Every so often the
// volume is unmounted, judged by fsck.f2fs and mounted again; after some time it is a new one.
#pragma once

#include <cstdint>
#include <string>

namespace gofs::judges {

struct DifferentialOptions {
  uint64_t seed = 1;
  uint64_t operations = 100'000;  // of all threads together
  uint32_t threads = 1;
  uint32_t width = 1;              // lanes of a warp
  uint32_t check_every = 300;      // operations of one thread
  uint32_t checks_per_mount = 4;   // then it is mounted again
  uint32_t mounts_per_volume = 5;  // then there is a new one
  uint32_t cache_pages = 512;
  bool progress = false;  // a line for each volume
};

struct DifferentialResult {
  uint64_t operations = 0;
  uint64_t refused = 0;  // of those, answered with an error, as the model had it
  uint64_t full = 0;     // and ENOSPC, which the model does not foresee
  uint64_t mounts = 0;
  uint64_t volumes = 0;
  std::string difference;  // the first one, and how to see it again
};

DifferentialResult run_differential(const DifferentialOptions& options);

}  // namespace gofs::judges
