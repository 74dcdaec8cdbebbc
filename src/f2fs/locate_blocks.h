// SPDX-License-Identifier: Apache-2.0
//
// From a block to the file that it belongs to, the other way round than map.h. The summary of its
// segment says which node held its address when it was written; whether that is still so, the NAT
// and the node say. What is out of date is no error: the file has changed since, or was removed.
#pragma once

#include "f2fs/truncate.h"
#include "f2fs/victims.h"

namespace gofs::f2fs {

/// A block of a file's contents, or of a directory.
struct FileBlock {
  uint64_t index;
  Inode inode;  // as it is on its page
};

/// Finds the file block whose address `owner` holds, one a lane. Collective. Per lane 0; -ENOENT
/// where the node was freed or holds another address; or another negative errno. What was found may
/// change at any time, unless the caller keeps it from that.
GOFS_NOINLINE GOFS_HD inline int locate_blocks(simt::AnyWarp auto warp, Volume& volume,
                                               uint32_t lanes, const BlockOwner& owner,
                                               FileBlock& found) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = 0;
  const auto left = [&] { return warp.ballot(mine && error == 0); };
  NatRecord record{};
  const int looked_up = look_up_nat(warp, volume, lanes, owner.nid, record);
  if (mine) error = looked_up;
  const bool there = record.block != format::kNullAddr && record.version == owner.version;
  if (mine && error == 0 && !there) error = -ENOENT;

  Inode& inode = found.inode;
  int unpacked = 0;
  const int loaded =
      find_nodes(warp, volume, left(), record.ino, record.ino, [&](const format::NodeBlock& node) {
        unpacked = detail::unpack_inode(volume, node, record.ino, inode);
        if (unpacked == 0 && !detail::has_addresses(inode)) unpacked = -ENOENT;
      });
  if (mine && error == 0) error = loaded < 0 ? loaded : unpacked;

  uint64_t first = 0;
  uint32_t address = format::kNullAddr;
  const int read =
      find_nodes(warp, volume, left(), owner.nid, record.ino, [&](const format::NodeBlock& node) {
        first = format::first_block_of_node(node.footer.node_offset(), inode.slot_count);
        if (owner.nid != record.ino) {
          address = load_address(&node.direct.addr[owner.slot]);
        } else if (owner.slot < inode.slot_count) {
          address = load_address(&node.inode.i_addr[inode.extra_words + owner.slot]);
        }
      });
  if (mine && error == 0) error = read;
  if (mine && error == 0 && (address != owner.block || first == format::kNoFileBlock)) {
    error = -ENOENT;
  }
  found.index = first + owner.slot;
  return error;
}

}  // namespace gofs::f2fs
