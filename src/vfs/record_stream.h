// SPDX-License-Identifier: Apache-2.0
//
// The stream of a record buffer (record_pool.h): places in it, entries of what is filled, and how
// it ends.
//
// A place cannot be released: whoever has one fills it, or says that nothing comes, which ends the
// stream. So the flusher can count on every place to be filled as soon as the copies before it are
// done, and no warp waits for a lock with a place in hand that is not filled.
//
// The stream ends (settle) when a flush fails, when the file's end is not where it should be, when
// the counters grow too large, and when another file takes the buffer. What is not flushed then has
// one verdict, which all of its writers take before a new stream begins: so who finds `flushed`
// behind its record knows that it is in the file, whatever has become of the buffer since.
// -EAGAIN: nothing was wrong with the record, and its writer begins anew.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs::detail {

/// A place in the stream of a buffer.
struct RecordPlace {
  uint64_t from;  // in the stream, bytes
  uint64_t to;
  uint64_t base;    // of the stream
  uint64_t origin;  // of the stream
  uint32_t ticket;
  uint32_t tag;
  bool of_user;  // other than user 0: a record of his takes set-ID bits away

  /// The position of its end, to be compared with `flushed`.
  GOFS_HD uint64_t end() const { return base + to; }
};

/// What there was of a place.
enum class PlaceFound : uint32_t {
  kClosed,  // none
  kOthers,  // one of another file, which has just got the buffer: to be filled with nothing
  kOwn,
};

/// Takes a place of `bytes`. One lane. `owner`: the index of the open inode + 1.
GOFS_HD inline PlaceFound take_place(RecordBuffer& buffer, uint32_t owner, uint64_t bytes,
                                     RecordPlace& place) {
  const uint64_t word =
      simt::AtomicRef<uint64_t>(buffer.stream)
          .fetch_add(kOneStreamTicket + bytes, simt::memory_order_acquire);  // [R1]
  if ((word & kStreamClosed) != 0) return PlaceFound::kClosed;
  // The place keeps the stream what it is.
  place.from = bytes_of_stream(word);
  place.to = place.from + bytes;
  place.ticket = tickets_of_stream(word);
  place.base = simt::load_relaxed(buffer.base);
  place.origin = simt::load_relaxed(buffer.origin);
  place.tag = simt::load_relaxed(buffer.first_tag) + place.ticket;
  return simt::load_relaxed(buffer.owner) == owner ? PlaceFound::kOwn : PlaceFound::kOthers;
}

GOFS_HD inline uint64_t& entry_of_tag(const RecordBuffer& buffer, uint32_t tag) {
  return buffer.entries[tag & (buffer.entry_count - 1)];
}

/// Whether the memory of a place, and its entry, are no other's any more, where `flushed` was
/// loaded with acquire. One lane.
GOFS_HD inline bool has_room(const RecordBuffer& buffer, const RecordPlace& place,
                             uint64_t flushed) {
  return place.end() - (flushed & ~kRecordsSettled) <= buffer.bytes &&
         place.ticket - simt::load_relaxed(buffer.flushed_tickets) < buffer.entry_count;
}

/// Says that a place is filled, or that nothing comes. One lane, of a warp that has synchronised.
GOFS_HD inline void mark_filled(RecordBuffer& buffer, const RecordPlace& place, bool nothing) {
  const uint64_t word = entry_word(place.tag, place.to) | (nothing ? kEntryVoid : 0) |
                        (place.of_user ? kEntryOfUser : 0);
  simt::store_release(entry_of_tag(buffer, place.tag), word);  // [R2]
}

/// Whether the first place that is not flushed is filled, and no warp flushes. A look only, by one
/// lane: of many that wait, and look at one line of memory as long as one of them flushes.
GOFS_HD inline bool may_flush(const RecordBuffer& buffer) {
  if (simt::load_relaxed(buffer.flushing) != 0) return false;
  const uint32_t tag =
      simt::load_relaxed(buffer.first_tag) + simt::load_relaxed(buffer.flushed_tickets);
  return has_tag(simt::load_relaxed(entry_of_tag(buffer, tag)), tag);
}

/// Records that are flushed together.
struct RecordRun {
  uint64_t from;  // in the stream
  uint64_t to;
  uint32_t tickets;
  bool ends;     // behind them comes a place that nothing comes to
  bool of_user;  // one of them, at least
};

