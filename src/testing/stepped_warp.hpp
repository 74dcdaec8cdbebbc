// SPDX-License-Identifier: Apache-2.0
//
// A warp of one lane that can be stopped at each of its collectives: what another warp could do
// between two of them is done there, on the same thread.
#pragma once

#include <functional>
#include <utility>

#include "simt/warp.h"

namespace gofs::testing {

class SteppedWarp final : private simt::LaneTurns {
 public:
  explicit SteppedWarp(std::function<void()> at_step) : at_step_(std::move(at_step)) {}

  simt::Warp warp() { return {&team_, 0}; }

 private:
  bool pause() override { return false; }
  void wait() override {}
  void release_all() override { at_step_(); }

  const std::function<void()> at_step_;
  simt::Team team_{1, *this};
};

}  // namespace gofs::testing
