// SPDX-License-Identifier: Apache-2.0
//
// Blocks of the main area: taking them from a log, giving them back. A block is taken that nothing
// uses now or has used since the last checkpoint, which does not refer to it either: a crash finds
// what the checkpoint, and fsync after it, left.
//
// File data that is neither hot nor cold goes to open segments (open_segments.h), all else, and
// what finds no room there, to the six logs. A log writes a free segment from its beginning to its
// end (LFS). Where few are free, it takes over what is left of an open one, and where there is none
// of those, it goes on in the holes of another that is partly used (both SSR). When a log leaves a
// segment, the segment's summary goes to the SSA; until then it is in memory, and in checkpoint
// packs.
#pragma once

#include "f2fs/open_segments.h"

namespace gofs::f2fs {

namespace detail {

/// Blocks of word `i` of a segment's map that may be written to.
GOFS_HD inline uint32_t writable(const SegmentInfo& segment, uint32_t i) {
  return ~(simt::load_relaxed(segment.valid[i]) | simt::load_relaxed(segment.committed[i]));
}

/// The same of what lies in word `i` from block `from` on; `from` is not after the word.
GOFS_HD inline uint32_t writable_from(const SegmentInfo& segment, uint32_t i, uint32_t from) {
  return writable(segment, i) & (i == from / 32 ? ~0u << from % 32 : ~0u);
}

/// The first block from `from` on that may be written to, or kBlocksPerSegment. One lane.
GOFS_HD inline uint32_t next_writable(const SegmentInfo& segment, uint32_t from) {
  for (uint32_t i = from / 32; i < kMapWords; ++i) {
    const uint32_t word = writable_from(segment, i, from);
    if (word != 0) return 32 * i + simt::lowest_bit(word);
  }
  return format::kBlocksPerSegment;
}

/// A segment of the log's class with the most room, for want of a free one; kNullSegno if there is
/// none. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t find_partly_used(simt::AnyWarp auto warp,
                                                       const Volume& volume, const Writer& writer,
                                                       uint32_t log) {
  uint32_t segno = format::kNullSegno;
  uint32_t most = 0;
  for (uint32_t i = warp.thread_rank(); i < volume.geometry.main_segments; i += warp.size()) {
    const SegmentInfo& segment = writer.segments.segments[i];
    const uint32_t valid = simt::load_relaxed(segment.valid_count);
    if (valid == 0 || format::kBlocksPerSegment - valid <= most) continue;
    const uint32_t type = simt::load_relaxed(segment.type);
    if (format::is_node_log(type) != format::is_node_log(log)) continue;
    if (is_written_to(writer, i) || is_cleaned(writer, i) || is_withheld(writer, i)) continue;
    uint32_t room = 0;
    for (uint32_t word = 0; word < kMapWords; ++word) {
      room += simt::popcount(writable(segment, word));
    }
    if (room > most) {
      most = room;
      segno = i;
    }
  }
  uint32_t best = format::kNullSegno;
  uint32_t most_of_all = 0;
  for (uint32_t rank = 0; rank < warp.size(); ++rank) {
    const uint32_t theirs = warp.shfl(most, rank);
    const uint32_t found = warp.shfl(segno, rank);
    if (theirs <= most_of_all) continue;
    most_of_all = theirs;
    best = found;
  }
  return best;
}

/// Sets the age of a segment that a log leaves: the `found` blocks that the log found there have
/// the age that the segment had, the rest is new. One lane.
GOFS_HD inline void set_age(Operation& op, uint32_t segno, uint32_t found) {
  SegmentInfo& segment = op.writer.segments.segments[segno];
  const uint64_t now = elapsed_seconds(op.volume, op.writer);
  const uint64_t old = simt::min(found, format::kBlocksPerSegment);
  const uint64_t mtime = simt::min(simt::load_relaxed(segment.mtime), now);
  simt::store_relaxed(segment.mtime, now - (now - mtime) * old / format::kBlocksPerSegment);
}

/// Where a log goes on.
struct NextSegment {
  OpenRest rest;        // of an open segment, or its segno is kNullSegno
  uint32_t segno;       // kNullSegno: nowhere
  uint32_t alloc_type;  // format::AllocType
};

/// Chooses a segment for a log, with the summary of what is there in writer.incoming. One that is
/// partly used is the log's at once, so that no other thread chooses it. Collective, uniform, by a
/// caller that holds the log. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int choose_segment(simt::AnyWarp auto warp, Operation& op,
                                                uint32_t log, NextSegment& next) {
  const bool leader = warp.thread_rank() == 0;
  const bool is_data = !format::is_node_log(log);
  const uint32_t free = simt::load_relaxed(op.writer.free_count);
  const bool shares = log == format::kWarmData && free <= few_segments(op.volume, op.writer);
  uint32_t segno = format::kNullSegno;
  if (leader && !shares) segno = take_free_segment(op, log);
  next = {{format::kNullSegno, 0}, warp.shfl(segno, 0), format::kAllocLfs};
  if (next.segno != format::kNullSegno) return 0;
  if (is_data) {
    const int error = begin_adoption(warp, op, op.writer.incoming[log], next.rest);
    if (error < 0) return error;
    if (next.rest.segno != format::kNullSegno) {
      next.segno = next.rest.segno;
      next.alloc_type = format::kAllocSsr;  // what is left of it may lie around what is not
      return 0;
    }
  }
  if (leader) segno = take_free_segment(op, log);
  next.segno = warp.shfl(segno, 0);
  if (next.segno != format::kNullSegno) return 0;
  // Under a lock, which no thread holds for long: two logs must not choose the same.
  if (leader) {
    simt::Backoff backoff;
    while (!simt::try_lock(op.writer.choice_lock)) backoff.pause();
  }
  warp.sync();
  next.segno = find_partly_used(warp, op.volume, op.writer, log);
  next.alloc_type = format::kAllocSsr;
  warp.sync();
  if (leader) {
    segno = next.segno;
    if (segno != format::kNullSegno && !has_been_left(op.writer, segno)) segno = format::kNullSegno;
    if (segno != format::kNullSegno) {
      simt::store_release(op.writer.logs[log].segno, segno);  // [A3]
    }
    simt::unlock(op.writer.choice_lock);
  }
  next.segno = warp.shfl(segno, 0);
  warp.sync();
  if (next.segno == format::kNullSegno) return 0;
  return read_uniform(warp, op.volume, op.volume.geometry.summary_block(next.segno),
                      reinterpret_cast<uint8_t*>(&op.writer.incoming[log]));
}

