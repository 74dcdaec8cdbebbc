// SPDX-License-Identifier: Apache-2.0
//
// The fsync log (fsync_log.h) as a crash has left it: its nodes one after the other, from where the
// log of warm nodes was at the last checkpoint. By one warp, before any other uses the volume.
#pragma once

#include "f2fs/freed_since_checkpoint.h"
#include "f2fs/write_nodes.h"

namespace gofs::f2fs::detail {

/// Reads contiguous blocks at once, since that is how most of the log lies: into the writer's
/// pages.
struct FsyncLogReader {
  uint32_t first;
  uint32_t count;
};

/// The block where the fsync log begins.
GOFS_HD inline uint32_t first_of_fsync_log(const Volume& volume) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  return volume.geometry.block_of(checkpoint.cur_segno(format::kWarmNode),
                                  checkpoint.cur_blkoff(format::kWarmNode));
}

/// Whether a block is a node that was written after the last checkpoint.
GOFS_HD inline bool belongs_to_fsync_log(const Volume& volume, const format::NodeBlock& node) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  const uint64_t found = node.footer.cp_ver;
  const bool same = checkpoint.has(format::kCheckpointNoCrcRecovery)
                        ? static_cast<uint32_t>(found) ==
                              static_cast<uint32_t>(uint64_t{checkpoint.checkpoint_ver})
                        : found == node_version(volume);
  const uint32_t nid = node.footer.nid;
  const uint32_t ino = node.footer.ino;
  const uint32_t count = volume.geometry.nid_count();
  return same && nid >= format::kRootIno && nid < count && ino >= format::kRootIno && ino < count;
}

/// The node at `block`, until the next one is read; null where it has ended. Collective, uniform. 0
/// or a negative errno.
GOFS_NOINLINE GOFS_HD inline int read_fsync_node(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, FsyncLogReader& reader,
                                                 uint32_t block, const format::NodeBlock*& node) {
  node = nullptr;
  if (!volume.is_main_block(block)) return 0;
  const uint32_t rank = warp.thread_rank();
  if (block - reader.first >= reader.count) {
    const bool mine = rank < kWriterPages && volume.is_main_block(block + rank);
    const uint32_t lanes = warp.ballot(mine);
    warp.sync();  // the former blocks are not used any more
    const int read = read_blocks(warp, volume, lanes, block + rank,
                                 mine ? writer.pages + uint64_t{rank} * kBlockBytes : nullptr);
    const uint32_t failed = warp.ballot(!mine || read < 0);
    reader = {block, failed == 0 ? warp.size() : simt::lowest_bit(failed)};
    warp.sync();
    // What lies behind may not be needed.
    if (reader.count == 0) return warp.shfl(read, 0);
  }
  const auto* const found = reinterpret_cast<const format::NodeBlock*>(
      writer.pages + uint64_t{block - reader.first} * kBlockBytes);
  if (belongs_to_fsync_log(volume, *found)) node = found;
  return 0;
}

/// The words of a node that are addresses of its file's blocks.
struct NodeAddresses {
  uint32_t first_word;
  uint32_t count;
};
GOFS_HD inline NodeAddresses addresses_of(const Volume& volume, const format::NodeBlock& node) {
  const uint32_t offset = node.footer.node_offset();
  if (offset == format::kXattrNodeOffset || format::is_indirect_node(offset)) return {0, 0};
  if (node.footer.nid != node.footer.ino) return {0, format::kNodeSlots};
  const uint32_t type = node.inode.i_mode & format::kModeTypeMask;
  const bool typed = type == format::kModeRegular || type == format::kModeSymlink ||
                     type == format::kModeDirectory;
  const uint32_t in_inode = format::kInlineData | format::kInlineDentry;
  if (!typed || (node.inode.i_inline & in_inode) != 0) return {0, 0};
  const format::InodeLayout layout = format::inode_layout(node.inode, volume.geometry.feature);
  constexpr uint32_t kFirstWord = offsetof(format::Inode, i_addr) / 4;
  return {kFirstWord + layout.word_of_slot(0), layout.sane ? layout.slot_count : 0};
}

/// Keeps a block from being given out before the next checkpoint. Any lane.
GOFS_HD inline bool keep_block(const Volume& volume, Writer& writer, uint32_t block) {
  const uint32_t segno = volume.geometry.segno_of(block);
  const uint32_t bit = 1u << volume.geometry.offset_in_segment(block) % 32;
  SegmentInfo& segment = writer.segments.segments[segno];
  uint32_t& word = segment.committed[volume.geometry.offset_in_segment(block) / 32];
  mark_dirty(writer.segments, segno);
  return (simt::AtomicRef<uint32_t>(word).fetch_or(bit, simt::memory_order_relaxed) & bit) == 0;
}

/// Logs that would write over what the fsync log has go around it.
GOFS_HD inline void move_logs_aside(Writer& writer) {
  for (uint32_t i = 0; i < format::kLogCount; ++i) {
    Log& log = writer.logs[i];
    const SegmentInfo& segment = writer.segments.segments[log.segno];
    bool met = false;
    for (uint32_t word = log.next / 32; word < kMapWords; ++word) {
      const uint32_t from = word == log.next / 32 ? ~0u << log.next % 32 : ~0u;
      met = met || (segment.committed[word] & from) != 0;
    }
    if (!met) continue;
    log.alloc_type = format::kAllocSsr;
    log.next = next_writable(segment, log.next);
  }
}

/// Goes through the fsync log once: counts its nodes, and keeps them and the blocks that they refer
/// to from being given out. Collective, uniform. 0 or a negative errno; -EUCLEAN (reported): it is
/// none, since it leads to what the checkpoint has, or in a circle.
GOFS_NOINLINE GOFS_HD inline int survey_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                  uint32_t& length) {
  FsyncLogReader reader{};
  uint32_t block = first_of_fsync_log(op.volume);
  for (length = 0;; ++length) {
    const format::NodeBlock* node = nullptr;
    const int error = read_fsync_node(warp, op.volume, op.writer, reader, block, node);
    if (error < 0) return error;
    if (node == nullptr) break;
    const bool fresh = warp.thread_rank() != 0 || keep_block(op.volume, op.writer, block);
    if (!warp.all(fresh)) {
      return report_once(warp, *op.volume.corruptions,
                         {Structure::kNodeFooter, block, node->footer.nid, length});
    }
    const NodeAddresses addresses = addresses_of(op.volume, *node);
    const auto* const words = reinterpret_cast<const format::le32*>(node) + addresses.first_word;
    for (uint32_t i = warp.thread_rank(); i < addresses.count; i += warp.size()) {
      const uint32_t address = words[i];
      if (op.volume.is_main_block(address)) (void)keep_block(op.volume, op.writer, address);
    }
    block = node->footer.next_blkaddr;
    warp.sync();
  }
  if (length == 0) return 0;
  warp.sync();
  if (warp.thread_rank() == 0) move_logs_aside(op.writer);
  warp.sync();
  find_free_segments(warp, op.volume, op.writer, false, true);
  // A log at the end of its segment has no next block.
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    if (op.writer.logs[log].next < format::kBlocksPerSegment) continue;
    const int error = change_segment(warp, op, log);
    if (error < 0) return error;
  }
  return 0;
}

}  // namespace gofs::f2fs::detail
