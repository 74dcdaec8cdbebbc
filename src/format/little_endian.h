// SPDX-License-Identifier: Apache-2.0
//
// Integers as they lie on disk: little-endian, alignment 1. On-disk structures are built of these,
// so a pointer to any byte may be read as one of them.
//
// A field converts to its number on reading (`uint32_t ino = entry.ino;`) and from it on
// assignment. On a CPU that costs one load. A GPU cannot load from an odd address, so there the
// conversion is one load per byte: code on a hot path that knows where its structure begins reads
// the field with load_u16/load_u32/load_u64 instead (e.g. `load_u32(&node.direct.addr[slot])`:
// block buffers are aligned, and every field of a node block up to 4 bytes wide has its natural
// alignment).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/platform.h"

namespace gofs::format {

template <typename T>
struct LittleEndian {
  using Value = T;
  uint8_t bytes[sizeof(T)];

  GOFS_HD constexpr operator T() const {  // implicit: a field reads as its number
    using Bits = std::make_unsigned_t<T>;
    uint64_t bits = 0;
    for (unsigned i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    return static_cast<T>(static_cast<Bits>(bits));
  }
  GOFS_HD constexpr LittleEndian& operator=(T value) {
    const auto bits = static_cast<uint64_t>(value);
    for (unsigned i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<uint8_t>(bits >> (8 * i));
    return *this;
  }
  GOFS_HD constexpr T value() const { return static_cast<T>(*this); }
};

using le16 = LittleEndian<uint16_t>;
using le32 = LittleEndian<uint32_t>;
using le64 = LittleEndian<uint64_t>;
using sle64 = LittleEndian<int64_t>;

static_assert(sizeof(le16) == 2 && sizeof(le32) == 4 && sizeof(le64) == 8 && sizeof(sle64) == 8);
static_assert(alignof(le16) == 1 && alignof(le32) == 1 && alignof(le64) == 1);
static_assert(std::is_trivially_copyable_v<le32> && std::is_standard_layout_v<le32>);

// One load or store each; `aligned` must be a multiple of the size (of 4 for the _words form).
// Every machine that we run on is little-endian, GPUs included.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

GOFS_HD inline uint16_t load_u16(const void* aligned) {
  uint16_t value;
  memcpy(&value, __builtin_assume_aligned(aligned, 2), sizeof(value));
  return value;
}

GOFS_HD inline uint32_t load_u32(const void* aligned) {
  uint32_t value;
  memcpy(&value, __builtin_assume_aligned(aligned, 4), sizeof(value));
  return value;
}

GOFS_HD inline uint64_t load_u64(const void* aligned) {
  uint64_t value;
  memcpy(&value, __builtin_assume_aligned(aligned, 8), sizeof(value));
  return value;
}

/// For 64-bit fields at odd multiples of 4, such as NodeFooter::cp_ver.
GOFS_HD inline uint64_t load_u64_words(const void* aligned_to_4) {
  const auto* word = static_cast<const uint8_t*>(aligned_to_4);
  return load_u32(word) | static_cast<uint64_t>(load_u32(word + 4)) << 32;
}

GOFS_HD inline void store_u16(void* aligned, uint16_t value) {
  memcpy(__builtin_assume_aligned(aligned, 2), &value, sizeof(value));
}

GOFS_HD inline void store_u32(void* aligned, uint32_t value) {
  memcpy(__builtin_assume_aligned(aligned, 4), &value, sizeof(value));
}

GOFS_HD inline void store_u64(void* aligned, uint64_t value) {
  memcpy(__builtin_assume_aligned(aligned, 8), &value, sizeof(value));
}

}  // namespace gofs::format