/// Leaves the log's segment, which is full, for another one. Collective, uniform; the caller holds
/// the log. 0, -ENOSPC, or a negative errno of the device; then the log is where it was.
GOFS_NOINLINE GOFS_HD inline int change_segment(simt::AnyWarp auto warp, Operation& op,
                                                uint32_t log) {
  Log& mine = op.writer.logs[log];
  format::SummaryBlock& summary = op.writer.summaries[log];
  const bool leader = warp.thread_rank() == 0;
  int error = simt::first_error(
      warp,
      write_blocks(warp, op.volume, 1u, op.volume.geometry.summary_block(mine.segno), &summary));
  if (error < 0) return error;
  const uint32_t full = mine.segno;
  NextSegment next{};
  warp.sync();
  error = choose_segment(warp, op, log, next);
  if (error < 0) {
    if (leader) simt::store_relaxed(mine.segno, full);
    warp.sync();
    return error;
  }
  if (next.segno == format::kNullSegno) {
    if (leader)
      simt::store_relaxed(op.writer.short_in, simt::load_relaxed(op.volume.checkpoint_version));
    return -ENOSPC;
  }
  const bool adopted = next.rest.segno != format::kNullSegno;
  const bool used = next.alloc_type == format::kAllocSsr;
  for (uint32_t i = warp.thread_rank(); i < format::kBlocksPerSegment; i += warp.size()) {
    summary.entries[i] = used ? op.writer.incoming[log].entries[i] : format::SummaryEntry{};
  }
  if (leader) {
    GOFS_DEBUG_ASSERT(next.segno != full);
    set_age(op, full, mine.found);
    mark_dirty(op.writer.segments, full);
    SegmentInfo& segment = op.writer.segments.segments[next.segno];
    simt::store_relaxed(segment.type, log);
    mine.found = simt::load_relaxed(segment.valid_count);
    mine.next = next_writable(segment, 0);
    mine.alloc_type = next.alloc_type;
    simt::store_release(mine.segno, next.segno);  // [A3]
    mark_dirty(op.writer.segments, next.segno);
    if (adopted) finish_adoption(op, next.rest);
  }
  warp.sync();
  return 0;
}

}  // namespace detail

