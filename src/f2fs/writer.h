// SPDX-License-Identifier: Apache-2.0
//
// What a volume that is written to has in memory beside what a reader needs: the segment table, the
// six logs and the open segments with their summaries, and the checkpoint that is being made.
// begin_writing() fills it; write_checkpoint.h makes checkpoints from it. Memory is laid out by the
// host (writer_layout.h) when the volume's size is known, that is after mount().
#pragma once

#include "f2fs/change_pages.h"
#include "f2fs/gate.h"
#include "f2fs/mount.h"
#include "f2fs/orphan_blocks.h"
#include "f2fs/segments.h"
#include "format/volume_plan.h"

namespace gofs::f2fs {

/// Where the next block of a kind goes.
struct alignas(128) Log {
  uint32_t lock;  // of what follows and of the log's summary
  uint32_t segno;
  uint32_t next;        // block in the segment; below kBlocksPerSegment
  uint32_t alloc_type;  // format::AllocType
  uint32_t found;       // blocks in use there when the log came
};

/// A segment that the warps of some processors write from one end to the other, without a lock
/// (open_segments.h).
struct alignas(128) OpenSegment {
  uint64_t place;    // segment << 32 | blocks taken; all that it has, or more: full [A1]
  uint32_t entered;  // blocks of it whose entries stand in the summary [A2]
  uint32_t saved;    // of them, when the summary was last written to the SSA
  uint32_t lock;     // of who gives it another segment
};
/// The place of one that has no segment.
inline constexpr uint64_t kNoOpenPlace =
    uint64_t{format::kNullSegno} << 32 | format::kBlocksPerSegment;

/// Where processors search for free nids, each in a part of the NAT of its own as long as there is
/// some: who takes one has its block for himself.
struct alignas(64) NidCursor {
  uint32_t next;  // nid where the next search begins
};
inline constexpr uint32_t kNidCursors = 32;

/// Warps that may clean at a time.
inline constexpr uint32_t kCleaners = 32;

/// What cleaning has done.
struct CleaningCounts {
  uint64_t segments;     // that were emptied
  uint64_t data_blocks;  // moved
  uint64_t node_blocks;
  uint64_t directory_blocks;
  uint64_t left_blocks;  // found in victims and not moved
};

/// What cleaning (victims.h) has to remember.
struct Cleaning {
  // A bit for each main segment:
  uint32_t* victims;     // somebody moves blocks out of it
  uint32_t* held;        // blocks were moved out of it since no place was held
  uint32_t* stuck;       // it has blocks that could not be moved: not worth another try
  uint8_t* pages;        // kCleaners blocks, for summaries of victims
  uint32_t* page_locks;  // one each
  uint32_t free_wanted;  // segments; 0: who writes does not clean
  uint32_t lock;         // of who cleans because there is too little room for him
  // Who could not make room enough has left so many segments free, at that checkpoint: there is no
  // sense in another try before some of them are used, or another checkpoint is made.
  uint32_t retry_below;
  uint64_t tried;
  CleaningCounts counts;   // since the volume was mounted
  uint32_t keeps;          // not 0: the last checkpoint has not let go what was given up before it
  uint32_t places_wanted;  // not 0: a checkpoint waits for it that nobody holds a place
  alignas(128) uint32_t places_held;  // by so many readers (held_places.h),
  uint32_t overwriters_awaited;       // of whom so many wait for those who began to write before
};

/// The chain of nodes that fsync writes to the log of warm nodes (chain.h).
struct alignas(128) Chain {
  uint32_t issued;   // portions that have their places; under the lock of the log
  uint32_t written;  // of them are on the disk, in order
  uint32_t broken;   // what comes now would not be found after a crash: only a checkpoint helps
  // Until the first checkpoint, parts of a former chain may lie where this one goes:
  uint32_t follows_another;
  uint32_t clear_end;  // up to this block of the log's segment none does; under the lock of the log
};

/// Warps that write changed pages together (write_pages.h).
struct WritingCrew {
  alignas(128) uint64_t task;  // what is handed out: PageKind << 32 | the next portion of it [K1]
  uint32_t written;            // portions of it [K2]
  int error;                   // 0 or that of one which failed
};

/// A file that fsync has made durable after the last checkpoint (recover_files.h).
struct RecoveredFile {
  uint32_t ino;          // 0: no file
  uint32_t last_block;   // of the chain's last marked node of it; 0: none is still to be taken over
  uint32_t named_block;  // of its last inode that brings its name, or 0
};
inline constexpr uint32_t kRecoveredFiles = 1024;

/// Blocks that one write under way may hold (held_blocks.h): 1 MiB.
inline constexpr uint32_t kHeldBlocks = 256;

/// Blocks that were taken for contents which are on their way to the SSD, and that nothing refers
/// to as long as they may not have come there.
struct HeldBlocks {
  uint32_t taken;   // somebody's
  uint32_t count;   // of `blocks`; changed inside the gate, but for what goes to 0 as all are used
  uint32_t places;  // of them will be the first at their places in the file
  uint32_t unused;
  uint32_t blocks[kHeldBlocks];
};

/// Blocks that a warp packs before it writes them together.
inline constexpr uint32_t kWriterPages = 32;

struct Writer {
  Gate gate;                       // operations go in, a checkpoint closes it
  alignas(128) uint32_t reserved;  // pages that the operations inside may still change
  SegmentTable segments;
  uint32_t* empty_map;  // a bit for each main segment: it held nothing at the last checkpoint
  uint32_t* free_map;  // a bit for each main segment: free now and at the last checkpoint, no log's
  const uint32_t* withheld;  // a bit for each main segment that the SSD has no room for
                             // (withhold()); null: none
  uint32_t free_hint;        // word of free_map where a search begins
  uint32_t free_count;       // bits of free_map
  uint64_t short_in;  // volume.checkpoint_version in which a log last found no segment to go on in
  Log logs[format::kLogCount];
  OpenSegment* open;  // open_count: processors take turns
  uint32_t open_count;
  uint32_t* open_map;                    // a bit for each main segment: it is one of `open`
  format::SummaryBlock* open_summaries;  // of them
  uint32_t choice_lock;                  // of the choice of a partly used segment
  uint32_t writing_directories;  // a checkpoint does: what data logs give out now is not for data
  NidCursor nid_cursors[kNidCursors];
  format::SummaryBlock* summaries;  // of the logs' segments
  format::SummaryBlock* incoming;   // of segments that logs are about to go on in
  uint8_t* checkpoint;              // as volume.checkpoint_blocks: the next one, while it is made
  uint8_t* pages;                   // kWriterPages blocks, for who makes a checkpoint
  simt::SharedLock* xattr_locks;    // as volume.xattr_locks
  OrphanTable orphans;
  Cleaning cleaning;
  HeldBlocks* held;  // held_count
  uint32_t held_count;
  uint32_t held_cursor;  // where a search for a free one begins
  // Counted in volume.valid_block_count so that there is room for them, and not used yet: the sum
  // of `places` of all that are held.
  uint64_t promised_blocks;
  uint64_t began_ns;    // begin_writing()
  uint32_t* discarded;  // a bit for each main segment that was free when the SSD was told last
  uint32_t discard;     // segments that become free are given back to the SSD
  Chain chain;
  WritingCrew crew;
  uint32_t* gone;            // kGoneWords (gone.h)
  RecoveredFile* recovered;  // kRecoveredFiles, for who recovers them
  uint32_t writes_over;      // blocks of files may be (write_over.h)
  uint32_t written_over;     // some have been: each fsync and sync flushes
  uint32_t changed;          // 0: no operation has begun since the last checkpoint
  int failed;                // a negative errno: whether the last checkpoint was made is not known
};

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
  kChain,       // what fsync has made durable after the checkpoint could not be taken over
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
GOFS_NOINLINE GOFS_HD inline int take_nat_journal(simt::AnyWarp auto warp, Volume& volume) {
  const uint32_t count = volume.nat_journal_count;
  int error = 0;
  // One after the other: a journal may name a node twice.
  for (uint32_t i = 0; i < count && error == 0; ++i) {
    const JournaledNat journaled = volume.nat_journal[i];
    if (journaled.nid >= volume.geometry.nid_count()) {
      error = report_once(warp, *volume.corruptions, {Structure::kNatEntry, 0, journaled.nid, i});
      break;
    }
    const int entered = change_nat(warp, volume, 1u, journaled.nid, [&](format::NatEntry& entry) {
      entry.version = journaled.record.version;
      entry.ino = journaled.record.ino;
      entry.block_addr = journaled.record.block;
    });
    error = simt::first_error(warp, warp.thread_rank() == 0 ? entered : 0);
  }
  warp.sync();  // all lanes have read it
  if (error == 0 && warp.thread_rank() == 0) volume.nat_journal_count = 0;
  warp.sync();
  return error;
}

GOFS_HD inline bool segment_bit(const uint32_t* map, uint32_t segno) {
  return (simt::load_relaxed(map[segno / 32]) >> segno % 32 & 1u) != 0;
}
GOFS_HD inline void set_segment_bit(uint32_t* map, uint32_t segno) {
  simt::AtomicRef<uint32_t>(map[segno / 32]).fetch_or(1u << segno % 32, simt::memory_order_relaxed);
}
GOFS_HD inline void clear_segment_bit(uint32_t* map, uint32_t segno) {
  simt::AtomicRef<uint32_t>(map[segno / 32])
      .fetch_and(~(1u << segno % 32), simt::memory_order_relaxed);
}

/// Whether a log is in a segment: a checkpoint names it.
GOFS_HD inline bool is_current_segment(const Writer& writer, uint32_t segno) {
  for (const Log& log : writer.logs) {
    if (simt::load_relaxed(log.segno) == segno) return true;
  }
  return false;
}

/// Whether a log is in a segment, or it is open: what it holds is about to become more.
GOFS_HD inline bool is_written_to(const Writer& writer, uint32_t segno) {
  return segment_bit(writer.open_map, segno) || is_current_segment(writer, segno);
}

/// Whether who wrote to a segment has left it: its summary in the SSA can be read then. One lane.
GOFS_HD inline bool has_been_left(const Writer& writer, uint32_t segno) {
  // The logs afterwards: one that takes over an open segment is there before that is not open. [A3]
  if ((simt::load_acquire(writer.open_map[segno / 32]) >> segno % 32 & 1u) != 0) return false;
  for (const Log& log : writer.logs) {
    if (simt::load_acquire(log.segno) == segno) return false;  // [A3]
  }
  return true;
}

/// Whether nothing is to be written to the holes of a segment, since it is being emptied.
GOFS_HD inline bool is_cleaned(const Writer& writer, uint32_t segno) {
  return segment_bit(writer.cleaning.victims, segno) || segment_bit(writer.cleaning.held, segno);
}

/// Seconds for which the volume has been mounted, in all its mounts: the time of segments' ages.
GOFS_HD inline uint64_t elapsed_seconds(const Volume& volume, const Writer& writer) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  return volume.elapsed_seconds + (simt::now_ns() - writer.began_ns) / kSecondNs;
}

