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

/// What the warps of grids that serve have in common, in their memory.
struct ServingGrid {
  alignas(128) uint32_t looking;  // held by the warp that looks at the rings of clients
  uint32_t over;                  // turns that are over: the last one's number [H5]
  uint32_t begun;                 // turns that have begun: how many, and so the last one's number
  uint32_t performing;            // warps that perform a call
  uint32_t busy_most;             // the same, at the most; by who looks, as the next three
  uint32_t looked;                // the last turn in which a warp has looked
  uint64_t began_ns;              // that turn, as simt::now_ns() has it
  uint32_t asked;                 // the last turn that has asked for the next
};

/// What the host says of the turn that comes after one.
enum class NextTurn : uint32_t {
  kLater,     // nothing yet
  kLaunched,  // it begins beside this one, or in its place
  kNone,      // this one is to end
};

/// A turn of warps that serve together, for clients whose memory is far from theirs: a GPU's. One
/// of them looks there. What it finds it performs, so that a lone call waits for no other warp, and
/// another one looks meanwhile; the last that has nothing to perform goes on looking.
///
/// A turn that keeps its place asks for the next one before it ends, and goes on until that has
/// begun. So blocks of a client that fill the GPU and wait for answers cannot take the place. Two
/// turns may be under way, with rooms of their own; both perform, and one warp of both looks.
struct ServeTurn {
  serve::Server* server;
  ServingGrid* grid;
  serve::CallRoom* rooms;  // one a warp
  uint32_t number;         // one more than the last turn's
  bool keeps_place;
  uint64_t idle_ns;      // when nothing has come for so long the turn is over
  uint64_t turn_ns;      // and after so long where no call is under way, and no place is kept: what
                         // waits for an idle GPU gets its turn
  uint32_t busy_many;    // or where so many warps were busy: the next turn is to have more
  uint32_t busy_few;     // or where a place is kept, and fewer were: the next is to have less
  uint64_t turn_ns_max;  // and after so long in any case; twice that where a place is kept
};

struct ServeTurnParams {
  ServeTurn turn;  // each warp has a copy: this lies as far away as the rings do
  NextTurn next;   // the host's, while the turn lasts
  // Answers.
  uint32_t wants_next;  // 1: the turn waits for the next, and busy_most is said
  uint32_t rests;       // 1: nothing has come; 0: the next turn is to begin
  uint32_t busy_most;   // warps that were performing calls when one looked, at the most
};

namespace detail {

/// Whether a count of turns has come to this one.
GOFS_HD inline bool has_come_to(uint32_t count, uint32_t turn) {
  return static_cast<int32_t>(count - turn) >= 0;
}

/// By one lane. Acquires only what has changed: warps that wait ask again and again.
GOFS_HD inline bool is_over(const ServingGrid& grid, uint32_t turn) {
  return has_come_to(simt::load_relaxed(grid.over), turn) &&
         has_come_to(simt::load_acquire(grid.over), turn);  // [H5]
}

/// What the host chooses the next turn's blocks by. By one lane of the warp that looks.
GOFS_HD inline void tell_busy(ServingGrid& grid, ServeTurnParams& params) {
  params.busy_most = grid.busy_most;
  grid.busy_most = 0;
}

/// Ends the turn. By the warp that looks; after that none does. Collective.
GOFS_HD inline void end_turn(simt::AnyWarp auto warp, const ServeTurn& turn,
                             ServeTurnParams& params, bool rests) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    ServingGrid& grid = *turn.grid;
    params.rests = rests ? 1 : 0;
    if (grid.asked != turn.number) tell_busy(grid, params);
    simt::store_release(grid.over, turn.number);  // [H5]
  }
  warp.sync();
}

/// Before a warp looks for the first time in a turn: ends the one before, where that has not ended.
/// By one lane of the warp that looks.
GOFS_HD inline void begin_looking(const ServeTurn& turn) {
  ServingGrid& grid = *turn.grid;
  if (grid.looked == turn.number) return;
  grid.looked = turn.number;
  grid.began_ns = simt::now_ns();
  const uint32_t before = turn.number - 1;
  if (!has_come_to(simt::load_relaxed(grid.over), before)) {
    simt::store_release(grid.over, before);  // [H5]
  }
}

