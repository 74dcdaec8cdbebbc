// SPDX-License-Identifier: Apache-2.0
//
// Open segments: where file data goes that is neither hot nor cold. The warps of a processor (a
// GPU's multiprocessor, a CPU's worker) have one of their own, free when they got it, and take all
// the blocks that a warp needs with one atomic addition: no lock. So what one warp writes lies in
// runs, and processors keep out of each other's way. Who finds it full opens another segment, in
// which all go on, and then writes the full one's summary to the SSA; each processor has memory for
// two. A full segment counts as open until its summary is there. If that cannot be written, who
// opens the next one, or a checkpoint, writes it. On a striped volume, whose chunks are
// mostly parts of a segment, processors begin theirs at different chunks, and go round: all of them
// would fill the chunks of one SSD at a time else, and write over them there later.
//
// They are an addition to the six logs, which F2FS knows and a checkpoint names. To a checkpoint,
// an open segment is an ordinary one that is partly used: its summary is in the SSA before the
// checkpoint refers to its blocks. It stays open afterwards, and is written on behind what the
// checkpoint has. Where few segments are free, none is opened, and data goes to the log, which
// takes over what is left of the open ones (allocate.h).
#pragma once

#include "f2fs/free_segments.h"

namespace gofs::f2fs {

/// How long a caller waits for a log, whose holder may be writing a summary, or for others to enter
/// what they have taken.
inline constexpr uint64_t kLogTimeoutNs = 120'000'000'000;

namespace detail {

/// How often a warp looks for blocks in open segments before it goes to the log.
inline constexpr uint32_t kOpenTries = 8;

GOFS_HD constexpr uint32_t segment_of_place(uint64_t place) {
  return static_cast<uint32_t>(place >> 32);
}
GOFS_HD constexpr uint32_t taken_of_place(uint64_t place) {
  return static_cast<uint32_t>(place) & 0x7fffffffu;
}
GOFS_HD constexpr uint32_t summary_of_place(uint64_t place) {
  return static_cast<uint32_t>(place) >> 31;
}
GOFS_HD constexpr uint64_t open_place(uint32_t segno, uint32_t summary) {
  return uint64_t{segno} << 32 | uint64_t{summary} << 31;
}
GOFS_HD constexpr bool has_room(uint64_t place, uint32_t blocks) {
  return taken_of_place(place) + uint64_t{blocks} <= format::kBlocksPerSegment;
}
GOFS_HD constexpr bool is_full(uint64_t place) { return !has_room(place, 1); }

/// The block at which the open segment `index` begins.
GOFS_HD inline uint32_t start_of_open(const Volume& volume, uint32_t index) {
  return index * (volume.array.chunk_mask + 1) % format::kBlocksPerSegment;  // 0 with one SSD
}

/// A summary of the open segment `index`: the one that is written to, or of the full one before.
GOFS_HD inline format::SummaryBlock& open_summary(const Writer& writer, uint32_t index,
                                                  uint32_t which) {
  return writer.open_summaries[2 * uint64_t{index} + which];
}

/// Says that `count` blocks from `first` on, at least one, hold something. Collective.
GOFS_HD inline void mark_blocks(simt::AnyWarp auto warp, SegmentInfo& segment, uint32_t first,
                                uint32_t count) {
  const uint32_t end = first + count;
  for (uint32_t i = first / 32 + warp.thread_rank(); 32 * i < end; i += warp.size()) {
    const uint32_t from = simt::max(first, 32 * i) % 32;
    const uint32_t here = simt::min(end - 32 * i, 32u);
    const uint32_t bits = ~0u << from & ~0u >> (32 - here);
    simt::AtomicRef<uint32_t>(segment.valid[i]).fetch_or(bits, simt::memory_order_relaxed);
    simt::AtomicRef<uint32_t>(segment.committed[i]).fetch_or(bits, simt::memory_order_relaxed);
  }
}

/// The same where they go on at the segment's beginning behind its end.
GOFS_HD inline void mark_round(simt::AnyWarp auto warp, SegmentInfo& segment, uint32_t first,
                               uint32_t count) {
  const uint32_t before_end = simt::min(count, format::kBlocksPerSegment - first);
  mark_blocks(warp, segment, first, before_end);
  if (before_end < count) mark_blocks(warp, segment, 0, count - before_end);
}

/// The summary of the `i`-th block of a row whose first one has `first`.
GOFS_HD inline format::SummaryEntry summary_in_row(const format::SummaryEntry& first, uint32_t i) {
  format::SummaryEntry entry = first;
  entry.ofs_in_node = static_cast<uint16_t>(first.ofs_in_node + i);
  return entry;
}

/// Takes `count` blocks for each lane, as many as the open segment has, in order of rank: how many
/// it has got, from the first on. None where the segment is seen to have less than `least`, which
/// is not 0. Collective.
GOFS_NOINLINE GOFS_HD inline uint32_t take_open_blocks(simt::AnyWarp auto warp, Operation& op,
                                                       uint32_t index, uint32_t least,
                                                       const format::SummaryEntry& summary,
                                                       uint32_t count, uint32_t* blocks) {
  OpenSegment& open = op.writer.open[index];
  const uint32_t rank = warp.thread_rank();
  uint32_t wanted = 0;
  const uint32_t before = simt::sum_before(warp, count, wanted);
  const uint32_t start = start_of_open(op.volume, index);
  uint64_t place = 0;
  if (rank == 0) {
    place = simt::load_relaxed(open.place);
    // Not where it is full, or the count would grow for as long as it stays so. [A1]
    if (has_room(place, least)) {
      place = simt::AtomicRef<uint64_t>(open.place).fetch_add(wanted, simt::memory_order_acquire);
    } else {
      place = kNoOpenPlace;
    }
  }
  place = warp.shfl(place, 0);
  if (is_full(place)) return 0;
  warp.sync();  // what the leader acquired, all may write to
  const uint32_t segno = segment_of_place(place);
  const uint32_t taken = taken_of_place(place);
  const uint32_t had = simt::min(wanted, format::kBlocksPerSegment - taken);
  const uint32_t first = (start + taken) % format::kBlocksPerSegment;
  SegmentInfo& segment = op.writer.segments.segments[segno];
  mark_round(warp, segment, first, had);
  const uint32_t got = simt::min(count, had - simt::min(before, had));
  format::SummaryBlock& summaries = open_summary(op.writer, index, summary_of_place(place));
  for (uint32_t i = 0; i < got; ++i) {
    const uint32_t offset = (first + before + i) % format::kBlocksPerSegment;
    summaries.entries[offset] = summary_in_row(summary, i);
    blocks[i] = op.volume.geometry.block_of(segno, offset);
  }
  warp.sync();
  if (rank == 0) {
    simt::add_relaxed(segment.valid_count, had);
    mark_dirty(op.writer.segments, segno);
    const uint32_t entered =
        simt::AtomicRef<uint32_t>(open.entered).fetch_add(had, simt::memory_order_release);  // [A2]
    GOFS_DEBUG_ASSERT(entered + had <= format::kBlocksPerSegment);
  }
  return got;
}

/// Which open segment is that of the warp's processor, of those that there are. Collective,
/// uniform.
GOFS_HD inline uint32_t own_open_segment(simt::AnyWarp auto warp, const Writer& writer) {
  return warp.shfl(simt::processor_id(), 0) % writer.open_count;
}

/// Takes a block for each of `lanes` from it, if it has as many: those lanes that have got one.
/// Collective.
GOFS_HD inline uint32_t take_own_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                        const format::SummaryEntry& summary, uint32_t& block) {
  if (op.writer.open_count == 0) return 0;
  const uint32_t mine = lanes >> warp.thread_rank() & 1u;
  return warp.ballot(take_open_blocks(warp, op, own_open_segment(warp, op.writer),
                                      simt::popcount(lanes), summary, mine, &block) != 0);
}

/// Waits until all `taken` blocks of an open segment, of which no more are taken, stand in its
/// summary: no longer than others need for that. Collective, uniform. 0 or -EBUSY.
GOFS_NOINLINE GOFS_HD inline int wait_for_entries(simt::AnyWarp auto warp, const OpenSegment& open,
                                                  uint32_t taken) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kLogTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    uint32_t all = 0;
    if (warp.thread_rank() == 0) all = simt::load_acquire(open.entered) == taken ? 1 : 0;  // [A2]
    if (warp.shfl(all, 0) != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  warp.sync();
  return 0;
}

/// The open segment has become an ordinary one: its summary is in the SSA, or a log's. One lane, by
/// a caller that holds its lock.
GOFS_HD inline void release_open_segment(Operation& op, uint32_t segno) {
  simt::store_relaxed(op.writer.segments.segments[segno].mtime,
                      elapsed_seconds(op.volume, op.writer));
  mark_dirty(op.writer.segments, segno);
  simt::AtomicRef<uint32_t>(op.writer.open_map[segno / 32])
      .fetch_and(~(1u << segno % 32), simt::memory_order_release);  // [A3]
}

/// Makes the full segment before the open one an ordinary one, if there is one. Collective,
/// uniform, by a caller that holds the lock `saving`. 0 or a negative errno of the device, and it
/// is as it was.
GOFS_NOINLINE GOFS_HD inline int save_full(simt::AnyWarp auto warp, Operation& op, uint32_t index) {
  OpenSegment& open = op.writer.open[index];
  const uint32_t segno = warp.shfl(simt::load_relaxed(open.full), 0);
  if (segno == format::kNullSegno) return 0;
  const int error = simt::first_error(
      warp, write_blocks(warp, op.volume, 1u, op.volume.geometry.summary_block(segno),
                         &open_summary(op.writer, index,
                                       warp.shfl(simt::load_relaxed(open.full_summary), 0))));
  if (error < 0) return error;
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(open.full, uint32_t{format::kNullSegno});
    release_open_segment(op, segno);
  }
  warp.sync();
  return 0;
}

