// SPDX-License-Identifier: Apache-2.0
//
// What is asked of many files at once, by several threads: each call waits for a launch on a GPU.
#include <fcntl.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "classes.hpp"
#include "open_file.hpp"
#include "side_by_side.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

constexpr size_t kCallsOfThread = 8;  // what it is worth starting for

std::deque<Path> paths_of(const nb::sequence& given) {
  std::deque<Path> paths;
  for (const nb::handle each : given) paths.emplace_back(each);
  return paths;
}

/// What `call(path)` answers about each path.
template <typename Call>
auto ask_all(MountedVolume& self, const std::deque<Path>& paths, Call call) {
  using Answer = decltype(call(std::declval<Volume&>(), std::declval<const std::string&>()));
  std::vector<std::optional<Answer>> answers(paths.size());
  self.call([&](Volume& volume) {
    run_side_by_side(paths.size(), paths.size() / kCallsOfThread + 1,
                     [&](size_t i) { answers[i] = call(volume, paths[i].bytes()); });
  });
  return answers;
}

/// Raises the error of the first one that has one.
std::vector<uint64_t> sizes(MountedVolume& self, const nb::sequence& given) {
  const std::deque<Path> paths = paths_of(given);
  auto answers = ask_all(self, paths,
                         [](Volume& volume, const std::string& path) { return volume.stat(path); });
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < answers.size(); ++i) {
    sizes.push_back(take(*std::move(answers[i]), &paths[i]).size_bytes);
  }
  return sizes;
}

/// For reading. The same; then those that could be opened are closed.
nb::list open_many(const std::shared_ptr<MountedVolume>& self, const nb::sequence& given) {
  const std::deque<Path> paths = paths_of(given);
  auto answers = ask_all(*self, paths, [](Volume& volume, const std::string& path) {
    return volume.open(path, O_RDONLY);
  });
  std::vector<std::unique_ptr<OpenFile>> files;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (*answers[i]) files.push_back(std::make_unique<OpenFile>(self, **answers[i], paths[i]));
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!*answers[i]) raise(answers[i]->error(), &paths[i]);
  }
  nb::list list;
  for (auto& file : files) list.append(nb::cast(std::move(file)));
  return list;
}

/// Errors are lost: they were read.
void close_many(MountedVolume& self, const std::vector<nb::object>& given) {
  std::vector<OpenFile*> files;
  for (const nb::object& file : given) files.push_back(&nb::cast<OpenFile&>(file));
  if (self.is_closed() || !self.is_ours()) return;
  self.call([&](Volume& volume) {
    run_side_by_side(files.size(), files.size() / kCallsOfThread + 1,
                     [&](size_t i) { files[i]->close_in(volume); });
  });
}

}  // namespace

void define_many_files(VolumeClass& volume) {
  volume.def("sizes", &sizes, "paths"_a, nb::sig("def sizes(self, paths: object) -> list[int]"))
      .def("open_many", &open_many, "paths"_a,
           nb::sig("def open_many(self, paths: object) -> list[OpenFile]"))
      .def("close_many", &close_many, "files"_a,
           nb::sig("def close_many(self, files: collections.abc.Sequence[OpenFile]) -> None"));
}

}  // namespace gofs::python
