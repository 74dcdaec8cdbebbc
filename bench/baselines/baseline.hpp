// SPDX-License-Identifier: Apache-2.0
//
// What all baselines have in common: they are asked to keep so many 4 KiB reads or writes under
// way, or to read so many whole files, and say how many they did. One that finds wrong bytes
// answers with an error.
#pragma once

#include <cstdint>
#include <string>

#include "bench/actors.hpp"
#include "bench/cpu_meter.hpp"
#include "gofs/expected.hpp"

namespace gofs::bench {

struct Point {
  bool writes;
  bool random;  // else sequential
  uint32_t outstanding;
  Layout layout{};     // of those who issue them, where that are threads of a GPU
  bool files = false;  // else: each small file is opened by its name, read and closed, once

  friend bool operator==(const Point&, const Point&) = default;
};

/// "random", "sequential" or "files".
inline const char* pattern_of(const Point& point) {
  if (point.files) return "files";
  return point.random ? "random" : "sequential";
}

/// One run.
struct Sample {
  uint32_t outstanding = 0;  // what the baseline could give: who issues and waits
  uint32_t in_flight = 0;    // how many of them have a request under way at a time
  uint64_t operations = 0;
  double seconds = 0;
  double cores = 0;  // of the host that were busy, on average

  double per_second() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0; }
};

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::string name() const = 0;
  /// What a reader of its rows has to know; may be empty.
  virtual std::string note() const { return {}; }
  /// Whether they are, so that their layout matters.
  virtual bool has_layout() const { return false; }
  /// Whether it reads small files, as many at a time as it likes, or as the point says.
  virtual bool has_files() const { return false; }
  /// Beside its own warps (bench/controller_warps.h).
  virtual uint32_t controller_warps() const { return 0; }
  virtual Expected<Sample> measure(const Point& point) = 0;
};

}  // namespace gofs::bench
