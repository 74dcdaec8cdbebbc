// SPDX-License-Identifier: Apache-2.0
//
// mount(), attach() and mkfs().
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "classes.hpp"
#include "gofs/mkfs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

std::unique_ptr<MountedVolume> mount(nb::handle spec, const MountOptions& options) {
  const Path path(spec);
  Volume volume = take(without_gil([&] { return Volume::mount(path.bytes(), options); }), &path);
  return std::make_unique<MountedVolume>(std::move(volume), path, false);
}

std::unique_ptr<MountedVolume> attach(nb::handle socket, uint64_t timeout_ns) {
  const Path path(socket);
  AttachOptions options;
  options.attach_timeout_ns = timeout_ns;
  Volume volume = take(without_gil([&] { return Volume::attach(path.bytes(), options); }), &path);
  return std::make_unique<MountedVolume>(std::move(volume), path, true);
}

void make_filesystem(nb::handle spec, uint64_t size_bytes, const std::string& label,
                     const std::vector<std::string>& features, bool overwrite) {
  const Path path(spec);
  MkfsOptions options;
  options.size_bytes = size_bytes;
  options.label = label;
  options.features = features;
  options.overwrite = overwrite;
  take(without_gil([&] { return gofs::mkfs(path.bytes(), options); }), &path);
}

}  // namespace

void define_mounting(nb::module_& module) {
  nb::class_<MountOptions>(module, "MountOptions")
      .def(nb::init<>())
      .def_rw("backend", &MountOptions::backend)
      .def_rw("read_only", &MountOptions::read_only)
      .def_rw("uid", &MountOptions::uid)
      .def_rw("gid", &MountOptions::gid)
      .def_rw("groups", &MountOptions::groups)
      .def_rw("cache_bytes", &MountOptions::cache_bytes)
      .def_rw("queues", &MountOptions::queues)
      .def_rw("queue_depth", &MountOptions::queue_depth)
      .def_rw("command_timeout_ns", &MountOptions::command_timeout_ns)
      .def_rw("lock_timeout_ns", &MountOptions::lock_timeout_ns)
      .def_rw("descriptors", &MountOptions::descriptors)
      .def_rw("clean_percent", &MountOptions::clean_percent)
      .def_rw("checkpoint_period_ns", &MountOptions::checkpoint_period_ns)
      .def_rw("idle_clean_percent", &MountOptions::idle_clean_percent)
      .def_rw("clock_period_ns", &MountOptions::clock_period_ns)
      .def_rw("discard", &MountOptions::discard)
      .def_rw("log_structured", &MountOptions::log_structured);
  module.def("mount", &mount, "spec"_a.none(), "options"_a);
  module.def("attach", &attach, "path"_a.none(), "timeout_ns"_a);
  module.def("mkfs", &make_filesystem, "spec"_a.none(), "size_bytes"_a, "label"_a, "features"_a,
             "overwrite"_a);
}

}  // namespace gofs::python
