// SPDX-License-Identifier: Apache-2.0
//
// The differential test by hand, for as long as one likes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "differential.h"
#include "striping_options.hpp"
#include "walker.h"

int main(int argc, char** argv) {
  gofs::judges::DifferentialOptions options;
  options.progress = true;
  CLI::App app("Makes random calls, and compares all that they do with a model.");
  app.add_option("--seed", options.seed, "of all that is random")->capture_default_str();
  app.add_option("--operations", options.operations, "of all threads together")
      ->capture_default_str();
  gofs::judges::Variation& variation = options.variation;
  uint64_t mebibytes = variation.volume_bytes >> 20;
  uint32_t lba_bytes = 512;
  bool judges_model = false;
  bool one_user = false;
  app.add_option("--threads", variation.threads, "at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--width", variation.width, "lanes of a warp")
      ->capture_default_str()
      ->check(CLI::Range(1, 32));
  app.add_option("--cache-pages", variation.cache_pages, "metadata blocks in memory")
      ->capture_default_str();
  app.add_option("--queue-depth", variation.queue_depth)->capture_default_str();
  app.add_option("--granularity", variation.time_granularity_ns, "of time stamps, nanoseconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--lba", lba_bytes, "bytes")
      ->capture_default_str()
      ->check(CLI::IsMember({512, 4096}));
  app.add_option("--mebibytes", mebibytes, "of the volume")->capture_default_str();
  app.add_option("--mkfs", variation.mkfs_options, "options of mkfs.f2fs");
  gofs::judges::add_striping_options(app, variation.striping);
  app.add_flag("--served", variation.served, "calls go through channels, as a server's clients'");
  app.add_option("--kernel-part", variation.kernel_part_bytes,
                 "if so: what a call of kernels takes at most, bytes")
      ->capture_default_str()
      ->check(CLI::IsMember({64 << 10, 128 << 10, 2 << 20}));
  app.add_flag("--one-user", one_user, "all calls by user 0");
  app.add_flag("--vary", options.vary, "all of these by the seed of each volume");
  app.add_flag("--model", judges_model, "compare the model with a tmpfs of Linux; as user 0");
  CLI11_PARSE(app, argc, argv);
  variation.volume_bytes = mebibytes << 20;
  variation.lba_shift = lba_bytes == 512 ? 9 : 12;
  variation.strangers = !one_user;
  try {
    const auto result =
        judges_model ? gofs::judges::judge_model(options) : gofs::judges::run_differential(options);
    const auto table = gofs::judges::Walker::operations_table();
    for (size_t i = 0; i < result.counts.size(); ++i) {
      fmt::print("{:>10} {}\n", result.counts[i], table[i].name);
    }
    if (!result.difference.empty()) {
      fmt::print("DIFFERENCE after {} operations: {}\n", result.operations, result.difference);
      return 1;
    }
    fmt::print("{} operations without a difference: {} refused, {} without room, {} mounts\n",
               result.operations, result.refused, result.full, result.mounts);
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "gofs_differential: {}\n", problem.what());
    return 2;
  }
}
