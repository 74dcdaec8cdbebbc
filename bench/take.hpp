// SPDX-License-Identifier: Apache-2.0
//
// How measuring programs end when something goes wrong: with one line that says what, and status 1.
#pragma once

#include <errno.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#include "gofs/expected.hpp"

namespace gofs::measuring {

[[noreturn]] inline void fail(const std::string& words) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, words.c_str());
  std::exit(1);
}

/// What there is; else the program ends.
template <typename T>
T take(Expected<T> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace gofs::measuring
