// SPDX-License-Identifier: Apache-2.0
//
// The crash explorer by hand: `gofs_crash --all`, or what a failure says.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "explorer.h"
#include "faults.h"
#include "striping_options.hpp"

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
      "{:36} {:5} writes {:5} cuts {:6} images {:6} written {:6} nested {:6} fsck {:6.1f} s  {}\n",
      scenario.name, result.writes, result.cuts, result.images, result.written, result.nested,
      result.judged, seconds_since(began), result.failures.empty() ? "ok" : "FAILED");
  for (const std::string& failure : result.failures) fmt::print("{}\n", failure);
  std::fflush(stdout);
  return result.failures.empty();
}

bool run_faults(const Scenario& scenario, const FaultsOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  FaultsResult result;
  try {
    result = explore_faults(scenario, options);
  } catch (const std::exception& problem) {
    result.failures.push_back(fmt::format("{}: {}", scenario.name, problem.what()));
  }
  fmt::print("{:36} {:6} faults {:6} errors {:6} kept {:6.1f} s  {}\n", scenario.name, result.runs,
             result.errors, result.kept, seconds_since(began),
             result.failures.empty() ? "ok" : "FAILED");
  for (const std::string& failure : result.failures) fmt::print("{}\n", failure);
  std::fflush(stdout);
  return result.failures.empty();
}

/// Whether somebody else recovers images of all these scenarios: a command, which gets the folder
/// with them.
bool run_recovery_by(const std::string& command, const std::vector<Scenario>& scenarios,
                     const ExplorerOptions& options, const std::string& folder) {
  std::vector<ExportedImage> images;
  for (const Scenario& scenario : scenarios) {
    for (ExportedImage& image : export_images(scenario, options, folder)) {
      images.push_back(std::move(image));
    }
  }
  if (std::system((command + " '" + folder + "'").c_str()) != 0) {
    fmt::print("{} failed\n", command);
    return false;
  }
  uint32_t failed = 0;
  for (const ExportedImage& image : images) {
    const std::string problem = judge_recovered(image);
    if (!problem.empty()) fmt::print("{}\n", problem);
    failed += problem.empty() ? 0 : 1;
  }
  fmt::print("{} images recovered, {} of them wrong\n", images.size(), failed);
  return failed == 0 && !images.empty();
}

int main_of(int argc, char** argv) {
  ExplorerOptions options;
  std::vector<std::string> names;
  FaultsOptions faults;
  uint64_t seeds = 1;
  bool all = false;
  bool with_faults = false;
  std::string recovery;
  std::string folder = ".";
  bool list = false;
  CLI::App app("Cuts the power after every write of a scenario, and looks at what is left.");
  app.add_flag("--all", all, "all scenarios");
  app.add_flag("--list", list, "print their names");
  app.add_option("--scenario", names, "these");
  app.add_option("--seed", options.seed, "of what is written and of what survives")
      ->capture_default_str();
  CLI::Option* const several =
      app.add_option("--seeds", seeds,
                     "so many, from that one on: scenarios drawn at random differ")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
  app.add_option("--width", options.width, "lanes of a warp")->capture_default_str();
  add_striping_options(app, options.striping);
  app.add_flag("--lfs", options.log_structured, "nothing is written over where it lies");
  app.add_flag("--hosted", options.hosted, "hosted SSDs: what they ask of Linux is lost, or fails");
  app.add_option("--subsets", options.subsets, "images of each cut: all, none, random ones")
      ->capture_default_str();
  app.add_option("--cuts", options.cuts_max, "at most so many; 0: all")->capture_default_str();
  app.add_option("--fsck-every", options.fsck_every,
                 "of how many images fsck.f2fs sees one; 0: none")
      ->capture_default_str();
  app.add_option("--nested", options.nested, "cuts of each mount of an image")
      ->capture_default_str();
  app.add_option("--depth", options.depth, "of these, so many one in the other")
      ->capture_default_str();
  app.add_option("--cut", options.cut, "at this moment only");
  app.add_option("--subset", options.subset, "with this part of the writes only");
  app.add_option("--save", options.save, "where the (last) image is to go");
  app.add_option("--recovered-by", recovery,
                 "a command that recovers the images in a folder, its last argument: those of "
                 "--cuts cuts of each scenario")
      ->excludes(several);
  app.add_option("--images", folder, "that folder, which is there");
  app.add_flag("--faults", with_faults, "let commands fail, instead of power");
  app.add_option("--commands", faults.commands_max, "that fail, of each kind at most; 0: all");
  app.add_option("--kind", faults.kind, "write, writes, read, reads, flush, all or death");
  app.add_option("--command", faults.command, "this one only");
  app.add_option("--on-disk", faults.disk, "of this SSD, from 0")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  faults.width = options.width;
  faults.striping = options.striping;
  faults.log_structured = options.log_structured;
  faults.hosted = options.hosted;
  faults.fsck_every = options.fsck_every;
  faults.save = options.save;
  std::vector<Scenario> wanted;
  for (const Scenario& scenario : all_scenarios()) {
    if (list) fmt::print("{}\n", scenario.name);
    const bool named = std::find(names.begin(), names.end(), scenario.name) != names.end();
    if (all || named) wanted.push_back(scenario);
  }
  if (list) return 0;
  if (faults.disk >= options.striping.disks) {
    fmt::print(stderr, "--on-disk {}: there are {}\n", faults.disk, options.striping.disks);
    return 1;
  }
  if (!recovery.empty()) return run_recovery_by(recovery, wanted, options, folder) ? 0 : 1;
  uint32_t passed = 0;
  uint32_t failed = 0;
  for (const uint64_t last = options.seed + seeds - 1; options.seed <= last; ++options.seed) {
    if (seeds != 1) fmt::print("seed {}\n", options.seed);
    faults.seed = options.seed;
    for (const Scenario& scenario : wanted) {
      const bool well = with_faults ? run_faults(scenario, faults) : run(scenario, options);
      ++(well ? passed : failed);
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace
}  // namespace gofs::judges

int main(int argc, char** argv) { return gofs::judges::main_of(argc, argv); }
