// SPDX-License-Identifier: Apache-2.0
//
// Growing the tree of nodes under an inode, down to the nodes that hold the addresses of certain
// file blocks. A node is made before its parent names it, and the inode counts it before that, so
// that nothing which fails leaves more behind than nodes without addresses, which F2FS allows.
//
// Warps that work on different blocks of one file may need the same node at the same time. One of
// them makes it, with one of the writer's locks of node makers in its hands, and the others find it
// then. Words of the inode and of the parent change beside warps that look at these nodes, so a
// file that many warps grow has neither page held exclusively.
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
/// The same for contiguous blocks, no more than a node has words: two nodes of each level but the
/// uppermost.
inline constexpr uint32_t kPagesToGrowRun = 1 + 2 * 5;

namespace detail {

/// Adds `blocks` (may be negative) to what the inode `ino` of each lane counts. Collective. Per
/// lane 0 or a negative errno.
GOFS_HD inline int count_in_inode(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                  uint32_t ino, int64_t blocks) {
  return change_words(warp, op, lanes, ino, ino, [&](format::NodeBlock& node) {
    simt::add_relaxed(blocks_word(node.inode), static_cast<uint64_t>(blocks));
  });
}

/// Enters the new node `nid` of each lane in its parent, where none stands. Collective; no two
/// lanes mean the same word. Per lane 0 or a negative errno; then the new node is freed.
GOFS_NOINLINE GOFS_HD inline int link_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            uint32_t ino, const MissingNode& missing,
                                            uint32_t nid) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  // First, since the inode stays in memory from then on: taking it back does not need the disk.
  int error = count_in_inode(warp, op, lanes, ino, 1);
  const uint32_t counted = warp.ballot(mine && error == 0);
  const int linked =
      store_addresses(warp, op, counted, missing.parent_nid, ino, missing.parent_word, 1, &nid);
  const uint32_t uncounted = warp.ballot((counted >> warp.thread_rank() & 1u) != 0 && linked < 0);
  if (mine && error == 0) error = linked;
  const uint32_t going = warp.ballot(mine && error < 0);
  if (uncounted != 0) (void)count_in_inode(warp, op, uncounted, ino, -1);
  if (going != 0) (void)remove_nodes(warp, op, going, nid);
  return error;
}

/// Makes the node that each lane misses and enters it in its parent. Collective, by warps that hold
/// the locks of these nodes. Per lane 0 and `nid`, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int make_missing(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const Inode& inode,
                                              const MissingNode& missing, uint32_t& nid) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  uint32_t made = 0;
  int error = take_nids(warp, op, lanes, inode.ino, made);
  if (error < 0) return error;
  const uint32_t flag = missing.node_offset << format::kNodeOffsetShift |
                        (inode.is_directory() ? 0u : uint32_t{format::kNodeCold});
  error = make_nodes(warp, op, lanes, made, inode.ino, flag, [](format::NodeBlock&) {});
  const uint32_t failed = warp.ballot(mine && error < 0);
  if (failed != 0) (void)remove_nodes(warp, op, failed, made);
  const uint32_t linking = lanes & ~failed;
  if (linking != 0) {
    const int linked = link_nodes(warp, op, linking, inode.ino, missing, made);
    if ((linking >> warp.thread_rank() & 1u) != 0) error = linked;
  }
  if (mine && error == 0) nid = made;
  return error;
}

/// The lock of who makes the node that is missing there. Several nodes may share it.
GOFS_HD inline uint32_t& node_maker_lock(Writer& writer, const MissingNode& missing) {
  const uint32_t hash = (missing.parent_nid + missing.parent_word) * 0x9E3779B1u;
  return writer.node_makers[hash >> 16 & (kNodeMakers - 1)];
}

/// Makes the node that each lane misses, one for all lanes that miss the same, or finds what
/// another warp has made meanwhile. Collective, and waits with no lock in its hands. Per lane 0 and
/// `nid`, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int add_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                           const Inode& inode, const MissingNode& missing,
                                           uint32_t& nid) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  // No nid is 0, so what is no lane's parent is no lane's key.
  const uint64_t key = uint64_t{missing.parent_nid} << 32 | missing.parent_word;
  const uint32_t maker = simt::lowest_bit(warp.match_any(mine ? key : uint64_t{rank}));
  bool waiting = mine && maker == rank;
  uint32_t made = 0;
  int error = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  // What stands in the parent's word of each lane in `looking`.
  uint32_t found = 0;
  const auto look = [&](uint32_t looking) {
    return with_nodes(
        warp, op.volume, looking, missing.parent_nid, inode.ino,
        [&](const format::NodeBlock& parent) {
          found = load_address(reinterpret_cast<const uint32_t*>(&parent) + missing.parent_word);
        });
  };
  const auto finish = [&](bool done, int outcome) {
    if (!done) return;
    made = found;
    error = outcome;
    waiting = false;
  };
  while (warp.any(waiting)) {
    // Before the lock is asked for: many may be waiting for what one has made.
    const int seen = look(warp.ballot(waiting));
    finish(waiting && (seen < 0 || found != 0), seen);
    const bool locked = waiting && simt::try_lock(node_maker_lock(op.writer, missing));
    const uint32_t holding = warp.ballot(locked);
    if (holding == 0) {
      if (warp.any(waiting && deadline.passed())) {
        if (waiting) error = -EBUSY;
        break;
      }
      if (warp.any(waiting)) backoff.pause();
      continue;
    }
    warp.sync();
    int outcome = look(holding);
    const uint32_t making = warp.ballot(locked && outcome == 0 && found == 0);
    if (making != 0) {
      const int result = make_missing(warp, op, making, inode, missing, found);
      if ((making >> rank & 1u) != 0) outcome = result;
    }
    warp.sync();
    if (locked) simt::unlock(node_maker_lock(op.writer, missing));
    finish(locked, outcome);
  }
  error = warp.shfl(error, maker);
  made = warp.shfl(made, maker);
  if (mine && error == 0) nid = made;
  return mine ? error : 0;
}

}  // namespace detail

/// Sees to it that the node is there which holds the address of file block `index` of each lane's
/// `inode`, making those that are missing on the way. Collective; lanes may have different files,
/// without inline data. Per lane 0 and `place`, or a negative errno: -EFBIG, -ENOSPC, -EOPNOTSUPP
/// (compressed), -EUCLEAN, -EBUSY, what the device says; nodes may have been made then. i_blocks
/// counts them on the inode's page, not in `inode`. Pages: pages_to_grow().
GOFS_NOINLINE GOFS_HD inline int grow_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            const Inode& inode, uint64_t index,
                                            AddressPlace& place) {
  BlockPlace block{};
  detail::LastNode last{};
  const int error =
      detail::walk_nodes(warp, op.volume, lanes, inode, index, block, last,
                         [&](uint32_t absent, const detail::MissingNode& missing, uint32_t& nid) {
                           return detail::add_nodes(warp, op, absent, inode, missing, nid);
                         });
  const auto slot = static_cast<uint32_t>(index - last.first_index);
  place = AddressPlace{last.nid, last.first_word + slot, slot, last.address};
  return error;
}

}  // namespace gofs::f2fs
