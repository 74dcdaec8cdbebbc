// SPDX-License-Identifier: Apache-2.0
//
// Making a mounted volume one that can be written to: what a writer (writer.h) has to know of the
// last checkpoint is read and checked.
#pragma once

#include "f2fs/segment_maps.h"

namespace gofs::f2fs {

enum class WriteProblem : uint32_t {
  kNone,
  kDevice,      // value: errno of a read
  kFeature,     // value: features that cannot be written yet
  kSections,    // value: segments of a section, which here have data and nodes side by side
  kSegments,    // the SIT contradicts itself; the log of corruptions says where
  kCurrentLog,  // value: log whose segment cannot be one
  kNat,         // its journal names nodes that cannot be; the log of corruptions says which
  kOrphans,     // their list in the checkpoint cannot be one; the log of corruptions says where
  kRecovery,    // orphans could not be freed; value: how many are left
  kFsyncLog,    // what fsync has made durable after the checkpoint could not be taken over
};

struct WriteResult {
  WriteProblem problem;
  int error;  // 0 or a negative errno
  uint64_t value;
};

namespace detail {

/// Features whose structures change with the data and are not kept up.
inline constexpr uint32_t kFeaturesReadOnly = format::kFeatureQuota | format::kFeatureCasefold;

/// The summaries of the data logs from their compact form, which begins at `first_block`.
/// Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int load_compact_summaries(simt::AnyWarp auto warp, Volume& volume,
                                                        Writer& writer, uint32_t first_block) {
  const uint32_t rank = warp.thread_rank();
  uint8_t* const page = writer.pages;
  uint32_t loaded = ~0u;
  uint32_t before = 0;
  for (uint32_t log = 0; log < format::kDataLogCount; ++log) {
    const uint32_t count = writer.logs[log].alloc_type == format::kAllocSsr
                               ? format::kBlocksPerSegment
                               : writer.logs[log].next;
    for (uint32_t i = 0; i < count;) {
      const format::CompactPlace place = format::compact_summary_place(before + i);
      if (place.block != loaded) {
        const int error = read_uniform(warp, volume, first_block + place.block, page);
        if (error < 0) return error;
        loaded = place.block;
      }
      // As many as lie in this block.
      uint32_t run = 1;
      while (i + run < count &&
             format::compact_summary_place(before + i + run).block == place.block) {
        ++run;
      }
      const auto* entries =
          reinterpret_cast<const format::SummaryEntry*>(page + place.offset_bytes);
      for (uint32_t k = rank; k < run; k += warp.size()) {
        writer.summaries[log].entries[i + k] = entries[k];
      }
      i += run;
      warp.sync();
    }
    before += count;
  }
  return 0;
}

/// The summary of a node log that the pack does not have, from the nodes themselves. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int rebuild_node_summary(simt::AnyWarp auto warp, Volume& volume,
                                                      Writer& writer, uint32_t log) {
  const uint32_t width = simt::min(warp.size(), kWriterPages);
  const uint32_t rank = warp.thread_rank();
  const uint32_t segno = writer.logs[log].segno;
  const SegmentInfo& segment = writer.segments.segments[segno];
  uint8_t* const page = writer.pages + uint64_t{rank} * kBlockBytes;
  for (uint32_t first = 0; first < format::kBlocksPerSegment; first += width) {
    const uint32_t offset = first + rank;
    const bool mine = rank < width && offset < format::kBlocksPerSegment &&
                      (segment.valid[offset / 32] >> offset % 32 & 1u) != 0;
    const uint32_t lanes = warp.ballot(mine);
    if (lanes == 0) continue;
    const int read =
        read_blocks(warp, volume, lanes, volume.geometry.block_of(segno, offset), page);
    const int error = simt::first_error(warp, mine ? read : 0);
    if (error < 0) return error;
    if (mine) {
      const auto& node = *reinterpret_cast<const format::NodeBlock*>(page);
      writer.summaries[log].entries[offset].nid = uint32_t{node.footer.nid};
    }
  }
  warp.sync();
  return 0;
}

/// The summaries of the six logs, as the checkpoint pack has them. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int load_summaries(simt::AnyWarp auto warp, Volume& volume,
                                                Writer& writer) {
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  const uint32_t base = volume.geometry.pack_block(volume.checkpoint_pack);
  const bool compact = checkpoint.has(format::kCheckpointCompactSummary);
  const bool nodes = format::has_node_summaries(checkpoint);
  const uint32_t end = nodes ? format::kLogCount : format::kDataLogCount;
  for (uint32_t log = compact ? format::kDataLogCount : 0; log < end; ++log) {
    const uint32_t block = base + format::summary_block_in_pack(checkpoint, log);
    const int error =
        read_uniform(warp, volume, block, reinterpret_cast<uint8_t*>(&writer.summaries[log]));
    if (error < 0) return error;
  }
  if (compact) {
    const int error =
        load_compact_summaries(warp, volume, writer, base + checkpoint.cp_pack_start_sum);
    if (error < 0) return error;
  }
  for (uint32_t log = end; log < format::kLogCount; ++log) {
    const int error = rebuild_node_summary(warp, volume, writer, log);
    if (error < 0) return error;
  }
  if (warp.thread_rank() == 0) {
    for (uint32_t log = 0; log < format::kLogCount; ++log) {
      writer.summaries[log].footer.entry_type =
          format::is_node_log(log) ? format::kSummaryNode : format::kSummaryData;
    }
    // Their entries stand in the tables now, or are about to.
    writer.summaries[format::kHotData].nat_journal.count = 0;
    writer.summaries[format::kColdData].sit_journal.count = 0;
  }
  warp.sync();
  return 0;
}

