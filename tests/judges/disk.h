// SPDX-License-Identifier: Apache-2.0
//
// Volumes for judges: what mkfs.f2fs makes, and images that fsck.f2fs can look at while they are in
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/power_cut.h"

namespace gofs::judges {

/// An empty volume. Throws std::runtime_error.
std::vector<uint8_t> make_empty_volume(uint64_t bytes);

std::vector<uint8_t> load_volume(const std::string& path);

/// What fsck.f2fs complains about, or nothing.
std::string complaints_of(const std::string& path);

/// An image that begins as a copy of another and can be made that again. A file in memory.
class Disk {
 public:
  /// `base` outlives it.
  explicit Disk(const std::vector<uint8_t>& base);
  /// What mkfs.f2fs makes with these options. Throws std::runtime_error.
  Disk(uint64_t bytes, const std::string& mkfs_options);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  uint8_t* data() { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// Undoes what the commands of a trace did, whatever of it took place. Of a copy.
  void put_back(const ssd::WriteTrace& trace);
  std::vector<uint8_t> copy() const { return {data_, data_ + bytes_}; }
  void save(const std::string& path) const;

  /// What fsck.f2fs complains about, or nothing. `torn`: one checkpoint may be half written.
  std::string complaints(bool torn) const;

 private:
  void map();

  const std::vector<uint8_t>* const base_ = nullptr;
  const uint64_t bytes_;
  const std::string path_;
  uint8_t* data_ = nullptr;
};

}  // namespace gofs::judges
