// SPDX-License-Identifier: Apache-2.0
//
// The class OpenFile: calls about a descriptor.
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// What `read` puts into memory for `size` bytes, as bytes.
template <typename Read>
nb::bytes bytes_of(OpenFile& self, Py_ssize_t size, const Read& read) {
  auto bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, size));
  if (!bytes.is_valid()) throw nb::python_error();
  char* const memory = PyBytes_AsString(bytes.ptr());
  const uint64_t got = self.call([&](Volume& volume, int fd) {
    return read(volume, fd, memory, static_cast<uint64_t>(size));
  });
  if (got == static_cast<uint64_t>(size)) return bytes;
  return nb::bytes(memory, got);
}

nb::bytes read(OpenFile& self, Py_ssize_t size) {
  return bytes_of(self, size, [](Volume& volume, int fd, void* memory, uint64_t bytes) {
    return volume.read(fd, memory, bytes);
  });
}

nb::bytes pread(OpenFile& self, Py_ssize_t size, uint64_t offset) {
  return bytes_of(self, size, [&](Volume& volume, int fd, void* memory, uint64_t bytes) {
    return volume.pread(fd, memory, bytes, offset);
  });
}

uint64_t read_into(OpenFile& self, nb::handle given) {
  const Buffer buffer(given, Buffer::Access::kWrite);
  return self.call(
      [&](Volume& volume, int fd) { return volume.read(fd, buffer.data(), buffer.bytes()); });
}

uint64_t pread_into(OpenFile& self, nb::handle given, uint64_t offset) {
  const Buffer buffer(given, Buffer::Access::kWrite);
  return self.call([&](Volume& volume, int fd) {
    return volume.pread(fd, buffer.data(), buffer.bytes(), offset);
  });
}

uint64_t write(OpenFile& self, nb::handle given) {
  const Buffer buffer(given, Buffer::Access::kRead);
  return self.call(
      [&](Volume& volume, int fd) { return volume.write(fd, buffer.data(), buffer.bytes()); });
}

uint64_t pwrite(OpenFile& self, nb::handle given, uint64_t offset) {
  const Buffer buffer(given, Buffer::Access::kRead);
  return self.call([&](Volume& volume, int fd) {
    return volume.pwrite(fd, buffer.data(), buffer.bytes(), offset);
  });
}

/// copy_file_range() to another file of the volume, or to another place of this one.
uint64_t copy_range(OpenFile& from, OpenFile& to, uint64_t from_offset, uint64_t to_offset,
                    uint64_t bytes) {
  if (!from.is_beside(to)) throw nb::value_error("the files are of different volumes");
  const auto copy = [&](Volume& volume, int source, int target) {
    return volume.copy_file_range(source, from_offset, target, to_offset, bytes);
  };
  if (&from == &to) {
    return from.call([&](Volume& volume, int both) { return copy(volume, both, both); });
  }
  // In one order, whoever copies where, so that two who do do not wait for each other.
  const bool forward = std::less<OpenFile*>()(&from, &to);
  OpenFile& first = forward ? from : to;
  OpenFile& second = forward ? to : from;
  return first.call([&](Volume& volume, int one) -> Expected<uint64_t> {
    const auto answer = second.use(volume, [&](Volume&, int other) {
      return forward ? copy(volume, one, other) : copy(volume, other, one);
    });
    return answer ? *answer : Error{EBADF, error_text(-EBADF)};  // it has just been closed
  });
}

/// The next entries of a directory, as (name, inode, gofs::FileType); none at the end.
nb::list readdir(OpenFile& self) {
  const std::vector<DirectoryEntry> entries =
      self.call([](Volume& volume, int fd) { return volume.readdir(fd); });
  nb::list list;
  for (const DirectoryEntry& entry : entries) {
    list.append(nb::make_tuple(as_bytes(entry.name), entry.ino, entry.type));
  }
  return list;
}

/// The volume's UUID, the number of the inode and its generation.
nb::tuple identity(OpenFile& self) {
  const Identity found = self.call([](Volume& volume, int fd) { return volume.identity(fd); });
  return nb::make_tuple(nb::bytes(found.uuid, sizeof(found.uuid)), found.ino, found.generation);
}

template <auto call>
struct OnDescriptor;

template <typename Result, typename... Rest, Expected<Result> (Volume::*call)(int, Rest...)>
struct OnDescriptor<call> {
  static Result method(OpenFile& self, Rest... rest) {
    return self.call([&](Volume& volume, int fd) { return (volume.*call)(fd, rest...); });
  }
};

/// For a member of Volume whose first argument is a descriptor; the others are numbers.
template <auto call>
constexpr auto on_descriptor = &OnDescriptor<call>::method;

}  // namespace

void define_open_file(nb::module_& module) {
  OpenFileClass file(module, "OpenFile");
  file.def("close", &OpenFile::close)
      .def("read", &read, "size"_a)
      .def("pread", &pread, "size"_a, "offset"_a)
      .def("read_into", &read_into, "buffer"_a.none())
      .def("pread_into", &pread_into, "buffer"_a.none(), "offset"_a)
      .def("write", &write, "buffer"_a.none())
      .def("pwrite", &pwrite, "buffer"_a.none(), "offset"_a)
      .def("copy_range", &copy_range, "to"_a, "from_offset"_a, "to_offset"_a, "bytes"_a)
      .def("seek", on_descriptor<&Volume::lseek>, "offset"_a, "whence"_a)
      .def("truncate", on_descriptor<&Volume::ftruncate>, "size"_a)
      .def("allocate", on_descriptor<&Volume::fallocate>, "mode"_a, "offset"_a, "bytes"_a)
      .def("stat", on_descriptor<&Volume::fstat>)
      .def("identity", &identity, nb::sig("def identity(self) -> tuple[bytes, int, int]"))
      .def("sync", on_descriptor<&Volume::fsync>)
      .def("sync_data", on_descriptor<&Volume::fdatasync>)
      .def("readdir", &readdir, nb::sig("def readdir(self) -> list[tuple[bytes, int, int]]"));
  define_rows(file);
}

}  // namespace gofs::python
