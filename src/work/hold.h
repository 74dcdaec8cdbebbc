// SPDX-License-Identifier: Apache-2.0
//
// Keeping the volume as it is while the host copies what lies on its SSDs: the gate is closed, so
// no operation is under way, no checkpoint is made, and nothing that the last one refers to is
// written over. Only contents of files may be, where they lie (f2fs/write_over.h). By one warp.
#pragma once

#include "work/help.h"

namespace gofs::work {

/// How long the warp waits for the host, which may be stopped by a debugger.
inline constexpr uint64_t kHoldNs = 240'000'000'000;

struct HoldParams {
  vfs::Filesystem* fs;
  int error;                     // 0, or a negative errno: it is not held
  alignas(64) uint32_t decided;  // by the warp: `error` says whether it is held
  alignas(64) uint32_t let_go;   // by the host
  bool expired;                  // it was let go before the host had said so
};

GOFS_HD inline void hold_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              HoldParams& params) {
  if (warp_index != 0) return;
  vfs::Filesystem& fs = *params.fs;
  f2fs::Gate& gate = fs.writer->gate;
  const int error =
      f2fs::close_gate(warp, gate, [&] { return f2fs::help_writing(warp, fs.volume, *fs.writer); });
  if (warp.thread_rank() == 0) {
    params.error = error;
    simt::store_system_release(params.decided, 1u);
  }
  if (error < 0) return;
  const simt::Deadline deadline = simt::Deadline::after_ns(kHoldNs);
  simt::Backoff backoff;
  bool expired = false;
  while (!warp.any(simt::load_system_acquire(params.let_go) != 0)) {
    expired = warp.any(deadline.passed());
    if (expired) break;
    backoff.pause();
  }
  if (warp.thread_rank() == 0) params.expired = expired;
  f2fs::open_gate(warp, gate);
}

}  // namespace gofs::work
