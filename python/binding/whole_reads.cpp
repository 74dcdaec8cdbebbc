// SPDX-License-Identifier: Apache-2.0
//
// Many whole files, read to the memory of a GPU: a portion is opened while the one before is read.
#include <fcntl.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "begin_ranges.hpp"
#include "classes.hpp"
#include "path.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// Files of a portion. Two are open at once, of all descriptors that a volume has.
constexpr size_t kPortionFiles = 8192;

class WholeReads {
 public:
  /// File i is read to `offsets[i]` of `memory`, and no further than to `offsets[i + 1]`.
  WholeReads(Volume& volume, const std::vector<std::string>& paths,
             const std::vector<uint64_t>& offsets, uint8_t* memory, uint64_t stream)
      : volume_(volume),
        paths_(paths),
        offsets_(offsets),
        memory_(memory),
        stream_(stream),
        counts_(paths.size()),
        left_(paths.size()) {
    std::iota(left_.begin(), left_.end(), size_t{0});
  }

  /// Of each file its bytes, or a negative errno; an error where the memory is refused.
  Expected<std::vector<int64_t>> read() {
    Portion before;
    while (!left_.empty() && !error_) {
      Portion next = open_some(!before.files.empty());
      begin(next);
      finish(before);
      before = std::move(next);
    }
    finish(before);
    if (error_) return *error_;
    return counts_;
  }

 private:
  struct Portion {
    std::vector<size_t> files;  // by number
    std::vector<int> descriptors;
    std::optional<RangeCall> call{};
  };

  /// Those for which no descriptor is left come again, while others are open that are closed soon.
  Portion open_some(bool others) {
    const size_t count = std::min(left_.size(), kPortionFiles);
    const auto end = left_.begin() + static_cast<ptrdiff_t>(count);
    const std::vector<size_t> wanted(left_.begin(), end);
    left_.erase(left_.begin(), end);
    std::vector<std::string> paths;
    for (const size_t i : wanted) paths.push_back(paths_[i]);
    const auto opened = volume_.open_many(paths, O_RDONLY);
    Portion portion;
    for (size_t k = 0; k < count; ++k) {
      if (!opened[k]) continue;
      portion.files.push_back(wanted[k]);
      portion.descriptors.push_back(*opened[k]);
    }
    others = others || !portion.files.empty();
    for (size_t k = 0; k < count; ++k) {
      if (opened[k]) continue;
      const int code = opened[k].error().code;
      if (code == EMFILE && others) {
        left_.push_back(wanted[k]);
      } else {
        counts_[wanted[k]] = -int64_t{code};
      }
    }
    return portion;
  }

  void begin(Portion& portion) {
    if (portion.files.empty()) return;
    std::vector<IoRange> ranges;
    for (size_t k = 0; k < portion.files.size(); ++k) {
      const size_t i = portion.files[k];
      ranges.push_back(
          {portion.descriptors[k], memory_ + offsets_[i], offsets_[i + 1] - offsets_[i], 0});
    }
    auto begun = begin_ranges(volume_, false, ranges, stream_);
    if (begun) {
      portion.call = *std::move(begun);
    } else {
      keep(begun.error());
    }
  }

  void finish(const Portion& portion) {
    if (portion.files.empty()) return;
    if (portion.call) {
      const auto moved = portion.call->wait();
      if (!moved) keep(moved.error());
      for (size_t k = 0; moved && k < portion.files.size(); ++k) {
        counts_[portion.files[k]] = (*moved)[k];
      }
    }
    (void)volume_.close_many(portion.descriptors);  // which were read
  }

  void keep(const Error& error) {
    if (!error_) error_ = error;
  }

  Volume& volume_;
  const std::vector<std::string>& paths_;
  const std::vector<uint64_t>& offsets_;
  uint8_t* const memory_;
  const uint64_t stream_;
  std::vector<int64_t> counts_;
  std::deque<size_t> left_;     // files, by number
  std::optional<Error> error_;  // the first
};

/// WholeReads::read(), which waits.
std::vector<int64_t> read_files(MountedVolume& self, const nb::sequence& given,
                                const std::vector<uint64_t>& offsets, uint64_t address,
                                uint64_t stream) {
  std::vector<std::string> paths;
  for (const nb::handle each : given) paths.push_back(Path(each).bytes());
  if (offsets.size() != paths.size() + 1) {
    throw nb::value_error("there is one offset more than paths");
  }
  auto results = self.call([&](Volume& volume) {
    return WholeReads(volume, paths, offsets, reinterpret_cast<uint8_t*>(address), stream).read();
  });
  return take(std::move(results), &self.name());
}

}  // namespace

void define_whole_reads(VolumeClass& volume) {
  volume.def("read_files", &read_files, "paths"_a, "offsets"_a, "address"_a, "stream"_a,
             nb::sig("def read_files(self, paths: object, offsets: "
                     "collections.abc.Sequence[int], address: int, stream: int) -> list[int]"));
}

}  // namespace gofs::python
