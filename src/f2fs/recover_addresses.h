// SPDX-License-Identifier: Apache-2.0
//
// Taking over from a node of the fsync log where a file's blocks lie. They were written after the
// last checkpoint, so the segment table and the summaries do not know them yet. By one warp, before
// any other uses the volume; what goes wrong leaves all on the disk as it was.
#pragma once

#include "f2fs/grow_nodes.h"
#include "f2fs/read_fsync_log.h"

namespace gofs::f2fs::detail {

/// The summary of a segment that no log is in, while entries are changed: in a block of
/// Volume::scratch.
struct SummaryDraft {
  format::SummaryBlock* block;
  uint32_t segno;
  bool changed;
};

/// Writes the draft back. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int store_summary(simt::AnyWarp auto warp, Volume& volume, SummaryDraft& draft) {
  if (!draft.changed) return 0;
  warp.sync();
  draft.changed = false;
  return simt::first_error(
      warp,
      write_blocks(warp, volume, 1u, volume.geometry.summary_block(draft.segno), draft.block));
}

/// The log that is in segment `segno`, or kLogCount.
GOFS_HD inline uint32_t log_in_segment(const Writer& writer, uint32_t segno) {
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    if (writer.logs[log].segno == segno) return log;
  }
  return format::kLogCount;
}

/// The summary of a segment, to be changed. Collective, uniform. 0 or a negative errno; -EUCLEAN:
/// it is one of nodes.
GOFS_NOINLINE GOFS_HD inline int open_summary(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, uint32_t segno, SummaryDraft& draft,
                                              format::SummaryBlock*& summary) {
  const uint32_t log = log_in_segment(writer, segno);
  SegmentInfo& segment = writer.segments.segments[segno];
  const bool empty = segment.valid_count == 0;
  const uint32_t type = log != format::kLogCount ? log : segment.type;
  warp.sync();  // all lanes have looked, before one of them claims a block there
  if (format::is_node_log(type) && (log != format::kLogCount || !empty)) return -EUCLEAN;
  summary = log != format::kLogCount ? &writer.summaries[log] : draft.block;
  if (log != format::kLogCount || draft.segno == segno) return 0;
  int error = store_summary(warp, volume, draft);
  if (error < 0) return error;
  warp.sync();
  // What it says of blocks that were free at the last checkpoint means nothing, all else stays.
  error = read_uniform(warp, volume, volume.geometry.summary_block(segno),
                       reinterpret_cast<uint8_t*>(draft.block));
  if (error == 0 && warp.thread_rank() == 0) {
    draft.block->footer.entry_type = format::kSummaryData;
    if (format::is_node_log(type)) segment.type = format::kWarmData;
  }
  draft.segno = error == 0 ? segno : uint32_t{format::kNullSegno};
  warp.sync();
  return error;
}

/// Takes the block of each lane in `lanes` as used, by whom `entry` says. Collective, uniform. 0 or
/// a negative errno; -EUCLEAN: another has it, or it is no place for data.
GOFS_NOINLINE GOFS_HD inline int claim_blocks(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, uint32_t lanes, uint32_t block,
                                              const format::SummaryEntry& entry,
                                              SummaryDraft& draft) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t segno = mine ? volume.geometry.segno_of(block) : 0;
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t one = warp.shfl(segno, simt::lowest_bit(left));
    const uint32_t here = warp.ballot(mine && segno == one);
    left &= ~here;
    format::SummaryBlock* summary = nullptr;
    const int error = open_summary(warp, volume, writer, one, draft, summary);
    if (error < 0) return error;
    bool taken = false;
    if (mine && segno == one) {
      const uint32_t offset = volume.geometry.offset_in_segment(block);
      const uint32_t bit = 1u << offset % 32;
      SegmentInfo& segment = writer.segments.segments[segno];
      taken = (simt::AtomicRef<uint32_t>(segment.valid[offset / 32])
                   .fetch_or(bit, simt::memory_order_relaxed) &
               bit) != 0;
      if (!taken) {
        summary->entries[offset] = entry;
        simt::add_relaxed(segment.valid_count, 1u);
        mark_dirty(writer.segments, segno);
      }
    }
    if (summary == draft.block) draft.changed = true;
    if (warp.any(taken)) return -EUCLEAN;
    warp.sync();
  }
  return 0;
}

