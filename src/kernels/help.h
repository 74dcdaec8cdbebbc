// SPDX-License-Identifier: Apache-2.0
//
// What the other warps of a launch do whose first one makes a checkpoint for a host program: they
// help it to write (f2fs/write_pages.h).
#pragma once

#include "vfs/change.h"

namespace gofs::kernels {

/// Helps whoever makes a checkpoint until `ended` is set. Collective.
GOFS_HD inline void help_until(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                               const uint32_t& ended) {
  if (fs.writer == nullptr) return;
  const simt::Deadline deadline = simt::Deadline::after_ns(f2fs::kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  // Nothing is passed on through `ended`: portions of work have an order of their own.
  while (!warp.any(simt::load_relaxed(ended) != 0) && !warp.any(deadline.passed())) {
    if (!f2fs::help_writeback(warp, fs.volume, *fs.writer)) backoff.pause();
  }
}

}  // namespace gofs::kernels
