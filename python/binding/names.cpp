// SPDX-License-Identifier: Apache-2.0
//
// What is where: calls about names.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "classes.hpp"
#include "on_path.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

std::unique_ptr<OpenFile> open(std::shared_ptr<MountedVolume> self, nb::handle given,
                               uint32_t flags, uint32_t permissions) {
  Path path(given);
  const int descriptor = take(
      self->call([&](Volume& volume) { return volume.open(path.bytes(), flags, permissions); }),
      &path);
  return std::make_unique<OpenFile>(std::move(self), descriptor, std::move(path));
}

/// `name` is what errors call it.
std::unique_ptr<OpenFile> open_inode(std::shared_ptr<MountedVolume> self, const nb::bytes& uuid,
                                     uint64_t ino, uint32_t generation, uint32_t flags,
                                     nb::handle name) {
  Identity file{{}, ino, generation, 0};
  if (uuid.size() != sizeof(file.uuid)) throw nb::value_error("a UUID of 16 bytes is wanted");
  std::memcpy(file.uuid, uuid.c_str(), sizeof(file.uuid));
  Path path(name);
  const int descriptor =
      take(self->call([&](Volume& volume) { return volume.open_inode(file, flags); }), &path);
  return std::make_unique<OpenFile>(std::move(self), descriptor, std::move(path));
}

nb::bytes readlink(MountedVolume& self, nb::handle given) {
  const Path path(given);
  return as_bytes(
      take(self.call([&](Volume& volume) { return volume.readlink(path.bytes()); }), &path));
}

}  // namespace

void define_names(VolumeClass& volume) {
  volume.def("open", &open, "path"_a.none(), "flags"_a, "permissions"_a)
      .def("open_inode", &open_inode, "uuid"_a, "ino"_a, "generation"_a, "flags"_a, "name"_a)
      .def("stat", on_path<&Volume::stat>, "path"_a.none())
      .def("lstat", on_path<&Volume::lstat>, "path"_a.none())
      .def("access", on_path<&Volume::access>, "path"_a.none(), "mode"_a)
      .def("readlink", &readlink, "path"_a.none())
      .def("mkdir", on_path<&Volume::mkdir>, "path"_a.none(), "mode"_a)
      .def("mknod", on_path<&Volume::mknod>, "path"_a.none(), "mode"_a, "major"_a, "minor"_a)
      .def("unlink", on_path<&Volume::unlink>, "path"_a.none())
      .def("rmdir", on_path<&Volume::rmdir>, "path"_a.none())
      .def("symlink", on_paths<&Volume::symlink>, "target"_a.none(), "path"_a.none())
      .def("link", on_paths<&Volume::link>, "existing"_a.none(), "path"_a.none())
      .def("rename", on_paths<&Volume::rename>, "source"_a.none(), "destination"_a.none(),
           "flags"_a)
      .def("truncate", on_path<&Volume::truncate>, "path"_a.none(), "size"_a);
}

}  // namespace gofs::python
