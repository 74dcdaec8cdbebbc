// SPDX-License-Identifier: Apache-2.0
//
// All baselines at all points. Those that share a volume take turns within each run, so that what
// drifts on a machine drifts for all of them. The first wrong byte ends it.
#pragma once

#include <functional>
#include <string>

#include "baseline.hpp"
#include "bench/spread.hpp"
#include "gofs/volume.hpp"
#include "options.hpp"

namespace gofs::bench {

struct Row {
  std::string name;
  std::string model;
  Point point;
  uint32_t outstanding;
  uint32_t in_flight;
  Spread per_second;  // operations
  double latency_us;  // mean of one, as who issues it sees it, in the median run
  double cores;       // median of what each run kept busy of the host
  uint32_t controller_warps;
  std::string note;
};

struct Sinks {
  std::function<void(const VolumeInfo&)> machine;                   // of each volume
  std::function<void(const std::string&)> ready;                    // an image or a file, made
  std::function<void(const Row&)> row;                              // as soon as it is known
  std::function<void(const std::string&, const std::string&)> gap;  // a baseline, why it is missing
};

/// EINVAL for options that make no sense.
Expected<void> run_baselines(const Options& options, const Sinks& sinks);

/// What stands for a model where there is no virtual SSD: a file of the host's, which no model
/// slows down. Only of baselines in which the host reads.
inline constexpr const char* kFileModel = "file";

}  // namespace gofs::bench
