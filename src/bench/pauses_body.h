// SPDX-License-Identifier: Apache-2.0
//
// How long checkpoints keep those who write: warp 0 makes some while all others write, each of
// which notes its longest write (write_body.h).
#pragma once

#include "bench/write_body.h"

namespace gofs::bench {

struct WriteAndSyncParams {
  WriteJob writes;  // of warps 1 to params.warps, at warp scope; with `stop`, 0 before
  uint32_t syncs;
  uint64_t gap_ns;  // at least, before, between and after them: then `stop` is set
  // Results; zero before.
  uint32_t syncs_done;
  uint32_t dirty_pages;  // most before a checkpoint
  uint64_t sync_ns;      // of all together, and of the longest
  uint64_t sync_longest_ns;
  int error;  // of a checkpoint
};

namespace detail {

/// Collective.
GOFS_HD inline void wait_until(simt::AnyWarp auto warp, uint64_t end_ns) {
  if (warp.thread_rank() == 0) {
    for (simt::Backoff backoff; simt::now_ns() < end_ns;) backoff.pause();
  }
  warp.sync();
}

/// Waits until there is something for a checkpoint to write, or until writers are thought to have
/// stopped. Collective.
GOFS_HD inline void wait_for_changes(simt::AnyWarp auto warp, const vfs::Filesystem& fs) {
  constexpr uint64_t kPatienceNs = 10'000'000'000;
  if (warp.thread_rank() == 0) {
    const simt::Deadline deadline = simt::Deadline::after_ns(kPatienceNs);
    for (simt::Backoff backoff; simt::load_relaxed(fs.volume.cache.dirty) == 0;) {
      if (deadline.passed()) break;
      backoff.pause();
    }
  }
  warp.sync();
}

}  // namespace detail

/// By writes.params.warps + 1 warps that run at the same time.
template <typename Api>
GOFS_DEVICE void write_and_sync_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                     uint32_t warp_count, WriteAndSyncParams& shared) {
  if (warp_index != 0) {
    file_write_body<Api>(warp, warp_index - 1, warp_count - 1, shared.writes);
    return;
  }
  vfs::Filesystem& fs = *shared.writes.params.fs;
  const bool leader = warp.thread_rank() == 0;
  const uint32_t syncs = shared.syncs;
  const uint64_t gap_ns = shared.gap_ns;
  uint64_t next_ns = warp.shfl(simt::now_ns(), 0) + gap_ns;
  for (uint32_t i = 0; i < syncs; ++i) {
    detail::wait_until(warp, next_ns);
    detail::wait_for_changes(warp, fs);
    const uint32_t dirty = simt::load_relaxed(fs.volume.cache.dirty);
    const uint64_t begin_ns = simt::now_ns();
    const int error = Api::sync_by_warp(warp, fs);
    const uint64_t end_ns = simt::now_ns();
    if (leader) {
      shared.dirty_pages = simt::max(shared.dirty_pages, dirty);
      shared.sync_ns += end_ns - begin_ns;
      shared.sync_longest_ns = simt::max(shared.sync_longest_ns, end_ns - begin_ns);
      if (error < 0) shared.error = error;
      ++shared.syncs_done;
    }
    next_ns = warp.shfl(end_ns, 0) + gap_ns;
  }
  detail::wait_until(warp, next_ns);
  if (leader) simt::store_relaxed(*shared.writes.params.stop, 1u);
}

}  // namespace gofs::bench