/// Puts a free segment in the place of one that is full, which is left to save_full(). Collective,
/// uniform, by a caller that has both locks, where there is no full one yet. 0; -ENOSPC: few are
/// free, and none takes the place; or -EBUSY, and nothing has changed.
GOFS_NOINLINE GOFS_HD inline int replace_full(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t index) {
  OpenSegment& open = op.writer.open[index];
  const bool leader = warp.thread_rank() == 0;
  const uint64_t place = warp.shfl(simt::load_relaxed(open.place), 0);
  const uint32_t full = segment_of_place(place);
  if (full != format::kNullSegno) {
    const int error = wait_for_entries(warp, open, format::kBlocksPerSegment);
    if (error < 0) return error;
  }
  uint32_t segno = format::kNullSegno;
  if (leader && simt::load_relaxed(op.writer.free_count) > few_segments(op.volume, op.writer)) {
    segno = take_free_segment(op, format::kWarmData);
    if (segno != format::kNullSegno) set_segment_bit(op.writer.open_map, segno);
  }
  segno = warp.shfl(segno, 0);
  const uint32_t which = 1 - summary_of_place(place);
  if (leader) {
    simt::store_relaxed(open.full, full);
    simt::store_relaxed(open.full_summary, 1 - which);
  }
  if (segno == format::kNullSegno) {
    if (leader) simt::store_relaxed(open.place, kNoOpenPlace);
    return -ENOSPC;
  }
  format::SummaryBlock& summary = open_summary(op.writer, index, which);
  simt::zero_bytes(warp, &summary, kBlockBytes);
  warp.sync();
  if (leader) {
    summary.footer.entry_type = format::kSummaryData;
    simt::store_relaxed(op.writer.segments.segments[segno].type, uint32_t{format::kWarmData});
    open.saved = 0;
    simt::store_relaxed(open.entered, 0u);
    simt::store_release(open.place, open_place(segno, which));  // [A1]
  }
  return 0;
}