/// Enters what the checkpoint's journal says into the NAT's pages, to be written. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int take_nat_journal(simt::AnyWarp auto warp, Operation& op) {
  const uint32_t count = op.volume.nat_journal_count;
  int error = 0;
  // One after the other: a journal may name a node twice.
  for (uint32_t i = 0; i < count && error == 0; ++i) {
    const JournaledNat journaled = op.volume.nat_journal[i];
    if (journaled.nid >= op.volume.geometry.nid_count()) {
      error =
          report_once(warp, *op.volume.corruptions, {Structure::kNatEntry, 0, journaled.nid, i});
      break;
    }
    const int entered = change_nat(warp, op, 1u, journaled.nid, [&](format::NatEntry& entry) {
      entry.version = journaled.record.version;
      entry.ino = journaled.record.ino;
      entry.block_addr = journaled.record.block;
    });
    error = simt::first_error(warp, warp.thread_rank() == 0 ? entered : 0);
  }
  warp.sync();  // all lanes have read it
  if (error == 0 && warp.thread_rank() == 0) op.volume.nat_journal_count = 0;
  warp.sync();
  return error;
}

/// Sets the places where searches for free nids begin. One lane.
GOFS_HD inline void spread_cursors(const Volume& volume, Writer& writer, uint32_t first) {
  const uint32_t nids = volume.geometry.nid_count();
  const uint32_t blocks = nids / format::kNatEntriesPerBlock;
  const uint32_t apart = simt::max(blocks / kNidCursors, 1u) * format::kNatEntriesPerBlock;
  for (uint32_t i = 0; i < kNidCursors; ++i) {
    writer.nid_cursors[i].next =
        static_cast<uint32_t>((first + uint64_t{i} * apart) % simt::max(nids, 1u));
  }
}

/// Lets all segments that hold nothing, and are not withheld, be free but for those of the logs:
/// what holds nothing now held nothing at the last checkpoint. Collective, before any other use.
GOFS_HD inline void take_free_segments(simt::AnyWarp auto warp, const Volume& volume,
                                       Writer& writer) {
  if (warp.thread_rank() == 0) {
    for (uint32_t i = 0; i < volume.sit_journal_count; ++i) {
      note_empty(writer, volume.sit_journal[i].segno);
    }
  }
  warp.sync();
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  uint32_t count = 0;
  for (uint32_t word = warp.thread_rank(); word < words; word += warp.size()) {
    uint32_t bits = simt::load_relaxed(writer.empty_map[word]) & ~withheld_in(writer, word);
    for (const Log& log : writer.logs) {
      if (log.segno / 32 == word) bits &= ~(1u << log.segno % 32);
    }
    writer.free_map[word] = bits;
    // Whether the SSD was told of what was free before is not known.
    writer.discarded[word] = bits;
    count += simt::popcount(bits);
  }
  count = simt::reduce_add(warp, count);
  if (warp.thread_rank() == 0) simt::store_relaxed(writer.free_count, count);
  warp.sync();
}

/// The first log whose segment cannot be its own, or kLogCount. One lane.
GOFS_HD inline uint32_t wrong_log(const Writer& writer) {
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    const Log& mine = writer.logs[log];
    const SegmentInfo& segment = writer.segments.segments[mine.segno];
    const bool taken = (segment.valid[mine.next / 32] >> mine.next % 32 & 1u) != 0;
    bool shared = false;
    for (uint32_t other = 0; other < log; ++other) {
      shared = shared || writer.logs[other].segno == mine.segno;
    }
    if (shared || taken || segment.type != log || mine.alloc_type > format::kAllocSsr) return log;
  }
  return format::kLogCount;
}

}  // namespace detail

/// The first step: reads the SIT, which has half a million entries for 1 TiB. Collective; warps 0
/// to `warp_count` - 1 do it together, before any other use of `writer`. 0 or a negative errno, for
/// all lanes of a warp alike.
GOFS_NOINLINE GOFS_HD inline int read_segments(simt::AnyWarp auto warp, Volume& volume,
                                               Writer& writer, uint32_t warp_index,
                                               uint32_t warp_count) {
  return load_segments(warp, volume, writer.segments, warp_index, warp_count,
                       [&](uint32_t segno) { detail::note_empty(writer, segno); });
}

