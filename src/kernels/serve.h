// SPDX-License-Identifier: Apache-2.0
//
// A server at work: its warps look into the channels of clients, and perform what they find.
#pragma once

#include "serve/serve.h"
#include "vfs/change.h"

namespace gofs::kernels {

struct ServeParams {
  const serve::Server* server;
  serve::CallRoom* rooms;  // one a warp
  uint64_t idle_ns;        // who has found nothing for so long returns
};

/// Until the server ends, or nothing comes.
GOFS_HD inline void serve_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                               ServeParams& params) {
  const serve::Server& server = *params.server;
  vfs::Filesystem& fs = *server.fs;
  serve::CallRoom& room = params.rooms[warp_index];
  while (!warp.any(simt::load_acquire(server.ending) != 0)) {
    const simt::Deadline idle = simt::Deadline::after_ns(params.idle_ns);
    simt::Backoff backoff;
    for (;;) {
      if (serve::serve_round(warp, server, room)) break;
      if (warp.any(idle.passed())) return;
      // Another warp may be making a checkpoint for a client.
      const bool helped = fs.writer != nullptr && f2fs::help_writeback(warp, fs.volume, *fs.writer);
      if (!helped) backoff.pause();
    }
  }
}

/// The end of a client: nothing of it stays open. By one warp.
struct LeaveParams {
  vfs::Filesystem* fs;
  vfs::Caller caller;
  uint32_t closed;  // descriptors that it had open
};

GOFS_HD inline void leave_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                               LeaveParams& params) {
  if (warp_index != 0) return;
  const uint32_t closed = vfs::close_all(vfs::CallerWarp(warp, params.caller), *params.fs);
  if (warp.thread_rank() == 0) params.closed = closed;
}

}  // namespace gofs::kernels
