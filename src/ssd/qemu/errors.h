// SPDX-License-Identifier: Apache-2.0
//
// How what belongs to QEMU reports trouble: std::system_error, an errno and a text for people. Host
// only.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>

namespace gofs::ssd {

[[noreturn]] inline void throw_errno(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// "0x1f".
inline std::string hexadecimal(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

}  // namespace gofs::ssd
