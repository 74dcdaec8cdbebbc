// SPDX-License-Identifier: Apache-2.0
//
// Removing inodes that no name leads to and that are not open: what they hold is freed, then they
// go themselves.
#pragma once

#include "f2fs/directory_blocks.h"
#include "f2fs/truncate.h"

namespace gofs::f2fs {

/// Blocks of a directory that one portion takes out. An empty directory has one, unless others than
/// we have left it so.
inline constexpr uint32_t kDropsPerPortion = 8;
/// Pages that one portion of remove_inode() changes at most: the inode, blocks of the NAT for it
/// and its xattr node, nodes of a directory's blocks, and what truncate_file() changes.
inline constexpr uint32_t kPagesToRemoveInode = 3 + kDropsPerPortion + kPagesToTruncate;

namespace detail {

/// Takes the blocks out of a directory, as many as a portion has; `more`: there may be others.
/// Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int drop_directory_blocks(simt::AnyWarp auto warp, Operation& op,
                                                       Inode& directory, bool& more) {
  uint32_t dropped = 0;
  const uint64_t blocks = directory_blocks(directory);
  for (uint64_t first = 0; first < blocks;) {
    const uint64_t index = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(index < blocks);
    BlockPlace place{};
    LastNode last{};
    int error = walk_nodes(warp, op.volume, lanes, directory, index, place, last, SupplyNothing{});
    error = simt::first_error(warp, error);
    if (error < 0) return error;
    const bool there = index < blocks && last.nid != 0 && last.address != format::kNullAddr;
    for (uint32_t left = warp.ballot(there); left != 0; left &= left - 1) {
      more = dropped++ == kDropsPerPortion;
      if (more) return 0;
      const uint64_t one = warp.shfl(index, simt::lowest_bit(left));
      error = drop_directory_block(warp, op, directory, one);
      if (error < 0) return error;
    }
    const uint32_t lane = simt::popcount(lanes) - 1;
    first += lane + warp.shfl(place.span, lane);
  }
  return 0;
}

/// 0 if the xattr node of an inode is one and its own. Collective, uniform. Else a negative errno.
GOFS_NOINLINE GOFS_HD inline int check_xattr_node(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& inode) {
  uint32_t offset = 0;
  const int read =
      with_nodes(warp, volume, warp.ballot(true), inode.xattr_nid, inode.ino,
                 [&](const format::NodeBlock& node) { offset = node.footer.node_offset(); });
  const int error = simt::first_error(warp, read);
  if (error < 0) return error;
  const bool right = offset == format::kXattrNodeOffset && inode.xattr_nid != inode.ino;
  if (warp.all(right)) return 0;
  return report_once(warp, *volume.corruptions,
                     {Structure::kNodeFooter, 0, inode.xattr_nid, inode.ino});
}

/// Takes the xattr node out of an inode. Collective, uniform. 0 or a negative errno: it is then
/// still there.
GOFS_NOINLINE GOFS_HD inline int drop_xattr_node(simt::AnyWarp auto warp, Operation& op,
                                                 Inode& inode) {
  const uint32_t nid = inode.xattr_nid;
  if (nid == 0) return 0;
  int error = check_xattr_node(warp, op.volume, inode);
  if (error < 0) return error;
  error = change_inode(warp, op, inode.ino, [](format::Inode& raw) {
    raw.i_xattr_nid = 0;
    raw.i_blocks = raw.i_blocks - 1;
  });
  if (error < 0) return error;
  error = simt::first_error(warp, remove_nodes(warp, op, 1u, nid));
  if (error < 0) {
    (void)change_inode(warp, op, inode.ino, [&](format::Inode& raw) {
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

/// Removes an inode, which was loaded, with its blocks, nodes and attributes, or does a portion of
/// that: `more` says so, and the caller ends the operation, begins another and calls again.
/// Collective, uniform, each lane with an `inode` of its own; no name leads to it, it is not open,
/// and the caller has no spare blocks. 0 or a negative errno: -EUCLEAN, -EBUSY, what the device
/// says; the inode is then still there, and sound. Pages: kPagesToRemoveInode.
GOFS_NOINLINE GOFS_HD inline int remove_inode(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                              bool& more) {
  more = false;
  int error = 0;
  if (detail::has_addresses(inode)) {
    // The pages of a directory's blocks must not be met by the next inode of its number.
    if (inode.is_directory()) {
      error = detail::drop_directory_blocks(warp, op, inode, more);
    }
    if (error == 0 && !more) {
      error = truncate_file(warp, op, FileHold::of_unreachable(inode), 0, more);
    }
    // All lanes get what the first one's inode has.
    const int reloaded =
        simt::first_error(warp, load_inodes(warp, op.volume, warp.ballot(true), inode.ino, inode));
    if (error == 0) error = reloaded;
    if (error < 0 || more) return error;
  }
  error = detail::drop_xattr_node(warp, op, inode);
  if (error < 0) return error;
  return simt::first_error(warp, remove_nodes(warp, op, 1u, inode.ino));
}

}  // namespace gofs::f2fs
