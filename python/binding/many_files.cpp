// SPDX-License-Identifier: Apache-2.0
//
// What is asked of many files at once.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "classes.hpp"
#include "open_file.hpp"
#include "path_reads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// Asks for them in portions, whose memory is used again, and has `take_one` take each.
template <typename Take>
void stat_all(MountedVolume& self, const nb::sequence& given, const Take& take_one) {
  const size_t count = nb::len(given);
  for (size_t first = 0; first < count; first += kFilesAtOnce) {
    const std::vector<std::string> paths = paths_as_bytes(given, first, kFilesAtOnce);
    auto stats = self.call([&](Volume& volume) { return volume.stat_many(paths); });
    for (size_t i = 0; i < stats.size(); ++i) take_one(first + i, stats[i]);
  }
}

/// Of each its Stat, or the error as an exception, which is not raised.
nb::list stat_many(MountedVolume& self, const nb::sequence& given) {
  nb::list list;
  stat_all(self, given, [&](size_t number, const Expected<Stat>& found) {
    if (found) {
      list.append(nb::cast(*found));
    } else {
      const Path path = path_at(given, number);
      list.append(exception_of(found.error(), &path));
    }
  });
  return list;
}

/// Rounded up to multiples of `multiple`. Raises the error of the first one that has one.
std::vector<uint64_t> sizes(MountedVolume& self, const nb::sequence& given, uint64_t multiple) {
  std::vector<uint64_t> sizes;
  sizes.reserve(nb::len(given));
  stat_all(self, given, [&](size_t number, const Expected<Stat>& found) {
    if (!found) {
      const Path path = path_at(given, number);
      raise(found.error(), &path);
    }
    sizes.push_back((found->size_bytes + multiple - 1) / multiple * multiple);
  });
  return sizes;
}

/// `flags` and `permissions`: of open(2). Of each the open file, or the error as an exception,
/// which is not raised.
nb::list open_many(const std::shared_ptr<MountedVolume>& self, const nb::sequence& given,
                   uint32_t flags, uint32_t permissions) {
  std::deque<Path> paths;
  for (const nb::handle each : given) paths.emplace_back(each);
  std::vector<std::string> bytes;
  for (const Path& path : paths) bytes.push_back(path.bytes());
  const auto opened =
      self->call([&](Volume& volume) { return volume.open_many(bytes, flags, permissions); });
  std::vector<std::unique_ptr<OpenFile>> files(opened.size());  // whatever comes, each is closed
  for (size_t i = 0; i < opened.size(); ++i) {
    if (opened[i]) files[i] = std::make_unique<OpenFile>(self, *opened[i], paths[i]);
  }
  nb::list list;
  for (size_t i = 0; i < opened.size(); ++i) {
    list.append(opened[i] ? nb::cast(std::move(files[i]))
                          : exception_of(opened[i].error(), &paths[i]));
  }
  return list;
}

/// Errors are lost: to close a file makes nothing durable.
void close_many(MountedVolume& self, const std::vector<nb::object>& given) {
  std::vector<OpenFile*> files;
  for (const nb::object& file : given) files.push_back(&nb::cast<OpenFile&>(file));
  if (self.is_closed() || !self.is_ours()) return;
  self.call([&](Volume& volume) {
    std::vector<int> descriptors;
    for (OpenFile* const file : files) {
      if (const std::optional<int> one = file->give_up()) descriptors.push_back(*one);
    }
    (void)volume.close_many(descriptors);
  });
}

/// The exception of a call that has answered with `code` alone, which is not raised: with the
/// volume's words, where it is still mounted.
nb::object error_of(MountedVolume& self, int code, nb::handle given) {
  const Path path(given);
  if (self.is_closed() || !self.is_ours()) {
    return exception_of({code, error_text(-int64_t{code})}, &path);
  }
  return exception_of(self.explain(code, path), &path);
}

}  // namespace

void define_many_files(VolumeClass& volume) {
  volume
      .def("stat_many", &stat_many, "paths"_a,
           nb::sig("def stat_many(self, paths: object) -> list[Stat | OSError]"))
      .def("sizes", &sizes, "paths"_a, "multiple"_a = 1,
           nb::sig("def sizes(self, paths: object, multiple: int = 1) -> list[int]"))
      .def("open_many", &open_many, "paths"_a, "flags"_a, "permissions"_a = 0,
           nb::sig("def open_many(self, paths: object, flags: int, permissions: int = 0) -> "
                   "list[OpenFile | OSError]"))
      .def("close_many", &close_many, "files"_a,
           nb::sig("def close_many(self, files: collections.abc.Sequence[OpenFile]) -> None"))
      .def("error_of", &error_of, "code"_a, "path"_a,
           nb::sig("def error_of(self, code: int, path: object) -> OSError"));
}

}  // namespace gofs::python
