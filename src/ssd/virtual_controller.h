// SPDX-License-Identifier: Apache-2.0
//
// The virtual NVMe controller's engine: step(), which whoever waits for a completion calls.
//
// Follow a command: claim_commands() (fetch.h) takes it out of the submission queue,
// decode_io_command() (io_command.h) checks it, execute() (transfer.h) moves its data. Then its
// completion is either posted at once, or, with a timing model or faults, recorded with the time at
// which it is due and posted by post_due() (completion.h). Queue 0 is in admin.h, what the
// registers ask for in lifecycle.h.
//
// Every warp of the backend may step every queue at any time; none waits for another.
#pragma once

#include "ssd/admin.h"
#include "ssd/completion.h"
#include "ssd/fetch.h"
#include "ssd/lifecycle.h"
#include "ssd/logged_command.h"
#include "ssd/transfer.h"

namespace gofs::ssd {

namespace detail {

GOFS_HD inline void count_commands(simt::AnyWarp auto warp, VirtualController& controller,
                                   SubmissionQueue& queue, uint32_t qid, const IoCommand& command) {
  using namespace format::nvme;
  const bool reads = command.valid && command.is(IoOpcode::kRead);
  const bool writes = command.valid && command.is(IoOpcode::kWrite);
  const uint32_t readers = warp.ballot(reads);
  const uint32_t writers = warp.ballot(writes);
  if (warp.thread_rank() == 0) {
    if (readers != 0) simt::count_relaxed(queue.read_commands, simt::popcount(readers));
    if (writers != 0) simt::count_relaxed(queue.write_commands, simt::popcount(writers));
  }
  if (!command.valid) return;
  if (command.fails()) {
    log_error(controller, qid, command.cid, command.nsid, command.status, command.lba);
  } else if (reads || writes) {
    simt::count_relaxed(reads ? queue.blocks_read : queue.blocks_written, command.lba_count);
  }
}

GOFS_HD inline TimedCommand timed(const VirtualController& controller, const IoCommand& command) {
  using namespace format::nvme;
  TimedOperation operation = TimedOperation::kOther;
  if (!command.fails()) {
    if (command.is(IoOpcode::kRead)) operation = TimedOperation::kRead;
    if (command.is(IoOpcode::kWrite)) operation = TimedOperation::kWrite;
    if (command.is(IoOpcode::kFlush)) operation = TimedOperation::kFlush;
  }
  return {operation, command.durable, command.lba << controller.lba_shift, command.transfer_bytes};
}

/// Direct mode: each lane posts its command's completion at the command's own place.
GOFS_HD inline void post_directly(simt::AnyWarp auto warp, uint32_t qid, const Claim& claim,
                                  const IoCommand& command) {
  if (!command.valid) return;
  const RingPlace place = claim.first.plus(warp.thread_rank(), claim.depth);
  const auto next_head = static_cast<uint16_t>(place.plus(1, claim.depth).index());
  const uint32_t phase = (place.lap() & 1) == 0 ? 1 : 0;
  post_entry(claim.completion_entries, place.index(), phase,
             {0, next_head, static_cast<uint16_t>(qid), command.cid, command.status});
}

/// Pending mode: leaves a record of this lane's completion. Returns when it is due, kNever if none
/// is.
GOFS_HD inline uint64_t leave_record(simt::AnyWarp auto warp, VirtualController& controller,
                                     SubmissionQueue& queue, const Claim& claim,
                                     const IoCommand& command, const FaultRule* fault,
                                     uint64_t now_ns) {
  if (!command.valid || (fault != nullptr && fault->action == FaultAction::kFatal)) return kNever;
  const RingPlace place = claim.first.plus(warp.thread_rank(), claim.depth);
  PendingRecord& record = queue.records[place.index()];
  uint64_t finish_ns = now_ns;
  if (controller.timing != nullptr) {
    finish_ns =
        finish_time(controller.model, *controller.timing, now_ns, timed(controller, command));
  }
  record.cid = command.cid;
  record.status = command.status;
  uint64_t hold_until = 0;
  uint32_t turn = PendingRecord::turn_waiting(place.lap());
  if (fault != nullptr) {
    switch (fault->action) {
      case FaultAction::kDelay:
        finish_ns += fault->delay_ns;
        break;
      case FaultAction::kDuplicate:
        record.status |= PendingRecord::kTwice;
        break;
      case FaultAction::kHold:
        // Later ones may have been posted while we were at it: they count, since a ring ends a lap
        // behind this command, and perhaps no more come.
        hold_until = simt::min(simt::load_relaxed(queue.posted), place.total(claim.depth)) +
                     fault->hold_commands;
        break;
      case FaultAction::kLose:
        turn = PendingRecord::turn_posted(place.lap());
        break;
      case FaultAction::kStatus:
      case FaultAction::kFatal:
        break;
    }
  }
  record.finish_ns = finish_ns;
  if (queue.hold_until != nullptr) queue.hold_until[place.index()] = hold_until;
  simt::store_release(record.turn, turn);  // [S4]; [S7] of a record that nobody will post
  return finish_ns;
}

/// Pending mode: the completions of all lanes' commands are recorded.
GOFS_NOINLINE GOFS_HD inline void record_pending(simt::AnyWarp auto warp,
                                                 VirtualController& controller,
                                                 SubmissionQueue& queue, const Claim& claim,
                                                 const IoCommand& command, const FaultRule* fault,
                                                 uint64_t now_ns) {
  if (controller.write_log != nullptr) log_commands(warp, controller, queue, claim, command);
  if (warp.thread_rank() == 0) {
    simt::count_release(queue.consumed, claim.count);  // [S3]
  }
  warp.sync();
  const uint64_t due_ns = leave_record(warp, controller, queue, claim, command, fault, now_ns);
  const uint64_t soonest = reduce_min(warp, due_ns);
  warp.sync();
  if (warp.thread_rank() == 0) lower_next_due(queue, soonest);
}

/// The fault that hits this lane's command, if any; a status fault is put in place at once.
GOFS_HD inline const FaultRule* apply_fault(VirtualController& controller, IoCommand& command) {
  if (controller.faults == nullptr || !command.valid) return nullptr;
  const FaultRule* const fault =
      find_fault(*controller.faults,
                 {false, command.opcode, command.lba_count != 0, command.lba, command.lba_count});
  if (fault == nullptr) return nullptr;
  if (fault->action == FaultAction::kStatus && !command.fails()) command.fail(fault->status);
  return fault;
}

/// Takes and carries out some commands. Returns which.
GOFS_HD inline Claim fetch_and_execute(simt::AnyWarp auto warp, VirtualController& controller,
                                       SubmissionQueue& queue, uint32_t qid) {
  const Claim claim = claim_commands(warp, controller, queue, qid);
  if (claim.count == 0) return claim;
  const uint32_t rank = warp.thread_rank();
  IoCommand command;
  if (rank < claim.count) {
    const auto* const entries =
        reinterpret_cast<const format::nvme::SubmissionEntry*>(claim.entries);
    const format::nvme::SubmissionEntry entry =
        entries[claim.first.plus(rank, claim.depth).index()];
    command = decode_io_command(controller, entry);
  }
  const FaultRule* fault = nullptr;
  uint64_t now_ns = 0;
  if (claim.mode == CompletionMode::kPending) {
    now_ns = controller.now_ns();
    fault = apply_fault(controller, command);
    if (warp.any(fault != nullptr && fault->action == FaultAction::kFatal)) {
      fail_controller(warp, controller);
    }
  }
  execute(warp, controller, command);
  // What the lanes moved together is posted by each of them.
  warp.sync();
  if (claim.mode == CompletionMode::kDirect) {
    post_directly(warp, qid, claim, command);
  } else {
    record_pending(warp, controller, queue, claim, command, fault, now_ns);
  }
  count_commands(warp, controller, queue, qid, command);
  warp.sync();
  if (rank == 0) {
    simt::count_release(queue.finished, claim.count);  // [S2]
  }
  return claim;
}

/// Virtual time: with nothing else to do, the next completion of this queue is due now.
GOFS_HD inline void advance_virtual_clock(simt::AnyWarp auto warp, VirtualController& controller,
                                          SubmissionQueue& queue) {
  if (warp.thread_rank() != 0) return;
  const uint64_t next_due_ns = simt::load_relaxed(queue.next_due_ns);
  if (next_due_ns == kNever || simt::load_relaxed(queue.scan_offset) != 0) return;
  simt::AtomicRef<uint64_t>(controller.virtual_now_ns)
      .fetch_max(next_due_ns, simt::memory_order_relaxed);
}

}  // namespace detail

/// Advances the controller: takes new commands of queue `qid`, moves their data, posts the
/// completions that are due; for queue 0 also acts on the registers. Collective, uniform. Does a
/// bounded amount of work and waits for nothing. Whether it took or posted a command of an I/O
/// queue.
GOFS_NOINLINE GOFS_HD inline bool step(simt::AnyWarp auto warp, VirtualController& controller,
                                       uint32_t qid) {
  if (qid == 0) {
    step_admin(warp, controller);
    return false;
  }
  if (qid > controller.queue_limit) return false;
  SubmissionQueue& queue = controller.submission_queue(qid);
  const Claim claim = detail::fetch_and_execute(warp, controller, queue, qid);
  if (claim.mode == CompletionMode::kDirect) return claim.count != 0;
  uint64_t now_ns = 0;
  if (warp.thread_rank() == 0) now_ns = controller.now_ns();
  const uint32_t posted = post_due(warp, controller, qid, warp.shfl(now_ns, 0));
  if (controller.virtual_clock && claim.count == 0 && posted == 0) {
    detail::advance_virtual_clock(warp, controller, queue);
  }
  return claim.count != 0 || posted != 0;
}

/// Whether step() of I/O queue `qid` is likely to find something: commands that nobody has taken,
/// or a completion that is due. One lane; changes nothing, and what it says may be over already.
GOFS_HD inline bool has_work(VirtualController& controller, uint32_t qid) {
  if (qid > controller.queue_limit) return false;
  SubmissionQueue& queue = controller.submission_queue(qid);
  const RingPlace claimed{simt::load_relaxed(queue.claimed)};
  const uint32_t tail = simt::load_system_relaxed(controller.submission_doorbell(qid));
  const uint64_t next_due_ns = simt::load_relaxed(queue.next_due_ns);
  const uint32_t scan_offset = simt::load_relaxed(queue.scan_offset);
  if (claimed.closed()) return false;
  if (claimed.index() != tail || scan_offset != 0) return true;
  return next_due_ns != kNever && next_due_ns <= controller.now_ns();
}

}  // namespace gofs::ssd
