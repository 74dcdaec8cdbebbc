// SPDX-License-Identifier: Apache-2.0
//
// Files that are written as a whole: one, or many that are made together.
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

Expected<void> write_all(Volume& volume, const std::string& path, int descriptor,
                         const Buffer& buffer) {
  const auto* const bytes = static_cast<const uint8_t*>(buffer.data());
  for (uint64_t done = 0; done < buffer.bytes();) {
    const auto wrote = volume.pwrite(descriptor, bytes + done, buffer.bytes() - done, done);
    if (!wrote) return wrote.error();
    if (*wrote == 0) return volume.explain(ENOSPC, path);
    done += *wrote;  // a short write is followed by one that says why
  }
  return {};
}

/// `flags`: of open(2).
Expected<void> write_file(Volume& volume, const std::string& path, const Buffer& buffer,
                          uint32_t flags, uint32_t permissions, bool sync) {
  const auto descriptor = volume.open(path, flags, permissions);
  if (!descriptor) return descriptor.error();
  Expected<void> done = write_all(volume, path, *descriptor, buffer);
  if (done && sync) done = volume.fsync(*descriptor);
  const auto closed = volume.close(*descriptor);
  return done ? closed : done;
}

uint64_t write_whole(MountedVolume& self, nb::handle given, nb::handle data, uint32_t flags,
                     uint32_t permissions, bool sync) {
  const Path path(given);
  const Buffer buffer(data, Buffer::Access::kRead);
  take(self.call([&](Volume& volume) {
    return write_file(volume, path.bytes(), buffer, flags, permissions, sync);
  }),
       &path);
  return buffer.bytes();
}

/// Makes the files that `names` and `contents` describe in `directory`; an errno for each, or 0.
std::vector<int> batch_create(MountedVolume& self, nb::handle directory, nb::sequence names,
                              nb::sequence contents, uint32_t permissions) {
  const Path path(directory);
  std::vector<NewFile> files;
  std::deque<Buffer> buffers;
  for (const nb::handle name : names) files.push_back({Path(name).bytes()});
  for (const nb::handle content : contents) {
    buffers.emplace_back(content, Buffer::Access::kRead);
  }
  if (buffers.size() != files.size()) throw nb::value_error("as many names as contents");
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].data = buffers[i].data();
    files[i].bytes = buffers[i].bytes();
  }
  return take(self.call([&](Volume& volume) {
    return volume.batch_create(path.bytes(), files, permissions);
  }),
              &path);
}

}  // namespace

void define_whole_files(VolumeClass& volume) {
  volume
      .def("write", &write_whole, "path"_a.none(), "data"_a.none(), "flags"_a, "permissions"_a,
           "sync"_a)
      .def("batch_create", &batch_create, "directory"_a.none(), "names"_a, "contents"_a,
           "permissions"_a,
           nb::sig("def batch_create(self, directory: object, names: "
                   "collections.abc.Sequence[object], contents: collections.abc.Sequence[object], "
                   "permissions: int) -> list[int]"));
}

}  // namespace gofs::python
