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

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

std::deque<Path> paths_of(const nb::sequence& given) {
  std::deque<Path> paths;
  for (const nb::handle each : given) paths.emplace_back(each);
  return paths;
}

std::vector<std::string> bytes_of(const std::deque<Path>& paths) {
  std::vector<std::string> bytes;
  bytes.reserve(paths.size());
  for (const Path& path : paths) bytes.push_back(path.bytes());
  return bytes;
}

std::vector<Expected<Stat>> stats_of(MountedVolume& self, const std::deque<Path>& paths) {
  return self.call([&](Volume& volume) { return volume.stat_many(bytes_of(paths)); });
}

/// Of each its Stat, or the error as an exception, which is not raised.
nb::list stat_many(MountedVolume& self, const nb::sequence& given) {
  const std::deque<Path> paths = paths_of(given);
  const auto stats = stats_of(self, paths);
  nb::list list;
  for (size_t i = 0; i < paths.size(); ++i) {
    list.append(stats[i] ? nb::cast(*stats[i]) : exception_of(stats[i].error(), &paths[i]));
  }
  return list;
}

/// Raises the error of the first one that has one.
std::vector<uint64_t> sizes(MountedVolume& self, const nb::sequence& given) {
  const std::deque<Path> paths = paths_of(given);
  auto stats = stats_of(self, paths);
  std::vector<uint64_t> sizes;
  sizes.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    sizes.push_back(take(std::move(stats[i]), &paths[i]).size_bytes);
  }
  return sizes;
}

/// `flags`: of open(2), without O_CREAT. The same; then those that could be opened are closed.
nb::list open_many(const std::shared_ptr<MountedVolume>& self, const nb::sequence& given,
                   uint32_t flags) {
  const std::deque<Path> paths = paths_of(given);
  const auto opened =
      self->call([&](Volume& volume) { return volume.open_many(bytes_of(paths), flags); });
  std::vector<std::unique_ptr<OpenFile>> files;
  for (size_t i = 0; i < opened.size(); ++i) {
    if (opened[i]) files.push_back(std::make_unique<OpenFile>(self, *opened[i], paths[i]));
  }
  for (size_t i = 0; i < opened.size(); ++i) {
    if (!opened[i]) raise(opened[i].error(), &paths[i]);
  }
  nb::list list;
  for (auto& file : files) list.append(nb::cast(std::move(file)));
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
  const Error error = self.call([&](Volume& volume) { return volume.explain(code, path.bytes()); });
  return exception_of(error, &path);
}

}  // namespace

void define_many_files(VolumeClass& volume) {
  volume
      .def("stat_many", &stat_many, "paths"_a,
           nb::sig("def stat_many(self, paths: object) -> list[Stat | OSError]"))
      .def("sizes", &sizes, "paths"_a, nb::sig("def sizes(self, paths: object) -> list[int]"))
      .def("open_many", &open_many, "paths"_a, "flags"_a,
           nb::sig("def open_many(self, paths: object, flags: int) -> list[OpenFile]"))
      .def("close_many", &close_many, "files"_a,
           nb::sig("def close_many(self, files: collections.abc.Sequence[OpenFile]) -> None"))
      .def("error_of", &error_of, "code"_a, "path"_a,
           nb::sig("def error_of(self, code: int, path: object) -> OSError"));
}

}  // namespace gofs::python
