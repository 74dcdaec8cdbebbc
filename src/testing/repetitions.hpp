// SPDX-License-Identifier: Apache-2.0
//
// How often a test repeats what takes long. GOFS_SHORT=1 in the environment has it do so less
// often: `make test` sets that, where `make test-long` and a program run by hand have the whole.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gofs::testing {

/// `whole`, or `few` where tests are to be short.
inline uint32_t repetitions(uint32_t whole, uint32_t few) {
  return std::getenv("GOFS_SHORT") != nullptr ? few : whole;
}

}  // namespace gofs::testing
