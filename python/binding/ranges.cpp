// SPDX-License-Identifier: Apache-2.0
//
// Many parts of files that one call reads into memory of the host.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <vector>

#include "begin_ranges.hpp"
#include "buffer.hpp"
#include "classes.hpp"
#include "open_file.hpp"
#include "path_reads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// Where bytes come from: an open file, or a path. With the GIL, but for what is const.
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

  /// Null: it is a path.
  OpenFile* file() const { return file_; }
  const Path& path() const { return file_ != nullptr ? file_->path() : *path_; }

 private:
  const nb::object given_;  // which lives as long
  OpenFile* file_ = nullptr;
  std::optional<Path> path_;
};

/// A part of a file on its way.
struct Portion {
  const Source* source;
  uint8_t* memory;
  uint64_t bytes;
  uint64_t offset;
  int64_t result = 0;      // the bytes that there were, or a negative errno
  bool is_closed = false;  // the file, so that nothing was read
};

/// Reads those of open files, each of which stays open meanwhile.
Expected<void> read_open(Volume& volume, const std::vector<Portion*>& portions) {
  std::map<OpenFile*, std::shared_lock<std::shared_mutex>> locks;
  for (const Portion* const portion : portions) locks[portion->source->file()];
  for (auto each = locks.begin(); each != locks.end();) {
    auto& [file, lock] = *each;
    each = file->keep_open(lock) ? std::next(each) : locks.erase(each);  // it is closed
  }
  std::vector<IoRange> ranges;
  std::vector<Portion*> whose;
  for (Portion* const portion : portions) {
    OpenFile* const file = portion->source->file();
    portion->is_closed = !locks.contains(file);
    if (portion->is_closed) continue;
    ranges.push_back({file->descriptor(), portion->memory, portion->bytes, portion->offset});
    whose.push_back(portion);
  }
  const auto begun = begin_ranges(volume, false, ranges, 0);
  if (!begun) return begun.error();
  const auto moved = begun->wait();
  if (!moved) return moved.error();
  for (size_t i = 0; i < whose.size(); ++i) whose[i]->result = (*moved)[i];
  return {};
}

/// Reads those of paths, each of which is opened once.
Expected<void> read_paths(Volume& volume, const std::vector<Portion*>& portions) {
  std::map<std::string, std::vector<Portion*>> by_path;
  for (Portion* const portion : portions) {
    by_path[portion->source->path().bytes()].push_back(portion);
  }
  std::vector<std::string> paths;
  std::vector<PathRead> reads;
  std::vector<Portion*> whose;
  for (const auto& [path, its] : by_path) {
    for (Portion* const portion : its) {
      reads.push_back({paths.size(), portion->memory, portion->bytes, portion->offset});
      whose.push_back(portion);
    }
    paths.push_back(path);
  }
  auto done = PathReads(volume, paths, reads, 0).read();
  for (size_t i = 0; i < whose.size(); ++i) whose[i]->result = reads[i].result;
  return done;
}

/// Reads all of them, each whether or not others can be.
void read_all(MountedVolume& self, std::vector<Portion>& portions) {
  std::vector<Portion*> open;
  std::vector<Portion*> named;
  for (Portion& portion : portions) {
    (portion.source->file() != nullptr ? open : named).push_back(&portion);
  }
  take(self.call([&](Volume& volume) -> Expected<void> {
    auto done = read_open(volume, open);
    return done ? read_paths(volume, named) : done;
  }),
       &self.name());
}

/// How many bytes were read. Raises what went wrong.
uint64_t bytes_of(MountedVolume& self, const Portion& portion) {
  if (portion.is_closed) OpenFile::raise_closed();
  if (portion.result >= 0) return static_cast<uint64_t>(portion.result);
  const Path& path = portion.source->path();
  raise(self.explain(static_cast<int>(-portion.result), path), &path);
}

/// A part of a file, and the memory that it goes to.
struct Range {
  Range(const MountedVolume& volume, nb::handle file, uint64_t begin, nb::handle memory)
      : source(volume, file), buffer(memory, Buffer::Access::kWrite), offset(begin) {}

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
  for (const Range& range : ranges) {
    auto* const memory = static_cast<uint8_t*>(range.buffer.data());
    portions.push_back({&range.source, memory, range.buffer.bytes(), range.offset});
  }
  read_all(self, portions);
  std::vector<uint64_t> counts;
  counts.reserve(portions.size());
  for (const Portion& portion : portions) counts.push_back(bytes_of(self, portion));
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
    if (last != nullptr && begin == last->offset + last->bytes) {
      last->bytes += row_bytes;
    } else {
      portions.push_back({&source, place, row_bytes, begin});
    }
    place += row_bytes;
  }
  read_all(self, portions);
  bool complete = true;
  for (const Portion& portion : portions) complete &= bytes_of(self, portion) == portion.bytes;
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
