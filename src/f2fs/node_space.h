// SPDX-License-Identifier: Apache-2.0
//
// Room for nodes: nids, the blocks that they count for, and the pages of nodes that are made or
// removed. A new node is in the NAT with the address kNewAddr until a checkpoint gives it a block.
// Checkpoints come between operations (operation.h), so none comes between a nid and its page.
#pragma once

#include "f2fs/allocate.h"
#include "f2fs/change_pages.h"
#include "f2fs/freed_since_checkpoint.h"

namespace gofs::f2fs {

namespace detail {

/// Where the volume has so many blocks more, it is not checked at once whether these are among
/// them.
inline constexpr uint64_t kPlentyOfBlocks = 1u << 18;

/// Counts `count` more blocks as used, if the volume has them for users. One lane.
GOFS_HD inline bool count_blocks(Operation& op, uint64_t count) {
  simt::AtomicRef<uint64_t> used(op.volume.valid_block_count);
  uint64_t seen = used.load(simt::memory_order_relaxed);
  const uint64_t users = simt::load_relaxed(op.volume.user_block_count);
  bool counted = false;
  // By one addition: of many who compare and exchange, one gets on at a time.
  if (seen + count + kPlentyOfBlocks <= users) {
    seen = used.fetch_add(count, simt::memory_order_relaxed);
    counted = seen + count <= users;
    if (!counted) seen = used.fetch_sub(count, simt::memory_order_relaxed) - count;
  }
  while (!counted) {
    if (seen + count > users) return false;
    counted = used.compare_exchange_weak(seen, seen + count, simt::memory_order_relaxed,
                                         simt::memory_order_relaxed);
  }
  simt::count_relaxed(op.volume.newly_counted, count);
  return true;
}
/// `count` blocks that were counted are not used, or not any more. One lane.
GOFS_HD inline void uncount_blocks(Volume& volume, uint64_t count) {
  simt::add_relaxed(volume.valid_block_count, ~count + 1);
}

/// Free places of block `index` of the NAT for the lanes that are `wanted`, one each, for nodes of
/// the file `ino` (0: of their own). True, and `nid`, on those that get one. Collective, with the
/// page for the warp alone.
GOFS_HD inline bool claim_nids(simt::AnyWarp auto warp, const Volume& volume, NidCursor& cursor,
                               format::NatBlock& nat, uint32_t index, uint32_t ino, bool wanted,
                               uint32_t& nid) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t first = index * format::kNatEntriesPerBlock;
  const uint32_t hint = warp.shfl(simt::load_relaxed(cursor.next), 0);
  const uint32_t wanting = warp.ballot(wanted);
  const uint32_t number = simt::popcount(wanting & simt::ranks_below(rank));
  const uint32_t count = simt::popcount(wanting);
  uint32_t got = 0;  // by all lanes
  bool mine = false;
  uint32_t i = hint / format::kNatEntriesPerBlock == index ? hint - first : 0;
  for (; i < format::kNatEntriesPerBlock && got < count; i += warp.size()) {
    const uint32_t place = i + rank;
    const bool usable = place < format::kNatEntriesPerBlock && first + place >= format::kRootIno &&
                        first + place < volume.geometry.nid_count();
    const uint32_t free = warp.ballot(usable && nat.entries[place].block_addr == format::kNullAddr);
    warp.sync();  // all have looked
    if (wanted && number >= got && number < got + simt::popcount(free)) {
      const uint32_t taken = i + simt::nth_bit(free, number - got);
      nid = first + taken;
      nat.entries[taken].ino = ino == 0 ? nid : ino;
      nat.entries[taken].block_addr = format::kNewAddr;
      mine = true;
      if (number == count - 1) simt::store_relaxed(cursor.next, nid + 1);
    }
    got += simt::popcount(free);
  }
  return mine;
}

}  // namespace detail

