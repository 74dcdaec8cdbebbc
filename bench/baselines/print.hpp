// SPDX-License-Identifier: Apache-2.0
//
// What the program prints: a table, or one JSON object a line.
#pragma once

#include "suite.hpp"

namespace gofs::bench {

class Printer {
 public:
  explicit Printer(const Options& options) : options_(options) {}

  /// Of what is printed, each as soon as it is there.
  Sinks sinks();

 private:
  void machine(const VolumeInfo& info);
  void row(const Row& row) const;
  void gap(const std::string& name, const std::string& why) const;

  const Options& options_;
  bool first_ = true;
};

}  // namespace gofs::bench
