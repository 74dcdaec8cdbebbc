// SPDX-License-Identifier: Apache-2.0
//
// Not a baseline, but what they are compared with, `gofs`: the same through GoFS' file API.
#pragma once

#include "baseline.hpp"
#include "bench_volume.hpp"
#include "read_count.hpp"

namespace gofs::bench {

class GofsFiles final : public Baseline {
 public:
  GofsFiles(BenchVolume& volume, double seconds) : volume_(volume), seconds_(seconds) {}

  std::string name() const override { return "gofs"; }
  Expected<Sample> measure(const Point& point) override;

 private:
  Expected<host::ReadMeasurement> read(const Point& point, uint64_t operations);

  BenchVolume& volume_;
  const double seconds_;
  ReadCount count_;
};

}  // namespace gofs::bench
