// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/text.h"
#include "host/volume_spec.h"

namespace gofs::cli {

void report(Session& session, const std::string& message) {
  fmt::print(stderr, "gofs: {}\n", escaped(message));
  session.exit_status = kExitFailure;
}

void find_xattrs(Session& session, host::Tree& tree, host::TreeEntry& entry) {
  auto xattrs = tree.xattrs_of(entry.entry.ino, entry.path);
  if (xattrs) {
    entry.xattrs = std::move(*xattrs);
  } else {
    report(session, xattrs.error().message);
  }
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

void add_volume_argument(CLI::App& command, Session& session) {
  command.add_option("VOL", session.volume, "Volume: an image or a device, with ?OPTIONS")
      ->required()
      ->type_name("");
}

void add_volume_options(CLI::App& command, Session& session) {
  add_volume_argument(command, session);
  command
      .add_option("--backend", session.backend, "Where file system code runs: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME");
}

void add_json_option(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "Print JSON");
}

CLI::Option* add_size_option(CLI::App& command, const std::string& name, uint64_t& target,
                             const std::string& description) {
  const auto parse = [&target](const CLI::results_t& words) {
    const auto size = host::parse_size(words.back());
    if (!size) return false;
    target = *size;
    return true;
  };
  return command.add_option(name, parse, description)->type_name("BYTES");
}

void run_command(CLI::App& command, std::function<void()> body) {
  command.callback(std::move(body));
}

}  // namespace gofs::cli
