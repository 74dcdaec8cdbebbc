// SPDX-License-Identifier: Apache-2.0
//
// What the functions of host/image answer: nothing, or an errno with the words for a person.
#pragma once

#include <cstring>
#include <string>
#include <utility>

namespace gofs::image {

struct [[nodiscard]] Status {
  int error = 0;        // 0 or a negative errno
  std::string message;  // what failed, on what; no newline

  bool ok() const { return error == 0; }
  static Status failure(int negative_errno, std::string message) {
    return Status{negative_errno, std::move(message)};
  }
  /// "what: the system's words for the errno".
  static Status system_failure(int negative_errno, const std::string& what) {
    return Status{negative_errno, what + ": " + std::strerror(-negative_errno)};
  }
};

}  // namespace gofs::image

/// Returns the Status of `expression` to our caller if it is a failure.
#define GOFS_RETURN_IF_FAILED(expression)                                            \
  do {                                                                               \
    if (::gofs::image::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)
