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

void add_folder_option(CLI::App& command, std::string& folder, const char* what) {
  command.add_option("--folder", folder, what)
      ->check(CLI::ExistingDirectory)
      ->type_name("HOSTPATH");
}
void add_models_option(CLI::App& command, std::vector<std::string>& models, const char* what) {
  command.add_option("--models", models, what)->delimiter(',')->type_name("NAME,...");
}
void add_runs_option(CLI::App& command, uint32_t& runs, const char* what) {
  command.add_option("--runs", runs, what)->check(CLI::Range(1u, 1000u))->type_name("N");
}
void add_seconds_option(CLI::App& command, double& seconds, const char* what) {
  command.add_option("--seconds", seconds, what)->check(CLI::Range(0.001, 3600.0))->type_name("S");
}

/// Of benchmarks with one image, whose results are rows.
void add_row_options(CLI::App& command, std::string& folder, std::vector<std::string>& models,
                     uint32_t& runs) {
  add_folder_option(command, folder, "Where the image lies meanwhile; /dev/shm if not given");
  add_models_option(command, models, "Timing models of the SSD, or hbm; none if not given");
  add_runs_option(command, runs, "Of each row, of which the median counts");
}

void add_micro(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "micro", "Measure reads and writes beside raw commands, on volumes of its own");
  const auto options = cli::on_command(command, session, run_micro);
  add_backend_option(command, session.backend);
  add_folder_option(command, options->folder,
                    "Where the images lie meanwhile, some 20 GiB; /dev/shm if not given");
  add_models_option(command, options->models,
                    "Timing models of the SSDs, or hbm; none if not given");
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
  add_runs_option(command, options->runs, "Of each point, of which the median counts");
  add_seconds_option(command, options->seconds, "How long each run takes");
  command
      .add_option("--controller-warps", options->controller_warps,
                  "Warps that play the virtual SSDs' controllers and do nothing else, beside those "
                  "that read or write; 0 if not given")
      ->type_name("N");
  command.add_flag("--small", options->small, "Few points and bytes: to see that all of it works");
  add_json_option(command, session.json);
}

void add_stream(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "stream", "Measure large files written and read by many at once, on a volume of its own");
  const auto options = cli::on_command(command, session, run_stream);
  add_backend_option(command, session.backend);
  add_row_options(command, options->folder, options->models, options->runs);
  command
      .add_option("--shapes", options->shapes,
                  "Who streams, how much at a time, such as grid:256M, block:1M, warp:16K, "
                  "thread:64K; block:1M:own for a file each")
      ->delimiter(',')
      ->type_name("SHAPE,...");
  command.add_option("--works", options->works, "What is measured; all if not given")
      ->delimiter(',')
      ->check(CLI::IsMember({"new", "truncated", "allocated", "shuffled", "over", "read"}))
      ->type_name("NAME,...");
  add_size_option(command, "--file-bytes", options->file_bytes, "Of all files together");
  add_json_option(command, session.json);
}

void add_records(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "records", "Measure records appended to one log by many at once, on a volume of its own");
  const auto options = cli::on_command(command, session, run_record_bench);
  add_backend_option(command, session.backend);
  add_row_options(command, options->folder, options->models, options->runs);
  add_seconds_option(command, options->seconds, "How long each run takes");
  command.add_flag("--small", options->small, "Short logs: to see that all of it works");
  add_json_option(command, session.json);
}

void add_storage(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "storage", "Measure a file, and batches of small ones, that are made on a volume meanwhile");
  const auto options = cli::on_command(command, session, run_storage_bench);
  cli::add_volume_argument(command, session)->required();
  add_backend_option(command, session.backend);
  command
      .add_option("--works", options->works,
                  "What is measured, in this order; all but batches if not given")
      ->delimiter(',')
      ->check(CLI::IsMember({"random-read", "random-write", "sequential-read", "sequential-write",
                             "batch-create", "batch-read"}))
      ->type_name("NAME,...");
  command
      .add_option("--outstanding", options->outstanding,
                  "Reads or writes at a time; 1,4,16,32,64,128,256 if not given")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("N,...");
  add_size_option(command, "--file-bytes", options->file_bytes, "Of the file, whole MiB");
  command.add_option("--files", options->files, "How many of 16 KiB a batch has")
      ->check(CLI::Range(1u, 1u << 18))
      ->type_name("N");
  add_seconds_option(command, options->seconds, "How long each measurement takes");
  add_json_option(command, session.json);
}

void add_reads(CLI::App& command, Session& session) {
  const auto options = std::make_shared<BenchOptions>();
  cli::add_volume_argument(command, session)->required(false);  // subcommands make their own
  add_backend_option(command, session.backend);
  command.callback([&command, &session, options] {
    if (!command.get_subcommands().empty()) return;
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
  add_seconds_option(command, options->seconds, "How long each measurement takes");
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
  add_stream(app, session);
  add_records(app, session);
  add_storage(app, session);
  return cli::parse_and_run(app, session, argument_count, arguments);
}

}  // namespace gofs::bench
