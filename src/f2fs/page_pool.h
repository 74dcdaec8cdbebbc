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

  /// A block for this lane alone, or null when none was found: try again when others have released
  /// some. Looks at every block of a pool of up to 64.
  GOFS_HD uint8_t* try_take(simt::AnyWarp auto warp) const {
    const uint32_t start = simt::processor_id() * 61u + warp.thread_rank();
    for (uint32_t probe = 0; probe < simt::min(kProbes, count); ++probe) {
      const uint32_t index = (start + probe * 32u + probe / (count / 32u)) & (count - 1);
      if (simt::try_lock(locks[index])) return pages + uint64_t{index} * kBlockBytes;
    }
    return nullptr;
  }
  GOFS_HD void release(uint8_t* page) const {
    simt::unlock(locks[static_cast<uint64_t>(page - pages) / kBlockBytes]);
  }
};

/// Some spare blocks of one warp.
template <uint32_t kCount>
struct SpareBlocks {
  uint8_t* blocks[kCount];
};

/// Collective; no lane uses the blocks any more.
template <uint32_t kCount>
GOFS_HD void release_spares(simt::AnyWarp auto warp, const PagePool& pool,
                            const SpareBlocks<kCount>& spares) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  for (uint8_t* const block : spares.blocks) pool.release(block);
}

/// Blocks for the whole warp, all or none, so that no thread waits for a second one with a first.
/// Collective, uniform. False when there were none for `timeout_ns`.
template <uint32_t kCount>
GOFS_HD bool take_spares(simt::AnyWarp auto warp, const PagePool& pool, uint64_t timeout_ns,
                         SpareBlocks<kCount>& spares) {
  uint32_t taken = 0;
  if (warp.thread_rank() == 0) {
    const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
    simt::Backoff backoff;
    for (;;) {
      while (taken < kCount && (spares.blocks[taken] = pool.try_take(warp)) != nullptr) ++taken;
      if (taken == kCount || deadline.passed()) break;
      while (taken != 0) pool.release(spares.blocks[--taken]);
      backoff.pause();
    }
    if (taken != kCount) {
      while (taken != 0) pool.release(spares.blocks[--taken]);
    }
  }
  for (uint8_t*& block : spares.blocks) {
    block = reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(block), 0));
  }
  taken = warp.shfl(taken, 0);
  warp.sync();
  return taken == kCount;
}

}  // namespace gofs::f2fs