/// Whether a log has found no segment since the last checkpoint: another one may free some. Where
/// room is refused by count it would be made in vain. Asked within an operation, after a failure
/// there.
GOFS_HD inline bool is_short_of_segments(const Volume& volume, const Writer& writer) {
  return simt::load_relaxed(writer.short_in) == simt::load_relaxed(volume.checkpoint_version);
}

namespace detail {

/// Releases `count` blocks from `block` on, of one word of a segment's map. One lane.
GOFS_HD inline void free_run(Operation& op, uint32_t block, uint32_t count) {
  const uint32_t segno = op.volume.geometry.segno_of(block);
  const uint32_t offset = op.volume.geometry.offset_in_segment(block);
  SegmentInfo& segment = op.writer.segments.segments[segno];
  const uint32_t bits = ~0u >> (32 - count) << offset % 32;
  const uint32_t before = simt::AtomicRef<uint32_t>(segment.valid[offset / 32])
                              .fetch_and(~bits, simt::memory_order_release);
  const uint32_t freed = simt::popcount(before & bits);
  if (freed != 0) {
    const uint32_t valid =
        simt::AtomicRef<uint32_t>(segment.valid_count).fetch_sub(freed, simt::memory_order_relaxed);
    GOFS_DEBUG_ASSERT(valid >= freed);
    mark_dirty(op.writer.segments, segno);
    if (is_withheld(op.writer, segno)) {
      // Users cannot have them again.
      simt::add_relaxed(op.volume.user_block_count, ~uint64_t{freed} + 1);
      simt::add_relaxed(op.volume.withheld_blocks, uint64_t{freed});
    }
  }
  // Two that refer to one block: the volume came to us like this.
  for (uint32_t left = bits & ~before; left != 0; left &= left - 1) {
    const uint32_t at = offset / 32 * 32 + simt::lowest_bit(left);
    (void)report(*op.volume.corruptions,
                 {Structure::kBlockAddress, block - offset + at, segno, at});
  }
}

}  // namespace detail

/// Releases the block of each lane in `lanes`. No thread refers to it; it may be written to after
/// the next checkpoint. One that was free already is reported. Collective.
GOFS_HD inline void free_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                uint32_t block) {
  if ((lanes >> warp.thread_rank() & 1u) != 0) detail::free_run(op, block, 1);
  warp.sync();
}

/// The same of each lane's `count` addresses, as far as they are blocks, those that follow each
/// other at once.
GOFS_NOINLINE GOFS_HD inline void free_rows(simt::AnyWarp auto warp, Operation& op, uint32_t count,
                                            const uint32_t* addresses) {
  uint32_t run = 1;
  for (uint32_t i = 0; i < count; i += run) {
    const uint32_t first = addresses[i];
    run = 1;
    if (!op.volume.is_main_block(first)) continue;
    const uint32_t offset = op.volume.geometry.offset_in_segment(first);
    const uint32_t most = simt::min(count - i, 32 - offset % 32);
    while (run < most && addresses[i + run] == first + run) ++run;
    detail::free_run(op, first, run);
  }
  warp.sync();
}

