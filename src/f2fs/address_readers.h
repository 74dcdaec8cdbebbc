// SPDX-License-Identifier: Apache-2.0
//
// Address readers look up block addresses and read there without a lock: symbolic links, batches,
// asynchronous reads. What lies at such an address may be moved, replaced or removed meanwhile, and
// the reader then gets what was there before; but nothing else is written there, or the reader
// would get what belongs to another file. So a checkpoint that meets address readers keeps the
// blocks that were freed before it from being reused; the next one may let them be reused.
#pragma once

#include "f2fs/free_segments.h"

namespace gofs::f2fs {

/// How long a checkpoint that has few free segments waits until there is no address reader. New
/// ones wait for the checkpoint as long, and no longer: their threads may be address readers
/// already.
inline constexpr uint64_t kAddressReadersTimeoutNs = 50'000'000;

/// Makes the caller an address reader, before it looks up any address, until
/// leave_address_readers(). One lane.
GOFS_HD inline void enter_address_readers(Writer& writer) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kAddressReadersTimeoutNs);
  simt::Backoff backoff;
  while (simt::load_relaxed(writer.cleaning.address_readers_awaited) != 0 && !deadline.passed()) {
    backoff.pause();
  }
  // Either the next checkpoint sees us, or we see all that was freed before it. [C4]
  simt::AtomicRef<uint32_t>(writer.cleaning.address_readers)
      .fetch_add(1, simt::memory_order_acquire);
}
GOFS_HD inline void leave_address_readers(Writer& writer) {
  simt::AtomicRef<uint32_t>(writer.cleaning.address_readers)
      .fetch_sub(1, simt::memory_order_release);  // [C4]
}

namespace detail {

/// Whether there are address readers, at a checkpoint. Where few segments are free it waits a
/// little for the answer to be no. Collective, uniform, under the exclusive checkpoint lock.
GOFS_NOINLINE GOFS_HD inline bool has_address_readers(simt::AnyWarp auto warp, const Volume& volume,
                                                      Writer& writer) {
  uint32_t holders = 0;
  if (warp.thread_rank() == 0) {
    const bool waits = simt::load_relaxed(writer.free_count) <= few_segments(volume, writer);
    if (waits) simt::store_relaxed(writer.cleaning.address_readers_awaited, 1u);
    const simt::Deadline deadline = simt::Deadline::after_ns(kAddressReadersTimeoutNs);
    simt::Backoff backoff;
    for (;;) {
      // Changed, though by nothing, so that it is ordered with each address reader: those from now
      // on see all that was freed, and those until now have read what was there. [C4]
      holders = simt::AtomicRef<uint32_t>(writer.cleaning.address_readers)
                    .fetch_add(0, simt::memory_order_acq_rel);
      if (holders == 0 || !waits || deadline.passed()) break;
      backoff.pause();
    }
    if (waits) simt::store_relaxed(writer.cleaning.address_readers_awaited, 0u);
  }
  return warp.shfl(holders, 0) != 0;
}

}  // namespace detail

}  // namespace gofs::f2fs
