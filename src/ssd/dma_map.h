// SPDX-License-Identifier: Apache-2.0
//
// Which memory a physical controller reaches, and by which addresses: the IOMMU lets it at what was
// mapped for it (Transport::map()), and at nothing else. What lies elsewhere goes through
// staging.h.
#pragma once

#include "simt/atomic.h"

namespace gofs::ssd {

/// Memory that its users see at [begin, end), and the controller from `address` on.
struct DmaRange {
  uint64_t begin;
  uint64_t end;  // equal to begin: there is none
  uint64_t address;
};

/// Written by the host while warps look: a range is whole before `count` has it, and goes by its
/// end alone, when that memory is not used any more. Its place is not used again.
struct DmaMap {
  static constexpr uint32_t kRangesMax = 256;

  uint32_t count;
  DmaRange ranges[kRangesMax];  // the first has the queues

  /// Sets `address` for `bytes` at `memory`. False where the controller does not reach all of it.
  GOFS_HD bool find(const void* memory, uint64_t bytes, uint64_t& address) const {
    const auto begin = reinterpret_cast<uint64_t>(memory);
    const uint32_t known = simt::load_system_acquire(count);  // [N6]
    for (uint32_t i = 0; i < known; ++i) {
      const DmaRange& range = ranges[i];
      const uint64_t end = simt::load_relaxed(range.end);
      if (begin < range.begin || begin >= end || bytes > end - begin) continue;
      address = range.address + (begin - range.begin);
      return true;
    }
    return false;
  }
};

}  // namespace gofs::ssd
