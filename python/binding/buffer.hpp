// SPDX-License-Identifier: Apache-2.0
//
// Memory of Python's that calls read from or write to: whatever has the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace gofs::python {

/// The memory of an object, which stays where it is until this is destroyed. With the GIL; the
/// memory may be used without it.
class Buffer {
 public:
  enum class Access { kRead, kWrite };

  /// Nothing is copied. Raises TypeError for what has no buffer protocol, BufferError for memory
  /// that may not be written to, and ValueError for bytes that do not follow each other.
  Buffer(nanobind::handle given, Access access);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }

  void* data() const { return view_.buf; }
  uint64_t bytes() const { return static_cast<uint64_t>(view_.len); }

 private:
  Py_buffer view_{};
};

}  // namespace gofs::python