/// Opens a free segment in place of one that is full, and then sees to the full one's summary,
/// while others take blocks of the new one already. Collective, uniform, by a caller that has both
/// locks, which are released. 0, -ENOSPC: few are free; or another negative errno.
GOFS_NOINLINE GOFS_HD inline int open_another(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t index) {
  OpenSegment& open = op.writer.open[index];
  const bool leader = warp.thread_rank() == 0;
  int error = save_full(warp, op, index);  // one that could not be written before
  if (error == 0) error = replace_full(warp, op, index);
  warp.sync();
  if (leader) simt::unlock(open.lock);
  // If it cannot be written, the next one tries, or the checkpoint.
  if (error == 0 || error == -ENOSPC) (void)save_full(warp, op, index);
  warp.sync();
  if (leader) simt::unlock(open.saving);
  return error;
}

/// What is to be done with an open segment that had too few blocks.
enum class OpenTurn : uint32_t {
  kAgain,  // it has changed
  kOpen,   // the caller has its locks
  kBusy,   // another processor has one
  kNone,   // few segments are free
};

/// One lane.
GOFS_HD inline OpenTurn turn_at(Operation& op, OpenSegment& open) {
  const uint64_t place = simt::load_relaxed(open.place);
  if (!is_full(place)) return OpenTurn::kAgain;
  if (segment_of_place(place) == format::kNullSegno &&
      simt::load_relaxed(op.writer.free_count) <= few_segments(op.volume, op.writer)) {
    return OpenTurn::kNone;
  }
  if (!simt::try_lock(open.saving)) return OpenTurn::kBusy;
  const bool locked = simt::try_lock(open.lock);
  if (locked && is_full(simt::load_relaxed(open.place))) return OpenTurn::kOpen;
  if (locked) simt::unlock(open.lock);
  simt::unlock(open.saving);
  return locked ? OpenTurn::kAgain : OpenTurn::kBusy;
}

