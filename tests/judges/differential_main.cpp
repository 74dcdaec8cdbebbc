// SPDX-License-Identifier: Apache-2.0
//
// The differential test by hand, for as long as one likes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "differential.h"

int main(int argc, char** argv) {
  gofs::judges::DifferentialOptions options;
  options.progress = true;
  CLI::App app("Makes random calls, and compares all that they do with a model.");
  app.add_option("--seed", options.seed, "of all that is random")->capture_default_str();
  app.add_option("--operations", options.operations, "of all threads together")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--width", options.width, "lanes of a warp")
      ->capture_default_str()
      ->check(CLI::Range(1, 32));
  app.add_option("--cache-pages", options.cache_pages, "metadata blocks in memory")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const auto result = gofs::judges::run_differential(options);
    if (!result.difference.empty()) {
      fmt::print("DIFFERENCE after {} operations: {}\n", result.operations, result.difference);
      return 1;
    }
    fmt::print("{} operations without a difference\n", result.operations);
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "gofs_differential: {}\n", problem.what());
    return 2;
  }
}
