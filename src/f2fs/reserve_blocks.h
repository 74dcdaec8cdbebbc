// SPDX-License-Identifier: Apache-2.0
//
// Blocks that a file has before anything is written to them: kNewAddr stands where their addresses
// will. They count as used, so that a write to them finds room, and they read as zeros. The nodes
// that hold their addresses are made with them.
#pragma once

#include "f2fs/punch_hole.h"

namespace gofs::f2fs {

/// Which blocks of a range are to be reserved.
enum class Reserve : uint32_t {
  kHoles,  // those that are not there
  kAll,    // also those with contents, which are lost
};

/// Pages that one portion changes at most.
inline constexpr uint32_t kPagesToReserve = pages_to_grow(1);

namespace detail {

/// Makes a run reserved blocks, with a spare block `page`. Collective, uniform. 0, or a negative
/// errno and nothing has changed. Changes two pages.
GOFS_NOINLINE GOFS_HD inline int reserve_run(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                             const AddressRun& run, Reserve which, uint8_t* page) {
  const bool leader = warp.thread_rank() == 0;
  uint32_t used = 0;
  int error = copy_addresses(warp, op.volume, inode, run, page);
  if (error == 0) error = count_addresses(warp, op.volume, op.writer, page, run, used);
  const uint32_t added = run.count - used;
  if (error < 0 || (added == 0 && which == Reserve::kHoles)) return error;
  if (added != 0 && !warp.any(leader && count_blocks(op, added))) return -ENOSPC;
  InodeUpdate update = update_of_times(op.now);
  update.blocks = added;
  const uint64_t end = (run.first_index + run.count) << kBlockShift;
  error = update_inode(warp, op, inode, update, [&](format::Inode& raw) {
    // Or others would take the last block for the end of the file.
    if (end > simt::align_up(raw.i_size.value(), uint64_t{kBlockBytes})) {
      raw.i_advise = static_cast<uint8_t>(raw.i_advise | format::kAdviseKeepSize);
    }
  });
  if (error == 0) {
    const int changed = change_nodes_together(
        warp, op, warp.ballot(true), run.nid, inode.ino, [&](format::NodeBlock& node) {
          auto* const words = reinterpret_cast<format::le32*>(&node) + run.first_word;
          for (uint32_t i = warp.thread_rank(); i < run.count; i += warp.size()) {
            if (which == Reserve::kAll || words[i] == format::kNullAddr) {
              words[i] = format::kNewAddr;
            }
          }
        });
    error = simt::first_error(warp, changed);
    if (error < 0) (void)count_blocks_of(warp, op, inode, -int64_t{added});
  }
  if (error < 0) {
    if (leader) uncount_blocks(op.volume, added);
    return error;
  }
  // Those that had contents count as before.
  if (which == Reserve::kAll) release_addresses(warp, op, inode, page, run, 0);
  return 0;
}

}  // namespace detail

/// Counts the blocks, those of nodes included, that reserving file blocks [first, end) would take.
/// Collective, uniform; `inode` has no inline contents, and the range is not changed meanwhile. 0
/// or a negative errno.
GOFS_NOINLINE GOFS_HD inline int count_to_reserve(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& inode, uint64_t first, uint64_t end,
                                                  uint64_t& missing) {
  missing = 0;
  uint32_t counted[4] = {};  // the missing nodes on the last path, which others may share
  for (uint64_t next = first; next < end;) {
    uint32_t offsets[4] = {};
    uint32_t node_offsets[4] = {};
    const int depth = format::node_path(next, inode.slot_count, offsets, node_offsets);
    if (depth < 0) return -EFBIG;
    const uint32_t slots = depth == 0 ? inode.slot_count : uint32_t{format::kNodeSlots};
    const auto count =
        static_cast<uint32_t>(simt::min<uint64_t>(slots - offsets[depth], end - next));
    BlockPlace place{};
    detail::LastNode last{};
    uint32_t absent = 0;  // the first node that is missing
    const int walked =
        detail::walk_nodes(warp, volume, 1u, inode, next, place, last,
                           [&](uint32_t, const detail::MissingNode& node, uint32_t&) {
                             absent = node.node_offset;
                             return 0;
                           });
    int error = simt::first_error(warp, warp.thread_rank() == 0 ? walked : 0);
    if (error < 0) return error;
    const uint32_t nid = warp.shfl(last.nid, 0);
    absent = warp.shfl(absent, 0);
    if (nid == 0) {
      missing += count;
      bool below = false;
      for (int level = 1; level <= depth; ++level) {
        below = below || node_offsets[level] == absent;
        if (below && counted[level] != node_offsets[level]) {
          counted[level] = node_offsets[level];
          ++missing;
        }
      }
    } else {
      const uint32_t first_word = warp.shfl(last.first_word, 0) + offsets[depth];
      uint32_t holes = 0;
      const int read = with_nodes(
          warp, volume, warp.ballot(true), nid, inode.ino, [&](const format::NodeBlock& node) {
            const auto* const words = reinterpret_cast<const uint32_t*>(&node) + first_word;
            for (uint32_t i = warp.thread_rank(); i < count; i += warp.size()) {
              if (format::load_u32(words + i) == format::kNullAddr) ++holes;
            }
          });
      error = simt::first_error(warp, read);
      if (error < 0) return error;
      missing += simt::reduce_add(warp, holes);
    }
    next += count;
  }
  return 0;
}

/// Reserves file blocks from `next` up to `end`, those of one node; `next` becomes the first that
/// was not looked at, and while that is below `end`, the caller ends the operation, begins another
/// and calls again. The size stays. Collective, uniform; `file`, a regular one without inline data,
/// holds these blocks, and the caller has no spare blocks. Pages: kPagesToReserve. 0, or a negative
/// errno, as of store_pieces(), and these blocks are as they were.
GOFS_NOINLINE GOFS_HD inline int reserve_blocks(simt::AnyWarp auto warp, Operation& op,
                                                const FileHold& file, Reserve which, uint64_t& next,
                                                uint64_t end) {
  Inode& inode = file.inode;
  int error = detail::check_change(op.writer, inode, end << kBlockShift);
  if (error < 0) return error;
  AddressPlace place{};
  const int grown = grow_nodes(warp, op, 1u, inode, next, place);
  error = simt::first_error(warp, warp.thread_rank() == 0 ? grown : 0);
  if (error < 0) return error;
  detail::AddressRun run{};
  run.nid = warp.shfl(place.nid, 0);
  run.node_offset = detail::node_offset_of(next, inode.slot_count);
  run.first_word = warp.shfl(place.word, 0);
  run.first_index = next;
  const uint32_t slots = run.nid == inode.ino ? inode.slot_count : uint32_t{format::kNodeSlots};
  run.count =
      static_cast<uint32_t>(simt::min<uint64_t>(slots - warp.shfl(place.slot, 0), end - next));
  file.check_bytes(next << kBlockShift, (next + run.count) << kBlockShift);
  SpareBlocks<1> spare{};
  if (!take_spares(warp, op.pool(), kFrameTimeoutNs, spare)) return -EBUSY;
  error = detail::reserve_run(warp, op, inode, run, which, spare.blocks[0]);
  release_spares(warp, op.pool(), spare);
  if (error == 0) next += run.count;
  return error;
}

}  // namespace gofs::f2fs
