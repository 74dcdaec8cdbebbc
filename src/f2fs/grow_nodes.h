// SPDX-License-Identifier: Apache-2.0
//
// Growing the tree of nodes under an inode, down to the nodes that hold the addresses of certain
// file blocks. A node is made before its parent names it, and the inode counts it before that, so
// that nothing which fails leaves more behind than nodes without addresses, which F2FS allows.
//
// Warps that work on different blocks of one file may need the same node at the same time. Each
// makes one; whose nid comes second to the parent's word takes its own node away again.
#pragma once

#include "f2fs/map.h"
#include "f2fs/node_space.h"

namespace gofs::f2fs {

/// Where the address of a file block stands.
struct AddressPlace {
  uint32_t nid;      // of the node
  uint32_t word;     // of the node block, which is an array of words
  uint32_t slot;     // its number among the node's addresses, as summaries have it
  uint32_t address;  // what stands there: a block, kNullAddr or kNewAddr
};

/// Pages that growing may change for `paths` file blocks that lie apart, in different subtrees:
/// three nodes each, for each of them a block of the NAT, and the inode.
GOFS_HD constexpr uint32_t pages_to_grow(uint32_t paths) { return 1 + 6 * paths; }
/// The same for blocks in a row, no more than a node has words: two nodes of each level but the
/// uppermost.
inline constexpr uint32_t kPagesToGrowRun = 1 + 2 * 5;

namespace detail {

/// Adds `blocks` (may be negative) to what the inode of each lane counts. Collective; lanes with
/// the same inode take turns. Per lane 0 or a negative errno.
GOFS_HD inline int count_in_inode(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                  uint32_t ino, int64_t blocks) {
  return change_nodes(warp, volume, lanes, ino, ino, [&](format::NodeBlock& node) {
    node.inode.i_blocks = node.inode.i_blocks + static_cast<uint64_t>(blocks);
  });
}

/// Enters the new node `nid` of each lane in its parent. Where another was quicker, `nid` becomes
/// that one's and the new node goes. Collective; no two lanes mean the same word. Per lane 0 or a
/// negative errno; then the new node is gone.
GOFS_NOINLINE GOFS_HD inline int link_nodes(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                            uint32_t lanes, uint32_t ino,
                                            const MissingNode& missing, uint32_t& nid) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  // First, since the inode stays in memory from then on: taking it back does not need the disk.
  int error = count_in_inode(warp, volume, lanes, ino, 1);
  const uint32_t counted = warp.ballot(mine && error == 0);
  uint32_t before = 0;
  const int linked = change_nodes_together(
      warp, volume, counted, missing.parent_nid, ino, [&](format::NodeBlock& parent) {
        auto* const word = reinterpret_cast<format::le32*>(&parent) + missing.parent_word;
        before = *word;
        if (before == 0) *word = nid;
      });
  const uint32_t unused =
      warp.ballot((counted >> warp.thread_rank() & 1u) != 0 && (linked < 0 || before != 0));
  if (mine && error == 0) error = linked;
  const uint32_t going = warp.ballot(mine && error < 0) | unused;
  if (unused != 0) (void)count_in_inode(warp, volume, unused, ino, -1);
  if (going != 0) (void)remove_nodes(warp, volume, writer, going, nid);
  if (mine && error == 0 && before != 0) nid = before;
  return error;
}

/// Makes the node that each lane misses, one for all lanes that miss the same. Collective. Per lane
/// 0 and `nid`, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int add_nodes(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                           uint32_t lanes, const Inode& inode,
                                           const MissingNode& missing, uint32_t& nid) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  // No nid is 0, so what is no lane's parent is no lane's key.
  const uint64_t key = uint64_t{missing.parent_nid} << 32 | missing.parent_word;
  const uint32_t maker = simt::lowest_bit(warp.match_any(mine ? key : uint64_t{rank}));
  const bool makes = mine && maker == rank;
  const uint32_t makers = warp.ballot(makes);
  uint32_t made = 0;
  int error = take_nids(warp, volume, writer, makers, inode.ino, made);
  if (error < 0) return error;
  const uint32_t flag = missing.node_offset << format::kNodeOffsetShift |
                        (inode.is_directory() ? 0u : uint32_t{format::kNodeCold});
  error = make_nodes(warp, volume, makers, made, inode.ino, flag, [](format::NodeBlock&) {});
  const uint32_t failed = warp.ballot(makes && error < 0);
  if (failed != 0) (void)remove_nodes(warp, volume, writer, failed, made);
  const uint32_t linking = makers & ~failed;
  if (linking != 0) {
    const int linked = link_nodes(warp, volume, writer, linking, inode.ino, missing, made);
    if ((linking >> rank & 1u) != 0) error = linked;
  }
  error = warp.shfl(error, maker);
  made = warp.shfl(made, maker);
  if (mine && error == 0) nid = made;
  return mine ? error : 0;
}

}  // namespace detail

/// Sees to it that the node is there which holds the address of file block `index` of each lane's
/// `inode`, making those that are missing on the way. Collective, inside the gate; lanes may have
/// different files, without inline data. Per lane 0 and `place`, or a negative errno: -EFBIG,
/// -ENOSPC, -EOPNOTSUPP (compressed), -EUCLEAN, -EBUSY, what the device says; nodes may have been
/// made then. i_blocks counts them on the inode's page, not in `inode`. Pages: pages_to_grow().
GOFS_NOINLINE GOFS_HD inline int grow_nodes(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                            uint32_t lanes, const Inode& inode, uint64_t index,
                                            AddressPlace& place) {
  BlockPlace block{};
  detail::LastNode last{};
  const int error = detail::walk_nodes(
      warp, volume, lanes, inode, index, block, last,
      [&](uint32_t absent, const detail::MissingNode& missing, uint32_t& nid) {
        return detail::add_nodes(warp, volume, writer, absent, inode, missing, nid);
      });
  const auto slot = static_cast<uint32_t>(index - last.first_index);
  place = AddressPlace{last.nid, last.first_word + slot, slot, last.address};
  return error;
}

}  // namespace gofs::f2fs