/// Whether the turn is to end now. By one lane of the warp that looks; `quiet`: no call is under
/// way.
GOFS_HD inline bool is_to_end(const ServeTurn& turn, ServeTurnParams& params, NextTurn next,
                              bool quiet) {
  if (next == NextTurn::kNone) return true;
  ServingGrid& grid = *turn.grid;
  const uint64_t lasted = simt::now_ns() - grid.began_ns;
  // Others wait for the longest call of a turn that is over and keeps no place, so it is not while
  // one is under way; but they wait longer where there are too few warps for them.
  const bool is_crowded = grid.busy_most >= turn.busy_many;
  const bool may_be_short =
      is_crowded || (turn.keeps_place ? grid.busy_most < turn.busy_few : quiet);
  const uint64_t limit = may_be_short ? turn.turn_ns : turn.turn_ns_max;
  if (!turn.keeps_place) return lasted >= limit;
  if (grid.asked != turn.number) {
    if (lasted < limit) return false;
    grid.asked = turn.number;
    tell_busy(grid, params);
    simt::store_system_release(params.wants_next, 1u);
  }
  // One that was launched and finds no room gets this one's; but calls go on meanwhile. The host
  // may be unable to launch any: what it waits for there may be the end of this one.
  return has_come_to(simt::load_relaxed(grid.begun), turn.number + 1) ||
         (quiet && next == NextTurn::kLaunched) || lasted >= 2 * turn.turn_ns_max;
}

/// Looks until there is a call for the caller itself, or the turn is over. Collective, uniform: the
/// former. The caller holds `looking`.
GOFS_HD inline bool look_in_turn(simt::AnyWarp auto warp, uint32_t warp_count,
                                 const ServeTurn& turn, ServeTurnParams& params,
                                 serve::FoundCall& call) {
  const serve::Server& server = *turn.server;
  ServingGrid& grid = *turn.grid;
  simt::Deadline idle = simt::Deadline::after_ns(turn.idle_ns);
  if (warp.thread_rank() == 0) begin_looking(turn);
  for (;;) {
    // The host's word lies as far away as the rings do: both loads are under way together.
    const NextTurn next = simt::load_system_relaxed(params.next);
    const uint32_t performing = warp.shfl(simt::load_relaxed(grid.performing), 0);
    const bool may_keep = performing + 1 < warp_count || warp_count == 1;
    const serve::FarLook look = serve::look_far(warp, server, may_keep);
    const bool quiet = !look.any && performing == 0;
    uint32_t ends = 0;
    if (warp.thread_rank() == 0) {
      grid.busy_most = simt::max(grid.busy_most, performing);
      ends = is_to_end(turn, params, next, quiet) ? 1 : 0;
    }
    ends = warp.shfl(ends, 0);
    if (look.keeps) {
      call = look.kept;
      // Before another warp looks, which is to know whether it is the last one.
      if (warp.thread_rank() == 0) simt::add_relaxed(grid.performing, 1u);
      if (ends != 0) end_turn(warp, turn, params, false);
      return true;
    }
    bool rests = false;
    if (look.any || performing != 0) {
      idle = simt::Deadline::after_ns(turn.idle_ns);
    } else {
      rests = warp.any(idle.passed());
    }
    if (rests || ends != 0) {
      end_turn(warp, turn, params, rests);
      return false;
    }
    simt::Backoff().pause();  // a short one: another look takes a microsecond
  }
}

/// A call for the caller, if there is one, who counts as performing from then on; before it says
/// that there is none the caller may have looked for long. Collective, uniform.
GOFS_HD inline bool find_call(simt::AnyWarp auto warp, uint32_t warp_count, const ServeTurn& turn,
                              ServeTurnParams& params, serve::FoundCall& call) {
  ServingGrid& grid = *turn.grid;
  if (serve::take(warp, *turn.server->found, call)) {
    if (warp.thread_rank() == 0) simt::add_relaxed(grid.performing, 1u);
    return true;
  }
  uint32_t looks = 0;
  if (warp.thread_rank() == 0) looks = simt::try_lock(grid.looking) ? 1 : 0;
  if (warp.shfl(looks, 0) == 0) return false;
  warp.sync();
  const bool over = has_come_to(warp.shfl(simt::load_relaxed(grid.over), 0), turn.number);
  const bool found = !over && look_in_turn(warp, warp_count, turn, params, call);
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(grid.looking);
  return found;
}

}  // namespace detail

/// Ends when the turn is over and what was found in it is performed.
GOFS_HD inline void serve_turn_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                    uint32_t warp_count, ServeTurnParams& params) {
  const ServeTurn turn = params.turn;
  const serve::Server& server = *turn.server;
  vfs::Filesystem& fs = *server.fs;
  ServingGrid& grid = *turn.grid;
  const bool leader = warp.thread_rank() == 0;
  if (leader && warp_index == 0) simt::add_relaxed(grid.begun, 1u);
  simt::Backoff backoff;
  for (;;) {
    // Before it looks for calls: none is found afterwards.
    const bool over = warp.shfl(leader && detail::is_over(grid, turn.number) ? 1u : 0u, 0) != 0;
    serve::FoundCall call{};
    if (detail::find_call(warp, warp_count, turn, params, call)) {
      serve::serve_call(warp, server, server.channels[call.channel], call.place,
                        turn.rooms[warp_index]);
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
