// SPDX-License-Identifier: Apache-2.0
//
// What all commands of `gofs` share: the options in common, and how they fail.
//
// Exit status: 0; 1 after one line `gofs: PATH: reason` on stderr; 2 for wrong usage.
#pragma once

#include <string>
#include <type_traits>
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

/// Prints one line on stderr: "gofs: " and `message`. False if it could not be printed, of which
/// nothing else comes.
bool tell(const std::string& message);

/// Prints one line about an error and lets the command go on; it will exit with 1.
void report(Session& session, const std::string& message);
/// The same if `result` is an error.
void report(Session& session, const Expected<void>& result);

/// Gives `entry` its extended attributes; reports if they cannot be read.
void find_xattrs(Session& session, host::Tree& tree, host::TreeEntry& entry);

/// Ends the command where its messages or results would be written to what session.volume lies on.
void refuse_output_onto_volume(const Session& session);

enum class Access { kReadOnly, kReadWrite };

/// Whether a server's socket is there, which stands for the volume that it serves.
bool is_socket(const std::string& path);

/// Ends a command that wants a volume for itself where a server has it.
void refuse_socket(const Session& session);

/// Mounts session.volume, or attaches to its server; warnings go to stderr.
Volume open_volume(const Session& session, Access access = Access::kReadOnly);

/// The end with a volume that was changed: all is durable. Damage that was met and has stopped
/// nothing, such as a node of a removed file that could not be freed, is reported.
void close_volume(Session& session, Volume& volume);

}  // namespace gofs::cli
