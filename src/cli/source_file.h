// SPDX-License-Identifier: Apache-2.0
//
// A file of the host that is read from its beginning to where read() has nothing more: that is what
// it holds, whatever its size is said to be.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::cli {

/// Throws ObjectFailure, and Interrupted.
class SourceFile {
 public:
  /// What the user names himself: links are followed, a pipe is waited for, and /dev/stdin is where
  /// it stands.
  static SourceFile open_named(const std::string& path);
  /// The regular file `name` of a directory that is open. `path` is for messages.
  static SourceFile open_in(int directory, const std::string& name, const std::string& path);

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }
  /// As it was when it was opened.
  const struct stat& status() const { return status_; }

  /// Bytes read, fewer than asked only at the end of the file or of a stretch of data. They belong
  /// to offset(), which is set to their beginning.
  uint64_t read(uint8_t* to, uint64_t bytes);
  uint64_t offset() const { return offset_; }
  /// Of the file, when all was read.
  uint64_t size() const { return size_; }
  bool has_become_shorter() const { return has_become_shorter_; }

 private:
  SourceFile(std::string path, ssd::Descriptor descriptor, bool from_start);

  bool find_data();
  uint64_t read_row(uint8_t* to, uint64_t bytes);
  void note_end();

  std::string path_;
  ssd::Descriptor descriptor_;
  struct stat status_ {};
  bool has_holes_ = false;
  uint64_t offset_ = 0;
  uint64_t position_ = 0;
  uint64_t row_end_ = 0;  // of the data that are being read, where there are holes
  uint64_t size_ = 0;
  bool has_become_shorter_ = false;
};

}  // namespace gofs::cli
