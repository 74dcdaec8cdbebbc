// SPDX-License-Identifier: Apache-2.0
//
// Bringing what has changed of an SSD's contents, which lie in memory that a GPU writes, to the
// image that they were loaded from. It knows nothing of CUDA. Host only; one thread at a time.
//
// A sync has two steps. collect() finds what has changed and copies it, while nothing that the
// volume stands on changes (host/quiet_volume.h); write() brings it to the file, while kernels go
// on. So the file gets the contents of one moment, and a fault of the GPU before the first byte is
// written leaves it as it was. Where there is no memory for the copy, write() takes all from where
// it lies, and nothing may change until it returns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "ssd/file_back_end.h"
#include "ssd/media.h"

namespace gofs::gpu {

/// How much one copy may hold: half of the memory that the host has to spare, at most 16 GiB.
uint64_t copied_bytes_max();

class ImageCopy {
 public:
  struct Source {
    ssd::Media media;             // with marks, which only warps reach, as its table
    bool is_host_memory = false;  // the contents themselves: the host reads them where they lie
  };
  /// All marks are 0. `file` outlives this.
  ImageCopy(Source source, ssd::FileBackEnd& file);

  /// Finds what has changed. Up to `bytes_max` of it is copied; if it is more, nothing is. Empty,
  /// or what went wrong: then nothing is lost, and the next call finds it again. `copier` is used
  /// until write() returns.
  std::string collect(uint64_t bytes_max, kernels::MemoryCopier& copier);
  /// Whether the last collect() has left what has changed where it is.
  bool is_in_place() const { return !taken_.empty() && copied_ == nullptr; }
  /// Writes what collect() has found and waits until it is durable. The host's blocks are reserved
  /// before the first is written, so that a full disk changes nothing, and another call may do
  /// better. After another failure the image is neither old nor new: the same error from then on.
  std::string write();
  /// Whether the image is written no more, since write() has failed in a way that it is not got
  /// over.
  bool has_given_up() const { return !error_.empty(); }

 private:
  std::string look();
  std::string copy_taken(uint64_t bytes_max);
  int reserve_taken();
  std::string write_taken();
  void release();
  std::string write_from_device();
  int write_unit(uint64_t unit, const uint8_t* from);
  uint64_t offset_of(uint64_t unit) const { return unit << ssd::kMarkShift; }
  uint64_t bytes_of(uint64_t unit) const;
  bool is_there(uint64_t unit) const;
  const uint8_t* memory_of(uint64_t unit) const;

  const Source source_;
  ssd::FileBackEnd& file_;
  kernels::MemoryCopier* copier_ = nullptr;  // of the last collect()
  std::vector<uint32_t> marks_;              // as they were at the last look,
  std::vector<uint32_t> newer_marks_;        // as they are at this one, and
  std::vector<uint64_t> chunks_;             // the table
  std::vector<bool> changed_;                // units that the file does not have yet
  std::vector<uint64_t> taken_;              // those that the next write() is about
  std::unique_ptr<uint8_t[]> copied_;        // these, one after the other; or null
  std::string error_;                        // that is not got over
};

}  // namespace gofs::gpu
