// SPDX-License-Identifier: Apache-2.0
//
// Making a hole in a file: whole blocks are freed, what else lies in the range becomes zeros. The
// size stays, and so do nodes that have no addresses any more.
#pragma once

#include "f2fs/free_addresses.h"
#include "f2fs/write.h"

namespace gofs::f2fs {

/// Nodes that one portion looks at, at most.
inline constexpr uint32_t kNodesPerPunch = 8;
/// Pages that one portion changes at most: the inode, those nodes, and those of the first and the
/// last block.
inline constexpr uint32_t kPagesToPunch = 1 + kNodesPerPunch + 2;

namespace detail {

/// Frees file blocks from `next` up to `end`, as many as a portion has; `next` becomes the first
/// that was not looked at. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int punch_blocks(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                              uint64_t end, uint8_t* page, uint64_t& next) {
  for (uint32_t node = 0; node < kNodesPerPunch && next < end; ++node) {
    BlockPlace place{};
    LastNode last{};
    const int walked = walk_nodes(warp, op.volume, 1u, inode, next, place, last,
                                  [](uint32_t, const MissingNode&, uint32_t&) { return 0; });
    int error = simt::first_error(warp, warp.thread_rank() == 0 ? walked : 0);
    if (error < 0) return error;
    uint64_t after = next + warp.shfl(place.span, 0);
    AddressRun run{};
    run.nid = warp.shfl(last.nid, 0);
    if (run.nid != 0) {
      const uint64_t first_index = warp.shfl(last.first_index, 0);
      const auto skipped = static_cast<uint32_t>(next - first_index);
      after = first_index + warp.shfl(last.count, 0);
      run.node_offset = node_offset_of(next, inode.slot_count);
      run.first_word = warp.shfl(last.first_word, 0) + skipped;
      run.first_index = next;
      run.count = static_cast<uint32_t>(simt::min(after, end) - next);
      error = clear_run(warp, op, inode, run, page);
      if (error < 0) return error;
    }
    next = simt::min(after, end);
  }
  return 0;
}

/// Clears the part of [from, to) that lies in the block of `from`. Collective, uniform. 0 or a
/// negative errno.
GOFS_HD inline int punch_part(simt::AnyWarp auto warp, Operation& op, const FileHold& file,
                              uint64_t from, uint64_t to) {
  const uint64_t block_end = (from | (kBlockBytes - 1)) + 1;
  const auto bytes = static_cast<uint32_t>(simt::min(to, block_end) - from);
  return clear_in_block(warp, op, file, {from, bytes, nullptr});
}

/// As punch_hole() for a file without inline data; `to` is no further than a file can reach.
GOFS_HD inline int punch_tree(simt::AnyWarp auto warp, Operation& op, const FileHold& file,
                              uint64_t& from, uint64_t to) {
  Inode& inode = file.inode;
  file.check_bytes(from, to);
  int error = 0;
  if ((from & (kBlockBytes - 1)) != 0) {
    error = punch_part(warp, op, file, from, to);
    if (error < 0) return error;
    from = simt::min((from | (kBlockBytes - 1)) + 1, to);
  }
  const uint64_t last = to >> kBlockShift;
  uint64_t next = from >> kBlockShift;
  if (next < last) {
    SpareBlocks<1> spare{};
    if (!take_spares(warp, op.pool(), kFrameTimeoutNs, spare)) return -EBUSY;
    error = punch_blocks(warp, op, inode, last, spare.blocks[0], next);
    release_spares(warp, op.pool(), spare);
    from = next << kBlockShift;
  }
  if (error < 0 || next < last || from == to) return error;
  error = punch_part(warp, op, file, from, to);
  if (error == 0) from = to;
  return error;
}

}  // namespace detail

/// Makes a hole of [from, to), or a portion of it: `from` becomes where it got to, and while that
/// is below `to`, the caller ends the operation, begins another and calls again. Collective,
/// uniform; `file`, a regular one, holds the blocks of the range (all of it where its data is
/// inline), and the caller has no spare blocks. Pages: kPagesToPunch. 0 or a negative errno, as of
/// truncate_file(); a part of the hole may be there then.
GOFS_NOINLINE GOFS_HD inline int punch_hole(simt::AnyWarp auto warp, Operation& op,
                                            const FileHold& file, uint64_t& from, uint64_t to) {
  Inode& inode = file.inode;
  int error = detail::check_change(op.writer, inode, 0);
  if (error < 0) return error;
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  const uint64_t most = format::file_blocks_max(inode.slot_count) * kBlockBytes;
  const uint64_t end = simt::min(to, inode.has_inline_data() ? size : most);
  if (from < end && inode.has_inline_data()) {
    error = detail::clear_inline(warp, op, file, from, end);
    if (error == 0) error = update_inode(warp, op, inode, update_of_times(op.now));
    if (error == 0) from = end;
  } else if (from < end) {
    error = detail::punch_tree(warp, op, file, from, end);
  }
  if (error == 0 && from >= end) from = to;
  return error;
}

}  // namespace gofs::f2fs
