// SPDX-License-Identifier: Apache-2.0
//
// A server at work: its warps look into the channels of clients, and perform what they find.
#pragma once

#include "serve/serve.h"
#include "vfs/change.h"

namespace gofs::kernels {

/// A warp that serves by itself, on a backend whose warps reach the memory of clients as their own.
struct ServeParams {
  const serve::Server* server;
  serve::CallRoom* room;
  uint64_t idle_ns;  // when it has found nothing for so long it returns
};

/// Until the server ends, or nothing comes.
GOFS_HD inline void serve_body(simt::AnyWarp auto warp, uint32_t, uint32_t, ServeParams& params) {
  const serve::Server& server = *params.server;
  vfs::Filesystem& fs = *server.fs;
  while (!warp.any(serve::is_ending(server))) {
    const simt::Deadline idle = simt::Deadline::after_ns(params.idle_ns);
    simt::Backoff backoff;
    for (;;) {
      if (serve::serve_round(warp, server, *params.room)) break;
      if (warp.any(idle.passed())) return;
      // Another warp may be making a checkpoint for a client.
      const bool helped = fs.writer != nullptr && f2fs::help_writeback(warp, fs.volume, *fs.writer);
      if (!helped) backoff.pause();
    }
  }
}

/// What the warps of a grid that serves have in common, in their memory.
struct ServingGrid {
  uint32_t over;        // turns that are over: the last one's number
  uint32_t performing;  // warps that perform a call
};

/// A turn of warps that serve together, for clients whose memory is far from theirs: a GPU's. The
/// first warp looks for what is published, and says so where the others look.
struct ServeTurnParams {
  serve::Server* server;
  ServingGrid* grid;
  serve::CallRoom* rooms;  // one a warp
  uint32_t turn;           // its number, one more than the last turn's
  uint64_t idle_ns;        // when nothing has come for so long the turn is over
  uint64_t turn_ns;  // and after so long in any case: what waits for an idle GPU gets its turn
  // Answers.
  uint32_t rests;      // 1: nothing has come, or the server ends; 0: the next turn is to begin
  uint32_t busy_most;  // warps that were performing calls when the first one looked, at the most
};

namespace detail {

/// All but the first warp, until the turn is over: what is taken before is performed.
GOFS_HD inline void serve_a_turn(simt::AnyWarp auto warp, const serve::Server& server,
                                 ServingGrid& grid, uint32_t turn, serve::CallRoom& room) {
  vfs::Filesystem& fs = *server.fs;
  simt::Backoff backoff;
  while (!warp.any(simt::load_acquire(grid.over) == turn)) {
    if (serve::serve_round(warp, server, room, &grid.performing)) {
      backoff.reset();
      continue;
    }
    const bool helped = fs.writer != nullptr && f2fs::help_writeback(warp, fs.volume, *fs.writer);
    if (!helped) backoff.pause();
  }
}

}  // namespace detail

/// Where there is one warp alone it also performs what it finds.
GOFS_HD inline void serve_turn_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                    uint32_t warp_count, ServeTurnParams& params) {
  const serve::Server& server = *params.server;
  ServingGrid& grid = *params.grid;
  const uint32_t turn = params.turn;
  serve::CallRoom& room = params.rooms[warp_index];
  if (warp_index != 0) return detail::serve_a_turn(warp, server, grid, turn, room);
  const uint64_t idle_ns = params.idle_ns;
  const simt::Deadline end = simt::Deadline::after_ns(params.turn_ns);
  simt::Deadline idle = simt::Deadline::after_ns(idle_ns);
  simt::Backoff backoff;
  uint32_t busy_most = 0;
  uint32_t rests = 0;
  for (;;) {
    const bool waits = serve::look_far(warp, server);
    if (waits && warp_count == 1) (void)serve::serve_round(warp, server, room);
    const uint32_t performing = warp.shfl(simt::load_relaxed(grid.performing), 0);
    if (waits || performing != 0) {
      busy_most = simt::max(busy_most, performing);
      idle = simt::Deadline::after_ns(idle_ns);
      backoff.reset();
    } else {
      rests = warp.any(idle.passed()) ? 1 : 0;
    }
    if (warp.any(serve::is_ending(server))) rests = 1;
    if (rests != 0 || warp.any(end.passed())) break;
    backoff.pause();
  }
  warp.sync();
  if (warp.thread_rank() != 0) return;
  params.rests = rests;
  params.busy_most = busy_most;
  simt::store_release(grid.over, turn);
}

}  // namespace gofs::kernels
