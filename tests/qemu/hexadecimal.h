// SPDX-License-Identifier: Apache-2.0
//
// Numbers as QEMU takes them and as people read addresses. Host only.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace gofs::ssd {

/// "0x1f".
inline std::string hexadecimal(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

}  // namespace gofs::ssd
