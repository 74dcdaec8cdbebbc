// SPDX-License-Identifier: Apache-2.0
//
// Spare blocks for those who need one for a moment: bounce blocks of unaligned reads, inodes that
// are looked at once. Whoever holds one waits for nothing but the device.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
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

/// Two spare blocks of one warp.
struct SparePair {
  uint8_t* blocks[2];
};

/// Two blocks for the whole warp, both or none, so that nobody waits for a second one with a first.
/// Collective, uniform. False when there were none for `timeout_ns`.
GOFS_HD inline bool take_pair(const simt::Warp& warp, const PagePool& pool, uint64_t timeout_ns,
                              SparePair& pair) {
  uint64_t first = 0;
  uint64_t second = 0;
  if (warp.thread_rank() == 0) {
    const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
    simt::Backoff backoff;
    while (second == 0 && !deadline.passed()) {
      first = reinterpret_cast<uint64_t>(pool.try_take(warp));
      if (first != 0) second = reinterpret_cast<uint64_t>(pool.try_take(warp));
      if (second != 0) break;
      if (first != 0) pool.give_back(reinterpret_cast<uint8_t*>(first));
      backoff.pause();
    }
  }
  pair.blocks[0] = reinterpret_cast<uint8_t*>(warp.shfl(first, 0));
  pair.blocks[1] = reinterpret_cast<uint8_t*>(warp.shfl(second, 0));
  warp.sync();
  return pair.blocks[1] != nullptr;
}

/// Collective; no lane uses the blocks any more.
GOFS_HD inline void give_back_pair(const simt::Warp& warp, const PagePool& pool,
                                   const SparePair& pair) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    pool.give_back(pair.blocks[0]);
    pool.give_back(pair.blocks[1]);
  }
}

}  // namespace gofs::f2fs
