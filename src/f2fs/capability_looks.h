// SPDX-License-Identifier: Apache-2.0
//
// That an open file has no "security.capability", so that its writers need not look. A word says
// so in its lowest bit; the others count how often one may have been set, so that who has looked,
// and has taken one away, tells whether another was set meanwhile.
#pragma once

#include "f2fs/inode.h"
#include "simt/atomic.h"

namespace gofs::f2fs {

inline constexpr uint32_t kNoCapability = 1;

/// Whether a word that was read says so.
GOFS_HD inline bool is_without_capability(uint32_t looks) { return (looks & kNoCapability) != 0; }

GOFS_HD inline bool is_known_without_capability(const Inode& inode) {
  return is_without_capability(simt::load_relaxed(inode.capability_looks));
}

/// Before a look: what without_capability() is to be given.
GOFS_HD inline uint32_t begin_capability_look(const Inode& inode) {
  return simt::load_acquire(inode.capability_looks);  // [V18]
}

/// There is none now: none was found by the look, or it is gone for all who look from here on. It
/// is not noted where one may have been set since the look began.
GOFS_HD inline void without_capability(Inode& inode, uint32_t looks) {
  simt::AtomicRef<uint32_t>(inode.capability_looks)
      .compare_exchange_strong(looks, looks | kNoCapability, simt::memory_order_release,
                               simt::memory_order_relaxed);
}

/// One has been set, perhaps. By one lane.
GOFS_HD inline void capability_may_be_there(Inode& inode) {
  simt::AtomicRef<uint32_t> looks(inode.capability_looks);
  uint32_t seen = looks.load(simt::memory_order_relaxed);
  while (!looks.compare_exchange_strong(seen, (seen | kNoCapability) + 1,
                                        simt::memory_order_release,
                                        simt::memory_order_relaxed)) {  // [V18]
  }
}

}  // namespace gofs::f2fs
