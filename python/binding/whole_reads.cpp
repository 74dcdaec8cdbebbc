// SPDX-License-Identifier: Apache-2.0
//
// Many whole files.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"
#include "path.hpp"
#include "path_reads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// The bytes of the paths, of which there is one less than of offsets.
std::vector<std::string> paths_beside(const nb::sequence& given,
                                      const std::vector<uint64_t>& offsets) {
  std::vector<std::string> paths = paths_as_bytes(given, 0, nb::len(given));
  if (offsets.size() != paths.size() + 1) {
    throw nb::value_error("there is one offset more than paths");
  }
  return paths;
}

/// File i goes to `offsets[i]` of `memory`, and no further than to `offsets[i + 1]`.
std::vector<PathRead> reads_to(uint8_t* memory, const std::vector<uint64_t>& offsets) {
  std::vector<PathRead> reads;
  reads.reserve(offsets.size() - 1);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    reads.push_back({i, memory + offsets[i], offsets[i + 1] - offsets[i]});
  }
  return reads;
}

/// Of each file its bytes, or a negative errno; an error where the memory is refused.
std::vector<int64_t> read_files(MountedVolume& self, const nb::sequence& given,
                                const std::vector<uint64_t>& offsets, uint64_t address,
                                uint64_t stream) {
  std::vector<std::string> paths = paths_beside(given, offsets);
  std::vector<PathRead> reads = reads_to(reinterpret_cast<uint8_t*>(address), offsets);
  take(self.call([&](Volume& volume) { return PathReads(volume, paths, reads, stream).read(); }),
       &self.name());
  std::vector<int64_t> results;
  results.reserve(reads.size());
  for (const PathRead& read : reads) results.push_back(read.result);
  return results;
}

/// Reads them all into memory of the host, each whether or not others can be. Of each its bytes, up
/// to where it ends; raises the error of the first one that has one.
std::vector<uint64_t> read_to_host(MountedVolume& self, const nb::sequence& given,
                                   std::vector<std::string>& paths, std::vector<PathRead>& reads) {
  take(self.call([&](Volume& volume) { return PathReads(volume, paths, reads, 0).read(); }),
       &self.name());
  std::vector<uint64_t> counts;
  counts.reserve(reads.size());
  for (size_t i = 0; i < reads.size(); ++i) {
    if (reads[i].result < 0) {
      const Path path = path_at(given, i);
      raise(self.explain(static_cast<int>(-reads[i].result), path), &path);
    }
    counts.push_back(static_cast<uint64_t>(reads[i].result));
  }
  return counts;
}

/// File i is read to `offsets[i]` of `memory`, and no further than to `offsets[i + 1]`.
std::vector<uint64_t> read_files_to_host(MountedVolume& self, const nb::sequence& given,
                                         const std::vector<uint64_t>& offsets, nb::handle memory) {
  std::vector<std::string> paths = paths_beside(given, offsets);
  const Buffer buffer(memory, Buffer::Access::kWrite);
  if (!std::is_sorted(offsets.begin(), offsets.end()) || offsets.back() > buffer.bytes()) {
    throw nb::value_error("the offsets are not those of parts of the buffer");
  }
  std::vector<PathRead> reads = reads_to(static_cast<uint8_t*>(buffer.data()), offsets);
  return read_to_host(self, given, paths, reads);
}

/// Up to `sizes[i]` bytes of file i as bytes of Python's, which nobody else sees yet, and so are
/// filled where they lie.
nb::list read_files_as_bytes(MountedVolume& self, const nb::sequence& given,
                             const std::vector<uint64_t>& sizes) {
  std::vector<std::string> paths = paths_as_bytes(given, 0, nb::len(given));
  if (sizes.size() != paths.size()) throw nb::value_error("as many sizes as paths");
  nb::list list;
  std::vector<PathRead> reads;
  reads.reserve(paths.size());
  for (const uint64_t size : sizes) {
    PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (made == nullptr) throw nb::python_error();
    list.append(nb::steal(made));
    reads.push_back({reads.size(), reinterpret_cast<uint8_t*>(PyBytes_AsString(made)), size});
  }
  const std::vector<uint64_t> counts = read_to_host(self, given, paths, reads);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == sizes[i]) continue;  // else it has become shorter
    list[i] = nb::bytes(reinterpret_cast<const char*>(reads[i].memory), counts[i]);
  }
  return list;
}

}  // namespace

void define_whole_reads(VolumeClass& volume) {
  volume
      .def("read_files", &read_files, "paths"_a, "offsets"_a, "address"_a, "stream"_a,
           nb::sig("def read_files(self, paths: object, offsets: "
                   "collections.abc.Sequence[int], address: int, stream: int) -> list[int]"))
      .def("read_files_to_host", &read_files_to_host, "paths"_a, "offsets"_a, "memory"_a,
           nb::sig("def read_files_to_host(self, paths: object, offsets: "
                   "collections.abc.Sequence[int], memory: object) -> list[int]"))
      .def("read_files_as_bytes", &read_files_as_bytes, "paths"_a, "sizes"_a,
           nb::sig("def read_files_as_bytes(self, paths: object, sizes: "
                   "collections.abc.Sequence[int]) -> list[bytes]"));
}

}  // namespace gofs::python
