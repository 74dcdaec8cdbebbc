// SPDX-License-Identifier: Apache-2.0
//
// Arguments and options that several commands take, and how a command line is read. Only grammars
// include this: CLI11 is long to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/session.h"

namespace gofs::cli {

/// VOL: session.volume.
CLI::Option* add_volume_argument(CLI::App& command, Session& session);

CLI::Option* add_backend_option(CLI::App& command, std::string& backend);
CLI::Option* add_json_option(CLI::App& command, bool& json);

/// An option that takes a number of bytes: 4096, 64K, 1G.
CLI::Option* add_size_option(CLI::App& command, const std::string& name, uint64_t& target,
                             const std::string& description);

/// A command that takes options: `body` is run with them when the command was chosen.
template <typename Options>
std::shared_ptr<Options> on_command(CLI::App& command, Session& session,
                                    void (*body)(Session&, const Options&)) {
  const auto options = std::make_shared<Options>();
  command.callback([&session, options, body] { body(session, *options); });
  return options;
}

/// How help looks; before commands are added, which take it over.
void set_help_style(CLI::App& app);

/// Reads the arguments and runs the command that they name. The exit status, 2 for wrong usage;
/// what a command throws is passed on.
int parse_and_run(CLI::App& app, const Session& session, int argument_count, char** arguments);

}  // namespace gofs::cli
