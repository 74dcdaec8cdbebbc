// SPDX-License-Identifier: Apache-2.0
#include "bench/grammar.hpp"

#include <memory>
#include <string>

#include "bench/commands.hpp"
#include "cli/options.h"
#include "host/volume_spec.h"

namespace gofs::bench {
namespace {

using cli::add_backend_option;
using cli::add_json_option;
using cli::add_size_option;
using cli::Session;

void add_micro(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "micro", "Measure reads and writes beside raw commands, on volumes of its own");
  const auto options = cli::on_command(command, session, run_micro);
  add_backend_option(command, session.backend);
  command
      .add_option("--folder", options->folder,
                  "Where the images lie meanwhile, some 20 GiB; /dev/shm if not given")
      ->check(CLI::ExistingDirectory)
      ->type_name("HOSTPATH");
  command
      .add_option("--models", options->models,
                  "Timing models of the SSDs, or hbm; none if not given")
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      .add_option("--sweeps", options->sweeps,
                  "Axes: outstanding, size, blocks, lanes, lbas, ssds, files, all if not given; or "
                  "ablations")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"outstanding", "size", "blocks", "lanes", "lbas", "ssds", "files", "ablations"}))
      ->type_name("NAME,...");
  command.add_option("--ssds", options->ssds, "Of axis ssds; 1,2,4,8 if not given")
      ->delimiter(',')
      ->check(CLI::Range(1u, 8u))
      ->type_name("N,...");
  command.add_option("--runs", options->runs, "Of each point, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  command.add_option("--seconds", options->seconds, "How long each run takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S");
  command
      .add_option("--controller-warps", options->controller_warps,
                  "Warps that play the virtual SSDs' controllers and do nothing else, beside those "
                  "that read or write; 0 if not given")
      ->type_name("N");
  command.add_flag("--small", options->small, "Few points and bytes: to see that all of it works");
  add_json_option(command, session.json);
}

void add_reads(CLI::App& command, Session& session) {
  const auto options = std::make_shared<BenchOptions>();
  cli::add_volume_argument(command, session)->required(false);  // `micro` makes its own
  add_backend_option(command, session.backend);
  command.callback([&command, &session, options] {
    if (command.got_subcommand("micro")) return;
    if (session.volume.empty()) throw CLI::RequiredError("VOL");
    run_bench(session, *options);
  });
  command
      .add_option("KIND", options->kinds,
                  "What to measure: raw, file, files (raw file if not given)")
      ->check(CLI::IsMember({"raw", "file", "files"}))
      ->type_name("");
  command.add_option("--file", options->file, "File to read; the largest if not given")
      ->type_name("PATH");
  command
      .add_option("--directory", options->directory,
                  "Directory for `files`; the one with most files if not given")
      ->type_name("PATH");
  command.add_option("--pattern", options->pattern, "rand, seq or both")
      ->check(CLI::IsMember({"rand", "seq", "both"}))
      ->type_name("NAME");
  command
      .add_option("--scope", options->scope,
                  "Who makes one file read: a thread, warp, block or the whole grid")
      ->check(CLI::IsMember({"thread", "warp", "block", "grid"}))
      ->type_name("NAME");
  command
      .add_option("--threads", options->outstanding,
                  "Reads at the same time: how many threads, warps or blocks")
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("N");
  add_size_option(command, "--block-size", options->block_bytes, "Bytes of a read")
      ->check([](const std::string& word) {
        const uint64_t bytes = host::parse_size(word).value_or(0);
        const bool taken = bytes != 0 && bytes <= 1u << 30 && bytes % 512 == 0;
        return taken ? std::string() : std::string("wants a multiple of 512 bytes, up to 1G");
      });
  command.add_option("--seconds", options->seconds, "How long each measurement takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S");
  command.add_option("--operations", options->operations, "How many reads, instead of --seconds")
      ->type_name("N");
  command
      .add_option("--repetitions", options->repetitions, "Measurements, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  command.add_option("--files", options->files_max, "How many files `files` opens at most")
      ->check(CLI::Range(1u, 1u << 18))
      ->type_name("N");
  command.add_option("--seed", options->seed, "Of random patterns")->type_name("N");
  add_json_option(command, session.json);
}

}  // namespace

int run_program(int argument_count, char** arguments) {
  Session session;
  CLI::App app("Measure reads: raw commands and the file API", "gofs bench");
  cli::set_help_style(app);
  add_reads(app, session);
  add_micro(app, session);
  return cli::parse_and_run(app, session, argument_count, arguments);
}

}  // namespace gofs::bench
