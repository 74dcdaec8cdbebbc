// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed when it goes. It is none of 0 to 2, whatever is closed there: a
// program that prints an error would print it into the file. Host only.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace gofs::ssd {

/// `descriptor`, or another one for the same file where it is one of 0 to 2. -1 and errno where
/// there was none, or there is no other.
inline int above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return moved;
}

class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over an open one; -1 is none, with errno.
  explicit Descriptor(int value) : value_(above_standard(value)) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }

  /// open() with O_CLOEXEC; errno is set where the result is none.
  static Descriptor open(const std::string& path, int flags, unsigned mode = 0) {
    return Descriptor(::open(path.c_str(), flags | O_CLOEXEC, mode));
  }

  bool is_open() const { return value_ >= 0; }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

}  // namespace gofs::ssd