/// Takes the nid of each lane in `lanes` out of the NAT again, with its page and its block; an
/// inode is no orphan any more. Collective. Per lane 0 or a negative errno of the device; then the
/// node is still there. Until all of that is done the number is taken, though by no file.
GOFS_NOINLINE GOFS_HD inline int remove_nodes(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, uint32_t nid) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  uint32_t block = format::kNullAddr;
  bool is_inode = false;
  int error = change_nat(warp, op, lanes, nid, [&](format::NatEntry& entry) {
    block = entry.block_addr;
    is_inode = entry.ino == nid;
    entry.ino = 0;
    entry.block_addr = format::kNewAddr;
    ++entry.version;  // what still points here is out of date
  });
  const bool removed = mine && error == 0;
  free_blocks(warp, op, warp.ballot(removed && op.volume.is_main_block(block)), block);
  if (removed) {
    detail::uncount_blocks(op.volume, 1);
    simt::add_relaxed(op.volume.valid_node_count, ~0u);
    if (is_inode) simt::add_relaxed(op.volume.valid_inode_count, ~0u);
    if (is_inode) remove_orphan(op.writer.orphans, nid);
    note_freed(op, freed_nid(nid));
  }
  const int forgotten =
      invalidate_pages(warp, op, warp.ballot(removed), page_key(PageKind::kNode, nid));
  const int freed =
      change_nat(warp, op, warp.ballot(removed && forgotten == 0), nid,
                 [](format::NatEntry& entry) { entry.block_addr = format::kNullAddr; });
  return error < 0 ? error : forgotten < 0 ? forgotten : freed;
}

/// Takes a free nid and counts a block for each lane in `lanes`: for a node of the file `ino`, or,
/// where that is 0 (on all of them or none), for the inode of a new file. Collective. 0 and `nid`,
/// or on all lanes a negative errno, with nothing taken: -ENOSPC, what the device says.
GOFS_NOINLINE GOFS_HD inline int take_nids(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                           uint32_t ino, uint32_t& nid) {
  const bool leader = warp.thread_rank() == 0;
  const uint32_t count = simt::popcount(lanes);
  if (count == 0) return 0;
  if (!warp.any(leader && detail::count_blocks(op, count))) return -ENOSPC;
  const bool are_inodes = warp.shfl(ino, simt::lowest_bit(lanes)) == 0;
  const auto count_nodes = [&](uint32_t nodes) {
    if (!leader) return;
    simt::add_relaxed(op.volume.valid_node_count, nodes);
    if (are_inodes) simt::add_relaxed(op.volume.valid_inode_count, nodes);
  };
  count_nodes(count);
  const uint32_t blocks = nat_blocks(op.volume);
  NidCursor& cursor = op.writer.nid_cursors[warp.shfl(simt::processor_id() % kNidCursors, 0)];
  uint32_t index = warp.shfl(simt::load_relaxed(cursor.next), 0) / format::kNatEntriesPerBlock;
  bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = 0;
  // Once more than there are: in the first one the search may have begun in the middle.
  for (uint32_t looked_at = 0; warp.any(wanted) && looked_at <= blocks && error == 0; ++looked_at) {
    if (index >= blocks) index = 0;
    bool found = false;
    error = simt::first_error(warp, change_nat_block(warp, op, index, [&](format::NatBlock& nat) {
                                found = detail::claim_nids(warp, op.volume, cursor, nat, index, ino,
                                                           wanted, nid);
                                return found;
                              }));
    if (found) wanted = false;
    ++index;
  }
  const uint32_t missing = warp.ballot(wanted);
  if (missing == 0) return 0;
  (void)remove_nodes(warp, op, lanes & ~missing, nid);
  if (leader) {
    detail::uncount_blocks(op.volume, simt::popcount(missing));
  }
  count_nodes(~simt::popcount(missing) + 1);
  return error < 0 ? error : -ENOSPC;
}

/// Makes the page of a new node for each lane in `lanes`: zeros, and a footer with `nid`, `ino` and
/// `flag` (the node's offset, shifted, and kNodeCold), then what `fill(NodeBlock&)` makes of it.
/// Collective, `fill` is not. Per lane 0 or -EBUSY.
template <typename Fill>
GOFS_HD int make_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint32_t nid,
                       uint32_t ino, uint32_t flag, Fill fill) {
  PageCache& cache = op.volume.cache;
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    const uint32_t frame =
        waiting ? claim_frame(cache, page_key(PageKind::kNode, nid)) : uint32_t{kNoFrame};
    warp.sync();  // What each lane acquired, all lanes clear.
    for (uint32_t left = warp.ballot(frame != kNoFrame); left != 0; left &= left - 1) {
      simt::zero_bytes(warp, cache.page(warp.shfl(frame, simt::lowest_bit(left))), kBlockBytes);
    }
    warp.sync();
    if (frame != kNoFrame) {
      auto& node = *reinterpret_cast<format::NodeBlock*>(cache.page(frame));
      node.footer.nid = nid;
      node.footer.ino = ino;
      node.footer.flag = flag;
      fill(node);
      release_frame(op, frame, true);
      waiting = false;
    }
    if (!warp.any(waiting)) return 0;
    if (warp.any(deadline.passed())) return waiting ? -EBUSY : 0;
    backoff.pause();
  }
}

}  // namespace gofs::f2fs
