// SPDX-License-Identifier: Apache-2.0
//
// For tests that wrong bytes are found: spoils the blocks of large files of benchmarks.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "simt/platform.h"

namespace gofs::host {

/// Changes the index at the beginning of each block that has one, which says 0x5a behind it.
inline uint32_t spoil_indices(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  uint32_t spoiled = 0;
  uint64_t words[2];
  for (off_t at = 0; ::pread(file, words, sizeof(words), at) == sizeof(words); at += kBlockBytes) {
    if (words[1] != 0x5a5a5a5a5a5a5a5a) continue;
    words[0] ^= 1;
    if (::pwrite(file, words, sizeof(words[0]), at) == sizeof(words[0])) ++spoiled;
  }
  (void)::close(file);
  return spoiled;
}

}  // namespace gofs::host