/// Takes `count` blocks for each lane from open segments, of which it has `got` then. Collective,
/// uniform. 0 or a negative errno of the device.
GOFS_NOINLINE GOFS_HD inline int allocate_open(simt::AnyWarp auto warp, Operation& op,
                                               const format::SummaryEntry& summary, uint32_t count,
                                               uint32_t* blocks, uint32_t& got) {
  if (op.writer.open_count == 0) return 0;
  uint32_t index = own_open_segment(warp, op.writer);
  for (uint32_t tries = 0; tries < kOpenTries; ++tries) {
    got += take_open_blocks(warp, op, index, 1, summary_in_row(summary, got), count - got,
                            blocks + got);
    if (!warp.any(got < count)) return 0;
    OpenSegment& open = op.writer.open[index];
    auto turn = static_cast<uint32_t>(OpenTurn::kAgain);
    if (warp.thread_rank() == 0) turn = static_cast<uint32_t>(turn_at(op, open));
    turn = warp.shfl(turn, 0);
    if (turn == static_cast<uint32_t>(OpenTurn::kNone)) return 0;
    if (turn == static_cast<uint32_t>(OpenTurn::kBusy)) index = (index + 1) % op.writer.open_count;
    if (turn != static_cast<uint32_t>(OpenTurn::kOpen)) continue;
    warp.sync();
    const int error = open_another(warp, op, index);
    if (error < 0) return error == -ENOSPC ? 0 : error;
  }
  return 0;
}

/// What a log takes over.
struct OpenRest {
  uint32_t segno;  // kNullSegno: there is none
  uint32_t index;
};

