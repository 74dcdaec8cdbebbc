// SPDX-License-Identifier: Apache-2.0
//
// A submission and a completion queue in the memory of those who use them, driven by many warps at
// once. This file holds the state and the four moves; execute.h puts them together, and recovery.h
// aborts what is late.
//
//   reserve   a ticket a command, one atomic a warp. Ticket t owns the ring's position and the slot
//             t % depth; cid = slot, with the lap's low bits above it, so that a stray completion
//             is recognised.
//   publish   each lane writes its 64-byte entry and marks its slot issued            [N2]
//   ring      under a try-lock, moves the tail over consecutive issued slots, one doorbell for all
//   reap      under a try-lock, hands completions to the slots, a warp's width at a time [N3]
//
// A ticket may be used once the slot's former command is retired, and the next slot's too: then at
// most depth - 1 commands are outstanding, which is what tells a full ring from an empty one. A
// command is retired by its waiter, who has then seen the completion, or by reap when it reports to
// a mailbox. A warp that waits for admission must not hold unretired slots; execute() sees to it.
//
// Sources: BaM (tickets and turns), AGILE (cid = slot, windows of 32 completions); see
// docs/memory_model.md for the pairs [N1] to [N6].
#pragma once

#include "format/nvme.h"
#include "nvme/command_counts.h"
#include "nvme/prp.h"
#include "nvme/ring_index.h"
#include "nvme/status.h"
#include "simt/atomic.h"
#include "simt/warp.h"
#include "ssd/controller_ref.h"
#include "ssd/staging.h"

namespace gofs::nvme {

/// Where the commands of an asynchronous operation report. `remaining` counts commands under way.
struct Mailbox {
  uint32_t remaining;
  CommandStatus status;  // of the first command that failed, else 0
};

struct alignas(32) Slot {
  uint32_t lap;      // laps retired; ticket t is admitted when this equals its lap [N1]
  uint32_t issued;   // lap + 1 once the entry of that lap is written [N2]
  uint64_t done;     // completed lap + 1 in the high half, status in the low half [N3]
  Mailbox* mailbox;  // where to report instead of to a waiter; written before `issued`
  uint32_t dw0;      // command specific result; written before `done`
  uint32_t counted;  // as what it counts (command_counts.h); written before `issued`
};
static_assert(sizeof(Slot) == 32);

/// A command that failed, for messages.
struct FailedCommand {
  CommandStatus status;
  format::nvme::IoOpcode opcode;
  uint64_t lba;

  /// As one word, so that several may be noted at once and the last one stands. 0 is none.
  GOFS_HD constexpr uint64_t packed() const {
    const uint64_t code = static_cast<uint64_t>(opcode) & kOpcodeMask;
    return (uint64_t{status} << kOpcodeBits | code) << kLbaBits | (lba & kLbaMask);
  }
  GOFS_HD static constexpr FailedCommand unpacked(uint64_t word) {
    const uint64_t code = word >> kLbaBits & kOpcodeMask;
    return {static_cast<CommandStatus>(word >> (kLbaBits + kOpcodeBits)),
            static_cast<format::nvme::IoOpcode>(code), word & kLbaMask};
  }

 private:
  static constexpr uint32_t kOpcodeBits = 4;
  static constexpr uint32_t kLbaBits = 43;  // 4 PiB; a verdict takes 17
  static constexpr uint64_t kOpcodeMask = (1u << kOpcodeBits) - 1;
  static constexpr uint64_t kLbaMask = (uint64_t{1} << kLbaBits) - 1;
};

struct QueuePair {
  // Constant after creation.
  format::nvme::SubmissionEntry* submission;
  format::nvme::CompletionEntry* completion;
  Slot* slots;
  PrpList* prp_lists;  // one a slot
  uint32_t* submission_doorbell;
  uint32_t* completion_doorbell;
  uint64_t* last_failure;  // the device's; null: not to be noted
  ssd::Staging staging;
  RingShape shape;
  uint32_t slot_bits;  // cid = slot | lap << slot_bits
  uint32_t qid;
  uint32_t single_doorbells;  // not 0: one for each command

  // Words that different warps write, each on a line of its own.
  alignas(128) uint64_t next_ticket;
  alignas(128) uint32_t tail_lock;
  uint64_t tail;       // tickets below it were made known by a doorbell
  uint64_t doorbells;  // doorbell stores so far
  alignas(128) uint32_t head_lock;
  uint64_t head;      // completions consumed
  uint64_t spurious;  // completions for no outstanding command: duplicates, or after an abort
  // Of commands that have completed. On a line of its own: the others are looked at by all.
  alignas(128) QueueCounts counts;

