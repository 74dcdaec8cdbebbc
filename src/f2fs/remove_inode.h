// SPDX-License-Identifier: Apache-2.0
//
// Removing inodes that no name leads to and that nobody has open: what they hold is freed, then
// they go themselves.
#pragma once

#include "f2fs/directory_blocks.h"

namespace gofs::f2fs {

/// Pages that remove_inode() changes at most, of a directory that is empty: the inode, the node of
/// one more block, and blocks of the NAT for the inode and its xattr node.
inline constexpr uint32_t kPagesToRemoveInode = 4;

namespace detail {

/// Takes all blocks out of a directory. Collective, uniform. 0 or a negative errno: some may still
/// be there.
GOFS_NOINLINE GOFS_HD inline int drop_directory_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                       Writer& writer, Inode& directory) {
  const uint64_t blocks = directory_blocks(directory);
  for (uint64_t first = 0; first < blocks;) {
    const uint64_t index = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(index < blocks);
    BlockPlace place{};
    LastNode last{};
    int error = walk_nodes(warp, volume, lanes, directory, index, place, last, SupplyNothing{});
    error = simt::first_error(warp, error);
    if (error < 0) return error;
    const bool there = index < blocks && last.nid != 0 && last.address != format::kNullAddr;
    for (uint32_t left = warp.ballot(there); left != 0; left &= left - 1) {
      const uint64_t one = warp.shfl(index, simt::lowest_bit(left));
      error = drop_directory_block(warp, volume, writer, directory, one);
      if (error < 0) return error;
    }
    const uint32_t lane = simt::popcount(lanes) - 1;
    first += lane + warp.shfl(place.span, lane);
  }
  return 0;
}

/// Takes the xattr node out of an inode. Collective, uniform. 0 or a negative errno: it is then
/// still there.
GOFS_NOINLINE GOFS_HD inline int drop_xattr_node(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, Inode& inode) {
  const uint32_t nid = inode.xattr_nid;
  if (nid == 0) return 0;
  int error = change_inode(warp, volume, inode.ino, [](format::Inode& raw) {
    raw.i_xattr_nid = 0;
    raw.i_blocks = raw.i_blocks - 1;
  });
  if (error < 0) return error;
  error = simt::first_error(warp, remove_nodes(warp, volume, writer, 1u, nid));
  if (error < 0) {
    (void)change_inode(warp, volume, inode.ino, [&](format::Inode& raw) {
      raw.i_xattr_nid = nid;
      raw.i_blocks = raw.i_blocks + 1;
    });
    return error;
  }
  inode.xattr_nid = 0;
  --inode.block_count;
  return 0;
}

}  // namespace detail

/// Removes an inode, which was loaded, with its xattr node and, of a directory, its blocks; other
/// files have none any more. Collective, uniform, inside the gate; no name leads to it, and nobody
/// has it. 0 or a negative errno: -EOPNOTSUPP (it has blocks or nodes left), -EUCLEAN, -EBUSY, what
/// the device says; it is then still there and sound.
GOFS_NOINLINE GOFS_HD inline int remove_inode(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, Inode& inode) {
  int error = 0;
  if (inode.is_directory() && !inode.has_inline_dentries()) {
    error = detail::drop_directory_blocks(warp, volume, writer, inode);
    if (error < 0) return error;
  }
  if (inode.block_count != 1u + (inode.xattr_nid != 0 ? 1u : 0u)) return -EOPNOTSUPP;
  error = detail::drop_xattr_node(warp, volume, writer, inode);
  if (error < 0) return error;
  return simt::first_error(warp, remove_nodes(warp, volume, writer, 1u, inode.ino));
}

}  // namespace gofs::f2fs
