// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a command that was carried out: it is counted, and in pending mode its completion
// is recorded for post_due() (completion.h), as a planned fault wants it.
#pragma once

#include "ssd/completion.h"
#include "ssd/fetch.h"
#include "ssd/logged_command.h"

namespace gofs::ssd::detail {

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
  simt::store_release(record.turn, turn);  // [S4]; [S7] of a record that will not be posted
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

}  // namespace gofs::ssd::detail
