// SPDX-License-Identifier: Apache-2.0
//
// Failing commands: does a scenario again and again, each time with another command that fails
// (once, or with all after it on that SSD), up to the operation that answers EIO. Then the volume
// that is mounted, and the one that is mounted afterwards, must hold what was done before: all of
// it where unmounting succeeds, else what was made durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/nvme.h"
#include "scenario.h"

namespace gofs::judges {

struct FaultsOptions {
  uint64_t seed = 1;
  uint32_t width = 1;  // lanes of a warp
  Striping striping;
  bool log_structured = false;  // nothing is written over where it lies
  bool hosted = false;          // hosted SSDs, and what they ask of Linux fails
  uint32_t commands_max = 0;    // of each kind, evenly spread; 0: all
  uint32_t fsck_every = 1;      // of the volumes, how many fsck.f2fs looks at; 0: none
  uint32_t failures_max = 3;
  // Of a failure that is to be seen again.
  std::optional<std::string> kind;
  std::optional<uint32_t> command;
  uint32_t disk = 0;  // which has that command
  std::string save;   // where the image goes
};

struct FaultsResult {
  uint64_t runs = 0;    // each with one fault
  uint64_t errors = 0;  // of those, ended by an operation that failed
  uint64_t kept = 0;    // unmounted well
  std::vector<std::string> failures;
};

/// Throws std::runtime_error where the scenario itself goes wrong.
FaultsResult explore_faults(const Scenario& scenario, const FaultsOptions& options);

}  // namespace gofs::judges
