// SPDX-License-Identifier: Apache-2.0
//
// Paths as Python has them: str, bytes, or what has __fspath__().
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gofs::python {

/// A path that a call is about: as the file system takes it, and as errors name it. With the GIL,
/// from construction to destruction.
class Path {
 public:
  /// Characters of a str are encoded as os.fsencode() does. Raises TypeError for what is no path,
  /// and ValueError where it has a NUL.
  explicit Path(nanobind::handle given);

  const std::string& bytes() const { return bytes_; }
  /// The str or bytes that was given.
  const nanobind::object& given() const { return given_; }

 private:
  nanobind::object given_;
  std::string bytes_;
};

/// What Path has as bytes() of `count` of the paths, from number `first` on, or of those that there
/// are. Of many thousand files no Path is made but for those that have an error. Raises as Path.
std::vector<std::string> paths_as_bytes(const nanobind::sequence& paths, size_t first,
                                        size_t count);

/// One of them, which has an error.
Path path_at(const nanobind::sequence& paths, size_t number);

/// The inverse, as os.fsdecode().
nanobind::str decoded(const std::string& bytes);

/// `bytes` as Python's own.
nanobind::bytes as_bytes(const std::string& bytes);

}  // namespace gofs::python
