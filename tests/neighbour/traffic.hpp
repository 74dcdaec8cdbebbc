// SPDX-License-Identifier: Apache-2.0
//
// A thread of a program that has files of its own on a volume: makes, writes, reads, renames, cuts
// and removes them, and knows what each record of them must be, also after a remount.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gofs/volume.hpp"

namespace gofs::neighbour {

struct TrafficCounts {
  uint64_t calls = 0;
  uint64_t bytes_written = 0;
  uint64_t bytes_read = 0;
};

/// Functions throw std::runtime_error for what is not as it must be, gofs::BadExpectedAccess where
/// a call fails.
class Traffic {
 public:
  /// Of thread `thread`, in a directory of its own.
  Traffic(uint32_t thread, uint64_t seed);

  /// Makes the directory, of a volume without it.
  void begin(Volume& volume);
  /// One change or look, drawn at random.
  void step(Volume& volume);
  /// That all files are there, each with all its records, and no others.
  void check_all(Volume& volume);
  const TrafficCounts& counts() const { return counts_; }

 private:
  struct File {
    uint64_t id;
    std::string name;
    std::vector<uint32_t> versions;  // of each record
  };

  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  std::string path_of(const File& file) const { return folder_ + "/" + file.name; }
  std::string new_name();
  void make(Volume& volume);
  void write(Volume& volume, File& file);
  void read(Volume& volume, const File& file);
  void check(Volume& volume, int fd, const File& file, uint32_t first, uint32_t count);
  void cut(Volume& volume, File& file);
  void rename(Volume& volume, File& file);
  void remove(Volume& volume, size_t number);
  void sync(Volume& volume, const File& file);

  const std::string folder_;
  std::mt19937_64 random_;
  uint64_t next_id_;
  std::vector<File> files_;
  TrafficCounts counts_;
};

}  // namespace gofs::neighbour
