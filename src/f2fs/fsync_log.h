// SPDX-License-Identifier: Apache-2.0
//
// The fsync log: nodes that fsync writes to the log of warm nodes between two checkpoints, each
// with the address of the next one. Recovery after a crash follows it from where the log was at the
// last checkpoint (read_fsync_log.h) and ends at the first block that was not written. So each
// portion gets its place and its ticket under the lock of the log, and counts as durable when all
// portions before it do. Portions are written side by side, each durable as it comes back.
//
// A portion that fails, or a checkpoint that fails, breaks the fsync log: until a checkpoint has
// been made, nothing that is appended would be found.
//
// Before the first checkpoint of a mount there may be parts of a former fsync log that began at the
// same place: of portions written side by side the first may be lost in a crash and later ones not,
// and a node that names the block of such a one would lead recovery to it. So an append then reads
// the blocks that it is about to take, and the one after them.
#pragma once

#include "f2fs/read_fsync_log.h"
#include "f2fs/write_checkpoint.h"

namespace gofs::f2fs {

namespace detail {

GOFS_HD inline void break_fsync_log(Operation& op) {
  simt::store_relaxed(op.writer.fsync_log.broken, 1u);
}

/// Whether `count` more nodes may go to the log now, so that a checkpoint can still be made
/// afterwards, also one that recovery makes. One lane, which holds the log.
GOFS_HD inline bool has_room_for_fsync_log(const Volume& volume, const Writer& writer,
                                           uint32_t count) {
  const Log& log = writer.logs[format::kWarmNode];
  if (log.alloc_type == format::kAllocLfs && log.next + count < format::kBlocksPerSegment) {
    return true;
  }
  return simt::load_relaxed(writer.free_count) >
         segments_for_checkpoint(volume) + format::kLogCount;
}

/// Whether none of the next `count` blocks of the log, and of the one behind them, is a node that
/// recovery would take for a part of the fsync log; before the first checkpoint, the log has to
/// stay where it is for that. Collective, uniform, by a caller that holds the log.
GOFS_NOINLINE GOFS_HD inline bool has_no_stale_nodes(simt::AnyWarp auto warp, Operation& op,
                                                     uint32_t count) {
  FsyncLog& fsync_log = op.writer.fsync_log;
  if (fsync_log.follows_another == 0) return true;
  const Log& log = op.writer.logs[format::kWarmNode];
  const uint32_t first = log.next;
  uint32_t end = simt::max(fsync_log.clear_end, first);
  warp.sync();  // all lanes have looked
  if (log.alloc_type != format::kAllocLfs || first + count >= format::kBlocksPerSegment) {
    return false;
  }
  const uint32_t rank = warp.thread_rank();
  uint8_t* const page = op.writer.pages + uint64_t{rank % kWriterPages} * kBlockBytes;
  for (bool met = false; end <= first + count && !met;) {
    const bool mine = rank < kWriterPages && end + rank < format::kBlocksPerSegment;
    const uint32_t block = op.volume.geometry.block_of(log.segno, end + rank);
    const int read = read_blocks(warp, op.volume, warp.ballot(mine), block, page);
    const auto& node = *reinterpret_cast<const format::NodeBlock*>(page);
    const uint32_t others =
        warp.ballot(mine && (read < 0 || belongs_to_fsync_log(op.volume, node)));
    met = others != 0;
    end += met ? simt::lowest_bit(others) : simt::min(warp.size(), kWriterPages);
  }
  warp.sync();
  if (rank == 0) fsync_log.clear_end = simt::min(end, format::kBlocksPerSegment);
  warp.sync();
  return end > first + count;
}

/// Where a portion of the fsync log goes.
struct FsyncLogPlace {
  uint32_t block;
  uint32_t next_block;
  uint32_t ticket;
};

/// Takes a place for the node of each lane in `lanes`, in order of rank. Collective, uniform. 0, or
/// a negative errno and there is none; -EAGAIN: only a checkpoint helps.
GOFS_NOINLINE GOFS_HD inline int allocate_in_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                       uint32_t lanes,
                                                       const format::SummaryEntry& summary,
                                                       FsyncLogPlace& place) {
  Log& log = op.writer.logs[format::kWarmNode];
  int error = lock_log(warp, log);
  if (error < 0) return error;
  const bool leader = warp.thread_rank() == 0;
  const uint32_t count = simt::popcount(lanes);
  const bool room = leader && has_room_for_fsync_log(op.volume, op.writer, count);
  if (!warp.any(room) || !has_no_stale_nodes(warp, op, count)) {
    unlock_log(warp, log);
    return -EAGAIN;
  }
  error = allocate_held(warp, op, lanes, format::kWarmNode, summary, place.block);
  uint32_t next = 0;
  if (leader) {
    next = op.volume.geometry.block_of(simt::load_relaxed(log.segno), log.next);
    // Others look at the count without the lock.
    if (error == 0) place.ticket = simt::add_relaxed(op.writer.fsync_log.issued, 1u);
    // The log may have gone on in another segment, which nothing points to.
    if (error < 0) break_fsync_log(op);
  }
  next = warp.shfl(next, 0);
  place.ticket = warp.shfl(place.ticket, 0);
  const uint32_t behind =
      lanes & ~simt::ranks_below(warp.thread_rank()) & ~(1u << warp.thread_rank());
  const uint32_t follower = behind == 0 ? warp.thread_rank() : simt::lowest_bit(behind);
  const uint32_t following = warp.shfl(place.block, follower);
  place.next_block = behind == 0 ? next : following;
  unlock_log(warp, log);
  return error;
}

/// Waits until the portions before `ticket` are on the disk. Collective, uniform. 0, or -EAGAIN:
/// the fsync log is broken, only a checkpoint helps.
GOFS_NOINLINE GOFS_HD inline int wait_for_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                    uint32_t ticket) {
  FsyncLog& fsync_log = op.writer.fsync_log;
  const simt::Deadline deadline = simt::Deadline::after_ns(kLogTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    uint32_t state = 0;
    if (warp.thread_rank() == 0) {
      // Each is counted after those before it, so this covers all of them. [L1]
      if (static_cast<int32_t>(simt::load_acquire(fsync_log.written) - ticket) >= 0) state = 1;
      if (simt::load_relaxed(fsync_log.broken) != 0) state = 2;
    }
    state = warp.shfl(state, 0);
    if (state != 0) return state == 1 ? 0 : -EAGAIN;
    if (warp.any(deadline.passed())) {
      if (warp.thread_rank() == 0) break_fsync_log(op);
      return -EAGAIN;
    }
    backoff.pause();
  }
}

