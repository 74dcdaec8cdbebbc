// SPDX-License-Identifier: Apache-2.0
//
// What host threads serve requests from: a file of the host, or files of a GoFS volume that is
// mounted on host threads, behind a virtual SSD with its timing model. Each block of what is read
// begins with its index in the file, and stays so when it is written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gofs/expected.hpp"

namespace gofs::bench {

class BenchVolume;

class Storage {
 public:
  virtual ~Storage() = default;
  virtual std::string describe() const = 0;
  /// Of what is read and of what is written.
  virtual uint64_t read_bytes() const = 0;
  virtual uint64_t written_bytes() const = 0;
  /// How many there are.
  virtual uint32_t small_files() const = 0;
  /// Whole blocks. From several threads, each with a simt::host_worker of its own. 0 or a negative
  /// errno; -EIO for less than was asked for.
  virtual int read(void* buffer, uint64_t bytes, uint64_t offset) = 0;
  virtual int write(const void* buffer, uint64_t bytes, uint64_t offset) = 0;
  /// All of a small file, kSmallFileBytes, which is opened by its name and closed. As read().
  virtual int read_file(uint32_t index, void* buffer) = 0;
  /// From what was written.
  virtual int read_back(void* buffer, uint64_t bytes, uint64_t offset) = 0;
  /// Before a run of writes, alone.
  virtual Expected<void> make_room() { return {}; }
};

/// A file of `bytes` that is read and written; removed with the object.
class StampedFile {
 public:
  /// With the index of each block at its beginning, on the disk.
  static Expected<std::unique_ptr<StampedFile>> make(const std::string& path, uint64_t bytes);
  ~StampedFile();
  StampedFile(const StampedFile&) = delete;
  StampedFile& operator=(const StampedFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

 private:
  StampedFile(std::string path, uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}

  const std::string path_;
  const uint64_t bytes_;
};

/// Files of kSmallFileBytes in a folder of their own; removed with the object.
class SmallFiles {
 public:
  /// The folder `path`, with `count` files that hold what StampedFile holds. None, and no folder,
  /// where that is 0.
  static Expected<std::unique_ptr<SmallFiles>> make(const std::string& path, uint32_t count);
  ~SmallFiles();
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

  uint32_t count() const { return count_; }
  std::string path_of(uint32_t index) const;

 private:
  SmallFiles(std::string path, uint32_t count) : path_(std::move(path)), count_(count) {}

  const std::string path_;
  const uint32_t count_;
};

/// `file`, `small` and `volume` outlive it. `direct`: past the page cache, where that can be.
Expected<std::unique_ptr<Storage>> open_file_storage(const StampedFile& file,
                                                     const SmallFiles& small, bool direct);
std::unique_ptr<Storage> make_volume_storage(BenchVolume& volume);

}  // namespace gofs::bench
