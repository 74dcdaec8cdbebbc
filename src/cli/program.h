// SPDX-License-Identifier: Apache-2.0
//
// Other people's programs: finding and running them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gofs::cli {

/// Looks in $PATH, /usr/sbin and /sbin, where Debian keeps file system tools.
std::optional<std::string> find_program(const std::string& name);

struct ProgramResult {
  int exit_status = -1;  // 128 + n: ended by signal n; -1: could not be run
  std::string output;    // what it wrote to standard output and standard error
};

/// Runs a program with nothing to read, and waits for it.
ProgramResult run_program(const std::vector<std::string>& words);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace gofs::cli
