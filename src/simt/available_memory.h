// SPDX-License-Identifier: Apache-2.0
//
// How much memory the host has left. Host only.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace gofs::simt {

/// Bytes that programs can have without others being swapped out; none where Linux does not say.
inline std::optional<uint64_t> available_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  uint64_t kib = 0;
  for (std::string unit; info >> name >> kib; std::getline(info, unit)) {
    if (name == "MemAvailable:") return kib << 10;
  }
  return std::nullopt;
}

}  // namespace gofs::simt
