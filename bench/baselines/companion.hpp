// SPDX-License-Identifier: Apache-2.0
//
// The baselines `companion` and `companion-lanes`: GPU threads look up where a block lies in a map
// that the host has put into their memory, and read or overwrite it there.
#pragma once

#include "baseline.hpp"
#include "bench_volume.hpp"
#include "block_map.hpp"
#include "companion.h"
#include "device.hpp"
#include "read_count.hpp"

namespace gofs::bench {

enum class WarpLock : uint32_t {
  kNone,  // lanes go on together
  kHeld,  // one request of a warp at a time
};

class Companion final : public Baseline {
 public:
  /// `device` is the one of the volume's backend.
  Companion(Device& device, BenchVolume& volume, WarpLock lock, const DeviceLoad& load)
      : device_(device), volume_(volume), lock_(lock), load_(load) {}

  std::string name() const override {
    return lock_ == WarpLock::kHeld ? "companion" : "companion-lanes";
  }
  std::string note() const override {
    return lock_ == WarpLock::kHeld ? "one request of a warp at a time" : "no lock of the warp";
  }
  bool has_layout() const override { return !device_.backend().is_host(); }
  uint32_t controller_warps() const override { return load_.controller_warps; }
  Expected<Sample> measure(const Point& point) override;

 private:
  Expected<void> open(bool writes);
  uint32_t warp_lock() const { return lock_ == WarpLock::kHeld ? 1 : 0; }
  BenchParams read_params(const Point& point, const Actors& actors, uint64_t operations) const;
  WriteParams write_params(const Point& point, const Actors& actors) const;
  Expected<ReadMeasurement> read(const Point& point, uint64_t operations);
  Expected<Sample> write(const Point& point);
  Expected<void> check_writes(const WriteParams& params, const Actors& actors);
  Sample in_flight(Sample sample, const Point& point) const;

  Device& device_;
  BenchVolume& volume_;
  const WarpLock lock_;
  const DeviceLoad load_;
  ReadCount count_;
  std::unique_ptr<BlockMap> map_;  // of the file that is open: one at a time
  bool map_writes_ = false;        // it is the one that is written
};

}  // namespace gofs::bench
