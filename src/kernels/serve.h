// SPDX-License-Identifier: Apache-2.0
//
// A server at work: its warps look into the channels of clients, and perform what they find.
#pragma once

#include "serve/look_far.h"
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
  alignas(128) uint32_t looking;  // held by the warp that looks at the rings of clients
  uint32_t over;                  // turns that are over: the last one's number [H5]
  uint32_t performing;            // warps that perform a call
  uint32_t busy_most;             // the same, at the most; by who looks, as the next two
  uint32_t looked;                // the last turn in which a warp has looked
  uint64_t began_ns;              // that turn, as simt::now_ns() has it
};

/// A turn of warps that serve together, for clients whose memory is far from theirs: a GPU's. One
/// of them looks there. What it finds it performs, so that a lone call waits for no other warp, and
/// another one looks meanwhile; the last that has nothing to perform goes on looking.
struct ServeTurnParams {
  serve::Server* server;
  ServingGrid* grid;
  serve::CallRoom* rooms;  // one a warp
  uint32_t turn;           // its number, one more than the last turn's
  uint64_t idle_ns;        // when nothing has come for so long the turn is over
  uint64_t turn_ns;      // and after so long where no call is under way: what waits for an idle GPU
                         // gets its turn
  uint32_t busy_many;    // or where so many warps were busy: the next turn is to have more
  uint64_t turn_ns_max;  // and after so long in any case
  // Answers.
  uint32_t rests;      // 1: nothing has come, or the server ends; 0: the next turn is to begin
  uint32_t busy_most;  // warps that were performing calls when one looked, at the most
};

namespace detail {

/// By one lane. Acquires only what has changed: warps that wait ask again and again.
GOFS_HD inline bool is_over(const ServingGrid& grid, uint32_t turn) {
  return simt::load_relaxed(grid.over) == turn && simt::load_acquire(grid.over) == turn;  // [H5]
}

/// Ends the turn. By the warp that looks; after that none does. Collective.
GOFS_HD inline void end_turn(simt::AnyWarp auto warp, ServeTurnParams& params, bool rests) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    ServingGrid& grid = *params.grid;
    params.rests = rests ? 1 : 0;
    params.busy_most = grid.busy_most;
    grid.busy_most = 0;
    simt::store_release(grid.over, params.turn);  // [H5]
  }
  warp.sync();
}

/// For how long the turn has lasted. By one lane of the warp that looks.
GOFS_HD inline uint64_t lasted_ns(ServingGrid& grid, const ServeTurnParams& params) {
  const uint64_t now = simt::now_ns();
  if (grid.looked != params.turn) {
    grid.looked = params.turn;
    grid.began_ns = now;
  }
  return now - grid.began_ns;
}

/// How long the turn may last. By one lane of the warp that looks; `quiet`: no call is under way.
GOFS_HD inline uint64_t limit_ns(const ServingGrid& grid, const ServeTurnParams& params,
                                 bool quiet) {
  // Others wait for the longest call of a turn that is over, so it is not while one is under way;
  // but they wait longer where there are too few warps for them.
  return quiet || grid.busy_most >= params.busy_many ? params.turn_ns : params.turn_ns_max;
}

/// Looks until there is a call for the caller itself, or the turn is over. Collective, uniform: the
/// former. The caller holds `looking`.
GOFS_HD inline bool look_in_turn(simt::AnyWarp auto warp, uint32_t warp_count,
                                 ServeTurnParams& params, serve::FoundCall& call) {
  const serve::Server& server = *params.server;
  ServingGrid& grid = *params.grid;
  const uint64_t idle_ns = params.idle_ns;
  simt::Deadline idle = simt::Deadline::after_ns(idle_ns);
  for (;;) {
    // The host's word lies as far away as the rings do: both loads are under way together.
    const uint32_t ending = simt::load_system_relaxed(*server.ending);
    const uint32_t performing = warp.shfl(simt::load_relaxed(grid.performing), 0);
    const bool may_keep = performing + 1 < warp_count || warp_count == 1;
    const serve::FarLook look = serve::look_far(warp, server, may_keep);
    const bool quiet = !look.any && performing == 0;
    uint32_t is_long = 0;
    if (warp.thread_rank() == 0) {
      grid.busy_most = simt::max(grid.busy_most, performing);
      is_long = lasted_ns(grid, params) >= limit_ns(grid, params, quiet) ? 1 : 0;
    }
    is_long = warp.shfl(is_long, 0);
    if (look.keeps) {
      call = look.kept;
      // Before another warp looks, which is to know whether it is the last one.
      if (warp.thread_rank() == 0) simt::add_relaxed(grid.performing, 1u);
      if (is_long != 0) end_turn(warp, params, false);
      return true;
    }
    bool rests = warp.any(ending != 0);
    if (look.any || performing != 0) {
      idle = simt::Deadline::after_ns(idle_ns);
    } else {
      rests = rests || warp.any(idle.passed());
    }
    if (rests || is_long != 0) {
      end_turn(warp, params, rests);
      return false;
    }
    simt::Backoff().pause();  // a short one: another look takes a microsecond
  }
}

/// A call for the caller, if there is one, who counts as performing from then on; before it says
/// that there is none the caller may have looked for long. Collective, uniform.
GOFS_HD inline bool find_call(simt::AnyWarp auto warp, uint32_t warp_count, ServeTurnParams& params,
                              serve::FoundCall& call) {
  ServingGrid& grid = *params.grid;
  if (serve::take(warp, *params.server->found, call)) {
    if (warp.thread_rank() == 0) simt::add_relaxed(grid.performing, 1u);
    return true;
  }
  uint32_t looks = 0;
  if (warp.thread_rank() == 0) looks = simt::try_lock(grid.looking) ? 1 : 0;
  if (warp.shfl(looks, 0) == 0) return false;
  warp.sync();
  const bool over = warp.shfl(simt::load_relaxed(grid.over), 0) == params.turn;
  const bool found = !over && look_in_turn(warp, warp_count, params, call);
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(grid.looking);
  return found;
}

}  // namespace detail

/// Ends when the turn is over and what was found in it is performed.
GOFS_HD inline void serve_turn_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                    uint32_t warp_count, ServeTurnParams& params) {
  const serve::Server& server = *params.server;
  vfs::Filesystem& fs = *server.fs;
  ServingGrid& grid = *params.grid;
  const uint32_t turn = params.turn;
  const bool leader = warp.thread_rank() == 0;
  simt::Backoff backoff;
  for (;;) {
    // Before it looks for calls: none is found afterwards.
    const bool over = warp.shfl(leader && detail::is_over(grid, turn) ? 1u : 0u, 0) != 0;
    serve::FoundCall call{};
    if (detail::find_call(warp, warp_count, params, call)) {
      serve::serve_call(warp, server, server.channels[call.channel], call.place,
                        params.rooms[warp_index]);
      if (leader) simt::add_relaxed(grid.performing, ~0u);
      backoff.reset();
      continue;
    }
    if (over) return;
    const bool helped = fs.writer != nullptr && f2fs::help_writeback(warp, fs.volume, *fs.writer);
    if (!helped) backoff.pause();
  }
}

}  // namespace gofs::kernels
