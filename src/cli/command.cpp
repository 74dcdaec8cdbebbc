// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/text.h"

namespace gofs::cli {

void report(Session& session, const std::string& message) {
  fmt::print(stderr, "gofs: {}\n", escaped(message));
  session.exit_status = kExitFailure;
}

Volume mount_volume(const Session& session) {
  MountOptions options;
  options.backend = session.backend;
  Volume volume = take(Volume::mount(session.volume, options));
  for (const std::string& warning : volume.warnings()) {
    fmt::print(stderr, "gofs: {}: warning: {}\n", escaped(session.volume), escaped(warning));
  }
  return volume;
}

void add_volume_options(CLI::App& command, Session& session) {
  command.add_option("VOL", session.volume, "Volume: an image, a device or ram:SIZE[?OPTIONS]")
      ->required()
      ->type_name("");
  command.add_option("--backend", session.backend, "Where file system code runs: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME");
}

void add_json_option(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "Print JSON");
}

void run_command(CLI::App& command, Session& /*session*/, std::function<void()> body) {
  command.callback(std::move(body));
}

}  // namespace gofs::cli
