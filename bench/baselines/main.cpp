// SPDX-License-Identifier: Apache-2.0
//
// gofs_baselines: 4 KiB reads and writes of one large file, and reads of many small ones, by GoFS,
// by raw NVMe commands, and by stand-ins for what others do. README.md beside this file says what
// each of them is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "print.hpp"

namespace gofs::bench {
namespace {

void add_choices(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                 const std::string& help) {
  app.add_option(name, target, help)
      ->delimiter(',')
      ->check(CLI::IsMember(target))
      ->type_name("NAME,...");
}

void add_options(CLI::App& app, Options& options, uint64_t& large_mib) {
  app.add_option("--backend", options.backend, "Where device code runs: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME");
  app.add_option("--folder", options.folder,
                 "Takes an image and a file meanwhile, in memory; /dev/shm if not given")
      ->check(CLI::ExistingDirectory)
      ->type_name("HOSTPATH");
  app.add_option("--models", options.models,
                 "Timing models of the SSD, and file: a file without one; none,file if not given")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--outstanding", options.outstanding, "Reads or writes under way")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("N,...");
  app.add_option("--lanes-per-warp", options.lanes_per_warp,
                 "How many threads of each warp of a GPU issue requests, of at most 1,024 warps; "
                 "0: all; 0,1 if not given")
      ->delimiter(',')
      ->check(CLI::Range(0u, 32u))
      ->type_name("N,...");
  add_choices(app, "--work", options.works, "read, write; both if not given");
  app.add_option("--pattern", options.patterns,
                 "random, sequential; both if not given; or files: small ones by their names, "
                 "by raw, gofs and basic, reads only")
      ->delimiter(',')
      ->check(CLI::IsMember({"random", "sequential", "files"}))
      ->type_name("NAME,...");
  add_choices(app, "--only", options.only,
              "raw, gofs, companion, companion-lanes, rpc, basic, cufile; all if not given");
  app.add_option("--runs", options.runs, "Of each point, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  app.add_option("--seconds", options.seconds, "How long each run takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S");
  app.add_option("--large-mib", large_mib, "Size of the file; 4096 if not given")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("MIB");
  app.add_option("--files", options.files, "How many of 16 KiB pattern files reads")
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("N");
  app.add_option(
         "--controller-warps", options.controller_warps,
         "Warps that play the virtual SSD's controller and do nothing else, beside those of "
         "raw, gofs and the companions; 0 if not given")
      ->type_name("N");
  app.add_option("--threads", options.threads_max, "Host threads of basic and cufile, at most")
      ->check(CLI::Range(1u, 4096u))
      ->type_name("N");
  app.add_option("--servers", options.servers, "Host threads of rpc; one a core if not given")
      ->check(CLI::Range(1u, 4096u))
      ->type_name("N");
  app.add_flag("--direct", options.direct,
               "basic and rpc read and write a file past the page cache (O_DIRECT), where its file "
               "system takes that");
  app.add_option("--cufile-folder", options.cufile_folder,
                 "On a disk's file system, such as ext4; takes cufile's file")
      ->check(CLI::ExistingDirectory)
      ->type_name("HOSTPATH");
  app.add_flag("--json", options.json, "Print a JSON object a line");
}

int run(int argc, char** argv) {
  Options options;
  uint64_t large_mib = options.large_bytes / kMiB;
  CLI::App app("Compares GoFS with raw NVMe commands and with stand-ins for other systems.");
  add_options(app, options, large_mib);
  CLI11_PARSE(app, argc, argv);
  options.large_bytes = large_mib * kMiB;
  // Copies are under way while a kernel waits for them: their streams may not share its queue.
  (void)::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  Printer printer(options);
  const auto done = run_baselines(options, printer.sinks());
  if (done) return 0;
  fmt::print(stderr, "gofs_baselines: {}\n", done.error().message);
  return 1;
}

}  // namespace
}  // namespace gofs::bench

int main(int argc, char** argv) {
  try {
    return gofs::bench::run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "gofs_baselines: {}\n", problem.what());
    return 1;
  }
}
