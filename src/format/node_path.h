// SPDX-License-Identifier: Apache-2.0
//
// Which nodes lie between an inode and a file block. The tree under an inode, with N = 1018:
//   i_nid[0], [1]  direct nodes                 of offset 1, 2
//   i_nid[2], [3]  indirect nodes, N directs    of offset 3 and 4+N, their directs right after them
//   i_nid[4]       double indirect, N indirects of offset 5+2N; its k-th indirect is 6+2N+k*(N+1)
#pragma once

#include <cstdint>

#include "format/node.h"

namespace gofs::format {

inline constexpr uint32_t kNodeDepthMax = 3;
inline constexpr uint64_t kDirectBlocks = kNodeSlots;
inline constexpr uint64_t kIndirectBlocks = kDirectBlocks * kNodeSlots;
inline constexpr uint64_t kDoubleIndirectBlocks = kIndirectBlocks * kNodeSlots;

inline constexpr uint32_t kIndirect1Offset = 3;
inline constexpr uint32_t kIndirect2Offset = kIndirect1Offset + 1 + kNodeSlots;
inline constexpr uint32_t kDoubleIndirectOffset = kIndirect2Offset + 1 + kNodeSlots;

/// Whether the node with this offset points to nodes.
GOFS_HD constexpr bool is_indirect_node(uint32_t node_offset) {
  if (node_offset == kXattrNodeOffset) return false;
  if (node_offset == kIndirect1Offset || node_offset == kIndirect2Offset) return true;
  return node_offset >= kDoubleIndirectOffset &&
         (node_offset == kDoubleIndirectOffset ||
          (node_offset - kDoubleIndirectOffset - 1) % (kNodeSlots + 1) == 0);
}

/// Blocks that an inode with `slots_in_inode` data slots can address.
GOFS_HD constexpr uint64_t file_blocks_max(uint32_t slots_in_inode) {
  return slots_in_inode + 2 * kDirectBlocks + 2 * kIndirectBlocks + kDoubleIndirectBlocks;
}

/// Way from the inode to file block `block_index`. Returns the number of nodes below the inode, 0
/// to 3, or -1 if no inode reaches that far. For a depth d:
///   d = 0: offsets[0] is the data slot in the inode (word_of_slot gives the i_addr word);
///   d > 0: offsets[0] indexes i_nid, offsets[1..d-1] index nids, offsets[d] the last node's addr.
/// node_offsets[k] is what the footer of the k-th node says; node_offsets[0] = 0 is the inode.
/// Entries past the depth are not set.
GOFS_HD constexpr int node_path(uint64_t block_index, uint32_t slots_in_inode,
                                uint32_t (&offsets)[4], uint32_t (&node_offsets)[4]) {
  node_offsets[0] = 0;
  if (block_index < slots_in_inode) {
    offsets[0] = static_cast<uint32_t>(block_index);
    return 0;
  }
  uint64_t rest = block_index - slots_in_inode;
  if (rest < 2 * kDirectBlocks) {
    offsets[0] = rest < kDirectBlocks ? 0 : 1;
    node_offsets[1] = 1 + offsets[0];
    offsets[1] = static_cast<uint32_t>(rest - offsets[0] * kDirectBlocks);
    return 1;
  }
  rest -= 2 * kDirectBlocks;
  if (rest < 2 * kIndirectBlocks) {
    const bool second = rest >= kIndirectBlocks;
    const auto in_tree = static_cast<uint32_t>(second ? rest - kIndirectBlocks : rest);
    offsets[0] = second ? 3 : 2;
    node_offsets[1] = second ? kIndirect2Offset : kIndirect1Offset;
    offsets[1] = in_tree / kNodeSlots;
    node_offsets[2] = node_offsets[1] + 1 + offsets[1];
    offsets[2] = in_tree % kNodeSlots;
    return 2;
  }
  rest -= 2 * kIndirectBlocks;
  if (rest < kDoubleIndirectBlocks) {
    const auto in_tree = static_cast<uint32_t>(rest);
    static_assert(kDoubleIndirectBlocks <= 0xFFFFFFFF);
    offsets[0] = 4;
    node_offsets[1] = kDoubleIndirectOffset;
    offsets[1] = in_tree / static_cast<uint32_t>(kIndirectBlocks);
    node_offsets[2] = kDoubleIndirectOffset + 1 + offsets[1] * (kNodeSlots + 1);
    offsets[2] = in_tree / kNodeSlots % kNodeSlots;
    node_offsets[3] = node_offsets[2] + 1 + offsets[2];
    offsets[3] = in_tree % kNodeSlots;
    return 3;
  }
  return -1;
}

/// No file block has this number.
inline constexpr uint64_t kNoFileBlock = ~uint64_t{0};

/// The other way round: the file block of the first address in the node with this offset, or
/// kNoFileBlock for a node without addresses of file blocks.
GOFS_HD constexpr uint64_t first_block_of_node(uint32_t node_offset, uint32_t slots_in_inode) {
  if (node_offset == 0) return 0;
  if (node_offset >= kXattrNodeOffset || is_indirect_node(node_offset)) return kNoFileBlock;
  if (node_offset < kIndirect1Offset) return slots_in_inode + (node_offset - 1) * kDirectBlocks;
  const uint64_t trees = slots_in_inode + 2 * kDirectBlocks;
  if (node_offset < kIndirect2Offset) {
    return trees + (node_offset - kIndirect1Offset - 1) * kDirectBlocks;
  }
  if (node_offset < kDoubleIndirectOffset) {
    return trees + kIndirectBlocks + (node_offset - kIndirect2Offset - 1) * kDirectBlocks;
  }
  const uint32_t rest = node_offset - kDoubleIndirectOffset - 1;
  const uint32_t indirect = rest / (kNodeSlots + 1);
  const uint32_t direct = rest % (kNodeSlots + 1) - 1;  // 0 would be the indirect node itself
  if (indirect >= kNodeSlots) return kNoFileBlock;
  return trees + 2 * kIndirectBlocks + indirect * kIndirectBlocks + direct * kDirectBlocks;
}

}  // namespace gofs::format