/// Makes a mounted volume one that can be written to: reads the summaries of the logs, and the list
/// of orphans, which recover_orphans() frees afterwards. Before anything else is changed comes
/// recover_files(), also where the volume was unmounted cleanly. Collective, by one warp, after
/// read_segments(), whose error is `read`, or 0. Uniform answer; -EROFS for a volume that can only
/// be read.
GOFS_NOINLINE GOFS_HD inline WriteResult begin_writing(simt::AnyWarp auto warp, Volume& volume,
                                                       Writer& writer, int read) {
  const uint32_t unsupported = volume.geometry.feature & detail::kFeaturesReadOnly;
  if (unsupported != 0) return {WriteProblem::kFeature, -EROFS, unsupported};
  // Linux cleans whole sections, and takes one with both for damaged.
  const uint32_t segments = volume.geometry.section_segments;
  if (segments != 1) return {WriteProblem::kSections, -EROFS, segments};
  int error = read;
  if (error == 0) error = take_sit_journal(warp, volume, writer.segments);
  if (error == -EUCLEAN) return {WriteProblem::kSegments, error, 0};
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  uint32_t wrong = format::kLogCount;
  if (warp.thread_rank() == 0) {
    const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
    detail::spread_cursors(volume, writer, checkpoint.next_free_nid);
    for (uint32_t log = 0; log < format::kLogCount; ++log) {
      const uint32_t segno = checkpoint.cur_segno(log);
      writer.logs[log] = {0, segno, checkpoint.cur_blkoff(log), checkpoint.alloc_type[log],
                          writer.segments.segments[segno].valid_count};
    }
    for (uint32_t i = 0; i < writer.open_count; ++i) {
      writer.open[i].place = kNoOpenPlace;
      writer.open[i].full = format::kNullSegno;
    }
    writer.began_ns = simt::now_ns();
    writer.writes_over &= volume.array.atomic_blocks;
    wrong = detail::wrong_log(writer);
  }
  wrong = warp.shfl(wrong, 0);
  warp.sync();
  if (wrong != format::kLogCount) return {WriteProblem::kCurrentLog, -EUCLEAN, wrong};
  error = detail::load_summaries(warp, volume, writer);
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  Operation op = Operation::before_others(volume, writer);
  error = detail::take_nat_journal(warp, op);
  if (error == -EUCLEAN) return {WriteProblem::kNat, error, 0};
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  error = detail::load_orphans(warp, volume, writer.orphans, writer.pages);
  if (error == -EUCLEAN) return {WriteProblem::kOrphans, error, 0};
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  detail::take_free_segments(warp, volume, writer);
  if (warp.thread_rank() == 0) {
    volume.xattr_locks = writer.xattr_locks;
    writer.fsync_log = FsyncLog{};
    writer.fsync_log.follows_another = 1;
  }
  warp.sync();
  return {WriteProblem::kNone, 0, 0};
}

/// Blocks that users cannot have where `withheld` segments are not taken: as on a smaller volume,
/// less is kept back for cleaning.
GOFS_HD inline uint64_t withheld_blocks_of(uint32_t main_segments, uint64_t user_block_count,
                                           uint32_t withheld) {
  if (withheld == 0) return 0;
  const uint32_t rest = main_segments - withheld;
  const uint32_t kept = format::choose_overprovision(rest).overprov_segments;
  const uint64_t room = uint64_t{rest - simt::min(kept, rest)} * format::kBlocksPerSegment;
  return user_block_count - simt::min(room, user_block_count);
}

/// Takes from users the room of the segments that are withheld: what they cannot have is refused
/// when it is counted, at once, as on a smaller volume. Where something lies in such segments, as
/// blocks of zeros in a sparse image, it is not written over where it is: that would take room
/// which others count on. Collective, by one warp, after begin_writing() and recovery, which counts
/// what is there.
GOFS_HD inline void withhold(simt::AnyWarp auto warp, Volume& volume, Writer& writer) {
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  uint32_t segments = 0;
  bool in_use = false;
  for (uint32_t word = warp.thread_rank(); word < words; word += warp.size()) {
    const uint32_t withheld = detail::withheld_in(writer, word);
    segments += simt::popcount(writer.empty_map[word] & withheld);
    in_use = in_use || (withheld & ~writer.empty_map[word]) != 0;
  }
  segments = simt::reduce_add(warp, segments);
  in_use = warp.any(in_use);
  if (warp.thread_rank() == 0) {
    if (in_use) writer.writes_over = 0;
    const uint64_t used = volume.valid_block_count;
    const uint64_t left = volume.user_block_count - simt::min(used, volume.user_block_count);
    volume.withheld_blocks = simt::min(
        withheld_blocks_of(volume.geometry.main_segments, volume.user_block_count, segments), left);
    volume.user_block_count -= volume.withheld_blocks;
  }
  warp.sync();
}

}  // namespace gofs::f2fs