/// What is filled, in order, from the first place on that is not flushed. Collective, uniform, by
/// the flusher; it may look at all of it then.
GOFS_NOINLINE GOFS_HD inline RecordRun find_filled(simt::AnyWarp auto warp,
                                                   const RecordBuffer& buffer) {
  const uint32_t rank = warp.thread_rank();
  RecordRun run{};
  run.from = (simt::load_relaxed(buffer.flushed) & ~kRecordsSettled) - buffer.base;
  run.to = run.from;
  const uint32_t first = buffer.first_tag + simt::load_relaxed(buffer.flushed_tickets);
  while (run.tickets < buffer.entry_count) {
    const uint32_t tag = first + run.tickets + rank;
    const uint64_t entry = simt::load_acquire(entry_of_tag(buffer, tag));  // [R2]
    const bool there = has_tag(entry, tag);
    const bool nothing = there && (entry & kEntryVoid) != 0;
    const uint32_t stops = warp.ballot(!there || nothing);
    const uint32_t filled = stops == 0 ? warp.size() : simt::lowest_bit(stops);
    if (filled != 0) run.to = warp.shfl(end_of_entry(entry), filled - 1);
    run.of_user |= warp.any(rank < filled && (entry & kEntryOfUser) != 0);
    run.tickets += filled;
    if (stops == 0) continue;
    run.ends = warp.shfl(nothing ? 1u : 0u, filled) != 0;
    break;
  }
  warp.sync();  // what one lane acquired, all may look at
  return run;
}

/// The first half of a run of several records. One lane, or all alike.
GOFS_HD inline RecordRun first_half(const RecordBuffer& buffer, const RecordRun& run) {
  const uint32_t tickets = run.tickets / 2;
  const uint32_t last = buffer.first_tag + simt::load_relaxed(buffer.flushed_tickets) + tickets - 1;
  bool of_user = false;
  for (uint32_t i = 0; i < tickets && run.of_user; ++i) {
    of_user |= (simt::load_relaxed(entry_of_tag(buffer, last - i)) & kEntryOfUser) != 0;
  }
  return {run.from, end_of_entry(simt::load_relaxed(entry_of_tag(buffer, last))), tickets, false,
          of_user};
}

/// Says that a run is in the file. By one lane of the flusher; what the warp has written before
/// `release` is seen by whose record it is.
GOFS_HD inline void publish_flushed(const simt::Release& release, RecordBuffer& buffer,
                                    const RecordRun& run) {
  simt::add_relaxed(buffer.flushed_tickets, run.tickets);
  release.store(buffer.flushed, buffer.base + run.to);  // [R3]
}

/// Begins a stream for the open inode `owner` - 1, at its end as it seems to be. By one lane that
/// has the buffer's lock, after settle().
GOFS_HD inline void begin_stream(Filesystem& fs, RecordBuffer& buffer, uint32_t owner) {
  const uint64_t size = simt::load_relaxed(fs.open_inodes[owner - 1].inode.size_bytes);
  const uint64_t in_block = size & (kBlockBytes - 1);
  simt::store_relaxed(buffer.origin, size - in_block);
  buffer.tail.end = 0;
  simt::store_relaxed(buffer.flushed_tickets, 0u);
  simt::store_release(buffer.flushed, buffer.base + in_block);  // [R3]
  simt::store_release(buffer.stream, in_block);                 // [R1]
}

/// Ends the stream: what was given out and is not flushed has the `verdict`, a negative errno.
/// Returns when all others have taken it, and leaves the stream closed, with the position of what
/// comes next in `base`. By one lane that has the buffer's lock; `own` of those that wait are its
/// own warp's. The wait ends when copies that are under way do.
GOFS_NOINLINE GOFS_HD inline void settle(RecordBuffer& buffer, int verdict, uint32_t own) {
  const uint64_t word = simt::AtomicRef<uint64_t>(buffer.stream)
                            .fetch_or(kStreamClosed, simt::memory_order_acq_rel);  // [R1]
  const uint64_t flushed = simt::load_relaxed(buffer.flushed);
  if ((word & kStreamClosed) != 0) {  // nothing was given out since it was settled
    simt::store_relaxed(buffer.base, flushed & ~kRecordsSettled);
    return;
  }
  const uint32_t given = tickets_of_stream(word);
  const uint32_t others = given - simt::load_relaxed(buffer.flushed_tickets) - own;
  if (others != 0) {
    simt::store_relaxed(buffer.verdict, verdict);
    simt::store_relaxed(buffer.heard, 0u);
    simt::store_release(buffer.flushed, flushed | kRecordsSettled);  // [R3]
    simt::Backoff backoff;
    while (simt::load_acquire(buffer.heard) != others) backoff.pause();  // [R5]
  }
  simt::store_relaxed(buffer.base, buffer.base + bytes_of_stream(word));
  simt::store_relaxed(buffer.first_tag, buffer.first_tag + given);
  // A place is flushed where it is before that, also of a stream that has ended.
  simt::store_release(buffer.flushed, buffer.base);  // [R3]
}

/// Takes the verdict of a record that is not flushed, where `flushed` says that there is one. One
/// lane.
GOFS_HD inline int take_verdict(RecordBuffer& buffer) {
  const int verdict = simt::load_relaxed(buffer.verdict);
  simt::AtomicRef<uint32_t>(buffer.heard).fetch_add(1, simt::memory_order_release);  // [R5]
  return verdict;
}

/// Whether the counters of the stream are so large that it is to be made anew. The flusher.
GOFS_HD inline bool is_stream_long(const RecordBuffer& buffer, const RecordRun& run) {
  return simt::load_relaxed(buffer.flushed_tickets) + run.tickets >= buffer.tickets_max ||
         run.to >= kStreamBytesMax;
}

}  // namespace gofs::vfs::detail
