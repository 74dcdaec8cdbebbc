// SPDX-License-Identifier: Apache-2.0
//
// Many ranges of open files, read or written by all warps of a launch. The host has cut them into
// pieces; a warp takes one after the other.
#pragma once

#include "vfs/call_counts.h"
#include "vfs/open.h"
#include "vfs/write.h"

namespace gofs::kernels {

/// A part of a range, for one warp.
struct RangePiece {
  int32_t descriptor;
  uint32_t range;
  uint8_t* memory;
  uint64_t bytes;
  uint64_t offset;     // in the file
  uint64_t of_pieces;  // how many the range has
};

/// What has become of a range so far. All zero before and after a launch.
struct RangeState {
  uint64_t moved;  // bytes
  uint32_t ended;  // pieces
  int32_t error;   // of one of them, or 0
};

/// The same of a launch.
struct RangesProgress {
  uint32_t taken;       // pieces
  uint32_t warps_over;  // that find none left
};

struct RangesParams {
  vfs::Filesystem* fs;
  uint32_t writes;  // not 0: the memory's bytes go to the files
  uint32_t piece_count;
  const RangePiece* pieces;
  RangeState* states;  // of each range; these two in the warps' memory
  RangesProgress* progress;
  int64_t* results;  // of each range: bytes, fewer than all at the file's end only; or an errno
};

namespace detail {

/// A piece has ended. Whose is the last of its range also tells what became of all of it. One lane.
GOFS_HD inline void end_piece(const RangesParams& params, const RangePiece& piece, int64_t moved) {
  RangeState& state = params.states[piece.range];
  if (moved < 0) {
    simt::store_relaxed(state.error, static_cast<int32_t>(moved));
  } else {
    simt::add_relaxed(state.moved, static_cast<uint64_t>(moved));
  }
  const uint32_t before =
      simt::AtomicRef<uint32_t>(state.ended).fetch_add(1, simt::memory_order_acq_rel);  // [R1]
  if (before + 1 != piece.of_pieces) return;
  const int32_t error = simt::load_relaxed(state.error);
  params.results[piece.range] =
      error != 0 ? error : static_cast<int64_t>(simt::load_relaxed(state.moved));
  simt::store_relaxed(state.error, 0);
  simt::store_relaxed(state.moved, uint64_t{0});
  simt::store_relaxed(state.ended, 0u);
}

/// Bytes of a piece that were moved: fewer than all at the file's end only, since a call that ends
/// before an error is followed by one that tells it. Or a negative errno. Collective, uniform.
GOFS_HD inline int64_t move_piece(simt::AnyWarp auto warp, vfs::Filesystem& fs, bool writes,
                                  const RangePiece& piece) {
  uint64_t moved = 0;
  do {
    uint8_t* const memory = static_cast<uint8_t*>(piece.memory) + moved;
    const uint64_t left = piece.bytes - moved;
    const int64_t result =
        writes ? vfs::pwrite(warp, fs, piece.descriptor, memory, left, piece.offset + moved)
               : vfs::pread(warp, fs, piece.descriptor, memory, left, piece.offset + moved);
    if (result < 0) return result;
    if (result == 0) break;
    moved += static_cast<uint64_t>(result);
  } while (moved < piece.bytes);
  return static_cast<int64_t>(moved);
}

}  // namespace detail

GOFS_HD inline void ranges_body(simt::AnyWarp auto warp, uint32_t, uint32_t warp_count,
                                RangesParams& params) {
  const bool leader = warp.thread_rank() == 0;
  vfs::Filesystem& fs = *params.fs;
  RangesProgress& progress = *params.progress;
  for (;;) {
    const uint32_t number = warp.shfl(leader ? simt::add_relaxed(progress.taken, 1u) : 0, 0);
    if (number >= params.piece_count) break;
    const RangePiece piece = params.pieces[number];
    const int64_t moved = detail::move_piece(warp, fs, params.writes != 0, piece);
    warp.sync();
    if (!leader) continue;
    vfs::count_transfer(fs, params.writes != 0 ? CallKind::kWrite : CallKind::kRead, moved);
    detail::end_piece(params, piece, moved);
  }
  if (!leader) return;
  const uint32_t before =
      simt::AtomicRef<uint32_t>(progress.warps_over).fetch_add(1, simt::memory_order_relaxed);
  if (before + 1 != warp_count) return;
  // No other warp comes to these any more.
  simt::store_relaxed(progress.taken, 0u);
  simt::store_relaxed(progress.warps_over, 0u);
}

}  // namespace gofs::kernels
