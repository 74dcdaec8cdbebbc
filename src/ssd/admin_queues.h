// SPDX-License-Identifier: Apache-2.0
//
// Creating and deleting I/O queues, and aborting commands in them. Collective, under the admin
// lock. A command that has to wait for other warps answers `deferred` and is tried again at the
// next step; doing its first part twice does no harm.
#pragma once

#include "ssd/completion.h"
#include "ssd/lifecycle.h"

namespace gofs::ssd {

struct AdminOutcome {
  format::nvme::Status status = format::nvme::kSuccess;
  uint32_t dw0 = 0;
  bool deferred = false;

  GOFS_HD static AdminOutcome failure(format::nvme::Status status) {
    return {static_cast<format::nvme::Status>(status | format::nvme::kDoNotRetry), 0, false};
  }
  GOFS_HD static AdminOutcome later() { return {format::nvme::kSuccess, 0, true}; }
};

namespace detail {

struct QueueRequest {
  uint32_t qid;
  uint32_t depth;
  uint64_t entries;
};

GOFS_HD inline QueueRequest queue_request(const format::nvme::SubmissionEntry& entry) {
  return {entry.cdw10 & 0xffff, (entry.cdw10 >> 16) + 1, entry.prp1};
}

/// What both kinds of queue have in common.
GOFS_HD inline format::nvme::Status check_new_queue(const VirtualController& controller,
                                                    const format::nvme::SubmissionEntry& entry,
                                                    bool exists) {
  using namespace format::nvme;
  constexpr uint32_t kContiguous = 1;
  const QueueRequest request = queue_request(entry);
  if (request.depth < 2 || request.depth > controller.queue_entries_max) return kInvalidQueueSize;
  if (exists) return kInvalidQueueIdentifier;
  if ((entry.cdw11 & kContiguous) == 0) return kInvalidField;
  if ((request.entries & (kBlockBytes - 1)) != 0) return kInvalidPrpOffset;
  return request.entries == 0 ? kInvalidField : kSuccess;
}

GOFS_HD inline bool may_exist(const VirtualController& controller, uint32_t qid) {
  return qid != 0 && qid <= controller.admin.queues_granted;
}

GOFS_HD inline bool submission_queue_exists(VirtualController& controller, uint32_t qid) {
  return may_exist(controller, qid) &&
         simt::load_relaxed(controller.submission_queue(qid).entries) != 0;
}

GOFS_HD inline bool completion_queue_exists(VirtualController& controller, uint32_t qid) {
  return may_exist(controller, qid) &&
         simt::load_relaxed(controller.completion_queue(qid).entries) != 0;
}

GOFS_HD inline AdminOutcome create_completion_queue(simt::AnyWarp auto warp,
                                                    VirtualController& controller,
                                                    const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const QueueRequest request = queue_request(entry);
  if (!may_exist(controller, request.qid)) return AdminOutcome::failure(kInvalidQueueIdentifier);
  const Status status =
      check_new_queue(controller, entry, completion_queue_exists(controller, request.qid));
  if (status != kSuccess) return AdminOutcome::failure(status);
  // Interrupts are not offered: no vector is valid, and none may be asked for.
  if ((entry.cdw11 & 2) != 0 || entry.cdw11 >> 16 != 0) {
    return AdminOutcome::failure(kInvalidInterruptVector);
  }
  CompletionQueue& queue = controller.completion_queue(request.qid);
  if (!lock_together(warp, queue.lock)) return AdminOutcome::later();
  if (warp.thread_rank() == 0) {
    queue.tail = 0;
    queue.phase = 1;
    queue.used = false;
    queue.direct_queue = 0;
    simt::store_relaxed(queue.submission_queues, 0u);
    simt::store_relaxed(queue.depth, request.depth);
    simt::store_relaxed(queue.entries, request.entries);
    simt::store_system_relaxed(controller.completion_doorbell(request.qid), 0u);
    controller.admin.queues_exist = true;
  }
  unlock_together(warp, queue.lock);
  return {};
}

/// The records of a queue that starts anew at `start`; its completion queue is locked. Collective.
GOFS_HD inline void reset_records(simt::AnyWarp auto warp, SubmissionQueue& queue, RingPlace start,
                                  uint32_t depth) {
  for (uint32_t i = warp.thread_rank(); i < depth; i += warp.size()) {
    const RingPlace place = start.plus(i, depth);
    simt::store_relaxed(queue.records[place.index()].turn, PendingRecord::turn_none(place.lap()));
    if (queue.hold_until != nullptr) queue.hold_until[place.index()] = 0;
  }
  if (warp.thread_rank() == 0) {
    queue.oldest = start.word;
    simt::store_relaxed(queue.scan_offset, 0u);
    queue.reported_head = static_cast<uint16_t>(start.index());
    simt::store_relaxed(queue.posted, start.total(depth));
    simt::store_relaxed(queue.next_due_ns, kNever);
  }
  warp.sync();
}

/// Where direct mode left the completion queue; it is locked. One lane.
GOFS_HD inline void leave_direct_mode(CompletionQueue& completions, RingPlace claimed) {
  completions.tail = claimed.index();
  completions.phase = (claimed.lap() & 1) == 0 ? 1 : 0;
  completions.direct_queue = 0;
}

/// Opens a closed queue. `start` differs from every earlier value of `claimed`, so that who looked
/// at the queue before it was closed cannot take anything any more. One lane. [S1]
GOFS_HD inline void open_queue(const VirtualController& controller, SubmissionQueue& queue,
                               RingPlace start, uint32_t depth) {
  simt::store_relaxed(queue.finished, start.total(depth));
  simt::store_relaxed(queue.consumed, start.total(depth));
  simt::AtomicRef<uint64_t>(queue.claimed).exchange(start.word, simt::memory_order_acq_rel);
  // A controller that failed meanwhile had closed the queue, and would find it open.
  if (simt::load_relaxed(controller.stopped) != 0) close_queue(queue);
}

/// Lets no more be taken from a queue. Collective, uniform: whether what was taken is not in use.
GOFS_HD inline bool close_together(simt::AnyWarp auto warp, SubmissionQueue& queue) {
  uint32_t settled = 0;
  if (warp.thread_rank() == 0) {
    close_queue(queue);
    settled = is_settled(queue) ? 1 : 0;
  }
  return warp.shfl(settled, 0) != 0;
}

/// How far a closed queue was taken. Collective, uniform.
GOFS_HD inline RingPlace claimed_together(simt::AnyWarp auto warp, const SubmissionQueue& queue) {
  return RingPlace{warp.shfl(simt::load_relaxed(queue.claimed), 0)};
}

/// Undoes close_queue() where the queue has remained what it was. One lane.
GOFS_HD inline void reopen_queue(const VirtualController& controller, SubmissionQueue& queue) {
  simt::AtomicRef<uint64_t>(queue.claimed)
      .fetch_and(~RingPlace::kClosed, simt::memory_order_acq_rel);
  // As in open_queue().
  if (simt::load_relaxed(controller.stopped) != 0) close_queue(queue);
}

/// Two laps on: a different word that has the same phase.
GOFS_HD inline RingPlace two_laps_on(RingPlace place) {
  return RingPlace{(place.lap() + 2) << 16 | place.index()};
}

/// Makes a queue in direct mode one in pending mode, since its completion queue is to be shared.
/// False: try again. The completion queue is locked.
GOFS_HD inline bool convert_to_pending(simt::AnyWarp auto warp, VirtualController& controller,
                                       CompletionQueue& completions) {
  SubmissionQueue& queue = controller.submission_queue(completions.direct_queue);
  if (!close_together(warp, queue)) return false;
  const RingPlace claimed = claimed_together(warp, queue);
  const RingPlace start = two_laps_on(claimed);
  const uint32_t depth = simt::load_relaxed(queue.depth);
  reset_records(warp, queue, start, depth);
  if (warp.thread_rank() == 0) {
    leave_direct_mode(completions, claimed);
    simt::store_relaxed(queue.mode, CompletionMode::kPending);
    open_queue(controller, queue, start, depth);
  }
  warp.sync();
  return true;
}

GOFS_HD inline AdminOutcome create_submission_queue(simt::AnyWarp auto warp,
                                                    VirtualController& controller,
                                                    const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const QueueRequest request = queue_request(entry);
  const uint32_t completion_qid = entry.cdw11 >> 16;
  if (!may_exist(controller, request.qid) || completion_qid == 0 ||
      completion_qid > controller.queue_limit) {
    return AdminOutcome::failure(kInvalidQueueIdentifier);
  }
  if (!completion_queue_exists(controller, completion_qid)) {
    return AdminOutcome::failure(kCompletionQueueInvalid);
  }
  const Status status =
      check_new_queue(controller, entry, submission_queue_exists(controller, request.qid));
  if (status != kSuccess) return AdminOutcome::failure(status);

  CompletionQueue& completions = controller.completion_queue(completion_qid);
  if (!lock_together(warp, completions.lock)) return AdminOutcome::later();
  const uint32_t completion_depth = simt::load_relaxed(completions.depth);
  if (completions.direct_queue != 0 && !convert_to_pending(warp, controller, completions)) {
    unlock_together(warp, completions.lock);
    return AdminOutcome::later();
  }
  const bool direct = controller.mode == CompletionMode::kDirect && completion_qid == request.qid &&
                      !completions.used && completion_depth == request.depth;
  SubmissionQueue& queue = controller.submission_queue(request.qid);
  // An even lap, so that the phase of direct completions starts at 1.
  const RingPlace last{simt::load_relaxed(queue.claimed)};
  const RingPlace start = RingPlace::start_of_lap((last.lap() + 2) & ~uint64_t{1});
  reset_records(warp, queue, start, request.depth);
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(queue.depth, request.depth);
    simt::store_relaxed(queue.completion_entries, simt::load_relaxed(completions.entries));
    simt::store_relaxed(queue.mode, direct ? CompletionMode::kDirect : CompletionMode::kPending);
    simt::store_relaxed(queue.entries, request.entries);
    simt::store_relaxed(queue.completion_queue, completion_qid);
    simt::store_relaxed(queue.invalid_doorbell_seen, 0u);
    simt::store_system_relaxed(controller.submission_doorbell(request.qid), 0u);
    completions.used = true;
    if (direct) completions.direct_queue = request.qid;
    simt::store_relaxed(completions.submission_queues,
                        simt::load_relaxed(completions.submission_queues) + 1);
    open_queue(controller, queue, start, request.depth);
  }
  unlock_together(warp, completions.lock);
  return {};
}

inline constexpr uint32_t kAnyCid = 0x10000;

/// Makes the records that still wait due at once with `status`; the completion queue is locked.
/// Collective. Only those with `cid`, unless it is kAnyCid. Returns how many.
GOFS_HD inline uint32_t end_waiting_records(simt::AnyWarp auto warp, SubmissionQueue& queue,
                                            uint32_t cid, format::nvme::Status status) {
  const uint32_t depth = simt::load_relaxed(queue.depth);
  uint32_t ended = 0;
  for (uint32_t i = warp.thread_rank(); i < depth; i += warp.size()) {
    PendingRecord& record = queue.records[i];
    if (!PendingRecord::is_waiting(simt::load_acquire(record.turn))) continue;
    if (cid != kAnyCid && record.cid != cid) continue;
    record.status = status;
    record.finish_ns = 0;
    if (queue.hold_until != nullptr) queue.hold_until[i] = 0;
    ++ended;
  }
  ended = simt::reduce_add(warp, ended);
  warp.sync();
  if (ended != 0 && warp.thread_rank() == 0) lower_next_due(queue, 0);
  return ended;
}

/// Commands that wait for their completion are completed as aborted; entries that were never taken
/// are dropped.
GOFS_HD inline AdminOutcome delete_submission_queue(simt::AnyWarp auto warp,
                                                    VirtualController& controller,
                                                    const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const uint32_t qid = entry.cdw10 & 0xffff;
  if (!submission_queue_exists(controller, qid)) {
    return AdminOutcome::failure(kInvalidQueueIdentifier);
  }
  SubmissionQueue& queue = controller.submission_queue(qid);
  if (!close_together(warp, queue)) return AdminOutcome::later();
  const RingPlace claimed = claimed_together(warp, queue).opened();
  CompletionQueue& completions =
      controller.completion_queue(simt::load_relaxed(queue.completion_queue));
  if (!lock_together(warp, completions.lock)) return AdminOutcome::later();
  const bool direct = simt::load_relaxed(queue.mode) == CompletionMode::kDirect;
  bool drained = true;
  if (!direct) {
    end_waiting_records(warp, queue, kAnyCid, kAbortedQueueDeletion);
    PendingScan(warp, controller, queue, qid, completions).run(kNever);
    warp.sync();
    // A scan looks at a bounded number of records; the next step goes on.
    drained = queue.oldest == claimed.word;
  }
  if (drained && warp.thread_rank() == 0) {
    if (direct) leave_direct_mode(completions, claimed);
    simt::store_relaxed(queue.entries, uint64_t{0});
    simt::store_relaxed(queue.completion_queue, 0u);
    simt::store_relaxed(completions.submission_queues,
                        simt::load_relaxed(completions.submission_queues) - 1);
  }
  unlock_together(warp, completions.lock);
  return drained ? AdminOutcome{} : AdminOutcome::later();
}

GOFS_HD inline AdminOutcome delete_completion_queue(simt::AnyWarp auto warp,
                                                    VirtualController& controller,
                                                    const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const uint32_t qid = entry.cdw10 & 0xffff;
  if (!completion_queue_exists(controller, qid)) {
    return AdminOutcome::failure(kInvalidQueueIdentifier);
  }
  CompletionQueue& queue = controller.completion_queue(qid);
  if (simt::load_relaxed(queue.submission_queues) != 0) {
    return AdminOutcome::failure(kInvalidQueueDeletion);
  }
  if (!lock_together(warp, queue.lock)) return AdminOutcome::later();
  if (warp.thread_rank() == 0) simt::store_relaxed(queue.entries, uint64_t{0});
  unlock_together(warp, queue.lock);
  return {};
}

/// Ends a command whose completion still waits. Result 1: it was not aborted, and the controller is
/// done with it or never took it. The driver may give the command's memory to others then, so a
/// warp that is still copying has to finish first: meanwhile nothing more is taken from the queue,
/// or there might always be one.
GOFS_HD inline AdminOutcome abort_command(simt::AnyWarp auto warp, VirtualController& controller,
                                          const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const uint32_t qid = entry.cdw10 & 0xffff;
  const uint32_t cid = entry.cdw10 >> 16;
  AdminOutcome not_aborted;
  not_aborted.dw0 = 1;
  if (!submission_queue_exists(controller, qid)) return not_aborted;
  SubmissionQueue& queue = controller.submission_queue(qid);
  const bool settled = close_together(warp, queue);
  uint32_t ended = 0;
  if (simt::load_relaxed(queue.mode) == CompletionMode::kPending) {
    CompletionQueue& completions =
        controller.completion_queue(simt::load_relaxed(queue.completion_queue));
    if (!lock_together(warp, completions.lock)) return AdminOutcome::later();
    // After the look at what is settled, so that a record which that has left is seen.
    ended = end_waiting_records(warp, queue, cid, kAbortRequested);
    unlock_together(warp, completions.lock);
  }
  if (ended == 0 && !settled) return AdminOutcome::later();
  if (warp.thread_rank() == 0) reopen_queue(controller, queue);
  return ended == 0 ? not_aborted : AdminOutcome{};
}

}  // namespace detail

}  // namespace gofs::ssd
