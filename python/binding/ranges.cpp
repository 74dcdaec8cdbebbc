// SPDX-License-Identifier: Apache-2.0
//
// Many parts of files that one call reads, by several threads where there is enough of it.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"
#include "open_file.hpp"
#include "path_reads.hpp"
#include "side_by_side.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

constexpr uint64_t kPortionBytes = uint64_t{4} << 20;  // of an open file, for one thread at a time

/// Where bytes come from: an open file, or a path, which is opened for each portion. With the GIL,
/// but for what is const.
class Source {
 public:
  /// `given` is an OpenFile of `volume`, or a path.
  Source(const MountedVolume& volume, nb::handle given) : given_(nb::borrow(given)) {
    if (!nb::isinstance<OpenFile>(given)) {
      path_.emplace(given);
      return;
    }
    file_ = nb::inst_ptr<OpenFile>(given);
    if (!file_->is_of(volume)) throw nb::value_error("the file is of another volume");
  }

  bool is_open() const { return file_ != nullptr; }
  const Path& path() const { return file_ != nullptr ? file_->path() : *path_; }

  /// What Volume::pread() answers; none where the file is closed.
  std::optional<Expected<uint64_t>> read(Volume& volume, void* memory, uint64_t bytes,
                                         uint64_t offset) const {
    if (file_ == nullptr) return read_path(volume, path_->bytes(), memory, bytes, offset);
    return file_->use(volume, [&](Volume& of, int descriptor) {
      return of.pread(descriptor, memory, bytes, offset);
    });
  }

 private:
  const nb::object given_;  // which lives as long
  OpenFile* file_ = nullptr;
  std::optional<Path> path_;
};

/// What one thread reads at once.
struct Portion {
  const Source* source;
  uint8_t* memory;
  uint64_t bytes;
  uint64_t offset;
  std::optional<Expected<uint64_t>> answer = std::nullopt;
};

/// Reads all of them, each whether or not others can be.
void read_all(Volume& volume, std::vector<Portion>& portions) {
  uint64_t bytes = 0;
  for (const Portion& portion : portions) bytes += portion.bytes;
  run_side_by_side(portions.size(), threads_worth(bytes, portions.size()), [&](size_t i) {
    Portion& portion = portions[i];
    portion.answer = portion.source->read(volume, portion.memory, portion.bytes, portion.offset);
  });
}

/// How many bytes were read. Raises what went wrong.
uint64_t bytes_of(Portion& portion) {
  if (!portion.answer) OpenFile::raise_closed();
  return take(*std::move(portion.answer), &portion.source->path());
}

/// A part of a file, and the memory that it goes to.
struct Range {
  Range(const MountedVolume& volume, nb::handle file, uint64_t begin, nb::handle memory)
      : source(volume, file), buffer(memory, Buffer::Access::kWrite), offset(begin) {}

  /// Of a path it is one portion, so that all of it comes from one file.
  uint64_t portion_bytes() const { return source.is_open() ? kPortionBytes : buffer.bytes(); }

  const Source source;
  const Buffer buffer;
  const uint64_t offset;
};

/// `given` has tuples of an OpenFile or a path, an offset and memory to fill. The bytes that were
/// read of each, up to where its file ends. Raises the error of the first one that has one.
std::vector<uint64_t> read_ranges(MountedVolume& self, nb::sequence given) {
  std::deque<Range> ranges;
  for (const nb::handle each : given) {
    const auto [file, offset, memory] =
        nb::cast<std::tuple<nb::object, uint64_t, nb::object>>(each);
    ranges.emplace_back(self, file, offset, memory);
  }
  std::vector<Portion> portions;
  std::vector<size_t> ends;  // of each range, in portions
  for (const Range& range : ranges) {
    auto* const memory = static_cast<uint8_t*>(range.buffer.data());
    uint64_t begin = 0;
    do {  // once for a range of no bytes: its file may be missing
      const uint64_t bytes = std::min(range.portion_bytes(), range.buffer.bytes() - begin);
      portions.push_back({&range.source, memory + begin, bytes, range.offset + begin});
      begin += bytes;
    } while (begin < range.buffer.bytes());
    ends.push_back(portions.size());
  }
  self.call([&](Volume& volume) { read_all(volume, portions); });
  std::vector<uint64_t> counts;
  size_t next = 0;
  for (const size_t end : ends) {
    uint64_t count = 0;
    bool at_end = false;
    for (; next < end; ++next) {
      const uint64_t here = bytes_of(portions[next]);
      if (!at_end) count += here;
      at_end = at_end || here < portions[next].bytes;
    }
    counts.push_back(count);
  }
  return counts;
}

/// The rows that `given` names as 64-bit numbers, those below 0 from the end.
std::vector<uint64_t> row_numbers(nb::handle given, uint64_t count) {
  const Buffer buffer(given, Buffer::Access::kRead);
  if (buffer.bytes() % sizeof(int64_t) != 0) throw nb::value_error("rows: numbers of 64 bits");
  std::vector<int64_t> asked(buffer.bytes() / sizeof(int64_t));
  if (!asked.empty()) std::memcpy(asked.data(), buffer.data(), buffer.bytes());
  std::vector<uint64_t> rows;
  rows.reserve(asked.size());
  for (const int64_t row : asked) {
    const auto wrapped = static_cast<uint64_t>(row) + (row < 0 ? count : 0);
    if (wrapped >= count) {
      const std::string words =
          "row " + std::to_string(row) + " of a tensor that has " + std::to_string(count);
      throw nb::index_error(words.c_str());
    }
    rows.push_back(wrapped);
  }
  return rows;
}

/// Fills `memory` with rows of `row_bytes` each, in the order of `rows`. The file has `count` of
/// them from `offset` on. False where it ends before.
bool read_rows(MountedVolume& self, nb::handle file, uint64_t offset, uint64_t row_bytes,
               uint64_t count, nb::handle rows, nb::handle memory) {
  const Source source(self, file);
  const Buffer buffer(memory, Buffer::Access::kWrite);
  const std::vector<uint64_t> numbers = row_numbers(rows, count);
  if (buffer.bytes() != numbers.size() * row_bytes) {
    throw nb::value_error("the buffer has not the size of the rows");
  }
  auto* place = static_cast<uint8_t*>(buffer.data());
  std::vector<Portion> portions;
  for (const uint64_t number : numbers) {
    const uint64_t begin = offset + number * row_bytes;
    Portion* const last = portions.empty() ? nullptr : &portions.back();
    if (last != nullptr && begin == last->offset + last->bytes && last->bytes < kPortionBytes) {
      last->bytes += row_bytes;
    } else {
      portions.push_back({&source, place, row_bytes, begin});
    }
    place += row_bytes;
  }
  self.call([&](Volume& volume) { read_all(volume, portions); });
  bool complete = true;
  for (Portion& portion : portions) complete &= bytes_of(portion) == portion.bytes;
  return complete;
}

}  // namespace

void define_ranges(VolumeClass& volume) {
  volume
      .def("read_ranges", &read_ranges, "ranges"_a,
           nb::sig("def read_ranges(self, ranges: collections.abc.Sequence[tuple[object, int, "
                   "object]]) -> list[int]"))
      .def("read_rows", &read_rows, "file"_a.none(), "offset"_a, "row_bytes"_a, "count"_a,
           "rows"_a.none(), "memory"_a.none());
}

}  // namespace gofs::python
