// SPDX-License-Identifier: Apache-2.0
//
// Whether random calls of many warps (testing/random_calls.h) have answered as a model does, and
// have left what it has.
#pragma once

#include <string>

#include "gofs/volume.hpp"
#include "testing/random_calls.h"

namespace gofs::judges {

/// `run` as it was when the warps had finished, with answers that the host reaches; `volume` as
/// they left it. The first difference, or nothing.
std::string judge_random_calls(const testing::RandomCallsParams& run, uint32_t warps,
                               Volume& volume);

}  // namespace gofs::judges
