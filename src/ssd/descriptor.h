// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed when it goes. Host only.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace gofs::ssd {

class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over an open one; -1 is none.
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }

  /// open() with O_CLOEXEC; errno is set where the result is none.
  static Descriptor open(const std::string& path, int flags) {
    return Descriptor(::open(path.c_str(), flags | O_CLOEXEC));
  }

  bool is_open() const { return value_ >= 0; }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

}  // namespace gofs::ssd
