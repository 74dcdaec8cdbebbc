// SPDX-License-Identifier: Apache-2.0
//
// Reads of files that are named by their paths, many at once: a portion of them is opened together
// and read together, into memory of a GPU while the next one is opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gofs/volume.hpp"

namespace gofs::python {

/// Files that one call opens, or asks for their sizes, at once. A volume has some 65,000
/// descriptors, and who reads or writes more files has two such portions open at most.
inline constexpr size_t kFilesAtOnce = 8192;

/// A part of a file on its way.
struct PathRead {
  size_t path;  // the number of the file's
  uint8_t* memory;
  uint64_t bytes;  // that are read at most
  uint64_t offset = 0;
  int64_t result = 0;  // the bytes that there were, or a negative errno
};

class PathReads {
 public:
  /// The reads of path 0 come first, then those of path 1: each path has one at least. The paths
  /// are used up. Throws std::bad_alloc.
  PathReads(Volume& volume, std::vector<std::string>& paths, std::vector<PathRead>& reads,
            uint64_t stream);

  /// All of them, each whether or not others can be, in the order of `stream` where that is about
  /// their memory; an error where the memory is refused. Without the GIL.
  Expected<void> read();

 private:
  /// Files that are open together, until it goes, and for as long as they are read.
  struct Portion {
    explicit Portion(Volume& volume) : volume_(volume) {}
    Portion(const Portion&) = delete;
    Portion& operator=(const Portion&) = delete;
    ~Portion();

    std::vector<size_t> files{};  // by number
    std::vector<int> descriptors{};
    std::optional<RangeCall> call{};

   private:
    Volume& volume_;
  };

  std::unique_ptr<Portion> open_some(bool others);
  void begin(Portion& portion);
  void finish(Portion& portion);
  void keep(const Error& error);
  /// Calls `act` with each read of a file.
  template <typename Act>
  void for_each_read(size_t file, Act act) {
    for (size_t i = firsts_[file]; i < firsts_[file + 1]; ++i) act(reads_[i]);
  }

  Volume& volume_;
  std::vector<std::string>& paths_;  // of those that are left
  std::vector<PathRead>& reads_;
  const uint64_t stream_;
  std::vector<size_t> firsts_;  // reads of each file, and their end
  std::deque<size_t> left_;     // files, by number
  std::optional<Error> error_;  // the first
};

}  // namespace gofs::python
