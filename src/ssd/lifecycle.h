// SPDX-License-Identifier: Apache-2.0
//
// What the registers ask of the controller: enable, reset, shutdown, and its own failure. All but
// fail_controller() run under the admin lock.
//
// A reset takes as many steps of queue 0 as it needs: CSTS.RDY goes to 0 only when every warp that
// had taken a command is done with it and no thread posts, so that no memory of the driver is
// touched afterwards.
#pragma once

#include "ssd/completion.h"

namespace gofs::ssd {

namespace detail {

/// Nothing more is taken from the queue until it is opened anew. Any thread.
GOFS_HD inline void close_queue(SubmissionQueue& queue) {
  simt::AtomicRef<uint64_t>(queue.claimed).fetch_or(RingPlace::kClosed, simt::memory_order_acq_rel);
}

/// For a closed queue: no warp is still at work on a command of it. Any thread.
GOFS_HD inline bool is_settled(const SubmissionQueue& queue) {
  const uint64_t finished = simt::load_acquire(queue.finished);  // [S2]
  const RingPlace claimed{simt::load_relaxed(queue.claimed)};
  return claimed.total(simt::load_relaxed(queue.depth)) == finished;
}

/// One lane: CSTS as the state says.
GOFS_HD inline void publish_status(VirtualController& controller) {
  using namespace format::nvme;
  const AdminState& admin = controller.admin;
  uint32_t status = admin.ready ? kCstsReady : 0;
  if (simt::load_relaxed(controller.failed) != 0) status |= kCstsFatal;
  if (admin.shutdown_complete) status |= kCstsShutdownComplete;
  simt::store_system_release(controller.registers().csts, status);
}

/// One lane: takes over the admin queue that the registers name. False if they name none.
GOFS_HD inline bool take_admin_queue(VirtualController& controller, uint32_t configuration) {
  using namespace format::nvme;
  constexpr uint32_t kPageSizeMask = 0xfu << 7;
  constexpr uint32_t kCommandSetMask = 7u << 4;
  constexpr uint32_t kArbitrationMask = 7u << 11;
  Registers& registers = controller.registers();
  const uint32_t sizes = simt::load_system_relaxed(registers.aqa);
  AdminState& admin = controller.admin;
  admin.submission_entries = simt::load_system_relaxed(registers.asq);
  admin.completion_entries = simt::load_system_relaxed(registers.acq);
  admin.submission_depth = (sizes & 0xfff) + 1;
  admin.completion_depth = (sizes >> 16 & 0xfff) + 1;
  admin.head = 0;
  admin.tail = 0;
  admin.completion_phase = 1;
  admin.queues_granted = controller.queue_limit;
  admin.queues_exist = false;
  admin.shutdown_complete = false;
  admin.fault_checked = false;
  const auto placed = [](uint64_t address) {
    return address != 0 && (address & (kBlockBytes - 1)) == 0;
  };
  return (configuration & (kPageSizeMask | kCommandSetMask | kArbitrationMask)) == 0 &&
         admin.submission_depth >= 2 && admin.completion_depth >= 2 &&
         placed(admin.submission_entries) && placed(admin.completion_entries);
}

/// Collective: deletes all queues, if no thread uses them any more. False: try again.
GOFS_HD inline bool finish_reset(simt::AnyWarp auto warp, VirtualController& controller) {
  const uint32_t size = warp.size();
  const uint32_t first = 1 + warp.thread_rank();
  bool busy = false;
  for (uint32_t qid = first; qid <= controller.queue_limit; qid += size) {
    busy = busy || !is_settled(controller.submission_queue(qid));
    // Whoever gets the lock after us sees that the controller is stopped.
    CompletionQueue& completions = controller.completion_queue(qid);
    if (simt::try_lock(completions.lock)) {
      simt::unlock(completions.lock);
    } else {
      busy = true;
    }
  }
  if (warp.any(busy)) return false;
  for (uint32_t qid = first; qid <= controller.queue_limit; qid += size) {
    SubmissionQueue& queue = controller.submission_queue(qid);
    simt::store_relaxed(queue.entries, uint64_t{0});
    simt::store_relaxed(queue.completion_queue, 0u);
    CompletionQueue& completions = controller.completion_queue(qid);
    simt::store_relaxed(completions.entries, uint64_t{0});
    simt::store_relaxed(completions.submission_queues, 0u);
  }
  for (uint32_t qid = warp.thread_rank(); qid <= controller.queue_limit; qid += size) {
    simt::store_system_relaxed(controller.submission_doorbell(qid), 0u);
    simt::store_system_relaxed(controller.completion_doorbell(qid), 0u);
  }
  warp.sync();
  return true;
}

/// Collective: everything in the volatile cache is made durable.
GOFS_HD inline int sync_all(simt::AnyWarp auto warp, VirtualController& controller) {
  int error = 0;
  if (warp.thread_rank() == 0) {
    WriteLog* const log = controller.write_log;
    if (log != nullptr) end_posted(*log);
    LoggedCommand flush{};
    flush.kind = LoggedKind::kFlush;
    const uint32_t number = log == nullptr ? kNotLogged : begin_logged(*log, flush);
    simt::add_relaxed(controller.flush_requests, uint64_t{1});
    if (controller.media.sync != nullptr) {
      error = simt::call_host(controller.media.sync, controller.media.sync_context);
    }
    if (number != kNotLogged && error == 0) {
      simt::store_relaxed(log->commands[number].ended, next_event(*log));
    }
  }
  return warp.shfl(error, 0);
}

/// Collective: compares the registers with the state and acts.
GOFS_HD inline void follow_registers(simt::AnyWarp auto warp, VirtualController& controller) {
  using namespace format::nvme;
  AdminState& admin = controller.admin;
  const bool leads = warp.thread_rank() == 0;
  uint32_t configuration = 0;
  uint32_t failed = 0;
  if (leads) {
    configuration = simt::load_system_acquire(controller.registers().cc);
    failed = simt::load_acquire(controller.failed);
  }
  configuration = warp.shfl(configuration, 0);
  failed = warp.shfl(failed, 0);
  const bool enabled = (configuration & kCcEnable) != 0;
  ControllerPhase phase = admin.phase;
  const bool shuts_down = phase == ControllerPhase::kReady && failed == 0 && enabled &&
                          (configuration & kCcShutdownMask) != 0 && !admin.shutdown_complete;
  warp.sync();

  if (phase == ControllerPhase::kDisabled && enabled) {
    if (leads) {
      if (take_admin_queue(controller, configuration)) {
        simt::store_release(controller.stopped, 0u);
        admin.phase = ControllerPhase::kReady;
        admin.ready = true;
      } else {
        simt::store_release(controller.failed, 1u);
        admin.phase = ControllerPhase::kFailed;
      }
      publish_status(controller);
    }
  } else if (phase == ControllerPhase::kReady && failed != 0) {
    if (leads) {
      admin.phase = ControllerPhase::kFailed;
      publish_status(controller);
    }
    phase = ControllerPhase::kFailed;
  } else if (shuts_down) {
    // A shutdown that could not save the data is not reported as complete.
    const bool saved = sync_all(warp, controller) >= 0;
    if (leads) {
      admin.shutdown_complete = saved;
      if (!saved) {
        simt::store_release(controller.failed, 1u);
        admin.phase = ControllerPhase::kFailed;
      }
      publish_status(controller);
    }
  }

  if ((phase == ControllerPhase::kReady || phase == ControllerPhase::kFailed) && !enabled) {
    if (leads) {
      simt::store_release(controller.stopped, 1u);
      admin.phase = ControllerPhase::kResetting;
    }
    for (uint32_t qid = 1 + warp.thread_rank(); qid <= controller.queue_limit; qid += warp.size()) {
      close_queue(controller.submission_queue(qid));
    }
    phase = ControllerPhase::kResetting;
    warp.sync();
  }
  if (phase == ControllerPhase::kResetting && finish_reset(warp, controller) && leads) {
    simt::store_release(controller.failed, 0u);
    admin.phase = ControllerPhase::kDisabled;
    admin.ready = false;
    admin.shutdown_complete = false;
    publish_status(controller);
  }
  warp.sync();
}

}  // namespace detail

/// The controller gives up: CSTS.CFS is set, nothing more is taken or posted until a reset.
/// Collective; needs no lock.
GOFS_HD inline void fail_controller(simt::AnyWarp auto warp, VirtualController& controller) {
  using namespace format::nvme;
  if (warp.thread_rank() == 0) {
    simt::store_release(controller.stopped, 1u);
    simt::store_release(controller.failed, 1u);
  }
  for (uint32_t qid = 1 + warp.thread_rank(); qid <= controller.queue_limit; qid += warp.size()) {
    detail::close_queue(controller.submission_queue(qid));
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::store_system_release(controller.registers().csts, kCstsReady | kCstsFatal);
  }
}

}  // namespace gofs::ssd
