// SPDX-License-Identifier: Apache-2.0
#include "host/image/node_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace gofs::image {

using format::kNodeDepthMax;
using format::kNodeSlots;
using format::NodeBlock;

namespace {

/// Appends the direct node that holds `file_block`, below the inode's own slots, and those of its
/// parents that the last direct node did not have. `on_path` is the last way taken, by depth.
Status plan_direct_node(VolumeWriter& writer, uint32_t first_block,
                        std::array<uint32_t, kNodeDepthMax + 1>* on_path, NodeTree* tree) {
  uint32_t slots[4];
  uint32_t node_offsets[4];
  const int found = format::node_path(first_block, tree->slots_in_inode, slots, node_offsets);
  if (found < 1) return Status::failure(-EFBIG, "the file has more blocks than F2FS can map");
  const auto depth = static_cast<uint32_t>(found);
  for (uint32_t level = 1; level <= depth; ++level) {
    if ((*on_path)[level] == node_offsets[level]) continue;
    (*on_path)[level] = node_offsets[level];
    const uint32_t nid = writer.allocate_nid();
    if (nid == 0) return Status::failure(-ENOSPC, "the volume has no free node id");
    if (level == depth) tree->direct_nodes.push_back(static_cast<uint32_t>(tree->nodes.size()));
    tree->nodes.push_back(PlannedNode{nid, node_offsets[level], level, slots[level - 1],
                                      first_block, level == depth});
  }
  return {};
}

/// Goes through runs in ascending order, handing out addresses.
class AddressCursor {
 public:
  explicit AddressCursor(std::span<const BlockRun> runs) : runs_(runs) {}

  /// Puts the addresses of `count` file blocks from `first` on into `slots`.
  void fill(uint32_t first, uint32_t count, format::le32* slots) {
    const uint64_t end = uint64_t{first} + count;
    for (; index_ < runs_.size() && runs_[index_].file_block < end; ++index_) {
      const BlockRun& run = runs_[index_];
      const uint64_t run_end = uint64_t{run.file_block} + run.count;
      const uint64_t from = std::max(run.file_block, first);
      for (uint64_t block = from; block < std::min(run_end, end); ++block) {
        const bool reserved = run.address == format::kNewAddr;
        slots[block - first] = reserved
                                   ? format::kNewAddr
                                   : run.address + static_cast<uint32_t>(block - run.file_block);
      }
      if (run_end > end) return;  // its rest is for the next call
    }
  }

 private:
  std::span<const BlockRun> runs_;
  size_t index_ = 0;
};

}  // namespace

Status plan_node_tree(VolumeWriter& writer, uint32_t ino, uint32_t slots_in_inode,
                      std::span<const BlockRun> runs, NodeTree* tree) {
  tree->ino = ino;
  tree->slots_in_inode = slots_in_inode;
  std::array<uint32_t, kNodeDepthMax + 1> on_path{};
  uint64_t planned_end = slots_in_inode;  // file blocks below this have their nodes
  for (const BlockRun& run : runs) {
    const uint64_t run_end = uint64_t{run.file_block} + run.count;
    for (uint64_t block = std::max<uint64_t>(run.file_block, planned_end); block < run_end;
         block = planned_end) {
      const uint64_t first_block = block - (block - slots_in_inode) % kNodeSlots;
      if (first_block > 0xFFFFFFFF - kNodeSlots) {
        return Status::failure(-EFBIG, "the file has more blocks than F2FS can map");
      }
      GOFS_RETURN_IF_FAILED(
          plan_direct_node(writer, static_cast<uint32_t>(first_block), &on_path, tree));
      planned_end = first_block + kNodeSlots;
    }
  }
  return {};
}

SlotPlace find_slot(const NodeTree& tree, uint32_t file_block) {
  if (file_block < tree.slots_in_inode) {
    return SlotPlace{tree.ino, file_block, tree.slots_in_inode - file_block};
  }
  const auto after = std::upper_bound(
      tree.direct_nodes.begin(), tree.direct_nodes.end(), file_block,
      [&tree](uint32_t block, uint32_t index) { return block < tree.nodes[index].first_block; });
  GOFS_ASSERT(after != tree.direct_nodes.begin());
  const PlannedNode& node = tree.nodes[*(after - 1)];
  const uint32_t slot = file_block - node.first_block;
  GOFS_ASSERT(slot < kNodeSlots);
  return SlotPlace{node.nid, slot, kNodeSlots - slot};
}

Status write_node_tree(VolumeWriter& writer, const NodeTree& tree, std::span<const BlockRun> runs,
                       bool of_directory, uint32_t first_addr_word, format::Inode* inode) {
  AddressCursor addresses(runs);
  addresses.fill(0, tree.slots_in_inode, inode->i_addr + first_addr_word);
  if (tree.nodes.empty()) return {};

  const auto identity = [&](const PlannedNode& node) {
    return VolumeWriter::NodeIdentity{node.nid, tree.ino, node.node_offset, of_directory,
                                      !node.direct};
  };
  // Indirect nodes are written when all their children are known: when the next one of their depth
  // begins, or at the end.
  struct OpenNode {
    const PlannedNode* node = nullptr;
    NodeBlock block{};
  };
  const auto open = std::make_unique<std::array<OpenNode, kNodeDepthMax>>();
  const auto close_from = [&](uint32_t depth) -> Status {
    for (uint32_t level = depth; level < kNodeDepthMax; ++level) {
      OpenNode& one = (*open)[level];
      if (one.node == nullptr) continue;
      GOFS_RETURN_IF_FAILED(writer.write_node(identity(*one.node), &one.block));
      one.node = nullptr;
    }
    return {};
  };

  const auto direct = std::make_unique<NodeBlock>();
  for (const PlannedNode& node : tree.nodes) {
    if (!node.direct) {
      GOFS_RETURN_IF_FAILED(close_from(node.depth));
      (*open)[node.depth].node = &node;
      std::memset(&(*open)[node.depth].block, 0, sizeof(NodeBlock));
    }
    if (node.depth == 1) {
      inode->i_nid[node.slot_in_parent] = node.nid;
    } else {
      (*open)[node.depth - 1].block.indirect.nid[node.slot_in_parent] = node.nid;
    }
    if (node.direct) {
      std::memset(direct.get(), 0, sizeof(NodeBlock));
      addresses.fill(node.first_block, kNodeSlots, direct->direct.addr);
      GOFS_RETURN_IF_FAILED(writer.write_node(identity(node), direct.get()));
    }
  }
  return close_from(1);
}

}  // namespace gofs::image
