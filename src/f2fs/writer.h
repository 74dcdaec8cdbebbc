// SPDX-License-Identifier: Apache-2.0
//
// What a volume that is written to has in memory beside what a reader needs: the segment table, the
// six logs and the open segments with their summaries, and the checkpoint that is being made.
// begin_writing.h fills it; segment_maps.h asks it about segments; write_checkpoint.h makes
// checkpoints from it. Memory is laid out by the host (writer_layout.h) when the volume's size is
// known, that is after mount().
#pragma once

#include "f2fs/change_pages.h"
#include "f2fs/checkpoint_lock.h"
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
  /// Segment << 32 | which of its two summaries << 31 | blocks taken; all that it has, or more:
  /// full [A1]
  uint64_t place;
  uint32_t entered;  // blocks of it whose entries stand in the summary [A2]
  uint32_t saved;    // of them, when the summary was last written to the SSA
  uint32_t lock;     // of who gives it another segment
  /// The one before, while its summary is not in the SSA, or kNullSegno; and which summary that is.
  uint32_t full;
  uint32_t full_summary;
  uint32_t saving;  // lock of these two
};
/// The place of one that has no segment.
inline constexpr uint64_t kNoOpenPlace =
    uint64_t{format::kNullSegno} << 32 | format::kBlocksPerSegment;

/// Where processors search for free nids, each in a part of the NAT of its own as long as there is
/// some: who takes one holds its block exclusively.
struct alignas(64) NidCursor {
  uint32_t next;  // nid where the next search begins
};
inline constexpr uint32_t kNidCursors = 32;

/// Nodes that may be made at the same time for files that grow; a power of two.
inline constexpr uint32_t kNodeMakers = 256;

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
  uint32_t* victims;     // blocks are being moved out of it
  uint32_t* held;        // blocks were moved out of it since there was no address reader
  uint32_t* stuck;       // it has blocks that could not be moved: not worth another try
  uint8_t* pages;        // kCleaners blocks, for summaries of victims
  uint32_t* page_locks;  // one each
  uint32_t free_wanted;  // segments; 0: who writes does not clean
  uint32_t lock;         // of who cleans because there is too little room for him
  // Who could not make room enough has left so many segments free, at that checkpoint: there is no
  // sense in another try before some of them are used, or another checkpoint is made.
  uint32_t retry_below;
  uint64_t tried;
  CleaningCounts counts;    // since the volume was mounted
  uint32_t reuse_deferred;  // not 0: the last checkpoint deferred the reuse of what was freed
                            // before it
  uint32_t address_readers_awaited;       // not 0: a checkpoint waits until there is no address
                                          // reader
  alignas(128) uint32_t address_readers;  // by so many readers (address_readers.h),
  uint32_t overwriters_awaited;  // of whom so many wait for those who began to write before
};

/// The fsync log: nodes that fsync writes to the log of warm nodes (fsync_log.h).
struct alignas(128) FsyncLog {
  uint32_t issued;   // portions that have their places; under the lock of the log
  uint32_t written;  // of them are on the disk, in order
  uint32_t broken;   // what comes now would not be found after a crash: only a checkpoint helps
  // Until the first checkpoint, parts of a former fsync log may lie where this one goes:
  uint32_t follows_another;
  uint32_t clear_end;  // up to this block of the log's segment none does; under the lock of the log
};

/// Warps that write changed pages together (write_pages.h).
struct WritebackWork {
  alignas(128) uint64_t task;  // what is handed out: PageKind << 32 | the next portion of it [K1]
  uint32_t written;            // portions of it [K2]
  int error;                   // 0 or that of one which failed
};

/// A file that fsync has made durable after the last checkpoint (recover_files.h).
struct RecoveredFile {
  uint32_t ino;          // 0: no file
  uint32_t last_block;   // of the fsync log's last marked node of it; 0: none is still to be taken
                         // over
  uint32_t named_block;  // of its last inode that brings its name, or 0
};
inline constexpr uint32_t kRecoveredFiles = 1024;

/// Blocks that one write under way may hold (held_blocks.h): 1 MiB.
inline constexpr uint32_t kHeldBlocks = 256;

/// Blocks that were taken for contents which are on their way to the SSD, and that nothing refers
/// to as long as they may not have come there.
struct HeldBlocks {
  uint32_t taken;   // the block is taken
  uint32_t count;   // of `blocks`; changed within an operation, but for what goes to 0 as all are
                    // used
  uint32_t places;  // of them will be the first at their places in the file
  uint32_t unused;
  uint32_t blocks[kHeldBlocks];
};

/// Blocks that a warp packs before it writes them together.
inline constexpr uint32_t kWriterPages = 32;

struct Writer {
  CheckpointLock checkpoint_lock;  // operations share it, a checkpoint holds it exclusively
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
  format::SummaryBlock* open_summaries;  // two for each of them
  uint32_t node_makers[kNodeMakers];     // locks of warps that make nodes (grow_nodes.h)
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
  uint32_t* discarded;  // a bit for each main segment that was free when the SSD was last told of
                        // it
  uint32_t discard;     // segments that become free are discarded
  FsyncLog fsync_log;
  WritebackWork writeback;
  uint32_t* freed_since_checkpoint;  // kFreedWords (freed_since_checkpoint.h)
  RecoveredFile* recovered;          // kRecoveredFiles, for who recovers them
  uint32_t writes_over;              // blocks of files may be (write_over.h)
  uint32_t written_over;             // some have been: each fsync and sync flushes
  uint64_t checkpoints;              // that were made
  uint32_t changed;                  // 0: no operation has begun since the last checkpoint
  int failed;  // a negative errno: whether the last checkpoint was made is not known
};

GOFS_HD inline Operation Operation::under_checkpoint_lock(Volume& volume, Writer& writer) {
  GOFS_ASSERT(simt::load_relaxed(writer.checkpoint_lock.closed) != 0);
  return Operation(volume, writer, nullptr, nullptr, TimeStamp{}, OpHold{}, 0);
}

}  // namespace gofs::f2fs
