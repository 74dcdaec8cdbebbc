// SPDX-License-Identifier: Apache-2.0
//
// One line about how far a long command is, on stderr, if that is a terminal; it goes when the
// command ends. Calls may come from any thread, one at a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace gofs::cli {

class Progress {
 public:
  /// `files` and `bytes` are what there is to do.
  Progress(uint64_t files, uint64_t bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What has been done; drawn at most ten times a second.
  void update(uint64_t bytes_done);
  /// Makes room for a line of other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  const uint64_t files_;
  const uint64_t bytes_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  bool on_screen_ = false;
};

}  // namespace gofs::cli