namespace detail {

/// Takes the lock of a log. Collective, uniform. 0, or -EBUSY: it was held for kLogTimeoutNs.
GOFS_NOINLINE GOFS_HD inline int lock_log(simt::AnyWarp auto warp, Log& log) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kLogTimeoutNs);
  simt::Backoff backoff;
  uint32_t held = 0;
  for (;;) {
    if (warp.thread_rank() == 0) held = simt::try_lock(log.lock) ? 1 : 0;
    held = warp.shfl(held, 0);
    if (held != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  warp.sync();
  return 0;
}

/// Collective.
GOFS_HD inline void unlock_log(simt::AnyWarp auto warp, Log& log) {
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(log.lock);
  warp.sync();
}

/// Releases the block of each lane in `lanes`, which no thread has written: it may be had again at
/// once. Collective.
GOFS_NOINLINE GOFS_HD inline void release_unused(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, uint32_t block) {
  if ((lanes >> warp.thread_rank() & 1u) != 0) {
    const uint32_t offset = op.volume.geometry.offset_in_segment(block);
    SegmentInfo& segment = op.writer.segments.segments[op.volume.geometry.segno_of(block)];
    simt::AtomicRef<uint32_t>(segment.committed[offset / 32])
        .fetch_and(~(1u << offset % 32), simt::memory_order_relaxed);
  }
  free_blocks(warp, op, lanes, block);
}

/// Takes a block for each lane in `lanes`, in order of rank, by a caller that holds the log. As
/// allocate_rows().
GOFS_NOINLINE GOFS_HD inline int allocate_held(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t lanes, uint32_t log,
                                               const format::SummaryEntry& summary,
                                               uint32_t& block) {
  const uint32_t rank = warp.thread_rank();
  Log& mine = op.writer.logs[log];
  uint32_t left = lanes;
  uint32_t first_here = format::kBlocksPerSegment;  // of our blocks in the log's segment
  int error = 0;
  while (left != 0 && error == 0) {
    SegmentInfo& segment = op.writer.segments.segments[mine.segno];
    // All lanes count alike, by what one of them saw, since others release blocks meanwhile; each
    // picks the free block that has its number.
    const uint32_t number = simt::popcount(left & simt::ranks_below(rank));
    const uint32_t wanted = simt::popcount(left);
    uint32_t seen = 0;
    uint32_t offset = format::kBlocksPerSegment;
    for (uint32_t i = mine.next / 32; i < kMapWords && seen < wanted; ++i) {
      const uint32_t word = warp.shfl(rank == 0 ? writable_from(segment, i, mine.next) : 0, 0);
      const uint32_t here = simt::popcount(word);
      if (number >= seen && number < seen + here) {
        offset = 32 * i + simt::nth_bit(word, number - seen);
      }
      seen += here;
    }
    warp.sync();  // the maps are read
    const bool got = (left >> rank & 1u) != 0 && offset < format::kBlocksPerSegment;
    const uint32_t takers = warp.ballot(got);
    if (got) {
      simt::AtomicRef<uint32_t>(segment.valid[offset / 32])
          .fetch_or(1u << offset % 32, simt::memory_order_relaxed);
      // What fsync has written may refer to it after a crash, also when it was released.
      simt::AtomicRef<uint32_t>(segment.committed[offset / 32])
          .fetch_or(1u << offset % 32, simt::memory_order_relaxed);
      op.writer.summaries[log].entries[offset] = summary;
      block = op.volume.geometry.block_of(mine.segno, offset);
    }
    left &= ~takers;
    const uint32_t last = takers == 0 ? 0 : warp.shfl(offset, 31 - simt::leading_zeros(takers));
    if (takers != 0) first_here = warp.shfl(offset, simt::lowest_bit(takers));
    warp.sync();
    uint32_t full = 0;
    if (rank == 0) {
      if (takers != 0) {
        simt::AtomicRef<uint32_t>(segment.valid_count)
            .fetch_add(simt::popcount(takers), simt::memory_order_relaxed);
        mark_dirty(op.writer.segments, mine.segno);
        // Within a segment a log goes on, but for what it releases below.
        GOFS_DEBUG_ASSERT(last >= mine.next);
        mine.next = next_writable(segment, last + 1);
      }
      full = mine.next >= format::kBlocksPerSegment || takers == 0 ? 1 : 0;
    }
    // At once, also when all have theirs: a checkpoint wants to know a block that comes next.
    if (warp.shfl(full, 0) != 0) {
      error = change_segment(warp, op, log);
      if (error == 0) first_here = format::kBlocksPerSegment;
    }
  }
  if (error < 0) {
    release_unused(warp, op, lanes & ~left, block);
    if (rank == 0) mine.next = simt::min(mine.next, first_here);
  }
  return error;
}

/// Takes the blocks that are missing of the lanes' rows, of which each has `got`, by a caller that
/// holds the log. As allocate_rows(), but those that were taken stay.
GOFS_NOINLINE GOFS_HD inline int allocate_rest(simt::AnyWarp auto warp, Operation& op, uint32_t log,
                                               const format::SummaryEntry& summary, uint32_t count,
                                               uint32_t* blocks, uint32_t& got) {
  const uint32_t rank = warp.thread_rank();
  uint32_t* const mine = blocks + got;
  const uint32_t missing = count - got;
  const format::SummaryEntry next = summary_in_row(summary, got);
  uint32_t total = 0;
  const uint32_t before = simt::sum_before(warp, missing, total);
  for (uint32_t first = 0; first < total; first += warp.size()) {
    // A block a lane, in the order of the rows, whose lanes get them then.
    const uint32_t number = first + rank;
    const uint32_t owner = simt::lane_that_has(warp, before + missing, number);
    format::SummaryEntry entry{};
    entry.nid = warp.shfl(uint32_t{next.nid}, owner);
    entry.version = static_cast<uint8_t>(warp.shfl(uint32_t{next.version}, owner));
    entry.ofs_in_node = static_cast<uint16_t>(warp.shfl(uint32_t{next.ofs_in_node}, owner) +
                                              number - warp.shfl(before, owner));
    uint32_t block = 0;
    const int error = allocate_held(warp, op, warp.ballot(number < total), log, entry, block);
    if (error < 0) return error;
    warp.sync();  // lane 0 has said where the log goes on
    for (uint32_t lane = 0; lane < warp.size(); ++lane) {
      const uint32_t theirs = warp.shfl(block, lane);
      const uint32_t place = first + lane - before;
      if (first + lane < before || place >= missing) continue;
      mine[place] = theirs;
      ++got;
    }
  }
  return 0;
}

/// Releases the first `got` blocks of each lane's row, which no thread has written. Collective.
GOFS_NOINLINE GOFS_HD inline void release_unused_rows(simt::AnyWarp auto warp, Operation& op,
                                                      uint32_t got, const uint32_t* blocks) {
  for (uint32_t i = 0; warp.any(i < got); ++i) {
    release_unused(warp, op, warp.ballot(i < got), i < got ? blocks[i] : 0);
  }
}

}  // namespace detail

