// SPDX-License-Identifier: Apache-2.0
//
// What all commands of `gofs` share: their common options, how they fail, and how they are
// registered. A command is one file with one function add_NAME(app, session), declared at the end
// of this one; it defines its options and hands a function to run_command().
//
// Exit status: 0; 1 after one line `gofs: PATH: reason` on stderr; 2 for wrong usage.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gofs/volume.hpp"
#include "host/tree.h"

namespace gofs::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

/// Ends a command: the message goes to stderr after "gofs: ".
struct Failure {
  std::string message;
};

/// The value, or the command ends with the error's message.
template <typename T>
T take(Expected<T> result) {
  if (!result) throw Failure{result.error().message};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// State of one run of the program.
struct Session {
  std::string volume;
  std::string backend = "auto";
  bool json = false;
  int exit_status = 0;
};

/// Prints one line about an error and lets the command go on; it will exit with 1.
void report(Session& session, const std::string& message);

/// Gives `entry` its extended attributes; reports if they cannot be read.
void find_xattrs(Session& session, host::Tree& tree, host::TreeEntry& entry);

/// Mounts session.volume; warnings go to stderr.
Volume mount_volume(const Session& session);

void add_volume_argument(CLI::App& command, Session& session);
/// VOL and --backend.
void add_volume_options(CLI::App& command, Session& session);
void add_json_option(CLI::App& command, Session& session);
/// An option that takes a number of bytes: 4096, 64K, 1G.
CLI::Option* add_size_option(CLI::App& command, const std::string& name, uint64_t& target,
                             const std::string& description);

/// `body` is run when the command was chosen.
void run_command(CLI::App& command, std::function<void()> body);

void add_info(CLI::App& app, Session& session);
void add_ls(CLI::App& app, Session& session);
void add_stat(CLI::App& app, Session& session);
void add_cat(CLI::App& app, Session& session);
void add_get(CLI::App& app, Session& session);
void add_sum(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_mkfs(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);

}  // namespace gofs::cli