/// Notes whether a segment holds nothing. One lane, for each segment at most one.
GOFS_HD inline void note_empty(Writer& writer, uint32_t segno) {
  const bool empty = writer.segments.segments[segno].valid_count == 0;
  if (empty == segment_bit(writer.empty_map, segno)) return;
  empty ? set_segment_bit(writer.empty_map, segno) : clear_segment_bit(writer.empty_map, segno);
}

/// Brings `empty_map` up to date with what has changed since the last checkpoint, which says so in
/// the SIT: on a volume of 1 TiB that is little beside its half a million segments. How many
/// segments hold nothing. Collective, behind the closed gate.
GOFS_NOINLINE GOFS_HD inline uint32_t count_empty_segments(simt::AnyWarp auto warp,
                                                           const Volume& volume, Writer& writer) {
  for_dirty_segments(warp, volume, writer.segments,
                     [&](uint32_t segno) { note_empty(writer, segno); });
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  uint32_t count = 0;
  for (uint32_t i = warp.thread_rank(); i < words; i += warp.size()) {
    count += simt::popcount(simt::load_relaxed(writer.empty_map[i]));
  }
  return simt::reduce_add(warp, count);
}

/// The segments of a word of the maps that are not to be taken though nothing lies in them.
GOFS_HD inline uint32_t withheld_in(const Writer& writer, uint32_t word) {
  return writer.withheld == nullptr ? 0 : writer.withheld[word];
}
GOFS_HD inline bool is_withheld(const Writer& writer, uint32_t segno) {
  return (withheld_in(writer, segno / 32) >> segno % 32 & 1u) != 0;
}