/// Says that the portion `ticket` is on the disk, after those before it. Collective, uniform. As
/// wait_for_fsync_log().
GOFS_HD inline int finish_in_fsync_log(simt::AnyWarp auto warp, Operation& op, uint32_t ticket) {
  const int error = wait_for_fsync_log(warp, op, ticket);
  if (error == 0 && warp.thread_rank() == 0) {
    GOFS_DEBUG_ASSERT(simt::load_relaxed(op.writer.fsync_log.written) == ticket);
    GOFS_DEBUG_ASSERT(simt::load_relaxed(op.writer.fsync_log.issued) - ticket - 1 < 1u << 31);
    simt::store_release(op.writer.fsync_log.written, ticket + 1);  // [L1]
  }
  return error;
}

/// Writes the nodes in the frames of `lanes`, which the caller has taken under `key`, to the fsync
/// log, with `marks`, and releases the frames; `some` becomes true where there were any. A node
/// that another thread takes out of the NAT is none: that thread has yet to take the page.
/// Collective, uniform. 0; or a negative errno, and the nodes are dirty still, but for -EAGAIN:
/// only a checkpoint makes durable what is in memory.
GOFS_NOINLINE GOFS_HD inline int append_to_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                     uint32_t lanes, uint32_t frame, uint64_t key,
                                                     uint32_t marks, bool& some) {
  bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  auto* const node =
      mine ? reinterpret_cast<format::NodeBlock*>(op.volume.cache.page(frame)) : nullptr;
  const uint32_t nid = id_of(key);
  NatRecord record{};
  const int looked_up = look_up_nat(warp, op.volume, lanes, nid, record);
  int error = simt::first_error(warp, mine ? looked_up : 0);
  if (error == 0 && mine && (record.block == format::kNullAddr || record.ino != node->footer.ino)) {
    release_frame(op.volume.cache, frame, false);
    mine = false;
  }
  lanes = warp.ballot(mine);
  if (error == 0 && lanes == 0) return 0;
  const bool is_new = record.block == format::kNewAddr;
  if (error == 0 && warp.any(mine && !is_new && !op.volume.is_main_block(record.block))) {
    error = -EUCLEAN;
    if (mine && !is_new && !op.volume.is_main_block(record.block)) {
      (void)report(*op.volume.corruptions, {Structure::kNatEntry, 0, nid, record.block});
    }
  }
  format::SummaryEntry summary{};
  summary.nid = nid;
  summary.version = record.version;
  FsyncLogPlace place{};
  if (error == 0) error = allocate_in_fsync_log(warp, op, lanes, summary, place);
  if (error < 0) {
    if (mine) release_frame(op.volume.cache, frame, true);
    return error;
  }
  if (mine) seal_node(op.volume, *node, marks, place.next_block);
  warp.sync();
  const int written = write_blocks_durably(warp, op.volume, lanes, place.block, node);
  bool counts = false;
  const int entered =
      change_nat(warp, op, warp.ballot(mine && written == 0), nid, [&](format::NatEntry& entry) {
        // Else the node has been taken out since it was looked up, and its block freed.
        counts = entry.block_addr == record.block && entry.ino == record.ino &&
                 entry.version == record.version;
        if (counts) entry.block_addr = place.block;
      });
  const int failed = mine ? (written < 0 ? written : entered) : 0;
  counts = counts && failed == 0;
  // Of the two blocks, the one that counts is kept.
  free_blocks(warp, op, warp.ballot(mine && (!counts || !is_new)),
              counts ? record.block : place.block);
  if (mine) {
    if (counts) clean_frame(op.volume.cache, frame, key);
    release_frame(op.volume.cache, frame, failed < 0);
  }
  if (warp.any(counts)) some = true;
  error = simt::first_error(warp, failed);
  if (error < 0) {
    if (warp.thread_rank() == 0) break_fsync_log(op);
    return error;
  }
  return finish_in_fsync_log(warp, op, place.ticket);
}

}  // namespace detail

}  // namespace gofs::f2fs
