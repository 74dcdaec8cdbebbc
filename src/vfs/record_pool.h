// SPDX-License-Identifier: Apache-2.0
//
// What record buffers are made of (record_append.h): records that many append to one file meet in
// the memory of a buffer, which a file borrows from a small pool, and go to the SSD together.
//
// A record has a ticket and a place in the stream of the buffer's bytes, both by one addition to
// one word. Its writer copies it there beside others, marks the ticket's entry and waits until
// `flushed` has passed its end. The stream is made anew (record_stream.h) when the buffer goes to
// another file, when the file has become another in between, and when a flush fails.
#pragma once

#include "format/f2fs.h"
#include "simt/atomic.h"

namespace gofs::vfs {

/// The longest record that goes through a buffer, or several by lanes of one warp.
inline constexpr uint64_t kRecordBytesMax = 64 << 10;
/// The largest buffer: what a flush writes are few nodes' blocks (f2fs::kPagesToGrowRun).
inline constexpr uint64_t kRecordBufferBytesMax = 1 << 20;
static_assert(kRecordBufferBytesMax / kBlockBytes < format::kNodeSlots);

/// What the flusher knows of the file's last block, if it is there in part.
struct RecordTail {
  uint64_t end;         // of the file, when this was true; 0: nothing is known
  uint32_t page;        // which of the two pages has the block's bytes before that
  uint32_t clean;       // 1: and zeros behind them
  uint32_t holds;       // of the range lock, and
  uint32_t queue_next;  // of the block's queue: nothing else has written to the block since
};

struct alignas(128) RecordBuffer {
  uint64_t stream;  // closed or not, tickets and bytes that were given out [R1]

  /// What waiting writers look at. Positions count from the buffer's first byte ever on, so that
  /// they only grow.
  alignas(128) uint64_t flushed;  // all before is in the file; with kRecordsSettled [R3]
  uint32_t flushed_tickets;       // of those of the stream
  uint32_t flushing;              // the lock of the flusher, for all that follows [R4]
  uint32_t heard;                 // writers that have seen `verdict` [R5]
  int verdict;                    // of all records that are not flushed, when that is settled
  uint32_t syncing;               // the lock of the one that makes records durable
  uint64_t synced[2];             // all before is durable, by f2fs::SyncScope [R6]

  /// Changed while the stream is closed.
  alignas(128) uint64_t base;  // the position of the stream's byte 0
  uint64_t origin;             // its place in the file, a multiple of a block
  uint64_t owned_from;         // the position behind which all is the present owner's
  uint32_t owner;              // the open inode that has the buffer: index + 1; 0: none
  uint32_t first_tag;          // of ticket 0, in entries
  uint64_t used_ns;            // when something was flushed last
  RecordTail tail;
  // These stay as they are.
  uint8_t* data;         // `bytes` and two pages
  uint64_t* entries;     // of tickets [R2]
  uint64_t bytes;        // a power of two
  uint32_t entry_count;  // a power of two
  uint32_t tickets_max;  // after so many the stream is made anew

  /// A page for a part of a block. Neither has a neighbour, so that no command has two blocks of
  /// which one is written over.
  GOFS_HD uint8_t* page(uint32_t number) const { return data + bytes + 2 * number * kBlockBytes; }
  static constexpr uint64_t memory_for(uint64_t bytes) { return bytes + 4 * kBlockBytes; }
};

struct RecordPool {
  RecordBuffer* buffers;
  uint32_t count;  // at most 32
};

namespace detail {

// The word `stream`: 42 bits of bytes, 21 of tickets, one that says that nothing is given out.
// Those who find it closed may have counted themselves, up to the next time it is stored.
inline constexpr uint64_t kStreamClosed = uint64_t{1} << 63;
inline constexpr uint32_t kStreamTicketShift = 42;
inline constexpr uint64_t kOneStreamTicket = uint64_t{1} << kStreamTicketShift;
inline constexpr uint64_t kStreamBytesMask = kOneStreamTicket - 1;
/// Where the stream is made anew: what is given out behind that until it is closed fits.
inline constexpr uint32_t kStreamTicketsMax = 1u << 20;
inline constexpr uint64_t kStreamBytesMax = uint64_t{1} << 41;

GOFS_HD constexpr uint32_t tickets_of_stream(uint64_t word) {
  return static_cast<uint32_t>((word & ~kStreamClosed) >> kStreamTicketShift);
}
GOFS_HD constexpr uint64_t bytes_of_stream(uint64_t word) { return word & kStreamBytesMask; }

// An entry: 20 bits of the ticket's tag, one that says that no record comes, one that it is not
// that of user 0, 42 of the stream's bytes before its end. Tags go on from stream to stream, so
// that no former entry has the same.
inline constexpr uint32_t kEntryTagShift = 44;
inline constexpr uint64_t kEntryVoid = uint64_t{1} << 43;
inline constexpr uint64_t kEntryOfUser = uint64_t{1} << 42;
inline constexpr uint32_t kEntryTagMask = (1u << 20) - 1;

GOFS_HD constexpr uint64_t entry_word(uint32_t tag, uint64_t end) {
  return uint64_t{tag & kEntryTagMask} << kEntryTagShift | end;
}
GOFS_HD constexpr bool has_tag(uint64_t entry, uint32_t tag) {
  return entry >> kEntryTagShift == (tag & kEntryTagMask);
}
GOFS_HD constexpr uint64_t end_of_entry(uint64_t entry) { return entry & (kEntryOfUser - 1); }

/// In `flushed`: what is not flushed has its verdict.
inline constexpr uint64_t kRecordsSettled = uint64_t{1} << 63;

/// What an open inode's `records` says while some warp looks for a buffer.
inline constexpr uint32_t kRecordsSought = ~0u;

/// Releases what the open inode `index` has, which nothing uses any more: `records` of it. One
/// lane.
GOFS_HD inline void release_records(const RecordPool& pool, uint32_t index, uint32_t& records) {
  const uint32_t number = simt::load_relaxed(records);
  if (number == 0) return;
  uint32_t owner = index + 1;
  // Or another file has just taken it. [R7]
  simt::AtomicRef<uint32_t>(pool.buffers[number - 1].owner)
      .compare_exchange_strong(owner, 0, simt::memory_order_release, simt::memory_order_relaxed);
  simt::store_relaxed(records, 0u);
}

}  // namespace detail

}  // namespace gofs::vfs
