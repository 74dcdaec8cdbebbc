// SPDX-License-Identifier: Apache-2.0
//
// What the file system answers, as Python has it: a value, or an exception.
#pragma once

#include <type_traits>
#include <utility>

#include "gofs/expected.hpp"
#include "path.hpp"

namespace gofs::python {

/// `error` as the subclass of OSError that Python has for its errno, or as gofs.CorruptionError for
/// EUCLEAN. What the call was about becomes `filename` and `filename2`, and the words lose it:
/// OSError prints both.
nanobind::object exception_of(const Error& error, const Path* path = nullptr,
                              const Path* other = nullptr);

/// Raises exception_of() these.
[[noreturn]] void raise(const Error& error, const Path* path = nullptr,
                        const Path* other = nullptr);

/// What a call has found; raises its error.
template <typename Value>
Value take(Expected<Value> found, const Path* path = nullptr, const Path* other = nullptr) {
  if (!found) raise(found.error(), path, other);
  if constexpr (!std::is_void_v<Value>) return *std::move(found);
}

}  // namespace gofs::python