/// Takes what is left of an open segment from its owner: no thread gets blocks of it any more until
/// finish_adoption(). Its summary goes to `summary`. Collective, uniform. 0 or -EBUSY.
GOFS_NOINLINE GOFS_HD inline int begin_adoption(simt::AnyWarp auto warp, Operation& op,
                                                format::SummaryBlock& summary, OpenRest& rest) {
  uint64_t place = kNoOpenPlace;
  uint32_t index = 0;
  if (warp.thread_rank() == 0) {
    for (; index < op.writer.open_count; ++index) {
      OpenSegment& open = op.writer.open[index];
      uint64_t seen = simt::load_relaxed(open.place);
      if (is_full(seen) || !simt::try_lock(open.lock)) continue;
      simt::AtomicRef<uint64_t> word(open.place);
      while (!is_full(seen) &&
             !word.compare_exchange_weak(seen, kNoOpenPlace, simt::memory_order_relaxed,
                                         simt::memory_order_relaxed)) {
      }
      place = seen;
      if (!is_full(place)) break;
      simt::unlock(open.lock);
    }
  }
  place = warp.shfl(place, 0);
  rest.index = warp.shfl(index, 0);
  rest.segno = is_full(place) ? uint32_t{format::kNullSegno} : segment_of_place(place);
  if (rest.segno == format::kNullSegno) return 0;
  warp.sync();
  OpenSegment& open = op.writer.open[rest.index];
  const int error = wait_for_entries(warp, open, taken_of_place(place));
  if (error < 0) {
    if (warp.thread_rank() == 0) {
      simt::store_release(open.place, place);  // [A1]
      simt::unlock(open.lock);
    }
    return error;
  }
  const format::SummaryBlock& from = open_summary(op.writer, rest.index, summary_of_place(place));
  for (uint32_t i = warp.thread_rank(); i < format::kBlocksPerSegment; i += warp.size()) {
    summary.entries[i] = from.entries[i];
  }
  warp.sync();
  return 0;
}

/// The log is there. One lane.
GOFS_HD inline void finish_adoption(Operation& op, const OpenRest& rest) {
  release_open_segment(op, rest.segno);
  simt::unlock(op.writer.open[rest.index].lock);
}

/// Writes the summaries of full segments that could not be written before. Collective, uniform,
/// under the exclusive checkpoint lock. 0 or a negative errno of the device.
GOFS_HD inline int save_full_segments(simt::AnyWarp auto warp, Operation& op) {
  for (uint32_t first = 0; first < op.writer.open_count; first += warp.size()) {
    const uint32_t index = first + warp.thread_rank();
    const bool is_full = index < op.writer.open_count &&
                         simt::load_relaxed(op.writer.open[index].full) != format::kNullSegno;
    // Few at a time, if any.
    for (uint32_t left = warp.ballot(is_full); left != 0; left &= left - 1) {
      const int error = save_full(warp, op, first + simt::lowest_bit(left));
      if (error < 0) return error;
    }
  }
  return 0;
}

/// Brings the SSA up to date with the open segments, for a checkpoint, and makes those that are
/// full ordinary ones. Collective, uniform, under the exclusive checkpoint lock. 0 or a negative
/// errno of the device.
GOFS_NOINLINE GOFS_HD inline int save_open_segments(simt::AnyWarp auto warp, Operation& op) {
  const int left = save_full_segments(warp, op);
  if (left < 0) return left;
  for (uint32_t first = 0; first < op.writer.open_count; first += warp.size()) {
    const uint32_t index = first + warp.thread_rank();
    OpenSegment* const open = index < op.writer.open_count ? &op.writer.open[index] : nullptr;
    const uint64_t place = open != nullptr ? simt::load_relaxed(open->place) : kNoOpenPlace;
    const uint32_t segno = segment_of_place(place);
    const uint32_t entered = open != nullptr ? simt::load_relaxed(open->entered) : 0;
    const bool is_open = segno != format::kNullSegno;
    const bool changed = is_open && entered != open->saved;
    const uint32_t lanes = warp.ballot(changed);
    int error = 0;
    if (lanes != 0) {
      const int written = write_blocks(
          warp, op.volume, lanes, is_open ? op.volume.geometry.summary_block(segno) : 0,
          is_open ? &open_summary(op.writer, index, summary_of_place(place)) : nullptr);
      if (changed) error = written;
    }
    if (is_open && error == 0) {
      open->saved = entered;
      if (is_full(place)) {
        simt::store_relaxed(open->place, kNoOpenPlace);
        release_open_segment(op, segno);
      }
    }
    error = simt::first_error(warp, error);
    if (error < 0) return error;
  }
  warp.sync();
  return 0;
}

}  // namespace detail

}  // namespace gofs::f2fs
