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
  Raw(BenchVolume& volume, const DeviceLoad& load) : volume_(volume), load_(load) {}

  std::string name() const override { return "raw"; }
  bool has_layout() const override { return !volume_.state().backend().is_host(); }
  bool has_files() const override { return true; }
  uint32_t controller_warps() const override { return load_.controller_warps; }
  Expected<Sample> measure(const Point& point) override;

 private:
  Expected<Sample> read_files();
  BenchVolume& volume_;
  const DeviceLoad load_;
  ReadCount count_;
};

}  // namespace gofs::bench
