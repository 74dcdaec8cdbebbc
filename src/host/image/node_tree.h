// SPDX-License-Identifier: Apache-2.0
//
// The node blocks that one file or directory needs for the blocks it has, planned before any data
// is written: a data block's summary names the node that will point to it. Start at
// plan_node_tree().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/node_path.h"
#include "host/image/volume_writer.h"

namespace gofs::image {

/// File blocks that lie one after another in the file, and where they were put. `address` is
/// format::kNewAddr for blocks that are only reserved.
struct BlockRun {
  uint32_t file_block;
  uint32_t count;
  uint32_t address;
};

/// A node of the tree. A tree lists them parents first, in the order of the file.
struct PlannedNode {
  uint32_t nid;
  uint32_t node_offset;
  uint32_t depth;           // 1: hangs on the inode
  uint32_t slot_in_parent;  // i_nid index, or slot of an indirect node
  uint32_t first_block;     // file block of a direct node's slot 0
  bool direct;
};

struct NodeTree {
  uint32_t ino = 0;
  uint32_t slots_in_inode = 0;
  std::vector<PlannedNode> nodes;
  std::vector<uint32_t> direct_nodes;  // indexes of the direct ones, ascending by first_block
};

/// Node and slot that hold a block's address, and how many file blocks from it on have theirs in
/// the same node.
struct SlotPlace {
  uint32_t nid;
  uint32_t slot;
  uint32_t blocks_left;
};

/// Allocates the nids for every node that `runs` (ascending, not overlapping) need; their addresses
/// are not looked at. Errors: ENOSPC (nids), EFBIG.
Status plan_node_tree(VolumeWriter& writer, uint32_t ino, uint32_t slots_in_inode,
                      std::span<const BlockRun> runs, NodeTree* tree);

/// `file_block` is one of the planned ones.
SlotPlace find_slot(const NodeTree& tree, uint32_t file_block);

/// Writes the nodes below the inode and fills the inode's own slots. `runs` (ascending) now have
/// addresses; `first_addr_word` is the index of data slot 0 in i_addr.
Status write_node_tree(VolumeWriter& writer, const NodeTree& tree, std::span<const BlockRun> runs,
                       bool of_directory, uint32_t first_addr_word, format::Inode* inode);

}  // namespace gofs::image
