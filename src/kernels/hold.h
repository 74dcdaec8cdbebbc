// SPDX-License-Identifier: Apache-2.0
//
// Keeping the volume as it is while the host copies what lies on its SSDs: the checkpoint lock is
// held exclusively, so no operation is under way, no checkpoint is made, and nothing that the last
// one refers to is written over. Only contents of files may be, where they lie (f2fs/write_over.h).
// By one warp.
//
// It also copies for the host what only warps reach, through memory that both do. The host could
// have CUDA copy, but not be sure that it does: another thread that frees memory may keep CUDA's
// locks and wait for all kernels, and so for this one, which would wait for the host.
#pragma once

#include "kernels/help.h"
#include "simt/copy.h"

namespace gofs::kernels {

/// How long the warp waits for the host's next word: where there is no memory for copies, it writes
/// the file in between.
inline constexpr uint64_t kHoldNs = 120'000'000'000;

/// Of HoldParams::asked: that was all.
inline constexpr uint32_t kLetGo = ~0u;

struct HoldParams {
  vfs::Filesystem* fs;
  int error;                     // 0, or a negative errno: it is not held
  alignas(64) uint32_t decided;  // by the warp: `error` says whether it is held
  const uint8_t* from;           // what the host wants to be copied: set before it counts on
  uint8_t* to;
  uint32_t bytes;
  alignas(64) uint32_t asked;     // by the host: so many copies, or kLetGo
  alignas(64) uint32_t answered;  // by the warp: so many are made
  bool expired;                   // it was released before the host had said so
};

/// Copies until the host releases the volume. Whether it has. Collective.
GOFS_HD inline bool serve_copies(simt::AnyWarp auto warp, HoldParams& params) {
  for (uint32_t copies = 1;; ++copies) {
    const simt::Deadline deadline = simt::Deadline::after_ns(kHoldNs);
    uint32_t asked = 0;
    for (simt::Backoff backoff;;) {
      // Each lane looks, and so sees what the host has set before. [W1]
      asked = simt::load_system_acquire(params.asked);
      if (warp.all(asked >= copies)) break;
      if (warp.any(deadline.passed())) return false;
      backoff.pause();
    }
    if (warp.shfl(asked, 0) == kLetGo) return true;
    simt::copy_bytes(warp, params.to, params.from, params.bytes);
    warp.sync();
    if (warp.thread_rank() == 0) simt::store_system_release(params.answered, copies);  // [W2]
  }
}

GOFS_HD inline void hold_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              HoldParams& params) {
  if (warp_index != 0) return;
  vfs::Filesystem& fs = *params.fs;
  f2fs::CheckpointLock& lock = fs.writer->checkpoint_lock;
  const int error = f2fs::lock_for_checkpoint(
      warp, lock, [&] { return f2fs::help_writeback(warp, fs.volume, *fs.writer); });
  if (warp.thread_rank() == 0) {
    params.error = error;
    simt::store_system_release(params.decided, 1u);
  }
  if (error < 0) return;
  const bool expired = !serve_copies(warp, params);
  if (warp.thread_rank() == 0) params.expired = expired;
  f2fs::unlock_after_checkpoint(warp, lock);
}

}  // namespace gofs::kernels
