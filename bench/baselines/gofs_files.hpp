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
  GofsFiles(BenchVolume& volume, const DeviceLoad& load) : volume_(volume), load_(load) {}

  std::string name() const override { return "gofs"; }
  bool has_layout() const override { return !volume_.state().backend().is_host(); }
  bool has_files() const override { return true; }
  uint32_t controller_warps() const override { return load_.controller_warps; }
  Expected<Sample> measure(const Point& point) override;

 private:
  Expected<Sample> read_files();
  Expected<ReadMeasurement> read(const Point& point, uint64_t operations);

  BenchVolume& volume_;
  const DeviceLoad load_;
  ReadCount count_;
};

}  // namespace gofs::bench
