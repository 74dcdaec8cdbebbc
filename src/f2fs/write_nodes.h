// SPDX-License-Identifier: Apache-2.0
//
// Writing changed nodes: each goes to a new block of a node log, the NAT says so from then on, and
// its former block is released. Blocks that the last checkpoint refers to stay as they are, so this
// may happen at any time; what it says counts from the next checkpoint on.
#pragma once

#include "f2fs/allocate.h"
#include "f2fs/change_pages.h"
#include "f2fs/dirty_pages.h"

namespace gofs::f2fs {

namespace detail {

/// Nodes of directories are written most often, those that point to nodes least.
GOFS_HD inline uint32_t log_of_node(const format::NodeBlock& node) {
  const uint32_t flag = format::load_u32(&node.footer.flag);
  if (format::is_indirect_node(flag >> format::kNodeOffsetShift)) return format::kColdNode;
  return (flag & format::kNodeCold) != 0 ? format::kWarmNode : format::kHotNode;
}

/// What the footer of a node says that is written after the last checkpoint.
GOFS_HD inline uint64_t node_version(const Volume& volume) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  uint64_t version = checkpoint.checkpoint_ver;
  if (checkpoint.has(format::kCheckpointCrcRecovery)) {
    const uint32_t sum = format::load_u32(volume.checkpoint_blocks + checkpoint.checksum_offset);
    version = (version & 0xffffffff) | uint64_t{sum} << 32;
  }
  return version;
}

/// Makes `node` what is to be written, with `marks` (format::NodeFlag) and the place of the next
/// node of the fsync log: footer first, since an inode's sum covers it. One lane.
GOFS_HD inline void seal_node(const Volume& volume, format::NodeBlock& node, uint32_t marks,
                              uint32_t next_block) {
  const uint32_t kept = node.footer.flag & ~uint32_t{format::kNodeFsync | format::kNodeDentry};
  node.footer.flag = kept | marks;
  node.footer.cp_ver = node_version(volume);
  node.footer.next_blkaddr = next_block;
  if (node.footer.nid == node.footer.ino && volume.has_feature(format::kFeatureInodeChecksum) &&
      format::has_extra_field(node.inode, format::kExtraChecksumEnd)) {
    const uint32_t sum = format::inode_checksum(volume.checksum_seed, node);
    format::extra_attr(node.inode).i_inode_checksum = sum;
  }
}

/// Takes the valid pages `key` of the lanes' frames, waiting for those that look at them.
/// Collective, uniform; false (nothing taken) when one did so for kFrameTimeoutNs.
GOFS_HD inline bool take_frames(simt::AnyWarp auto warp, PageCache& cache, bool wanted,
                                uint32_t frame, uint64_t key) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  bool taken = false;
  for (;;) {
    // No thread waits with a pin for another frame, so they all come.
    taken = taken || (wanted && take_frame(cache, frame, key));
    if (warp.all(taken == wanted)) return true;
    if (warp.any(deadline.passed())) {
      if (taken) release_frame(cache, frame, true);
      warp.sync();
      return false;
    }
    backoff.pause();
  }
}

/// Takes a block for each lane's node from its log. Collective. 0, or on all lanes a negative
/// errno, with nothing taken.
GOFS_HD inline int allocate_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                  uint32_t log, const format::SummaryEntry& summary,
                                  uint32_t& block) {
  const uint32_t rank = warp.thread_rank();
  uint32_t done = 0;
  for (uint32_t each = format::kHotNode; each <= format::kColdNode; ++each) {
    const uint32_t mine = warp.ballot((lanes >> rank & 1u) != 0 && log == each);
    if (mine == 0) continue;
    const int error = allocate_blocks(warp, op, mine, each, summary, block);
    if (error < 0) {
      free_blocks(warp, op, done, block);
      return error;
    }
    done |= mine;
  }
  return 0;
}

/// Writes the nodes in the frames of `lanes`, which the caller has taken. Collective. Per lane 0,
/// or a negative errno: then its node is where it was.
GOFS_NOINLINE GOFS_HD inline int write_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                             uint32_t frame) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  auto* const node =
      mine ? reinterpret_cast<format::NodeBlock*>(op.volume.cache.page(frame)) : nullptr;
  const uint32_t nid = mine ? uint32_t{node->footer.nid} : 0;
  NatRecord record{};
  int error = look_up_nat(warp, op.volume, lanes, nid, record);
  const bool is_new = record.block == format::kNewAddr;
  if (mine && error == 0 && !is_new && !op.volume.is_main_block(record.block)) {
    error = report(*op.volume.corruptions, {Structure::kNatEntry, 0, nid, record.block});
  }
  const uint32_t known = warp.ballot(mine && error == 0);
  format::SummaryEntry summary{};
  summary.nid = nid;
  summary.version = record.version;
  uint32_t block = 0;
  const int allocated =
      allocate_nodes(warp, op, known, mine ? log_of_node(*node) : 0, summary, block);
  if (allocated < 0) return error < 0 ? error : allocated;
  if ((known >> warp.thread_rank() & 1u) != 0) {
    seal_node(op.volume, *node, 0, format::kNullAddr);  // no fsync log: a checkpoint follows
  }
  warp.sync();
  const int written = write_blocks(warp, op.volume, known, block, node);
  if (mine && error == 0) error = written;
  const int entered = change_nat(warp, op, warp.ballot(mine && error == 0), nid,
                                 [&](format::NatEntry& entry) { entry.block_addr = block; });
  if (mine && error == 0) error = entered;
  // Of the two blocks, the one that counts is kept.
  const bool written_first = error == 0 && is_new;
  free_blocks(warp, op, warp.ballot((known >> warp.thread_rank() & 1u) != 0 && !written_first),
              error == 0 ? record.block : block);
  return error;
}

}  // namespace detail

/// Writes the nodes in `range` that have changed. Collective, by one warp; others may write other
/// ranges, and no thread changes anything else. Returns, identical in all lanes: 0 or a negative
/// errno, after which those that were not written are still dirty.
GOFS_NOINLINE GOFS_HD inline int write_dirty_nodes(simt::AnyWarp auto warp, Operation& op,
                                                   const MapRange& range) {
  PageCache& cache = op.volume.cache;
  return for_dirty_pages(warp, cache, PageKind::kNode, range,
                         [&](uint32_t lanes, uint32_t frame, uint64_t key) {
                           const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
                           if (!detail::take_frames(warp, cache, mine, frame, key)) return -EBUSY;
                           const int error = detail::write_nodes(warp, op, lanes, frame);
                           if (mine) {
                             if (error == 0) clean_frame(cache, frame, key);
                             release_frame(cache, frame, error < 0);
                           }
                           return simt::first_error(warp, mine ? error : 0);
                         });
}

}  // namespace gofs::f2fs
