// SPDX-License-Identifier: Apache-2.0
//
// The scenarios that power cuts and faults interrupt. To add one: a function in one of
// scenarios_*.cpp and a line in its table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "actor.h"
#include "disk.h"

namespace gofs::judges {

// What many of them need.
inline constexpr uint32_t kNewFile = vfs::kOpenReadWrite | vfs::kOpenCreate;
inline constexpr uint64_t kBlock = kBlockBytes;
/// Where each level of a file's tree begins, in blocks, with inline attributes in the inode.
inline constexpr uint64_t kDirectNode = 873;
inline constexpr uint64_t kIndirectNode = kDirectNode + 2 * 1018;
inline constexpr uint64_t kDoubleIndirectNode = kIndirectNode + 2 * 1018 * 1018;
inline std::string numbered(const std::string& name, uint32_t number) {
  return name + std::to_string(number);
}

struct Scenario {
  const char* name;
  /// What is done while power may fail, or commands.
  void (*run)(Actor& actor);
  /// What was there before, and unmounted; null: nothing.
  void (*prepare)(Actor& actor) = nullptr;
  uint32_t cache_pages = 512;  // few: checkpoints come by themselves
  bool repeatable = true;      // false: threads take turns as they like
  uint32_t cut_every = 1;      // of very many writes, so many share a cut
  bool meets_faults = false;   // also where it is not repeatable
  bool old_bytes = false;      // what is free holds bytes of others, and keeps them

  /// Whether its commands can be made to fail.
  bool takes_faults() const { return repeatable || meets_faults; }
};

std::span<const Scenario> file_scenarios();
std::span<const Scenario> growth_scenarios();
std::span<const Scenario> name_scenarios();
std::span<const Scenario> volume_scenarios();
std::span<const Scenario> fsync_scenarios();
std::span<const Scenario> fsync_name_scenarios();
std::span<const Scenario> random_scenarios();

std::vector<Scenario> all_scenarios();

/// What a scenario begins with.
struct Prepared {
  Disks disks;
  Model model;
  SessionOptions mount;  // as the scenario wants it
};
/// Throws std::runtime_error.
Prepared prepare(const Scenario& scenario, uint64_t seed, uint32_t width, const Striping& striping,
                 bool log_structured);

}  // namespace gofs::judges