/// Makes a hole where another node, or another word of the same one, refers to `block`: F2FS can
/// move blocks, and the node they came from need not be in the fsync log. Collective, uniform. 0 or
/// a negative errno; -EUCLEAN: nothing refers to it.
GOFS_NOINLINE GOFS_HD inline int drop_former_claim(simt::AnyWarp auto warp, Operation& op,
                                                   uint32_t block, SummaryDraft& draft) {
  format::SummaryBlock* summary = nullptr;
  int error =
      open_summary(warp, op.volume, op.writer, op.volume.geometry.segno_of(block), draft, summary);
  if (error < 0) return error;
  const format::SummaryEntry entry = summary->entries[op.volume.geometry.offset_in_segment(block)];
  const uint32_t nid = entry.nid;
  const uint32_t slot = entry.ofs_in_node;
  if (nid >= op.volume.geometry.nid_count()) return -EUCLEAN;
  const uint32_t all = warp.ballot(true);
  NatRecord record{};
  error = simt::first_error(warp, look_up_nat(warp, op.volume, all, nid, record));
  if (error < 0) return error;
  if (record.block == format::kNullAddr || record.version != entry.version) return -EUCLEAN;
  bool dropped = false;
  const int changed = change_nodes(warp, op, 1u, nid, record.ino, [&](format::NodeBlock& node) {
    const NodeAddresses addresses = addresses_of(op.volume, node);
    if (slot >= addresses.count) return;
    auto& word = reinterpret_cast<format::le32*>(&node)[addresses.first_word + slot];
    dropped = word == block;
    if (dropped) word = format::kNullAddr;
  });
  error = simt::first_error(warp, warp.thread_rank() == 0 ? changed : 0);
  if (error < 0) return error;
  if (!warp.any(dropped)) return -EUCLEAN;
  const int counted = count_in_inode(warp, op, 1u, record.ino, -1);
  error = simt::first_error(warp, warp.thread_rank() == 0 ? counted : 0);
  if (error < 0) return error;
  if (warp.thread_rank() == 0) detail::uncount_blocks(op.volume, 1);
  free_blocks(warp, op, 1u, block);
  return 0;
}

/// The node of `inode` that takes the addresses of the fsync log's `node`, made where it is
/// missing; nid 0: neither is there anything to take. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int find_target(simt::AnyWarp auto warp, Operation& op,
                                             const Inode& inode, const format::NodeBlock& node,
                                             AddressPlace& place) {
  const NodeAddresses addresses = addresses_of(op.volume, node);
  if (node.footer.nid == inode.ino) {
    place = {inode.ino, addresses.first_word, 0, 0};
    return 0;
  }
  const uint32_t offset = node.footer.node_offset();  // 0 is that of an inode alone
  const uint64_t index = format::first_block_of_node(offset, inode.slot_count);
  if (offset == 0 || index == format::kNoFileBlock) return -EUCLEAN;
  bool any = false;
  const auto* const words = reinterpret_cast<const format::le32*>(&node);
  for (uint32_t i = warp.thread_rank(); i < format::kNodeSlots; i += warp.size()) {
    any = any || words[i] != format::kNullAddr;
  }
  const uint32_t all = warp.ballot(true);
  if (warp.any(any)) {
    return simt::first_error(warp, grow_nodes(warp, op, all, inode, index, place));
  }
  BlockPlace block{};
  LastNode last{};
  const int error = simt::first_error(
      warp, walk_nodes(warp, op.volume, all, inode, index, block, last, SupplyNothing{}));
  place = {last.nid, 0, 0, 0};
  return error;
}

/// What one lane finds in a word of the file's node and wants there.
struct WordChange {
  uint32_t old_address;
  uint32_t address;
};

/// Reads what stands in the lanes' words. Collective, uniform.
GOFS_HD inline int load_words(simt::AnyWarp auto warp, Volume& volume, uint32_t nid, uint32_t ino,
                              uint32_t word, bool mine, uint32_t& value) {
  return simt::first_error(
      warp, with_nodes(warp, volume, warp.ballot(true), nid, ino, [&](const format::NodeBlock& at) {
        value = mine ? format::load_u32(reinterpret_cast<const uint32_t*>(&at) + word) : 0;
      }));
}

