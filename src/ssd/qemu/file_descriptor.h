// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed when its owner goes. Host only.
#pragma once

#include <unistd.h>

#include <utility>

namespace gofs::ssd {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes what open() and the like returned; negative: none.
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }

 private:
  int value_ = -1;
};

}  // namespace gofs::ssd
