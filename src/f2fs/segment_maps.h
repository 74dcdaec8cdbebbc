// SPDX-License-Identifier: Apache-2.0
//
// What a writer knows of each main segment: bits of its maps (free, empty, open, being cleaned,
// withheld), and which of them a log is in.
#pragma once

#include "f2fs/writer.h"

namespace gofs::f2fs::detail {

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
/// segments hold nothing. Collective, under the exclusive checkpoint lock.
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
/// out of which blocks were moved are not where `held`: there are address readers. Those that were
/// free stay so, unless `anew`. Collective; none is taken meanwhile.
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

}  // namespace gofs::f2fs::detail
