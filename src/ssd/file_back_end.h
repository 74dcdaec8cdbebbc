// SPDX-License-Identifier: Apache-2.0
//
// How the bytes of an image get from and to the host's storage. FileMedia stands on it; there is
// one kind, which waits for each transfer. What a transfer moves lies where the caller says, at any
// address. Host only; from several threads at once.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ssd/claimed_image.h"

namespace gofs::ssd {

/// The image has become shorter than it was when it was opened.
inline constexpr int kImageWasCut = -ESTALE;

/// All functions answer 0 when all of it was done, or a negative errno: then any part may be.
class FileBackEnd {
 public:
  virtual ~FileBackEnd() = default;
  /// In bytes; what is behind is not touched.
  virtual uint64_t size() const = 0;
  virtual int read(uint64_t offset, std::span<const iovec> parts) = 0;
  /// An image that was cut is not made longer again.
  virtual int write(uint64_t offset, std::span<const iovec> parts) = 0;
  /// Makes the range read zeros and, where holes can be made, takes no room.
  virtual int zero(uint64_t offset, uint64_t bytes) = 0;
  /// Makes sure of the host's blocks for a range, which a write to a hole may find gone. 0 also
  /// where that cannot be done.
  virtual int reserve(uint64_t offset, uint64_t bytes) = 0;
  /// Waits until all that was written before is durable.
  virtual int sync() = 0;
};

/// Up to where this process may write to files: beyond, Linux ends a process that has no handler.
uint64_t file_size_limit();

/// What an answer means; empty for 0.
std::string file_error_words(int error);

/// pread and pwrite.
std::unique_ptr<FileBackEnd> make_positional_file(ClaimedImage file);

}  // namespace gofs::ssd
