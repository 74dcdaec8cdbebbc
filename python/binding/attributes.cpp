// SPDX-License-Identifier: Apache-2.0
//
// Owners, permissions, times and extended attributes.
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"
#include "on_path.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// `follow`: a symbolic link stands for what it leads to.
void chown(MountedVolume& self, nb::handle given, uint32_t uid, uint32_t gid, bool follow) {
  const auto call = follow ? on_path<&Volume::chown> : on_path<&Volume::lchown>;
  call(self, given, uid, gid);
}

/// The members of a TimeStamp.
using Time = std::pair<int64_t, uint32_t>;

void utimens(MountedVolume& self, nb::handle given, Time accessed, Time modified, bool follow) {
  const auto call = follow ? on_path<&Volume::utimens> : on_path<&Volume::lutimens>;
  call(self, given, {accessed.first, accessed.second}, {modified.first, modified.second});
}

nb::bytes getxattr(MountedVolume& self, nb::handle given, nb::handle attribute, bool follow) {
  const Path path(given);
  const Path name(attribute);
  return as_bytes(take(self.call([&](Volume& volume) {
    return follow ? volume.getxattr(path.bytes(), name.bytes())
                  : volume.lgetxattr(path.bytes(), name.bytes());
  }),
                       &path));
}

nb::list listxattr(MountedVolume& self, nb::handle given, bool follow) {
  const Path path(given);
  const std::vector<std::string> names = take(self.call([&](Volume& volume) {
    return follow ? volume.listxattr(path.bytes()) : volume.llistxattr(path.bytes());
  }),
                                              &path);
  nb::list list;
  for (const std::string& name : names) list.append(decoded(name));
  return list;
}

void setxattr(MountedVolume& self, nb::handle given, nb::handle attribute, nb::handle value,
              uint32_t flags, bool follow) {
  const Path path(given);
  const Path name(attribute);
  const Buffer buffer(value, Buffer::Access::kRead);
  const std::string bytes(static_cast<const char*>(buffer.data()), buffer.bytes());
  take(self.call([&](Volume& volume) {
    return follow ? volume.setxattr(path.bytes(), name.bytes(), bytes, flags)
                  : volume.lsetxattr(path.bytes(), name.bytes(), bytes, flags);
  }),
       &path);
}

void removexattr(MountedVolume& self, nb::handle given, nb::handle attribute, bool follow) {
  const Path path(given);
  const Path name(attribute);
  take(self.call([&](Volume& volume) {
    return follow ? volume.removexattr(path.bytes(), name.bytes())
                  : volume.lremovexattr(path.bytes(), name.bytes());
  }),
       &path);
}

}  // namespace

void define_attributes(VolumeClass& volume) {
  volume.def("chmod", on_path<&Volume::chmod>, "path"_a.none(), "mode"_a)
      .def("chown", &chown, "path"_a.none(), "uid"_a, "gid"_a, "follow"_a)
      .def("utimens", &utimens, "path"_a.none(), "accessed"_a, "modified"_a, "follow"_a)
      .def("getxattr", &getxattr, "path"_a.none(), "attribute"_a.none(), "follow"_a)
      .def("listxattr", &listxattr, "path"_a.none(), "follow"_a,
           nb::sig("def listxattr(self, path: object, follow: bool) -> list[str]"))
      .def("setxattr", &setxattr, "path"_a.none(), "attribute"_a.none(), "value"_a.none(),
           "flags"_a, "follow"_a)
      .def("removexattr", &removexattr, "path"_a.none(), "attribute"_a.none(), "follow"_a);
}

}  // namespace gofs::python
