// SPDX-License-Identifier: Apache-2.0
//
// A value or a negative errno, cheap enough for device code. Host callers above the library see
// Error (gofs/expected.hpp), which has words as well.
#pragma once

#include <cerrno>

#include "simt/platform.h"

namespace gofs {

template <typename T>
struct [[nodiscard]] Result {
  T value{};
  int error = 0;  // 0 or a negative errno

  GOFS_HD static constexpr Result failure(int negative_errno) {
    return Result{T{}, negative_errno};
  }
  GOFS_HD constexpr bool ok() const { return error == 0; }
};

}  // namespace gofs

#ifndef EUCLEAN
#define EUCLEAN 117  // "structure needs cleaning": the errno of file systems for a corrupt volume
#endif
