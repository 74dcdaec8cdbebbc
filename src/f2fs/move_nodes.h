// SPDX-License-Identifier: Apache-2.0
//
// Moving nodes and blocks of directories out of a segment. Both are written to a new block
// whenever they have changed, so it is enough to say that they have: the next checkpoint moves them
// (write_nodes.h, write_directories.h).
#pragma once

#include "f2fs/directory_blocks.h"
#include "f2fs/victims.h"

namespace gofs::f2fs {

/// Pages that moving changes for each node, and for a directory's block.
inline constexpr uint32_t kPagesToMoveNode = 1;
inline constexpr uint32_t kPagesToMoveDirectoryBlock = 2;

/// Has the node of each lane's `owner` moved by the next checkpoint, if it still lies in the block.
/// Collective. Per lane 0, -ENOENT (it does not), or another negative errno. Pages:
/// kPagesToMoveNode a lane.
GOFS_NOINLINE GOFS_HD inline int move_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            const BlockOwner& owner) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  NatRecord record{};
  int error = look_up_nat(warp, op.volume, lanes, owner.nid, record);
  if (mine && error == 0 && record.block != owner.block) error = -ENOENT;
  const uint32_t there = warp.ballot(mine && error == 0);
  const int changed = change_pages(
      warp, op, there, page_key(PageKind::kNode, owner.nid),
      [&](uint32_t missing) {
        return find_nodes(warp, op.volume, missing, owner.nid, record.ino,
                          [](const format::NodeBlock&) {});
      },
      [](uint8_t*) { return true; });
  return error < 0 ? error : changed;
}

/// The same for block `index` of a directory, which the caller holds exclusively, but for readers.
/// Collective, uniform. Pages: kPagesToMoveDirectoryBlock.
GOFS_NOINLINE GOFS_HD inline int move_directory_block(simt::AnyWarp auto warp, Operation& op,
                                                      const Inode& directory, uint64_t index,
                                                      const BlockOwner& owner) {
  AddressPlace at{};
  int error = detail::find_address(warp, op.volume, directory, index, at);
  if (error < 0) return error;
  if (at.nid != owner.nid || at.address != owner.block) return -ENOENT;
  error = change_nodes(warp, op, 1u, at.nid, directory.ino, [](format::NodeBlock&) {});
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  if (error < 0) return error;
  error = detail::change_directory_blocks(warp, op, 1u, directory, index,
                                          [](uint8_t*) { return true; });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

}  // namespace gofs::f2fs
