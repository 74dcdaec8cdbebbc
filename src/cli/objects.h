// SPDX-License-Identifier: Apache-2.0
//
// Copying many objects: what is wrong with one of them is reported, and the next is copied all the
// same.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "cli/interruption.h"
#include "gofs/expected.hpp"
#include "host/messages.h"

namespace gofs::cli {

/// What is copied in one step.
inline constexpr uint64_t kCopyChunkBytes = uint64_t{4} << 20;

/// Wrong with this object; the next may still be copied.
struct ObjectFailure {
  std::string message;
};

[[noreturn]] inline void fail_with_errno(const std::string& host_path) {
  throw ObjectFailure{host::make_error(errno, host_path).message};
}

template <typename T>
T take_object(Expected<T> result) {
  if (!result) throw ObjectFailure{result.error().message};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Takes a step with one object, if the command was not interrupted; `fail` is called with what
/// went wrong.
template <typename Step, typename Fail>
void step_with_object(const Step& step, const Fail& fail) {
  try {
    stop_if_interrupted();
    step();
  } catch (const ObjectFailure& failure) {
    fail(failure.message);
  }
}

/// Why what `from` names does not become `to`, which came from another one of the same command.
inline std::string just_created(const std::string& to, const std::string& from) {
  return to + ": just created; will not overwrite it with " + from;
}

/// A name in the directory of `path`. What shall be put in place of something is made by it first,
/// so that nothing is lost if that fails.
inline std::string path_beside(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1) + ".gofs-" + std::to_string(::getpid());
}

}  // namespace gofs::cli
