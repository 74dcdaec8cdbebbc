// SPDX-License-Identifier: Apache-2.0
//
// The baseline `raw`: NVMe commands from GPU threads, no file system.
#pragma once

#include "baseline.hpp"
#include "bench_volume.hpp"
#include "read_count.hpp"

namespace gofs::bench {

class Raw final : public Baseline {
 public:
  Raw(BenchVolume& volume, double seconds) : volume_(volume), seconds_(seconds) {}

  std::string name() const override { return "raw"; }
  Expected<Sample> measure(const Point& point) override;

 private:
  BenchVolume& volume_;
  const double seconds_;
  ReadCount count_;
};

}  // namespace gofs::bench
