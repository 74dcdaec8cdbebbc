// SPDX-License-Identifier: Apache-2.0
//
// Another program that is run to its end, which has a deadline.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gofs::daemon {

struct ShortProgram {
  std::vector<std::string> words;                 // its name, which PATH finds, and its arguments
  std::vector<std::string> variables{};           // NAME=VALUE, beside those of this process
  std::string input{};                            // what it reads
  std::chrono::steady_clock::duration timeout{};  // afterwards it is killed
};

/// Whether it has ended with status 0. `said` is what it has written, in one line. Throws
/// std::system_error where it cannot be started.
bool run_to_end(const ShortProgram& program, std::string& said);

}  // namespace gofs::daemon
