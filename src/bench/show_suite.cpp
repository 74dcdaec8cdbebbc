// SPDX-License-Identifier: Apache-2.0
//
// gofs bench micro: the paper's microbenchmarks on volumes of its own (suite.hpp). Prints
// a table, a row when it is measured; with --json an object a line instead, the first of which says
// on what. bench/plot.py draws these.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "bench/show_spread.hpp"
#include "bench/suite.hpp"
#include "cli/output.h"
#include "cli/text.h"

namespace gofs::bench {
namespace {

using Json = nlohmann::ordered_json;

SuiteOptions suite_options(const cli::Session& session, const MicroOptions& options) {
  SuiteOptions suite;
  suite.folder = options.folder;
  suite.backend = session.backend;
  suite.models = options.models;
  suite.ssds = options.ssds;
  suite.runs = options.runs;
  suite.seconds = options.seconds;
  suite.controller_warps = options.controller_warps;
  suite.small = options.small;
  if (options.sweeps.empty()) return suite;
  suite.sweeps.clear();
  for (uint32_t number = 0; number < kSweeps; ++number) {
    const auto sweep = static_cast<Sweep>(number);
    for (const std::string& name : options.sweeps) {
      if (name == name_of(sweep)) suite.sweeps.push_back(sweep);
    }
  }
  return suite;
}

void show_machine(const cli::Session& session, const MicroOptions& options,
                  const host::VolumeState& volume, bool first) {
  const VolumeInfo info = volume.info();
  if (session.json) {
    cli::print(Json{{"bench", "micro volume"},
                    {"backend", info.backend},
                    {"backend_detail", info.backend_detail},
                    {"ssd", info.ssd},
                    {"model", volume.spec().model_name},
                    {"lba_bytes", info.lba_bytes},
                    {"queues", info.queues},
                    {"queue_depth", info.queue_depth},
                    {"mode", info.mode},
                    {"ablations", info.ablations},
                    {"runs", options.runs},
                    {"seconds", options.seconds},
                    {"controller_warps", options.controller_warps}}
                   .dump() +
               "\n");
    cli::flush_output();
    return;
  }
  if (first) {
    cli::print(
        fmt::format("backend {}: {}\n{} queue pairs of {} entries, LBAs of {} bytes, {} controller "
                    "warps; {} runs of {} s each: median, least and most\n",
                    info.backend, info.backend_detail, info.queues, info.queue_depth,
                    info.lba_bytes, options.controller_warps, options.runs, options.seconds));
    cli::print(fmt::format(
        "{:<12} {:<8} {:<6} {:<10} {:>4} {:>8} {:>5} {:>8} {:>26} {:>26} {:>6}\n", "sweep", "model",
        "work", "pattern", "SSDs", "threads", "lanes", "bytes", "raw GB/s", "file GB/s", "ratio"));
  }
  cli::flush_output();
}

const char* name_of(SuiteActors actors) {
  switch (actors) {
    case SuiteActors::kThreads:
      return "threads";
    case SuiteActors::kWarps:
      return "warps";
    case SuiteActors::kWarpsOfAFile:
      return "warps of a file";
    case SuiteActors::kFiles:
      break;
  }
  return "files";
}

void show_row(const cli::Session& session, const SuiteRow& row) {
  const SuitePoint& point = row.point;
  const char* const work = point.work == SuiteWork::kRead ? "read" : "write";
  const char* const pattern = point.actors == SuiteActors::kFiles ? "files"
                              : point.random                      ? "random"
                                                                  : "sequential";
  if (session.json) {
    Json object{{"bench", "micro"},
                {"sweep", name_of(point.sweep)},
                {"model", point.model},
                {"work", work},
                {"pattern", pattern},
                {"ssds", point.ssds},
                {"outstanding", row.outstanding},
                {"threads_per_block", point.layout.threads_per_block},
                {"lanes_per_warp", point.layout.lanes_per_warp},
                {"bytes", point.bytes},
                {"controller_warps", row.controller_warps},
                {"raw_bytes_per_s", spread_json(row.raw)},
                {"file_bytes_per_s", spread_json(row.file)},
                {"ratio", row.ratio()}};
    if (row.opening) {
      object["list_s"] = row.opening->list_seconds;
      object["load_s"] = row.opening->load_seconds;
      object["batch_memory_bytes"] = row.opening->memory_bytes;
    }
    if (point.sweep == Sweep::kAblations) {
      object["ablation"] = point.ablation;
      object["ablated"] = point.ablated;
      object["actors"] = name_of(point.actors);
    }
    cli::print(object.dump() + "\n");
  } else {
    const std::string ablation =
        point.ablation.empty()
            ? ""
            : fmt::format("  {} {}", point.ablated ? "with" : "without", point.ablation);
    const std::string opening =
        row.opening ? fmt::format("  opened in {:.2f} + {:.2f} ms, {:.2f} MiB",
                                  row.opening->list_seconds * 1e3, row.opening->load_seconds * 1e3,
                                  static_cast<double>(row.opening->memory_bytes) / (1 << 20))
                    : "";
    const uint32_t lanes = point.layout.lanes_per_warp;
    cli::print(fmt::format(
        "{:<12} {:<8} {:<6} {:<10} {:>4} {:>8} {:>5} {:>8} {:>26} {:>26} {:>6.3f}{}{}\n",
        name_of(point.sweep), point.model, work, pattern, point.ssds, row.outstanding,
        lanes == 0 ? "all" : std::to_string(lanes), point.bytes, spread_text(row.raw, 1e9),
        spread_text(row.file, 1e9), row.ratio(), ablation, opening));
  }
  cli::flush_output();
}

}  // namespace

void run_micro(cli::Session& session, const MicroOptions& options) {
  bool first = true;
  SuiteSinks sinks;
  sinks.volume = [&](const host::VolumeState& volume) {
    show_machine(session, options, volume, first);
    first = false;
  };
  sinks.row = [&](const SuiteRow& row) { show_row(session, row); };
  if (auto done = run_suite(suite_options(session, options), sinks); !done) {
    throw cli::Failure{done.error().message};
  }
}

}  // namespace gofs::bench
