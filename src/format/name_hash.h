// SPDX-License-Identifier: Apache-2.0
//
// The directory hash: which bucket of each level a name may lie in. Names are bytes; "." and ".."
// hash to 0. Case-folded directories hash a folded name and are not supported.
#pragma once

#include <cstdint>

#include "simt/platform.h"

namespace gofs::format {

/// State of the hash: two words that every 16 bytes of the name are mixed into.
struct NameHashState {
  uint32_t h0 = 0x67452301;
  uint32_t h1 = 0xEFCDAB89;

  /// 16 rounds of the Tiny Encryption Algorithm, the state as text and `key` as key.
  GOFS_HD constexpr void mix(const uint32_t (&key)[4]) {
    uint32_t a = h0;
    uint32_t b = h1;
    uint32_t sum = 0;
    for (int round = 0; round < 16; ++round) {
      sum += 0x9E3779B9;
      a += ((b << 4) + key[0]) ^ (b + sum) ^ ((b >> 5) + key[1]);
      b += ((a << 4) + key[2]) ^ (a + sum) ^ ((a >> 5) + key[3]);
    }
    h0 += a;
    h1 += b;
  }
};

/// `length` is at most 255 for a name on disk; any value is safe.
GOFS_HD constexpr uint32_t name_hash(const char* name, uint32_t length) {
  if (length <= 2 && length > 0 && name[0] == '.' && (length == 1 || name[1] == '.')) return 0;
  NameHashState state;
  for (;;) {
    // Positions past the end of the name hold its remaining length, in each byte of the word.
    const uint32_t padding = length * 0x01010101u;
    uint32_t key[4] = {padding, padding, padding, padding};
    for (uint32_t i = 0; i < 16; ++i) {  // a fixed count, so that key[] stays in registers
      if (i < length) key[i / 4] = (key[i / 4] << 8) + static_cast<uint8_t>(name[i]);
    }
    state.mix(key);
    if (length <= 16) return state.h0;
    name += 16;
    length -= 16;
  }
}

}  // namespace gofs::format
