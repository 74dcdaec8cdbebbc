// SPDX-License-Identifier: Apache-2.0
//
// Reads of files that are named by a path, and how many threads it takes to make them side by side.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gofs/volume.hpp"

namespace gofs::python {

/// Files that one call opens, or asks for their sizes, at once. A volume has some 65,000
/// descriptors, and who reads or writes more files has two such portions open at most.
inline constexpr size_t kFilesAtOnce = 8192;

/// For run_side_by_side(): of so many calls that move so many bytes together.
inline size_t threads_worth(uint64_t bytes, size_t calls) {
  constexpr uint64_t kThreadBytes = uint64_t{512} << 10;  // what a thread is worth starting for
  constexpr uint64_t kCallBytes = 4096;                   // what a call takes as long as
  return (bytes + calls * kCallBytes) / kThreadBytes;
}

/// Opens the file for this one read.
inline Expected<uint64_t> read_path(Volume& volume, const std::string& path, void* memory,
                                    uint64_t bytes, uint64_t offset) {
  const auto descriptor = volume.open(path, O_RDONLY);
  if (!descriptor) return descriptor.error();
  auto got = volume.pread(*descriptor, memory, bytes, offset);
  const auto closed = volume.close(*descriptor);
  if (got && !closed) return closed.error();
  return got;
}

}  // namespace gofs::python
