// SPDX-License-Identifier: Apache-2.0
//
// A device brought up by one warp, as the first thing that most tests do.
#pragma once

#include <gtest/gtest.h>

#include "nvme/bring_up.h"
#include "testing/crowd.hpp"

namespace gofs::testing {

inline nvme::BringUpResult bring_up_alone(uint32_t width, nvme::Device& device) {
  nvme::BringUpResult result{};
  run_alone(width, [&](const simt::Warp& warp) {
    const nvme::BringUpResult mine = nvme::bring_up(warp, device);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// A failure of the test where it does not come up.
inline void expect_up(const nvme::BringUpResult& result) {
  EXPECT_EQ(result.step, nvme::BringUpStep::kDone)
      << nvme::step_name(result.step) << ", " << nvme::status_name(result.status);
}

}  // namespace gofs::testing
