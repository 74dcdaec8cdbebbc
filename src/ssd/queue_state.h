// SPDX-License-Identifier: Apache-2.0
//
// The state of submission and completion queues inside the virtual controller.
//
// Fetching needs no lock. `claimed` says how many commands of a submission queue were ever taken:
// its place in the ring and how many times round. It only grows, also when the queue is deleted and
// made again, so a compare-and-swap that succeeds proves that nothing happened to the queue since
// `claimed` was read. One bit closes the queue: nothing more is taken until it is opened anew.
//
// Completions go one of two ways, chosen when the queue is made:
//   direct   without a timing model and faults. The completion of the command at place p of the
//            submission queue goes to place p of its own completion queue, which has the same depth
//            and no other submission queue. So completions need no reservation, and as the driver
//            sees a completion only after all before it, "p + 1 entries are consumed" is always
//            true. A command is taken only if its completion has a free place.
//   pending  a record per place of the submission queue keeps the completion until it is due and
//            the completion queue has room. Records are posted under the completion queue's lock,
//            in any order. A place whose record still waits is not fetched again, although the
//            driver may have reused its entry: in-flight commands are bounded by the queue's depth.
#pragma once

#include "simt/atomic.h"
#include "simt/platform.h"

namespace gofs::ssd {

inline constexpr uint32_t kQueueEntriesMax = 65535;

/// A place in a ring: bits 0..15 the index, bits 16..62 how many times round, bit 63 closed.
struct RingPlace {
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  uint64_t word;

  GOFS_HD static constexpr RingPlace start_of_lap(uint64_t lap) { return RingPlace{lap << 16}; }
  GOFS_HD constexpr bool closed() const { return (word & kClosed) != 0; }
  GOFS_HD constexpr RingPlace opened() const { return RingPlace{word & ~kClosed}; }
  GOFS_HD constexpr uint32_t index() const { return static_cast<uint32_t>(word & 0xffff); }
  GOFS_HD constexpr uint64_t lap() const { return (word & ~kClosed) >> 16; }
  /// `count` places on; count <= depth.
  GOFS_HD constexpr RingPlace plus(uint32_t count, uint32_t depth) const {
    const uint32_t index_then = index() + count;
    return index_then < depth ? RingPlace{(word & ~uint64_t{0xffff}) | index_then}
                              : RingPlace{((word >> 16) + 1) << 16 | (index_then - depth)};
  }
  /// Commands since lap 0.
  GOFS_HD constexpr uint64_t total(uint32_t depth) const { return lap() * depth + index(); }
};

/// The completion of one command that is not posted yet. `turn` says what the record is for the
/// command of lap n: 2n none yet, 2n+1 waiting, 2n+2 posted, which is also "none yet" of lap n+1.
struct PendingRecord {
  uint64_t finish_ns;
  uint16_t cid;
  uint16_t status;  // bit 15: post it twice
  uint32_t turn;

  static constexpr uint16_t kTwice = 0x8000;

  GOFS_HD static constexpr uint32_t turn_none(uint64_t lap) {
    return static_cast<uint32_t>(lap << 1);
  }
  GOFS_HD static constexpr uint32_t turn_waiting(uint64_t lap) { return turn_none(lap) + 1; }
  GOFS_HD static constexpr uint32_t turn_posted(uint64_t lap) { return turn_none(lap) + 2; }
  /// Also true when the record is in use for a later lap already; turns wrap around.
  GOFS_HD static constexpr bool is_posted(uint32_t turn, uint64_t lap) {
    return static_cast<int32_t>(turn - turn_posted(lap)) >= 0;
  }
  /// For a command of whatever lap.
  GOFS_HD static constexpr bool is_waiting(uint32_t turn) { return (turn & 1) != 0; }
};
static_assert(sizeof(PendingRecord) == 16);

enum class CompletionMode : uint32_t { kDirect = 0, kPending = 1 };

/// Times and counts that mean "never".
inline constexpr uint64_t kNever = ~uint64_t{0};

struct alignas(128) SubmissionQueue {
  // Changed by every warp that takes commands.
  uint64_t claimed;   // a RingPlace
  uint64_t finished;  // commands of which the controller will touch no memory of the driver again,
                      // save for posting a pending record
  uint64_t consumed;  // commands whose entries the driver may overwrite; mode pending
  uint64_t next_due_ns;  // no pending record is due before; may be too early

  // Changed by admin commands while the queue is closed; relaxed accesses.
  alignas(128) uint64_t entries;  // address of the ring; 0: no such queue
  uint64_t completion_entries;
  uint32_t depth;
  uint32_t completion_queue;
  uint32_t completion_depth;
  CompletionMode mode;
  // Never changed.
  PendingRecord* records;
  uint64_t* hold_until;  // per place: post when `posted` has reached this; null without faults

  // Guarded by the completion queue's lock; mode pending.
  alignas(128) uint64_t oldest;  // a RingPlace: all records before it are posted; may lie behind
  uint32_t scan_offset;          // where a pass over the records goes on, counted from `oldest`; 0:
                                 // none is under way; relaxed
  uint16_t reported_head;
  bool pass_held;            // of the pass: a record waits for others to be posted
  uint64_t pass_soonest_ns;  // the least time that it found
  uint64_t pass_posted;      // `posted` when it began
  uint64_t posted;           // completions since lap 0, as RingPlace::total() counts; relaxed

  // Statistics since creation of the controller; relaxed.
  alignas(128) uint64_t read_commands;
  uint64_t write_commands;
  uint64_t blocks_read;
  uint64_t blocks_written;
  uint64_t invalid_doorbells;
  uint32_t invalid_doorbell_seen;  // the last invalid value + 1, counted once
};

struct alignas(128) CompletionQueue {
  uint32_t lock;
  // Guarded by the lock.
  uint32_t tail;
  uint32_t phase;  // of the entry at `tail`

  // Changed by admin commands under the lock; relaxed accesses.
  uint64_t entries;  // 0: no such queue
  uint32_t depth;
  uint32_t submission_queues;  // that post here
  uint32_t direct_queue;       // the one of them in direct mode, 0: none
  bool used;                   // a submission queue was ever attached
};

}  // namespace gofs::ssd
