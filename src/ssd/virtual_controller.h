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
#include "ssd/record_completion.h"
#include "ssd/transfer.h"

namespace gofs::ssd {

namespace detail {

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

/// Whether step() of I/O queue `qid` is likely to find something: commands that were not taken yet,
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
