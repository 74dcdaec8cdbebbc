// SPDX-License-Identifier: Apache-2.0
//
// Spare blocks for those who need one for a moment: bounce blocks of unaligned reads, inodes that
// are looked at once. Whoever holds one waits for nothing but the device.
#pragma once

#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::f2fs {

struct PagePool {
  uint8_t* pages;
  uint32_t* locks;  // one a page
  uint32_t count;   // a power of two, at least 32

  static constexpr uint32_t kProbes = 64;

  /// A block for this lane alone, or null when none was found: try again when others have let go.
  /// Looks at every block of a pool of up to 64.
  GOFS_HD uint8_t* try_take(const simt::Warp& warp) const {
    const uint32_t start = simt::processor_id() * 61u + warp.thread_rank();
    for (uint32_t probe = 0; probe < simt::min(kProbes, count); ++probe) {
      const uint32_t index = (start + probe * 32u + probe / (count / 32u)) & (count - 1);
      if (simt::try_lock(locks[index])) return pages + uint64_t{index} * kBlockBytes;
    }
    return nullptr;
  }
  GOFS_HD void give_back(uint8_t* page) const {
    simt::unlock(locks[static_cast<uint64_t>(page - pages) / kBlockBytes]);
  }
};

}  // namespace gofs::f2fs
