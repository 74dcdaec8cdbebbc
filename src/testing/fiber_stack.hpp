// SPDX-License-Identifier: Apache-2.0
//
// Memory for the calls of a fiber.
#pragma once

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace gofs::testing {

/// Below it lies memory that must not be touched: a fiber that needs more ends the program.
class FiberStack {
 public:
  /// Much more than tests need, even with ASan's frames. What is never touched takes no memory.
  static constexpr size_t kBytes = size_t{1} << 20;

  FiberStack()
      : memory_(mmap(nullptr, kGuardBytes + kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED || mprotect(memory_, kGuardBytes, PROT_NONE) != 0) {
      throw std::system_error(errno, std::generic_category(), "memory for a fiber");
    }
  }
  ~FiberStack() {
    // Frames that were not returned from have left their marks.
    ASAN_UNPOISON_MEMORY_REGION(bottom(), kBytes);
    munmap(memory_, kGuardBytes + kBytes);
  }
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;

  char* bottom() const { return static_cast<char*>(memory_) + kGuardBytes; }
  char* top() const { return bottom() + kBytes; }

 private:
  static constexpr size_t kGuardBytes = size_t{64} << 10;

  void* memory_;
};

}  // namespace gofs::testing
