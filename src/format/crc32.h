// SPDX-License-Identifier: Apache-2.0
//
// The checksum of F2FS: reflected CRC-32, polynomial 0xEDB88320, from a given initial value and
// with no final inversion. crc32(seed, bytes, n) can be continued: crc32(crc32(seed, a), b) is the
// sum of a followed by b.
//
// A warp can share the work, since sums of parts combine:
//   crc32(seed, a + b) = crc32_multiply(crc32(seed, a), crc32_power(size of b)) ^ crc32(0, b)
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"
#include "simt/platform.h"

namespace gofs::format {

inline constexpr uint32_t kCrc32Polynomial = 0xEDB88320;

/// Contribution of one byte to the sum, `distance` zero bytes before the end of a group of four.
struct Crc32Tables {
  uint32_t entry[4][256];
};

GOFS_HD constexpr Crc32Tables make_crc32_tables() {
  Crc32Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1) != 0 ? (value >> 1) ^ kCrc32Polynomial : value >> 1;
    }
    tables.entry[0][i] = value;
  }
  for (uint32_t distance = 1; distance < 4; ++distance) {
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t before = tables.entry[distance - 1][i];
      tables.entry[distance][i] = (before >> 8) ^ tables.entry[0][before & 0xff];
    }
  }
  return tables;
}

GOFS_HD inline uint32_t crc32(uint32_t seed, const void* data, size_t byte_count) {
  // A local static is the one form of constant table that both compilers put where their code can
  // index it.
  static constexpr Crc32Tables kTables = make_crc32_tables();
  const auto* byte = static_cast<const uint8_t*>(data);
  uint32_t crc = seed;
  for (; byte_count >= 4; byte_count -= 4, byte += 4) {
    crc ^= reinterpret_cast<const le32*>(byte)->value();
    crc = kTables.entry[3][crc & 0xff] ^ kTables.entry[2][(crc >> 8) & 0xff] ^
          kTables.entry[1][(crc >> 16) & 0xff] ^ kTables.entry[0][crc >> 24];
  }
  for (; byte_count > 0; --byte_count, ++byte) {
    crc = (crc >> 8) ^ kTables.entry[0][(crc ^ *byte) & 0xff];
  }
  return crc;
}

/// Product of two sums read as polynomials modulo the CRC polynomial (bit 31 is x^0).
GOFS_HD constexpr uint32_t crc32_multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if (((a >> bit) & 1) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kCrc32Polynomial : b >> 1;
  }
  return product;
}

/// x^(8 * byte_count): multiplying by it appends that many zero bytes.
GOFS_HD constexpr uint32_t crc32_power(uint64_t byte_count) {
  uint32_t power = 0x80000000u;   // x^0
  uint32_t square = 0x00800000u;  // x^8
  for (uint64_t rest = byte_count; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) power = crc32_multiply(power, square);
    square = crc32_multiply(square, square);
  }
  return power;
}

}  // namespace gofs::format