  GOFS_HD uint32_t depth() const { return shape.depth; }
  /// The most commands that a warp may reserve at once.
  GOFS_HD uint32_t batch_max() const { return shape.depth - 1; }
  GOFS_HD uint16_t cid_of(const RingPosition& position) const {
    return static_cast<uint16_t>(position.index | position.lap << slot_bits);
  }
};

/// One I/O command as the layers above ask for it.
struct Command {
  format::nvme::IoOpcode opcode;
  bool force_unit_access;
  uint32_t lba_count;  // of Dataset Management, which deallocates: ranges in the buffer
  uint64_t lba;
  void* buffer;    // a multiple of 4; may be null where the command moves no data
  uint32_t bytes;  // at most the device's transfer limit
};

/// What a lane keeps of a command it has submitted.
struct Token {
  RingPosition position;
  uint64_t ticket;
};

/// Takes a ticket for each lane in `lanes`, which has at most batch_max() bits. Collective.
GOFS_HD inline Token reserve(simt::AnyWarp auto warp, QueuePair& queue, uint32_t lanes) {
  const uint32_t leader = simt::lowest_bit(lanes);
  uint64_t base = 0;
  if (warp.thread_rank() == leader) {
    base = simt::add_relaxed(queue.next_ticket, uint64_t{simt::popcount(lanes)});
  }
  base = warp.shfl(base, leader);
  Token token;
  token.ticket = base + simt::popcount(lanes & simt::ranks_below(warp.thread_rank()));
  token.position = queue.shape.position(token.ticket);
  return token;
}

/// True once the lane's ticket may be written.
GOFS_HD inline bool admitted(const QueuePair& queue, const Token& token) {
  const RingPosition next = token.position.plus(1, queue.depth());
  // [N1] the retiring waiter's release: it has read all that the slot held.
  const uint32_t mine = simt::load_acquire(queue.slots[token.position.index].lap);
  const uint32_t after = simt::load_acquire(queue.slots[next.index].lap);
  return mine == token.position.lap && static_cast<int32_t>(after - next.lap) >= 0;
}

/// Writes the lane's entry into the ring. Not collective.
GOFS_HD inline void publish(QueuePair& queue, const Token& token,
                            const format::nvme::SubmissionEntry& entry, Mailbox* mailbox) {
  Slot& slot = queue.slots[token.position.index];
  queue.submission[token.position.index] = entry;
  simt::store_relaxed(slot.mailbox, mailbox);
  simt::store_relaxed(slot.counted, CountedCommand::of(entry).packed());
  simt::store_release(slot.issued, token.position.lap + 1);  // [N2] entry and mailbox are written
}

/// Rings a doorbell for each of the entries [before, tail) but the last. One lane, by a caller that
/// holds the tail's lock.
GOFS_HD inline void ring_singly(QueuePair& queue, uint64_t before, uint64_t tail) {
  for (uint64_t ticket = before + 1; ticket < tail; ++ticket) {
    ++queue.doorbells;
    simt::store_system_release(*queue.submission_doorbell,
                               queue.shape.position(ticket).index);  // [N4]
  }
}

/// Moves the tail over all consecutive issued entries and rings the doorbell once; does nothing if
/// another warp is at it. Collective.
GOFS_HD inline void ring(simt::AnyWarp auto warp, QueuePair& queue) {
  const bool leader = warp.thread_rank() == 0;
  const uint32_t locked = leader && simt::try_lock(queue.tail_lock) ? 1 : 0;
  if (warp.shfl(locked, 0) == 0) return;
  warp.sync();
  uint64_t tail = warp.shfl(leader ? simt::load_relaxed(queue.tail) : 0, 0);
  const uint64_t before = tail;
  RingPosition position = queue.shape.position(tail);
  const uint32_t width = warp.size();
  // A lap at the most: more cannot be issued while we hold the tail.
  for (uint32_t seen = 0; seen < queue.depth(); seen += width) {
    const RingPosition mine = position.plus(warp.thread_rank(), queue.depth());
    const bool issued = simt::load_acquire(queue.slots[mine.index].issued) == mine.lap + 1;  // [N2]
    const uint32_t missing = warp.ballot(!issued);
    const uint32_t count = missing == 0 ? width : simt::lowest_bit(missing);
    tail += count;
    position = position.plus(count, queue.depth());
    if (missing != 0) break;
  }
  warp.sync();
  if (leader) {
    if (tail != before) {
      simt::store_relaxed(queue.tail, tail);
      if (queue.single_doorbells != 0) ring_singly(queue, before, tail);
      ++queue.doorbells;
      // [N4] The entries are in memory before the device can learn of them.
      simt::store_system_release(*queue.submission_doorbell, position.index);
    }
    simt::unlock(queue.tail_lock);
  }
}

/// Whether a doorbell was rung for the command at `position`, which is outstanding. Until then it
/// stands behind an entry that is not written yet.
GOFS_HD inline bool is_rung(const QueuePair& queue, const RingPosition& position) {
  const RingPosition tail = queue.shape.position(simt::load_relaxed(queue.tail));
  const auto laps = static_cast<int32_t>(tail.lap - position.lap);
  return laps > 0 || (laps == 0 && position.index < tail.index);
}

/// Notes that the command in ring place `index` has failed. Relaxed: a word that is whole in
/// itself.
GOFS_HD inline void note_failure(const QueuePair& queue, uint32_t index, CommandStatus status) {
  if (queue.last_failure == nullptr) return;
  const format::nvme::SubmissionEntry& entry = queue.submission[index];
  const FailedCommand failed{status, static_cast<format::nvme::IoOpcode>(entry.opcode),
                             uint64_t{entry.cdw11} << 32 | entry.cdw10};
  simt::store_relaxed(*queue.last_failure, failed.packed());
}

/// The slot that a completion names.
GOFS_HD inline uint32_t slot_of(const QueuePair& queue, uint16_t cid) {
  return cid & ((1u << queue.slot_bits) - 1);
}

/// Whether the command that a completion names is under way. By the holder of the head lock.
GOFS_HD inline bool is_outstanding(const QueuePair& queue, uint16_t cid) {
  const uint32_t index = slot_of(queue, cid);
  if (index >= queue.depth()) return false;
  const Slot& slot = queue.slots[index];
  const uint32_t lap = simt::load_relaxed(slot.lap);
  return simt::load_acquire(slot.issued) == lap + 1 &&
         static_cast<uint32_t>(simt::load_relaxed(slot.done) >> 32) != lap + 1 &&
         static_cast<uint16_t>(index | lap << queue.slot_bits) == cid;
}

/// The status field in the upper half of an entry's last word. Success has no other bits: a
/// controller may set More with it, to say that a log page has something about the command.
GOFS_HD inline CommandStatus status_in(uint32_t last_word) {
  const CommandStatus status = last_word >> 17;
  return (status & format::nvme::kStatusCodeMask) == 0 ? 0 : status;
}

/// Hands one completion to its slot. Called by the holder of the head lock, a lane an entry.
GOFS_HD inline void deliver(QueuePair& queue, uint16_t cid, CommandStatus status, uint32_t dw0) {
  if (!is_outstanding(queue, cid)) {
    simt::add_relaxed(queue.spurious, uint64_t{1});
    return;
  }
  const uint32_t index = slot_of(queue, cid);
  Slot& slot = queue.slots[index];
  const uint32_t lap = simt::load_relaxed(slot.lap);
  const auto counted = CountedCommand::unpacked(simt::load_relaxed(slot.counted));
  if (status != 0) {
    // We abort only what is late: that is what the caller should get.
    if ((status & format::nvme::kStatusCodeMask) == format::nvme::kAbortRequested) {
      status = kStatusTimedOut;
    }
    note_failure(queue, index, status);
  }
  Mailbox* const address = simt::load_relaxed(slot.mailbox);
  if (address == nullptr) {
    slot.dw0 = dw0;
    simt::store_release(slot.done, uint64_t{lap + 1} << 32 | status);  // [N3]
    count_command(queue.counts, counted, status == 0);
    return;
  }
  Mailbox& mailbox = *address;
  simt::store_relaxed(slot.done, uint64_t{lap + 1} << 32 | status);
  if (status != 0) simt::store_relaxed(mailbox.status, status);
  simt::AtomicRef<uint32_t>(mailbox.remaining).fetch_sub(1, simt::memory_order_release);  // [N3]
  simt::store_release(slot.lap, lap + 1);                                                 // [N1]
  count_command(queue.counts, counted, status == 0);
}

/// Whether what the device has read must not be handed on any more, as those that wait for it get
/// that error [N5]. By the holder of the head lock.
GOFS_HD inline bool withholds(const QueuePair& queue) {
  return queue.staging.areas != nullptr && simt::load_relaxed(*queue.staging.failure) != 0;
}

/// The last word of an entry: the cid in the low half, phase tag and status in the high half. The
/// device writes it last and as one; it is read as one as well, so that its parts belong together.
GOFS_HD inline const uint32_t& last_word(const format::nvme::CompletionEntry& entry) {
  static_assert(sizeof(entry) == 16 && offsetof(format::nvme::CompletionEntry, cid) == 12);
  return reinterpret_cast<const uint32_t*>(&entry)[3];
}

/// Consumes the completions that the device has posted, if no other warp is at it. Collective.
GOFS_HD inline void reap(simt::AnyWarp auto warp, QueuePair& queue) {
  const bool leader = warp.thread_rank() == 0;
  // A look before the lock: most polls find nothing.
  uint32_t locked = 0;
  if (leader) {
    const RingPosition next = queue.shape.position(simt::load_relaxed(queue.head));
    const uint32_t word = simt::load_system_relaxed(last_word(queue.completion[next.index]));
    locked = (word >> 16 & 1u) != (next.lap & 1u) && simt::try_lock(queue.head_lock) ? 1 : 0;
  }
  if (locked != 0 && withholds(queue)) {
    simt::unlock(queue.head_lock);
    locked = 0;
  }
  if (warp.shfl(locked, 0) == 0) return;
  warp.sync();
  uint64_t head = warp.shfl(leader ? simt::load_relaxed(queue.head) : 0, 0);
  const uint64_t before = head;
  RingPosition position = queue.shape.position(head);
  const uint32_t width = simt::min(warp.size(), queue.depth());
  for (uint32_t seen = 0; seen < queue.depth(); seen += width) {
    const RingPosition mine = position.plus(warp.thread_rank(), queue.depth());
    const format::nvme::CompletionEntry& entry = queue.completion[mine.index];
    // The phase tag of lap 0 is 1, of lap 1 it is 0, and so on. [N4]
    const uint32_t word = simt::load_system_acquire(last_word(entry));
    const auto cid = static_cast<uint16_t>(word);
    const CommandStatus status = status_in(word);
    const bool posted = warp.thread_rank() < width && (word >> 16 & 1u) != (mine.lap & 1u);
    const uint32_t missing = warp.ballot(!posted);
    const uint32_t count = missing == 0 ? width : simt::lowest_bit(missing);
    // A device that repeats itself within one window must not be believed twice.
    const uint32_t key = warp.thread_rank() < count ? cid : 0x10000u + warp.thread_rank();
    const bool first = count <= 1 || simt::lowest_bit(warp.match_any(key)) == warp.thread_rank();
    if (queue.staging.areas != nullptr) {
      const bool good = warp.thread_rank() < count && first && status == 0;
      const uint32_t lanes = warp.ballot(good && is_outstanding(queue, cid));
      ssd::unstage(warp, queue.staging, lanes, slot_of(queue, cid));
      warp.sync();
    }
    if (warp.thread_rank() < count) {
      if (first) {
        deliver(queue, cid, status, entry.dw0);
      } else {
        simt::add_relaxed(queue.spurious, uint64_t{1});
      }
    }
    head += count;
    position = position.plus(count, queue.depth());
    if (count < width) break;
  }
  warp.sync();
  if (leader) {
    if (head != before) {
      simt::store_relaxed(queue.head, head);
      // Release: our reads of the entries come before the device may overwrite them. [N4]
      simt::store_system_release(*queue.completion_doorbell, position.index);
    }
    simt::unlock(queue.head_lock);
  }
}

/// The completion of the lane's own command: true once it is there. Not collective.
GOFS_HD inline bool completed(const QueuePair& queue, const Token& token, CommandStatus& status) {
  const uint64_t done = simt::load_acquire(queue.slots[token.position.index].done);  // [N3]
  if (static_cast<uint32_t>(done >> 32) != token.position.lap + 1) return false;
  status = static_cast<uint32_t>(done);
  return true;
}

/// Gives the slot back. The lane has seen its completion, or knows that none will come.
GOFS_HD inline void retire(QueuePair& queue, const Token& token) {
  simt::store_release(queue.slots[token.position.index].lap, token.position.lap + 1);  // [N1]
}

}  // namespace gofs::nvme
