// SPDX-License-Identifier: Apache-2.0
//
// The crash explorer: does a scenario on an SSD that keeps what is written, and then looks at what
// each power cut could have left: after every single write, with all, none or any part of what was
// not flushed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario.h"

namespace gofs::judges {

struct ExplorerOptions {
  uint64_t seed = 1;
  uint32_t width = 1;       // lanes of a warp
  uint32_t subsets = 4;     // of the writes that are not safe, for each cut: all, none, random ones
  uint32_t cuts_max = 0;    // so many, evenly spread; 0: all
  uint32_t fsck_every = 1;  // of the images, how many fsck.f2fs looks at; 0: none
  uint32_t nested = 1;      // cuts while an image is mounted again, each at random
  uint32_t failures_max = 3;
  bool flushes_lie = false;  // as if the SSD had ignored them: then there must be failures
  // Of a failure that is to be seen again.
  std::optional<uint32_t> cut;
  std::optional<uint32_t> subset;
  std::string save;  // where the image goes
};

struct ExplorerResult {
  uint64_t writes = 0;   // that the scenario made
  uint64_t cuts = 0;     // moments
  uint64_t images = 0;   // mounted for reading and compared with the model
  uint64_t written = 0;  // of those, mounted for writing as well
  uint64_t nested = 0;   // images of cuts while another was mounted
  uint64_t judged = 0;   // by fsck.f2fs
  std::vector<std::string> failures;
};

/// Throws std::runtime_error where the scenario itself goes wrong.
ExplorerResult explore(const Scenario& scenario, const ExplorerOptions& options);

}  // namespace gofs::judges
