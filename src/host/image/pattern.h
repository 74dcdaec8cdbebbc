// SPDX-License-Identifier: Apache-2.0
//
// File contents that can be made and checked anywhere from a seed and an offset alone: 64-bit
// words, each a mix of the seed and of its place in the file. Compiled for host and GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simt/platform.h"

namespace gofs::image {

/// Bytes 8 * word_index to 8 * word_index + 7 of the content, the first one lowest.
GOFS_HD constexpr uint64_t pattern_word(uint64_t seed, uint64_t word_index) {
  uint64_t mixed = seed + (word_index + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

GOFS_HD constexpr uint8_t pattern_byte(uint64_t seed, uint64_t offset_bytes) {
  return static_cast<uint8_t>(pattern_word(seed, offset_bytes / 8) >> (offset_bytes % 8 * 8));
}

/// Writes `bytes` of the content from `offset_bytes` on.
GOFS_HD inline void fill_pattern(uint64_t seed, uint64_t offset_bytes, void* target, size_t bytes) {
  auto* to = static_cast<uint8_t*>(target);
  for (; bytes > 0 && offset_bytes % 8 != 0; --bytes) *to++ = pattern_byte(seed, offset_bytes++);
  for (; bytes >= 8; bytes -= 8, to += 8, offset_bytes += 8) {
    const uint64_t word = pattern_word(seed, offset_bytes / 8);
    memcpy(to, &word, sizeof(word));
  }
  for (; bytes > 0; --bytes) *to++ = pattern_byte(seed, offset_bytes++);
}

}  // namespace gofs::image
