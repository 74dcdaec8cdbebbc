// SPDX-License-Identifier: Apache-2.0
//
// A measurement's launch with controller warps (bench/controller_warps.h): they come behind the
// workers, in blocks of their own, so that processors which have no workers get them, and so that
// workers never wait for a place that one of them has.
#pragma once

#include <optional>

#include "bench/actors.hpp"
#include "bench/controller_warps.h"

namespace gofs::bench {

/// More than a GPU runs at a time.
inline constexpr uint32_t kControllerWarpsMax = 1024;

class ControllerLaunch {
 public:
  /// For one launch. A CPU has as many of the `count` as it has threads left.
  ControllerLaunch(kernels::Backend& backend, const Actors& workers, uint32_t count)
      : grid_(workers.grid) {
    if (count == 0) return;
    left_.emplace(backend.memory(), sizeof(uint32_t));
    const uint32_t block_warps = grid_.threads_per_block / backend.warp_width();
    warps_ = {grid_.blocks * block_warps, count, left_->as<uint32_t>()};
    grid_.blocks += static_cast<uint32_t>(simt::divide_up(count, block_warps));
  }

  const kernels::Grid& grid() const { return grid_; }
  /// For the parameters of the launch; valid as long as this is there.
  const ControllerWarps& warps() const { return warps_; }

 private:
  kernels::Grid grid_;
  std::optional<BackendArray> left_;
  ControllerWarps warps_{};
};

}  // namespace gofs::bench
