// SPDX-License-Identifier: Apache-2.0
//
// Many ranges of open files, read or written by all warps of a launch, in pieces. A warp takes one
// after the other, with all of its lanes; or, where there are many small ones, several at once, one
// a lane: a warp that waits for 16 KiB has too little under way.
#pragma once

#include "vfs/call_counts.h"
#include "vfs/open.h"
#include "vfs/write_lanes.h"

namespace gofs::kernels {

/// A part of a range.
struct RangePiece {
  int descriptor;
  uint32_t range;
  uint8_t* memory;
  uint64_t bytes;
  uint64_t offset;     // in the file
  uint32_t of_pieces;  // how many the range has
};

/// How ranges are cut, unless they are short: at multiples of so many bytes in the file, so that no
/// two pieces write to one block of it unless ranges do.
struct RangeCut {
  uint32_t shift;  // bytes of a piece are 1 << shift

  GOFS_HD constexpr bool leaves_whole(const IoRange& range) const {
    return range.bytes <= uint64_t{1} << shift;
  }
  /// One of no bytes is a piece too: its file may be missing.
  GOFS_HD constexpr uint64_t pieces_of(const IoRange& range) const {
    if (leaves_whole(range)) return 1;
    return ((range.offset + range.bytes - 1) >> shift) - (range.offset >> shift) + 1;
  }
  /// Piece `number` of range `index`.
  GOFS_HD RangePiece piece(const IoRange& range, uint32_t index, uint64_t number) const {
    uint64_t begin = range.offset;
    uint64_t end = range.offset + range.bytes;
    if (!leaves_whole(range)) {
      const uint64_t of_file = (range.offset >> shift) + number;
      begin = simt::max(begin, of_file << shift);
      end = simt::min(end, (of_file + 1) << shift);
    }
    return {range.fd,    index, static_cast<uint8_t*>(range.memory) + (begin - range.offset),
            end - begin, begin, static_cast<uint32_t>(pieces_of(range))};
  }
};

/// What has become of a range so far. All zero before and after a launch.
struct RangeState {
  uint64_t lacking;  // bytes, from the first one that was not moved on
  uint32_t ended;    // pieces
  int32_t error;     // of one of them, or 0
};

/// The same of a launch.
struct RangesProgress {
  uint32_t taken;       // pieces
  uint32_t warps_over;  // that find none left
};

struct RangesParams {
  vfs::Filesystem* fs;
  uint32_t writes;  // not 0: the memory's bytes go to the files
  uint32_t range_count;
  uint32_t piece_count;
  uint32_t pieces_at_once;  // that a warp takes
  RangeCut cut;
  const IoRange* ranges;
  // Of each range the number of its first piece, which is the next one's too if it has none; null
  // if each is one piece.
  const uint32_t* first_pieces;
  RangeState* states;  // of each range; these two in the warps' memory
  RangesProgress* progress;
  int64_t* results;  // of each range: bytes, fewer than all at the file's end only; or an errno
};

namespace detail {

/// A piece has ended. Whose is the last of its range also tells what became of all of it: what lies
/// behind a gap does not count, as where the file has grown since one piece came to its end. One
/// lane.
GOFS_HD inline void end_piece(const RangesParams& params, const RangePiece& piece, int64_t moved) {
  if (piece.of_pieces == 1) {
    params.results[piece.range] = moved;
    return;
  }
  RangeState& state = params.states[piece.range];
  const IoRange& range = params.ranges[piece.range];  // in host memory, so a load takes its time
  if (moved < 0) {
    simt::store_relaxed(state.error, static_cast<int32_t>(moved));
  } else if (static_cast<uint64_t>(moved) < piece.bytes) {
    const uint64_t gap = piece.offset - range.offset + static_cast<uint64_t>(moved);
    simt::AtomicRef<uint64_t>(state.lacking)
        .fetch_max(range.bytes - gap, simt::memory_order_relaxed);
  }
  const uint32_t before =
      simt::AtomicRef<uint32_t>(state.ended).fetch_add(1, simt::memory_order_acq_rel);  // [R1]
  if (before + 1 != piece.of_pieces) return;
  const int32_t error = simt::load_relaxed(state.error);
  params.results[piece.range] =
      error != 0 ? error : static_cast<int64_t>(range.bytes - simt::load_relaxed(state.lacking));
  simt::store_relaxed(state.error, 0);
  simt::store_relaxed(state.lacking, uint64_t{0});
  simt::store_relaxed(state.ended, 0u);
}

/// The range that has piece `number`.
GOFS_HD inline uint32_t range_with(const RangesParams& params, uint32_t number) {
  if (params.first_pieces == nullptr) return number;
  uint32_t first = 0;  // of those that it can be
  for (uint32_t left = params.range_count; left > 1;) {
    const uint32_t half = left / 2;
    if (params.first_pieces[first + half] <= number) first += half;
    left -= half;
  }
  return first;
}

GOFS_HD inline RangePiece piece_of(const RangesParams& params, uint32_t number) {
  const uint32_t index = range_with(params, number);
  const uint32_t before = params.first_pieces == nullptr ? number : params.first_pieces[index];
  return params.cut.piece(params.ranges[index], index, number - before);
}

/// Takes the next pieces of all that are left: the first one's number. Collective, uniform.
GOFS_HD inline uint32_t take_pieces(simt::AnyWarp auto warp, const RangesParams& params) {
  const uint32_t count = params.pieces_at_once;
  uint32_t first = 0;
  if (warp.thread_rank() == 0) first = simt::add_relaxed(params.progress->taken, count);
  return warp.shfl(first, 0);
}

/// By all lanes. Bytes of a piece that were moved: fewer than all at the file's end only, since a
/// call that ends before an error is followed by one that tells it. Or a negative errno.
/// Collective, uniform.
GOFS_HD inline int64_t move_piece(simt::AnyWarp auto warp, vfs::Filesystem& fs, bool writes,
                                  const RangePiece& piece) {
  uint64_t moved = 0;
  do {
    uint8_t* const memory = piece.memory + moved;
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

/// By a lane for each piece that is `given`. Collective. Of each lane what move_piece() has.
GOFS_NOINLINE GOFS_HD inline int64_t move_pieces(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                                 bool writes, const RangePiece& piece, bool given) {
  uint64_t moved = 0;
  int64_t error = 0;
  bool goes_on = given;
  do {
    uint8_t* const memory = piece.memory + moved;
    const uint64_t left = goes_on ? piece.bytes - moved : 0;
    const uint64_t offset = piece.offset + moved;
    const int64_t result =
        writes ? vfs::pwrite_lanes(warp, fs, {piece.descriptor, memory, left, offset})
               : vfs::pread_lanes(warp, fs, {piece.descriptor, memory, left, offset});
    if (goes_on) {
      error = simt::min<int64_t>(result, 0);
      moved += static_cast<uint64_t>(result - error);
      goes_on = result > 0 && moved < piece.bytes;
    }
  } while (warp.any(goes_on));
  return error != 0 ? error : static_cast<int64_t>(moved);
}

}  // namespace detail

GOFS_HD inline void ranges_body(simt::AnyWarp auto warp, uint32_t, uint32_t warp_count,
                                RangesParams& params) {
  const uint32_t rank = warp.thread_rank();
  vfs::Filesystem& fs = *params.fs;
  const bool writes = params.writes != 0;
  for (;;) {
    const uint32_t first = detail::take_pieces(warp, params);
    if (first >= params.piece_count) break;
    const uint32_t count = simt::min(params.pieces_at_once, params.piece_count - first);
    const bool given = rank < count;
    // A lane without a piece asks for nothing of the file that the last one with a piece has.
    const RangePiece piece = detail::piece_of(params, first + simt::min(rank, count - 1));
    const int64_t moved = params.pieces_at_once == 1
                              ? detail::move_piece(warp, fs, writes, piece)
                              : detail::move_pieces(warp, fs, writes, piece, given);
    warp.sync();
    vfs::count_transfers(warp, fs, writes ? CallKind::kWrite : CallKind::kRead, warp.ballot(given),
                         given ? moved : 0);
    if (given) detail::end_piece(params, piece, moved);
  }
  if (rank != 0) return;
  RangesProgress& progress = *params.progress;
  const uint32_t before =
      simt::AtomicRef<uint32_t>(progress.warps_over).fetch_add(1, simt::memory_order_relaxed);
  if (before + 1 != warp_count) return;
  // No other warp comes to these any more.
  simt::store_relaxed(progress.taken, 0u);
  simt::store_relaxed(progress.warps_over, 0u);
}

}  // namespace gofs::kernels
