// SPDX-License-Identifier: Apache-2.0
//
// The crash explorer: does a scenario on SSDs that keep what is written, and then looks at what
// each power cut could have left: after every single write, with all, none or any part of what was
// not flushed. Where the volume is striped, power fails for all SSDs at once, and what one has
// flushed saves nothing on the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenario.h"

namespace gofs::judges {

struct ExplorerOptions {
  uint64_t seed = 1;
  uint32_t width = 1;  // lanes of a warp
  Striping striping;
  bool log_structured = false;  // nothing is written over where it lies
  bool hosted = false;          // hosted SSDs, and what they ask of Linux is lost
  uint32_t subsets = 4;     // of the writes that are not safe, for each cut: all, none, random ones
  uint32_t cuts_max = 0;    // so many, evenly spread; 0: all
  uint32_t fsck_every = 1;  // of the images, how many fsck.f2fs looks at; 0: none
  uint32_t nested = 1;      // cuts while an image is mounted again, each at random
  uint32_t depth = 2;       // of each of those, so many one in the other
  uint32_t failures_max = 3;
  bool flushes_lie = false;  // as if the last SSD had ignored them: then there must be failures
  // Of a failure that is to be seen again.
  std::optional<uint32_t> cut;
  std::optional<uint32_t> subset;
  std::string save;  // where the image goes
};

struct ExplorerResult {
  uint64_t writes = 0;   // that the scenario made
  uint64_t cuts = 0;     // moments
  uint64_t images = 0;   // that these cuts left
  uint64_t written = 0;  // mounted for writing and compared with the history, nested ones too
  uint64_t nested = 0;   // images of cuts while another was mounted
  uint64_t judged = 0;   // by fsck.f2fs
  std::vector<std::string> failures;
};

/// Throws std::runtime_error where the scenario itself goes wrong.
ExplorerResult explore(const Scenario& scenario, const ExplorerOptions& options);

/// An image for somebody else to recover.
struct ExportedImage {
  std::string path;
  std::string cut;  // which it is, in words
  uint32_t moment;
  std::shared_ptr<const History> history;
};

/// Leaves images of `cuts_max` cuts of a scenario in `folder`, each a file. Throws as explore().
std::vector<ExportedImage> export_images(const Scenario& scenario, const ExplorerOptions& options,
                                         const std::string& folder);

/// What is wrong with the image that somebody has recovered, or nothing.
std::string judge_recovered(const ExportedImage& image);

}  // namespace gofs::judges