/// Frees the lanes' blocks that others are said to have. Collective, uniform.
GOFS_HD inline int drop_former_claims(simt::AnyWarp auto warp, Operation& op,
                                      const WordChange& change, SummaryDraft& draft, bool& some) {
  bool met = false;
  if (change.address != change.old_address && op.volume.is_main_block(change.address)) {
    const uint32_t offset = op.volume.geometry.offset_in_segment(change.address);
    const SegmentInfo& segment =
        op.writer.segments.segments[op.volume.geometry.segno_of(change.address)];
    met = (simt::load_relaxed(segment.valid[offset / 32]) >> offset % 32 & 1u) != 0;
  }
  some = false;
  for (uint32_t left = warp.ballot(met); left != 0; left &= left - 1) {
    some = true;
    const uint32_t block = warp.shfl(change.address, simt::lowest_bit(left));
    const int error = drop_former_claim(warp, op, block, draft);
    if (error < 0) return error;
  }
  return 0;
}

/// Makes the words of the file's node what the fsync log's says, a word a lane. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int take_words(simt::AnyWarp auto warp, Operation& op, uint32_t ino,
                                            const AddressPlace& place, uint32_t slot,
                                            const WordChange& change,
                                            const format::SummaryEntry& entry,
                                            SummaryDraft& draft) {
  const bool mine = change.address != change.old_address;
  const uint32_t lanes = warp.ballot(mine);
  if (lanes == 0) return 0;
  const uint32_t claims = warp.ballot(mine && op.volume.is_main_block(change.address));
  int error = claim_blocks(warp, op.volume, op.writer, claims, change.address, entry, draft);
  if (error < 0) return error;
  const int changed =
      change_nodes_together(warp, op, lanes, place.nid, ino, [&](format::NodeBlock& node) {
        reinterpret_cast<format::le32*>(&node)[place.word + slot] = change.address;
      });
  error = simt::first_error(warp, mine ? changed : 0);
  if (error < 0) return error;
  const uint32_t more =
      simt::popcount(warp.ballot(mine && change.old_address == format::kNullAddr));
  const uint32_t less = simt::popcount(warp.ballot(mine && change.address == format::kNullAddr));
  const int64_t difference = int64_t{more} - int64_t{less};
  if (difference != 0) {
    const int counted = count_in_inode(warp, op, 1u, ino, difference);
    error = simt::first_error(warp, warp.thread_rank() == 0 ? counted : 0);
    if (error < 0) return error;
    if (warp.thread_rank() == 0) {
      simt::add_relaxed(op.volume.valid_block_count, static_cast<uint64_t>(difference));
    }
  }
  free_blocks(warp, op, warp.ballot(mine && op.volume.is_main_block(change.old_address)),
              change.old_address);
  return 0;
}

/// Takes over the addresses of a node of the fsync log for its file, which has no inline data.
/// Collective, uniform. 0 or a negative errno: -EUCLEAN, -EOPNOTSUPP, what the device says.
GOFS_NOINLINE GOFS_HD inline int recover_addresses(simt::AnyWarp auto warp, Operation& op,
                                                   const Inode& inode,
                                                   const format::NodeBlock& node,
                                                   SummaryDraft& draft) {
  const NodeAddresses addresses = addresses_of(op.volume, node);
  AddressPlace place{};
  if (addresses.count == 0) return 0;
  int error = find_target(warp, op, inode, node, place);
  if (error < 0 || place.nid == 0) return error;
  NatRecord record{};
  error =
      simt::first_error(warp, look_up_nat(warp, op.volume, warp.ballot(true), place.nid, record));
  const auto* const wanted = reinterpret_cast<const format::le32*>(&node) + addresses.first_word;
  for (uint32_t first = 0; first < addresses.count && error == 0; first += warp.size()) {
    const uint32_t slot = first + warp.thread_rank();
    const bool mine = slot < addresses.count;
    WordChange change{};
    change.address = mine ? wanted[slot] : uint32_t{format::kNullAddr};
    const bool known = change.address == format::kNullAddr || change.address == format::kNewAddr ||
                       op.volume.is_main_block(change.address);
    if (warp.any(change.address == format::kCompressAddr)) return -EOPNOTSUPP;
    if (!warp.all(known)) return -EUCLEAN;
    format::SummaryEntry entry{};
    entry.nid = place.nid;
    entry.version = record.version;
    entry.ofs_in_node = static_cast<uint16_t>(slot);
    bool some = true;
    // Once more where the node itself has lost some.
    for (uint32_t turn = 0; turn < 2 && some && error == 0; ++turn) {
      error = load_words(warp, op.volume, place.nid, inode.ino, place.word + slot, mine,
                         change.old_address);
      if (error == 0) {
        error = drop_former_claims(warp, op, change, draft, some);
      }
    }
    if (error == 0) {
      error = take_words(warp, op, inode.ino, place, slot, change, entry, draft);
    }
  }
  return error;
}

}  // namespace gofs::f2fs::detail
