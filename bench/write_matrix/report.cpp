// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace gofs::bench {

void Report::say(const std::string& line) const {
  std::FILE* const file = json_ ? stderr : stdout;
  fmt::print(file, "{}\n", line);
  std::fflush(file);
}

void Report::row(const std::string& line, const Row& row) const {
  say(line);
  if (!json_) return;
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
}

void Report::failure(const std::string& what, const Error& error) {
  ++failures_;
  row(fmt::format("{}: FAILED: {}", what, error.message),
      {{"bench", "failure"}, {"what", what}, {"error", error.message}});
}

}  // namespace gofs::bench
