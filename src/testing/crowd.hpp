// SPDX-License-Identifier: Apache-2.0
//
// Each test body runs twice: by warps of one lane, which find wrong memory orders and overruns, and
// by warps of four, which find a missing sync(). GOFS_WIDTHS="4 32" in the environment leaves only
// these. Test suites take the width as their parameter:
//
//   class QueueTest : public testing::TestWithParam<uint32_t> {};
//   GOFS_AT_BOTH_WIDTHS(QueueTest);
//   TEST_P(QueueTest, works) { run_crowd({8, GetParam()}, [&](const simt::Warp& warp, ...) {...});
//   }
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <vector>

#include "simt/workers.h"
#include "testing/teams.hpp"

namespace gofs::testing {

struct Crowd {
  uint32_t warps;
  uint32_t width;  // lanes of a warp
};

using CrowdWork = std::function<void(const simt::Warp& warp, uint32_t warp_index)>;

inline void run_crowd(const Crowd& crowd, const CrowdWork& work) {
  if (crowd.width == 1) {
    simt::run_workers(crowd.warps, work);
  } else {
    run_teams(crowd.warps, crowd.width, work);
  }
}

/// One warp.
inline void run_alone(uint32_t width, const std::function<void(const simt::Warp& warp)>& work) {
  run_crowd({1, width}, [&work](const simt::Warp& warp, uint32_t) { work(warp); });
}

/// Those of `all` that GOFS_WIDTHS in the environment names; without it, or where it names none of
/// them, all, or the first.
inline std::vector<uint32_t> widths(const std::vector<uint32_t>& all) {
  const char* const wanted = std::getenv("GOFS_WIDTHS");
  if (wanted == nullptr) return all;
  std::vector<uint32_t> chosen;
  std::istringstream words(wanted);
  for (uint32_t width; words >> width;) {
    if (std::find(all.begin(), all.end(), width) != all.end()) chosen.push_back(width);
  }
  return chosen.empty() ? std::vector<uint32_t>{all.front()} : chosen;
}

/// The lanes of a whole warp.
inline uint32_t all_lanes(const simt::Warp& warp) {
  return warp.size() == 32 ? ~0u : (1u << warp.size()) - 1;
}

/// A seed that was printed; GOFS_SEED in the environment repeats a run.
inline uint64_t printed_seed() {
  const char* const wanted = std::getenv("GOFS_SEED");
  const uint64_t seed =
      wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device()();
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::cout << "seed=" << seed << " rerun: GOFS_SEED=" << seed
            << " --gtest_filter=" << info->test_suite_name() << "." << info->name() << std::endl;
  return seed;
}

}  // namespace gofs::testing

#define GOFS_AT_BOTH_WIDTHS(Suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(width, Suite, ::testing::ValuesIn(gofs::testing::widths({1, 4})), \
                           ::testing::PrintToStringParamName())
