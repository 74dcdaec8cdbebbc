// SPDX-License-Identifier: Apache-2.0
//
// Reading runs of blocks, one a lane, each with a single command of its own. What is larger than a
// block usually is contiguous, and the file's block map says so: a lane that asked for one block
// after the other would wait for each of them.
#pragma once

#include "f2fs/read.h"

namespace gofs::f2fs {

namespace detail {

/// How many of the consecutive words from `words` on, `count` at least 1, say that their blocks
/// follow `block` on its SSD.
GOFS_HD inline uint32_t words_in_a_row(const uint32_t* words, uint32_t block, uint32_t count,
                                       uint32_t chunk_mask) {
  constexpr uint32_t kAtOnce = 8;  // loads under way: one after the other, they take 0.3 us each
  for (uint32_t first = 0; first < count; first += kAtOnce) {
    uint32_t found[kAtOnce];
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      found[i] = simt::load_before_command(words[simt::min(first + i, count - 1)]);  // [C5]
    }
    for (uint32_t i = 0; i < kAtOnce && first + i < count; ++i) {
      const uint32_t next = block + 1 + first + i;
      if (found[i] != next || (next & chunk_mask) == 0) return first + i;
    }
  }
  return count;
}

/// How many of `count` blocks from `index` on, of which the map has the first as `block`, follow
/// each other on one SSD. `row` is where the map has it.
GOFS_HD inline uint32_t blocks_in_a_row(const Volume& volume, const Inode& inode, MapRow row,
                                        uint64_t index, uint32_t block, uint32_t count) {
  row = {row.words + 1, row.count - 1};
  for (uint32_t done = 1; done < count;) {
    if (row.count == 0) row = find_map_row(volume, inode, index + done);
    if (row.words == nullptr) return done;
    const auto here = static_cast<uint32_t>(simt::min<uint64_t>(count - done, row.count));
    const uint32_t found =
        words_in_a_row(row.words, block + done - 1, here, volume.array.chunk_mask);
    done += found;
    if (found != here) return done;
    row.count = 0;
  }
  return count;
}

/// A run that one command can put in place.
struct Run {
  uint32_t block;  // where it begins
  uint32_t bytes;  // 0: there is none
};

/// The longest run from `offset` on, of `bytes` (not 0) at most, as far as the file's map knows. It
/// ends at the end of a block, or with `bytes`.
GOFS_HD inline Run find_run(const Volume& volume, const Inode& inode, uint64_t offset,
                            uint64_t bytes, const uint8_t* target) {
  const uint32_t lba_mask = volume.array.lba_bytes() - 1;
  const uint64_t index = offset >> kBlockShift;
  if (inode.has_inline_data() || (offset & lba_mask) != 0 ||
      (reinterpret_cast<uint64_t>(target) & 3) != 0) {
    return {0, 0};
  }
  const MapRow row = find_map_row(volume, inode, index);
  if (row.words == nullptr) return {0, 0};
  const uint32_t block = simt::load_before_command(*row.words);  // [C5]
  if (block == 0 || block == kMappedHole) return {0, 0};
  const auto in_block = static_cast<uint32_t>(offset & (kBlockBytes - 1));
  const uint64_t span = simt::min<uint64_t>(in_block + bytes, volume.array.run_bytes_max);
  const auto count = static_cast<uint32_t>(simt::divide_up(span, kBlockBytes));
  const uint32_t blocks = blocks_in_a_row(volume, inode, row, index, block, count);
  // A part of an LBA at the end is not the device's to put in place, nor then is its block.
  const uint64_t end = simt::min<uint64_t>(in_block + bytes, uint64_t{blocks} * kBlockBytes);
  const uint64_t whole = (end & lba_mask) == 0 ? end : end & ~uint64_t{kBlockBytes - 1};
  return {block, whole > in_block ? static_cast<uint32_t>(whole - in_block) : 0};
}

}  // namespace detail

/// As read_pieces(), but where `runs` and blocks of the piece's file behind it are contiguous, of
/// the `bytes` from its beginning on, they are read with the first, and `piece.bytes` says how many
/// bytes it became. A run that cannot be read may be readable in part.
GOFS_NOINLINE GOFS_HD inline int read_runs(simt::AnyWarp auto warp, Volume& volume,
                                           const PagePool& pool, uint32_t lanes, const Inode& inode,
                                           bool runs, uint64_t bytes, Piece& piece) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const nvme::Route route = nvme::pick_route(volume.array);
  detail::Run run{0, 0};
  if (mine && runs && bytes > piece.bytes) {
    run = detail::find_run(volume, inode, piece.offset, bytes, piece.target);
  }
  // One block, or a part of one, has its place among those of the other lanes.
  const bool longer = run.bytes > piece.bytes;
  const uint32_t running = warp.ballot(longer);
  const uint32_t others = lanes & ~running;
  int result = 0;
  if (running != 0) {
    warp.sync();  // what a lane has acquired with an address, any may have read [C5]
    const int read =
        read_data(warp, route, running,
                  {inode.ino, piece.offset, run.block, run.bytes, piece.target}, Merge::kNothing);
    if (longer) {
      piece.bytes = run.bytes;
      result = read;
    }
  }
  if (others != 0) {
    const int read = read_pieces(warp, volume, pool, others, inode, piece);
    if ((others >> warp.thread_rank() & 1u) != 0) result = read;
  }
  warp.sync();
  return result;
}

}  // namespace gofs::f2fs
