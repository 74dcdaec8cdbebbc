// SPDX-License-Identifier: Apache-2.0
//
// Whether random calls of many warps (testing/random_calls.h) have answered as a model does, and
// have left what it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "testing/random_calls.h"

namespace gofs::judges {

/// So many calls of each warp, by the seed in GOFS_SEED, or else any; where its answers and scratch
/// are the caller says.
testing::RandomCallsParams random_run(uint32_t calls);
/// How to have it again.
std::string words_of(const testing::RandomCallsParams& run);

/// The same with what warps that threads of the host play need.
struct RandomRunOnHost {
  RandomRunOnHost(uint32_t warps, uint32_t calls);
  RandomRunOnHost(const RandomRunOnHost&) = delete;
  RandomRunOnHost& operator=(const RandomRunOnHost&) = delete;

  testing::RandomCallsParams params;
  std::vector<int64_t> answers;
  std::vector<testing::RandomScratch> scratch;
};

/// `run` as it was when the warps had finished, with answers that the host reaches; `volume` as
/// they left it. The first difference, or nothing.
std::string judge_random_calls(const testing::RandomCallsParams& run, uint32_t warps,
                               Volume& volume);

}  // namespace gofs::judges
