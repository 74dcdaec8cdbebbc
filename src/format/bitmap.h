// SPDX-License-Identifier: Apache-2.0
//
// F2FS counts bits in two orders. Segment validity maps and the SIT and NAT version bitmaps start
// at the most significant bit of each byte (msb_*); dentry bitmaps and nat_bits at the least
// significant (lsb_*). The caller bounds `index`.
#pragma once

#include <cstdint>

#include "simt/platform.h"

namespace gofs::format {

GOFS_HD constexpr bool msb_bit(const uint8_t* map, uint32_t index) {
  return (map[index / 8] & (0x80u >> (index % 8))) != 0;
}

GOFS_HD constexpr void set_msb_bit(uint8_t* map, uint32_t index, bool value) {
  const auto mask = static_cast<uint8_t>(0x80u >> (index % 8));
  map[index / 8] = static_cast<uint8_t>(value ? map[index / 8] | mask : map[index / 8] & ~mask);
}

GOFS_HD constexpr bool lsb_bit(const uint8_t* map, uint32_t index) {
  return (map[index / 8] & (1u << (index % 8))) != 0;
}

GOFS_HD constexpr void set_lsb_bit(uint8_t* map, uint32_t index, bool value) {
  const auto mask = static_cast<uint8_t>(1u << (index % 8));
  map[index / 8] = static_cast<uint8_t>(value ? map[index / 8] | mask : map[index / 8] & ~mask);
}

}  // namespace gofs::format
