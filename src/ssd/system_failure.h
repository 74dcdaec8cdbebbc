// SPDX-License-Identifier: Apache-2.0
//
// What the files of the host throw when the system refuses something. Host only.
#pragma once

#include <string>
#include <system_error>

namespace gofs::ssd {

/// `error` is an errno; `what` says what failed, on which device, and what would mend it.
[[noreturn]] inline void fail_with(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace gofs::ssd
