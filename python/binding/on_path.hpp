// SPDX-License-Identifier: Apache-2.0
//
// Methods of the class for calls of Volume that are about a path, or about two.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "errors.hpp"
#include "gofs/volume.hpp"
#include "mounted_volume.hpp"
#include "path.hpp"

namespace gofs::python {

namespace detail {

template <auto call>
struct OnPath;

template <typename Result, typename... Rest,
          Expected<Result> (Volume::*call)(const std::string&, Rest...)>
struct OnPath<call> {
  static Result method(MountedVolume& self, nanobind::handle given, Rest... rest) {
    const Path path(given);
    return take(self.call([&](Volume& volume) { return (volume.*call)(path.bytes(), rest...); }),
                &path);
  }
};

template <auto call>
struct OnPaths;

template <typename... Rest,
          Expected<void> (Volume::*call)(const std::string&, const std::string&, Rest...)>
struct OnPaths<call> {
  static void method(MountedVolume& self, nanobind::handle first, nanobind::handle second,
                     Rest... rest) {
    const Path from(first);
    const Path to(second);
    take(self.call(
             [&](Volume& volume) { return (volume.*call)(from.bytes(), to.bytes(), rest...); }),
         &from, &to);
  }
};

}  // namespace detail

/// For a member of Volume whose first argument is a path; the others are numbers.
template <auto call>
inline constexpr auto on_path = &detail::OnPath<call>::method;

/// For one whose first two are.
template <auto call>
inline constexpr auto on_paths = &detail::OnPaths<call>::method;

}  // namespace gofs::python