/// Takes `count` blocks for each lane, in order of rank, for the contents that `log` is for;
/// `summary` says who will point to the first, and the next words of that node will to the others.
/// Those of a lane follow each other as far as they come from one open segment. Collective. 0 and
/// `blocks`, or on all lanes a negative errno, with nothing taken: -ENOSPC, -EBUSY (another thread
/// kept a log for kLogTimeoutNs), what the device says.
GOFS_NOINLINE GOFS_HD inline int allocate_rows(simt::AnyWarp auto warp, Operation& op, uint32_t log,
                                               const format::SummaryEntry& summary, uint32_t count,
                                               uint32_t* blocks) {
  uint32_t got = 0;
  int error = 0;
  if (log == format::kWarmData) {
    error = detail::allocate_open(warp, op, summary, count, blocks, got);
    if (error == 0 && !warp.any(got < count)) return 0;
  }
  if (error == 0) {
    Log& mine = op.writer.logs[log];
    error = detail::lock_log(warp, mine);
    if (error == 0) {
      error = detail::allocate_rest(warp, op, log, summary, count, blocks, got);
      detail::unlock_log(warp, mine);
    }
  }
  if (error < 0) detail::release_unused_rows(warp, op, got, blocks);
  return error;
}

/// The same of one block for each lane in `lanes`.
GOFS_HD inline int allocate_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                   uint32_t log, const format::SummaryEntry& summary,
                                   uint32_t& block) {
  return allocate_rows(warp, op, log, summary, lanes >> warp.thread_rank() & 1u, &block);
}

}  // namespace gofs::f2fs
