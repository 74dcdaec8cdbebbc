// SPDX-License-Identifier: Apache-2.0
//
// Changing the contents of a file that has them in its inode, and moving them to a block when they
// no longer fit there. The whole file is held.
#pragma once

#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

namespace detail {

GOFS_HD inline uint8_t* inline_area(format::NodeBlock& node, const Inode& inode) {
  return reinterpret_cast<uint8_t*>(&node) + inode.inline_offset;
}

/// Clears the inline bytes [from, to), which may have been left there behind the end of the file.
/// Collective, uniform. 0 or a negative errno.
GOFS_HD inline int clear_inline(simt::AnyWarp auto warp, Operation& op, const FileHold& file,
                                uint64_t from, uint64_t to) {
  const Inode& inode = file.inode;
  file.check_all();
  const int error = change_nodes(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
    for (uint64_t i = from; i < to; ++i) inline_area(node, inode)[i] = 0;
  });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// Stores one piece a lane in the inode, where they all fit, and makes the inode what `update`
/// says. Collective, uniform answer: 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int store_inline(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const FileHold& file,
                                              const WritePiece& piece, const InodeUpdate& update) {
  Inode& inode = file.inode;
  file.check_all();
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int changed =
      change_nodes_together(warp, op, lanes, inode.ino, inode.ino, [&](format::NodeBlock& node) {
        uint8_t* const to = inline_area(node, inode) + piece.offset;
        for (uint32_t i = 0; i < piece.bytes; ++i) {
          to[i] = piece.source == nullptr ? uint8_t{0} : piece.source[i];
        }
      });
  const int error = simt::first_error(warp, mine ? changed : 0);
  if (error < 0) return error;
  return update_inode(warp, op, inode, update,
                      [](format::Inode& raw) { raw.i_inline |= format::kInlineDataExist; });
}

/// As move_out_inline(), to `block`, through the spare block `page`. Nothing refers to the block
/// yet.
GOFS_HD inline int move_out_to(simt::AnyWarp auto warp, Operation& op, Inode& inode, uint32_t block,
                               uint8_t* page) {
  const uint64_t used = simt::min<uint64_t>(inode.size_bytes, inode.inline_bytes);
  const bool leader = warp.thread_rank() == 0;
  simt::zero_bytes(warp, page, kBlockBytes);
  warp.sync();
  const int read = with_nodes(
      warp, op.volume, warp.ballot(true), inode.ino, inode.ino, [&](const format::NodeBlock& node) {
        const auto* const from = reinterpret_cast<const uint8_t*>(&node) + inode.inline_offset;
        simt::copy_bytes(warp, page, from, used);
      });
  int error = simt::first_error(warp, read);
  warp.sync();
  if (error < 0) return error;
  if (used != 0) {
    const int written = write_data(warp, nvme::pick_route(op.volume.array), 1u,
                                   {inode.ino, 0, block, kBlockBytes, page}, Merge::kNothing);
    error = simt::first_error(warp, leader ? written : 0);
    if (error < 0) return error;
  }
  uint32_t* const word = settled_block_word(warp, op.volume, 1u, inode, 0);
  const int changed =
      change_nodes(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
        uint8_t* const area = inline_area(node, inode);
        for (uint32_t i = 0; i < inode.inline_bytes; ++i) area[i] = 0;
        node.inode.i_addr[inode.extra_words] = used != 0 ? block : uint32_t{format::kNullAddr};
        node.inode.i_inline &=
            static_cast<uint8_t>(~(format::kInlineData | format::kInlineDataExist));
        node.inode.i_blocks = node.inode.i_blocks + (used != 0 ? 1 : 0);
        node.inode.i_ext.len = 0;
        refresh_inode(node.inode, inode);
        const uint32_t known = used != 0 ? block : kMappedHole;
        if (word != nullptr) simt::store_after_command(*word, known);  // [C5]
      });
  warp.sync();
  return simt::first_error(warp, leader ? changed : 0);
}

}  // namespace detail

/// Moves inline data to block 0, so that the inode's words are addresses, as it says then.
/// Collective, uniform; `file` holds all of it, and the caller has no spare blocks. 0, or a
/// negative errno and nothing has changed: -ENOSPC, -EBUSY, what the device says. Changes one page.
GOFS_NOINLINE GOFS_HD inline int move_out_inline(simt::AnyWarp auto warp, Operation& op,
                                                 const FileHold& file) {
  Inode& inode = file.inode;
  file.check_all();
  const bool leader = warp.thread_rank() == 0;
  const uint32_t blocks = inode.size_bytes == 0 ? 0 : 1;
  if (leader) note_freed(op, freed_inline_data(inode.ino));
  NatRecord node{};
  const int known = look_up_nat(warp, op.volume, 1u, inode.ino, node);
  int error = simt::first_error(warp, leader ? known : 0);
  if (error < 0) return error;
  SpareBlocks<1> spare{};
  if (!take_spares(warp, op.pool(), kFrameTimeoutNs, spare)) return -EBUSY;
  uint32_t block = 0;
  if (!warp.any(leader && detail::count_blocks(op, blocks))) error = -ENOSPC;
  if (error == 0) {
    format::SummaryEntry summary{};
    summary.nid = inode.ino;
    summary.version = node.version;
    if (blocks != 0) {
      error = allocate_blocks(warp, op, 1u, log_of_data(inode), summary, block);
    }
    if (error == 0) {
      error = detail::move_out_to(warp, op, inode, block, spare.blocks[0]);
      if (error < 0 && blocks != 0) free_blocks(warp, op, 1u, block);
    }
    if (error < 0 && leader) detail::uncount_blocks(op.volume, blocks);
  }
  release_spares(warp, op.pool(), spare);
  return error;
}

}  // namespace gofs::f2fs
