// SPDX-License-Identifier: Apache-2.0
//
// The frame of everything that changes a volume: an operation is inside the gate, so a checkpoint
// holds all of it or nothing, and has room in the page cache for what it changes, which stays there
// until it is written. Where there is too little room, who wants to begin makes a checkpoint.
#pragma once

#include "f2fs/write_checkpoint.h"

namespace gofs::f2fs {

/// An operation that is under way.
struct Operation {
  GatePass pass;
  uint32_t pages;
};

namespace detail {

/// Pages that may be dirty between checkpoints. Each may make a page of the NAT dirty while one is
/// made, and something is to be left for readers.
GOFS_HD inline uint32_t dirty_pages_max(const PageCache& cache) { return cache.frame_count() / 3; }

/// Takes room for `pages` more dirty pages. One lane.
GOFS_HD inline bool reserve_pages(const Volume& volume, Writer& writer, uint32_t pages) {
  const uint32_t reserved = simt::add_relaxed(writer.reserved, pages) + pages;
  if (simt::load_relaxed(volume.cache.dirty) + reserved <= dirty_pages_max(volume.cache)) {
    return true;
  }
  simt::add_relaxed(writer.reserved, ~pages + 1);
  return false;
}

/// Makes a checkpoint, unless another has made one while we waited. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int make_room(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                           uint32_t pages) {
  int error = close_gate(warp, writer.gate);
  if (error < 0) return error;
  const uint32_t dirty = warp.shfl(simt::load_relaxed(volume.cache.dirty), 0);
  if (dirty + pages > dirty_pages_max(volume.cache)) {
    error = write_all(warp, volume, writer, false);
  }
  open_gate(warp, writer.gate);
  return error;
}

}  // namespace detail

/// Begins an operation of the calling warp that changes at most `pages` pages. Collective, uniform;
/// the warp has none under way. 0 or a negative errno: -ENOBUFS (the cache is too small for it),
/// -EROFS (no checkpoint can be made any more), and those of write_checkpoint().
GOFS_NOINLINE GOFS_HD inline int begin_operation(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, uint32_t pages,
                                                 Operation& operation) {
  if (pages > detail::dirty_pages_max(volume.cache)) return -ENOBUFS;
  operation.pages = pages;
  const simt::Deadline deadline = simt::Deadline::after_ns(kGateTimeoutNs);
  for (;;) {
    int error = enter_gate(warp, writer.gate, operation.pass);
    if (error < 0) return error;
    uint32_t reserved = 0;
    uint32_t failed = 0;
    if (warp.thread_rank() == 0) {
      failed = simt::load_relaxed(writer.failed) < 0 ? 1 : 0;
      reserved = failed == 0 && detail::reserve_pages(volume, writer, pages) ? 1 : 0;
      if (reserved != 0 && simt::load_relaxed(writer.changed) == 0) {
        simt::store_relaxed(writer.changed, 1u);
      }
    }
    if (warp.shfl(reserved, 0) != 0) return 0;
    leave_gate(warp, writer.gate, operation.pass);
    if (warp.shfl(failed, 0) != 0) return -EROFS;
    error = detail::make_room(warp, volume, writer, pages);
    if (error < 0) return error;
    if (warp.any(deadline.passed())) return -EBUSY;
  }
}

/// Ends it: what it changed is seen by others at once, and durable after the next checkpoint.
/// Collective.
GOFS_HD inline void end_operation(simt::AnyWarp auto warp, Writer& writer,
                                  const Operation& operation) {
  if (warp.thread_rank() == 0) simt::add_relaxed(writer.reserved, ~operation.pages + 1);
  leave_gate(warp, writer.gate, operation.pass);
}

/// Makes all that operations have done durable: a checkpoint, if there is anything to write or,
/// when `unmounting`, to say. Collective, by one warp with no operation under way. As
/// write_checkpoint().
GOFS_HD inline int sync_volume(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                               bool unmounting) {
  const bool changed = simt::load_relaxed(writer.changed) != 0;
  const bool told = !unmounting || volume.cleanly_unmounted();
  // What one lane has seen, since others begin operations meanwhile.
  const uint32_t needed = warp.shfl(changed || !told ? 1u : 0u, 0);
  return needed == 0 ? 0 : write_checkpoint(warp, volume, writer, unmounting);
}

}  // namespace gofs::f2fs
