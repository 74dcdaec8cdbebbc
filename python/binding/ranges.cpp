// SPDX-License-Identifier: Apache-2.0
//
// Ranges of many files that one call reads, by several threads where there is enough of it.
#include <fcntl.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "buffer.hpp"
#include "classes.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

constexpr unsigned kThreadsMax = 8;
constexpr uint64_t kThreadBytes = uint64_t{512} << 10;  // what a thread is worth starting for
constexpr uint64_t kPortionBytes = uint64_t{4} << 20;   // of an open file, for one thread at a time

/// Where a range is, and the memory that it goes to. With the GIL, but for what is const.
class Range {
 public:
  /// `source` is an OpenFile of `volume`, or a path.
  Range(const MountedVolume& volume, nb::handle source, uint64_t offset, nb::handle memory)
      : source_(nb::borrow(source)), buffer_(memory, Buffer::Access::kWrite), offset_(offset) {
    if (!nb::isinstance<OpenFile>(source)) {
      path_.emplace(source);
      return;
    }
    file_ = nb::inst_ptr<OpenFile>(source);
    if (!file_->is_of(volume)) throw nb::value_error("the file is of another volume");
  }

  uint64_t bytes() const { return buffer_.bytes(); }
  const Path& path() const { return file_ != nullptr ? file_->path() : *path_; }
  /// A path is opened for each portion, so that all of a range has to be one.
  uint64_t portion_bytes() const { return file_ != nullptr ? kPortionBytes : bytes(); }

  /// What Volume::pread() answers for a part of the range; none where the file is closed.
  std::optional<Expected<uint64_t>> read(Volume& volume, uint64_t begin, uint64_t bytes) const {
    const auto pread = [&](Volume& of, int descriptor) {
      return of.pread(descriptor, static_cast<uint8_t*>(buffer_.data()) + begin, bytes,
                      offset_ + begin);
    };
    if (file_ != nullptr) return file_->use(volume, pread);
    const auto descriptor = volume.open(path_->bytes(), O_RDONLY);
    if (!descriptor) return descriptor.error();
    auto got = pread(volume, *descriptor);
    const auto closed = volume.close(*descriptor);
    if (got && !closed) return closed.error();
    return got;
  }

 private:
  const nb::object source_;  // which lives as long
  OpenFile* file_ = nullptr;
  std::optional<Path> path_;
  const Buffer buffer_;
  const uint64_t offset_;
};

/// What one thread reads at once.
struct Portion {
  const Range* range;
  uint64_t begin;  // within the range
  uint64_t bytes;
  std::optional<Expected<uint64_t>> answer = std::nullopt;
};

std::vector<Portion> portions_of(const std::deque<Range>& ranges) {
  std::vector<Portion> portions;
  for (const Range& range : ranges) {
    uint64_t begin = 0;
    do {  // once for a range of no bytes: its file may be missing
      const uint64_t bytes = std::min(range.portion_bytes(), range.bytes() - begin);
      portions.push_back({&range, begin, bytes});
      begin += bytes;
    } while (begin < range.bytes());
  }
  return portions;
}

/// Reads all of them, each whether or not others can be.
void read_all(Volume& volume, std::vector<Portion>& portions) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < portions.size(); i = next++) {
      Portion& portion = portions[i];
      portion.answer = portion.range->read(volume, portion.begin, portion.bytes);
    }
  };
  uint64_t bytes = 0;
  for (const Portion& portion : portions) bytes += portion.bytes;
  const uint64_t wanted = std::min({bytes / kThreadBytes, static_cast<uint64_t>(portions.size()),
                                    static_cast<uint64_t>(std::thread::hardware_concurrency()),
                                    static_cast<uint64_t>(kThreadsMax)});
  std::vector<std::thread> threads;
  threads.reserve(kThreadsMax);
  try {
    while (threads.size() + 1 < wanted) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // Those that there are do all of it.
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

/// The bytes that a range has from its beginning on, up to where its file ends. Raises the error of
/// the first portion that has one.
uint64_t bytes_read(std::vector<Portion>::iterator portion, std::vector<Portion>::iterator end) {
  uint64_t got = 0;
  bool at_end = false;
  for (; portion != end; ++portion) {
    if (!portion->answer) OpenFile::raise_closed();
    const uint64_t here = take(*std::move(portion->answer), &portion->range->path());
    if (!at_end) got += here;
    at_end = at_end || here < portion->bytes;
  }
  return got;
}

/// `given` has tuples of an OpenFile or a path, an offset and memory to fill. The bytes that were
/// read of each.
std::vector<uint64_t> read_ranges(MountedVolume& self, nb::sequence given) {
  std::deque<Range> ranges;
  for (const nb::handle each : given) {
    const auto [source, offset, memory] =
        nb::cast<std::tuple<nb::object, uint64_t, nb::object>>(each);
    ranges.emplace_back(self, source, offset, memory);
  }
  std::vector<Portion> portions = portions_of(ranges);
  self.call([&](Volume& volume) { read_all(volume, portions); });
  std::vector<uint64_t> counts;
  for (auto begin = portions.begin(); begin != portions.end();) {
    const auto end = std::find_if(begin, portions.end(), [&](const Portion& portion) {
      return portion.range != begin->range;
    });
    counts.push_back(bytes_read(begin, end));
    begin = end;
  }
  return counts;
}

}  // namespace

void define_ranges(VolumeClass& volume) {
  volume.def("read_ranges", &read_ranges, "ranges"_a,
             nb::sig("def read_ranges(self, ranges: collections.abc.Sequence[tuple[object, int, "
                     "object]]) -> list[int]"));
}

}  // namespace gofs::python
