// SPDX-License-Identifier: Apache-2.0
//
// The scenarios that power cuts interrupt. To add one: a function in one of scenarios_*.cpp and a
// line in its table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "actor.h"

namespace gofs::judges {

struct Scenario {
  const char* name;
  /// What is done while power may fail.
  void (*run)(Actor& actor);
  /// What was there before, and unmounted; null: nothing.
  void (*prepare)(Actor& actor) = nullptr;
  uint32_t cache_pages = 512;  // few: checkpoints come by themselves
  bool repeatable = true;      // false: threads take turns as they like
};

std::span<const Scenario> file_scenarios();
std::span<const Scenario> name_scenarios();
std::span<const Scenario> volume_scenarios();

std::vector<Scenario> all_scenarios();

}  // namespace gofs::judges
