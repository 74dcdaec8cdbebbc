// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark prints: a table for people, or (then the table goes to stderr) one JSON object
// a line on stdout. Each row as soon as it is known.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gofs/expected.hpp"

namespace gofs::bench {

using Row = nlohmann::ordered_json;

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  /// A line that only people read.
  void say(const std::string& line) const;
  void row(const std::string& line, const Row& row) const;
  /// What could not be measured. The next rows are.
  void failure(const std::string& what, const Error& error);
  uint32_t failures() const { return failures_; }

  /// The value, or none after failure().
  template <typename T>
  std::optional<T> take(const std::string& what, Expected<T> result) {
    if (result) return std::move(*result);
    failure(what, result.error());
    return std::nullopt;
  }

 private:
  const bool json_;
  uint32_t failures_ = 0;
};

}  // namespace gofs::bench
