// SPDX-License-Identifier: Apache-2.0
//
// Memory that a block or a lane holds exclusively, on the CPU: addresses that nothing is behind, so
// that whoever uses one as it is ends the program, and what they are to each block or lane
// (simt/address_space.h).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "simt/address_space.h"

namespace gofs::testing {

struct NearMemoryOptions {
  uint64_t bytes;
  uint32_t warps;  // of a block
  uint32_t lanes;  // of a warp
  uint32_t blocks = 1;
};

/// One window of each kind. There is one of these at a time, while no warp runs.
class NearMemory {
 public:
  explicit NearMemory(const NearMemoryOptions& options)
      : options_(options),
        block_(options.bytes * options.blocks),
        lanes_(options.bytes * options.blocks * options.warps * options.lanes) {
    windows_[0] = window(simt::AddressSpace::kBlock, block_);
    windows_[1] = window(simt::AddressSpace::kLane, lanes_);
    EXPECT_EQ(simt::host_windows.load(), nullptr);
    simt::host_windows = windows_;
  }
  NearMemory(const NearMemory&) = delete;
  NearMemory& operator=(const NearMemory&) = delete;
  ~NearMemory() {
    simt::host_windows = nullptr;
    for (const simt::HostWindow& window : {windows_[0], windows_[1]}) {
      munmap(const_cast<uint8_t*>(window.begin), window.bytes);
    }
  }

  /// The addresses.
  uint8_t* of_block() const { return const_cast<uint8_t*>(windows_[0].begin); }
  uint8_t* of_lane() const { return const_cast<uint8_t*>(windows_[1].begin); }
  /// What is behind them.
  uint8_t* in_block(uint32_t block = 0) { return block_.data() + block * options_.bytes; }
  uint8_t* in_lane(uint32_t warp, uint32_t lane) {
    return lanes_.data() + (uint64_t{warp} * options_.lanes + lane) * options_.bytes;
  }

 private:
  simt::HostWindow window(simt::AddressSpace space, std::vector<uint8_t>& storage) const {
    void* const begin =
        mmap(nullptr, options_.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(begin, MAP_FAILED);
    return {space,          static_cast<const uint8_t*>(begin),
            options_.bytes, storage.data(),
            options_.warps, options_.lanes};
  }

  const NearMemoryOptions options_;
  std::vector<uint8_t> block_;
  std::vector<uint8_t> lanes_;
  simt::HostWindow windows_[3]{};  // and the end
};

}  // namespace gofs::testing
