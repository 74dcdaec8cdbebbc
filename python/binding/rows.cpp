// SPDX-License-Identifier: Apache-2.0
//
// Rows of one file: ranges of one size, which memory has one behind the other. Of a hundred
// thousand of them no object of Python's is made.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "begin_ranges.hpp"
#include "buffer.hpp"
#include "classes.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// Where each row begins in the file.
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Moves them to or from `memory`, or what a GPU has there, in the order of `stream`, and waits. Of
/// each row its bytes, or a negative errno.
std::vector<int64_t> move_rows(OpenFile& file, const Offsets& offsets, void* memory,
                               uint64_t row_bytes, bool writes, uint64_t stream) {
  const size_t count = offsets.shape(0);
  const int64_t* const begins = offsets.data();
  return file.call([&](Volume& volume, int descriptor) -> Expected<std::vector<int64_t>> {
    std::vector<IoRange> ranges;
    ranges.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      ranges.push_back({descriptor, static_cast<uint8_t*>(memory) + i * row_bytes, row_bytes,
                        static_cast<uint64_t>(begins[i])});
    }
    auto begun = begin_ranges(volume, writes, ranges, stream);
    if (!begun) return begun.error();
    return begun->wait();
  });
}

/// The same of memory of the host, which has the rows and nothing else.
std::vector<int64_t> move_rows_of_host(OpenFile& file, const Offsets& offsets,
                                       const nb::object& memory, uint64_t row_bytes, bool writes) {
  const Buffer buffer(memory, writes ? Buffer::Access::kRead : Buffer::Access::kWrite);
  if (buffer.bytes() != offsets.shape(0) * row_bytes) throw nb::value_error("another size");
  return move_rows(file, offsets, buffer.data(), row_bytes, writes, 0);
}

std::vector<int64_t> move_rows_of_gpu(OpenFile& file, const Offsets& offsets, uint64_t address,
                                      uint64_t row_bytes, bool writes, uint64_t stream) {
  return move_rows(file, offsets, reinterpret_cast<void*>(address), row_bytes, writes, stream);
}

}  // namespace

void define_rows(OpenFileClass& file) {
  file.def("move_rows", &move_rows_of_host, "offsets"_a, "memory"_a, "row_bytes"_a, "writes"_a,
           nb::sig("def move_rows(self, offsets: object, memory: object, "
                   "row_bytes: int, writes: bool) -> list[int]"))
      .def("move_rows_of_gpu", &move_rows_of_gpu, "offsets"_a, "address"_a, "row_bytes"_a,
           "writes"_a, "stream"_a,
           nb::sig("def move_rows_of_gpu(self, offsets: object, address: int, row_bytes: int, "
                   "writes: bool, stream: int) -> list[int]"));
}

}  // namespace gofs::python
