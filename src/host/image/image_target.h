// SPDX-License-Identifier: Apache-2.0
//
// Where a new volume is written: a host file, a block device, or memory (the media of a virtual
// SSD). Offsets and sizes are in bytes; callers stay below size_bytes(). Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "host/image/status.h"

namespace gofs::image {

class ImageTarget {
 public:
  virtual ~ImageTarget() = default;
  virtual uint64_t size_bytes() const = 0;
  virtual Status write(uint64_t offset_bytes, const void* data, size_t bytes) = 0;
  virtual Status read(uint64_t offset_bytes, void* data, size_t bytes) = 0;
  /// Makes the range read as zeros.
  virtual Status write_zeros(uint64_t offset_bytes, uint64_t bytes) = 0;
  /// Returns when everything written is durable.
  virtual Status flush() = 0;
  /// Gives a file another size; of a device only as much is used. EINVAL where it has not as much.
  virtual Status resize(uint64_t size_bytes);
  /// As find_contents() of contents.h; empty of what is no file or device.
  virtual Status find_contents(uint64_t offset, uint64_t bytes, std::string* found);
};

/// Opens `path`: a block device as it is, anything else as a regular file, made if missing, of
/// `size_bytes` (0: the size that it has). An existing file keeps its bytes, so that callers can
/// look at them first. It is the caller's alone as long as the target is there: EBUSY where Linux
/// or another process uses it. Errors: of open(2) and ftruncate(2); EINVAL for a size that a device
/// has not.
Status open_file_target(const std::string& path, uint64_t size_bytes,
                        std::unique_ptr<ImageTarget>* target);

/// Removes the file that was made for a target that came to nothing: where `path` is a symbolic
/// link, what it leads to, and not the link.
void remove_made(const std::string& path);

/// A target on an open descriptor, which stays the caller's, who sees to it that it is his alone.
Status open_fd_target(int fd, uint64_t size_bytes, std::unique_ptr<ImageTarget>* target);

/// `memory` holds `size_bytes` and outlives the target.
std::unique_ptr<ImageTarget> make_memory_target(void* memory, uint64_t size_bytes);

}  // namespace gofs::image
