// SPDX-License-Identifier: Apache-2.0
//
// The crash explorer by hand: `gofs_crash --all`, or what a failure says.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>

#include "explorer.h"

namespace gofs::judges {
namespace {

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Whether it went well.
bool run(const Scenario& scenario, const ExplorerOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  ExplorerResult result;
  try {
    result = explore(scenario, options);
  } catch (const std::exception& problem) {
    result.failures.push_back(fmt::format("{}: {}", scenario.name, problem.what()));
  }
  fmt::print(
      "{:34} {:5} writes {:5} cuts {:6} images {:6} written {:6} nested {:6} fsck {:6.1f} s  {}\n",
      scenario.name, result.writes, result.cuts, result.images, result.written, result.nested,
      result.judged, seconds_since(began), result.failures.empty() ? "ok" : "FAILED");
  for (const std::string& failure : result.failures) fmt::print("{}\n", failure);
  std::fflush(stdout);
  return result.failures.empty();
}

int main_of(int argc, char** argv) {
  ExplorerOptions options;
  std::vector<std::string> names;
  bool all = false;
  bool list = false;
  CLI::App app("Cuts the power after every write of a scenario, and looks at what is left.");
  app.add_flag("--all", all, "all scenarios");
  app.add_flag("--list", list, "print their names");
  app.add_option("--scenario", names, "these");
  app.add_option("--seed", options.seed, "of what is written and of what survives")
      ->capture_default_str();
  app.add_option("--width", options.width, "lanes of a warp")->capture_default_str();
  app.add_option("--subsets", options.subsets, "images of each cut: all, none, random ones")
      ->capture_default_str();
  app.add_option("--cuts", options.cuts_max, "at most so many; 0: all")->capture_default_str();
  app.add_option("--fsck-every", options.fsck_every,
                 "of how many images fsck.f2fs sees one; 0: none")
      ->capture_default_str();
  app.add_option("--nested", options.nested, "cuts of each mount of an image")
      ->capture_default_str();
  app.add_option("--cut", options.cut, "at this moment only");
  app.add_option("--subset", options.subset, "with this part of the writes only");
  app.add_option("--save", options.save, "where the (last) image is to go");
  CLI11_PARSE(app, argc, argv);

  uint32_t passed = 0;
  uint32_t failed = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (list) fmt::print("{}\n", scenario.name);
    const bool wanted = all || std::find(names.begin(), names.end(), scenario.name) != names.end();
    if (wanted) ++(run(scenario, options) ? passed : failed);
  }
  if (list) return 0;
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace
}  // namespace gofs::judges

int main(int argc, char** argv) { return gofs::judges::main_of(argc, argv); }