/// Fills in which segments are free, of those that `empty_map` has and that are not withheld; those
/// out of which blocks were moved are not where `held`: somebody holds places. Those that were free
/// stay so, unless `anew`. Collective; nobody takes any meanwhile.
GOFS_HD inline void find_free_segments(simt::AnyWarp auto warp, const Volume& volume,
                                       Writer& writer, bool held, bool anew) {
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  uint32_t count = 0;
  for (uint32_t word = warp.thread_rank(); word < words; word += warp.size()) {
    if (!held) simt::store_relaxed(writer.cleaning.held[word], 0u);
    const uint32_t empty = simt::load_relaxed(writer.empty_map[word]) & ~withheld_in(writer, word);
    uint32_t bits = anew ? 0 : empty & simt::load_relaxed(writer.free_map[word]);
    for (uint32_t left = empty & ~bits; left != 0; left &= left - 1) {
      const uint32_t segno = 32 * word + simt::lowest_bit(left);
      uint32_t committed = 0;
      for (const uint32_t blocks : writer.segments.segments[segno].committed) committed |= blocks;
      const bool taken = is_written_to(writer, segno) || is_cleaned(writer, segno);
      if (committed == 0 && !taken) bits |= left & ~(left - 1);
    }
    simt::store_relaxed(writer.free_map[word], bits);
    count += simt::popcount(bits);
  }
  count = simt::reduce_add(warp, count);
  if (warp.thread_rank() == 0) simt::store_relaxed(writer.free_count, count);
  warp.sync();
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

/// Makes a mounted volume one that can be written to: reads the SIT, the summaries of the logs, and
/// the list of orphans, which recover_orphans() frees afterwards. Before anything else is changed
/// comes recover_files(), also where the volume was unmounted cleanly. Collective, by one warp,
/// before any other use of `writer`. Uniform answer; -EROFS for a volume that can only be read.
GOFS_NOINLINE GOFS_HD inline WriteResult begin_writing(simt::AnyWarp auto warp, Volume& volume,
                                                       Writer& writer) {
  const uint32_t unsupported = volume.geometry.feature & detail::kFeaturesReadOnly;
  if (unsupported != 0) return {WriteProblem::kFeature, -EROFS, unsupported};
  // Linux cleans whole sections, and takes one with both for damaged.
  const uint32_t segments = volume.geometry.section_segments;
  if (segments != 1) return {WriteProblem::kSections, -EROFS, segments};
  int error = load_segments(warp, volume, writer.segments, 0, 1);
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
    for (uint32_t i = 0; i < writer.open_count; ++i) writer.open[i].place = kNoOpenPlace;
    writer.began_ns = simt::now_ns();
    writer.writes_over &= volume.array.atomic_blocks;
    wrong = detail::wrong_log(writer);
  }
  wrong = warp.shfl(wrong, 0);
  warp.sync();
  if (wrong != format::kLogCount) return {WriteProblem::kCurrentLog, -EUCLEAN, wrong};
  error = detail::load_summaries(warp, volume, writer);
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  error = detail::take_nat_journal(warp, volume);
  if (error == -EUCLEAN) return {WriteProblem::kNat, error, 0};
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  error = detail::load_orphans(warp, volume, writer.orphans, writer.pages);
  if (error == -EUCLEAN) return {WriteProblem::kOrphans, error, 0};
  if (error < 0) return {WriteProblem::kDevice, error, 0};
  for (uint32_t i = warp.thread_rank(); i < volume.geometry.main_segments; i += warp.size()) {
    detail::note_empty(writer, i);
  }
  warp.sync();
  detail::find_free_segments(warp, volume, writer, false, true);
  // Of what was free before nobody knows whether the SSD has been told.
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  for (uint32_t i = warp.thread_rank(); i < words; i += warp.size()) {
    writer.discarded[i] = writer.free_map[i];
  }
  if (warp.thread_rank() == 0) {
    volume.xattr_locks = writer.xattr_locks;
    writer.chain = Chain{};
    writer.chain.follows_another = 1;
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
