// SPDX-License-Identifier: Apache-2.0
//
// What happens when a command does not complete in time: the controller is asked to abort it. If it
// cannot (it does not know the command, or has no time for aborts), the command gets as much time
// again, since it may be under way; after that its completion is taken for lost and the slot is
// released, if the controller is certain to be done with it, and else the controller is disabled.
// If the controller does not even answer, it is disabled, so that it touches no memory any more,
// and every waiter fails.
#pragma once

#include "nvme/device.h"

namespace gofs::nvme {

/// Declares the device dead. CC.EN = 0 stops its DMA; waits for CSTS.RDY = 0 as long as admin
/// commands may take, and as long as the controller says that it may (CAP.TO). Where another warp
/// is at it, waits for that one: no buffer may go back to its owner before the controller is done
/// with it. Collective.
GOFS_NOINLINE GOFS_HD inline void fail_device(simt::AnyWarp auto warp, Device& device) {
  const bool leader = warp.thread_rank() == 0;
  uint32_t mine = 0;
  if (leader) {
    uint32_t working = kWorking;
    mine = simt::AtomicRef<uint32_t>(device.failure)
               .compare_exchange_strong(working, kFailing, simt::memory_order_acq_rel,
                                        simt::memory_order_relaxed);
  }
  const bool first = warp.shfl(mine, 0) != 0;
  auto& registers = device.controller.registers();
  if (first && leader) simt::store_system_release(registers.cc, 0u);
  // The others began to wait later; they get longer so that the first can tell them.
  const uint64_t stop_ns = simt::max(device.limits.admin_timeout_ns, device.limits.stop_timeout_ns);
  const simt::Deadline deadline = simt::Deadline::after_ns((first ? 1 : 2) * stop_ns);
  simt::Backoff backoff;
  for (;;) {
    device.controller.step(warp, 0);
    bool done = false;
    if (first) {
      const uint32_t status = simt::load_system_acquire(registers.csts);
      done = (status & format::nvme::kCstsReady) == 0 || status == format::nvme::kRegisterGone;
    } else {
      done = device_failed(device);
    }
    if (warp.all(done) || warp.any(deadline.passed())) break;
    backoff.pause();
  }
  warp.sync();
  if (first && leader) {
    // Who hands on data that came through staging memory holds a queue's lock, and looks at
    // `failure` with it: who comes after us does not begin.
    for (uint32_t i = 0; i < device.io_queue_count; ++i) {
      QueuePair& queue = device.io[i];
      if (queue.staging.areas == nullptr) continue;
      while (!simt::try_lock(queue.head_lock)) backoff.pause();
      simt::unlock(queue.head_lock);
    }
    simt::store_release(device.failure, uint32_t{kFailed});  // [N5]
  }
  warp.sync();  // no lane gives its buffer back before
}

/// Runs one admin command. Collective, `entry` uniform but for the cid, which is filled in. `dw0`
/// receives the command's result. A device that does not answer in time is failed.
GOFS_NOINLINE GOFS_HD inline CommandStatus execute_admin(simt::AnyWarp auto warp, Device& device,
                                                         format::nvme::SubmissionEntry entry,
                                                         uint32_t& dw0) {
  QueuePair& queue = *device.admin;
  const bool mine = warp.thread_rank() == 0;
  const Token token = reserve(warp, queue, 1u);
  const simt::Deadline deadline = simt::Deadline::after_ns(device.limits.admin_timeout_ns);
  simt::Backoff backoff;
  bool published = false;
  CommandStatus status = kStatusTimedOut;
  for (;;) {
    if (!published && warp.all(!mine || admitted(queue, token))) {
      if (mine) {
        entry.cid = queue.cid_of(token.position);
        publish(queue, token, entry, nullptr);
      }
      published = true;
      warp.sync();
    }
    progress(warp, device, queue);
    if (published && warp.any(mine && completed(queue, token, status))) break;
    const bool dead =
        device_failed(device) || (simt::load_system_relaxed(device.controller.registers().csts) &
                                  format::nvme::kCstsFatal) != 0;
    if (warp.any(dead || deadline.passed())) {
      fail_device(warp, device);
      return kStatusDeviceFailed;
    }
    backoff.pause();
  }
  dw0 = warp.shfl(mine ? queue.slots[token.position.index].dw0 : 0u, 0);
  status = warp.shfl(status, 0);
  warp.sync();
  if (mine) retire(queue, token);
  return status;
}

namespace detail {

/// Ends the command at `position`, which will not complete any more, as if it had completed with
/// kStatusTimedOut; does nothing if it has completed. Collective, uniform.
GOFS_HD inline void give_up(simt::AnyWarp auto warp, QueuePair& queue,
                            const RingPosition& position) {
  if (warp.thread_rank() == 0) {
    // Who delivers completions holds this lock, and waits for nothing with it: the completion comes
    // before or after us, but not meanwhile.
    simt::Backoff backoff;
    while (!simt::try_lock(queue.head_lock)) backoff.pause();
    const Slot& slot = queue.slots[position.index];
    if (simt::load_relaxed(slot.lap) == position.lap &&
        static_cast<uint32_t>(simt::load_relaxed(slot.done) >> 32) != position.lap + 1) {
      deliver(queue, queue.cid_of(position), kStatusTimedOut, 0);
    }
    simt::unlock(queue.head_lock);
  }
  warp.sync();
}

/// Whether the command at `position` has ended, and how. One that reports to a mailbox has not
/// until it is counted there: then its slot is on a later lap, what it said may be gone, and
/// `status` is 0. Collective, uniform.
GOFS_HD inline bool has_ended(simt::AnyWarp auto warp, const QueuePair& queue,
                              const RingPosition& position, CommandStatus& status) {
  uint32_t ended = 0;
  CommandStatus found = 0;
  if (warp.thread_rank() == 0) {
    const Slot& slot = queue.slots[position.index];
    ended = simt::load_acquire(slot.lap) != position.lap ||
            (simt::load_relaxed(slot.mailbox) == nullptr &&
             completed(queue, Token{position, 0}, found));
  }
  status = warp.shfl(found, 0);
  return warp.shfl(ended, 0) != 0;
}

/// Waits for the end of the command at `position` until `deadline`, or until a lane has `enough()`.
/// True if it has ended. Collective, uniform.
template <typename Enough>
GOFS_HD bool wait_for_end(simt::AnyWarp auto warp, Device& device, QueuePair& queue,
                          const RingPosition& position, const simt::Deadline& deadline,
                          CommandStatus& status, Enough enough) {
  simt::Backoff backoff;
  for (;;) {
    progress(warp, device, queue);
    if (has_ended(warp, queue, position, status)) return true;
    if (warp.any(device_failed(device) || deadline.passed() || enough())) return false;
    backoff.pause();
  }
}

/// Settles one overdue command, at `position`: what becomes of it when the controller is asked. One
/// that the controller does not abort has until `last_chance` to complete. Collective, uniform. Its
/// slot is still to be retired, unless the device has failed or the command reports to a mailbox,
/// which then knows.
GOFS_NOINLINE GOFS_HD inline CommandStatus settle(simt::AnyWarp auto warp, Device& device,
                                                  QueuePair& queue, const RingPosition& position,
                                                  const simt::Deadline& last_chance) {
  const uint64_t timeout_ns = device.limits.command_timeout_ns;
  const auto never = [] { return false; };
  const auto rung = [&] { return is_rung(queue, position); };
  CommandStatus status = 0;
  if (!warp.any(rung())) {
    // Not the device's fault, nor the device's to abort. What is in the way is settled by the warp
    // in whose way it is, in four times the timeout (clear_obstacle in submit.h); then the tail
    // moves, by less than a lap in all.
    for (uint32_t moves = 0; moves < queue.depth() && !warp.any(rung()); ++moves) {
      const uint64_t before = warp.shfl(simt::load_relaxed(queue.tail), 0);
      const simt::Deadline unblocked = simt::Deadline::after_ns(8 * timeout_ns);
      if (wait_for_end(warp, device, queue, position, unblocked, status,
                       [&] { return simt::load_relaxed(queue.tail) != before; })) {
        return status;
      }
      if (!warp.any(simt::load_relaxed(queue.tail) != before)) break;
    }
    if (!warp.any(rung())) {
      fail_device(warp, device);
      return kStatusDeviceFailed;
    }
    const simt::Deadline in_time = simt::Deadline::after_ns(timeout_ns);
    if (wait_for_end(warp, device, queue, position, in_time, status, never)) return status;
  }

  if (warp.thread_rank() == 0) simt::add_relaxed(device.timeouts, uint64_t{1});
  format::nvme::SubmissionEntry abort{};
  abort.opcode = static_cast<uint8_t>(format::nvme::AdminOpcode::kAbort);
  abort.cdw10 = queue.qid | uint32_t{queue.cid_of(position)} << 16;
  uint32_t not_aborted = 0;
  const CommandStatus answer = execute_admin(warp, device, abort, not_aborted);
  if (answer == kStatusDeviceFailed) return kStatusDeviceFailed;
  // An aborted command completes too: it gets the time of an admin command.
  const bool aborted = answer == 0 && (not_aborted & 1u) == 0;
  const simt::Deadline answered = simt::Deadline::after_ns(device.limits.admin_timeout_ns);
  if (wait_for_end(warp, device, queue, position, aborted ? answered : last_chance, status,
                   never)) {
    return status;
  }
  // Who is given up may still be written to, unless the controller is known to be done with him.
  if (warp.any(aborted || device_failed(device)) || !device.controller.lets_go_of_lost_commands()) {
    fail_device(warp, device);
    return kStatusDeviceFailed;
  }
  give_up(warp, queue, position);
  (void)has_ended(warp, queue, position, status);
  return status;
}

GOFS_HD inline bool fatal(simt::AnyWarp auto warp, const Device& device) {
  const auto& registers = device.controller.registers();
  return warp.any((simt::load_system_relaxed(registers.csts) & format::nvme::kCstsFatal) != 0);
}

}  // namespace detail

/// Settles the overdue commands of `lanes`. Collective. Each of those lanes returns the verdict on
/// its command, whose slot is retired unless the device has failed.
GOFS_NOINLINE GOFS_HD inline CommandStatus recover(simt::AnyWarp auto warp, Device& device,
                                                   QueuePair& queue, uint32_t lanes,
                                                   const Token& token) {
  CommandStatus verdict = kStatusDeviceFailed;
  if (detail::fatal(warp, device)) {
    fail_device(warp, device);
    return verdict;
  }
  const simt::Deadline last_chance = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = simt::lowest_bit(lanes);
    const RingPosition position{warp.shfl(token.position.index, lane),
                                warp.shfl(token.position.lap, lane)};
    const CommandStatus settled = detail::settle(warp, device, queue, position, last_chance);
    if (settled == kStatusDeviceFailed) return verdict;  // of those settled before, their own
    if (warp.thread_rank() == lane) {
      verdict = settled;
      retire(queue, token);
    }
  }
  return verdict;
}

/// Settles the overdue commands that report to `mailbox`. Collective, uniform. Afterwards none
/// remains, unless the device has failed.
GOFS_NOINLINE GOFS_HD inline void recover_mailbox(simt::AnyWarp auto warp, Device& device,
                                                  QueuePair& queue, Mailbox& mailbox) {
  if (detail::fatal(warp, device)) {
    fail_device(warp, device);
    return;
  }
  const simt::Deadline last_chance = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  for (uint32_t index = 0; index < queue.depth(); ++index) {
    const Slot& slot = queue.slots[index];
    const uint32_t lap = warp.shfl(simt::load_acquire(slot.lap), 0);
    const bool outstanding = warp.thread_rank() == 0 &&
                             simt::load_acquire(slot.issued) == lap + 1 &&
                             simt::load_relaxed(slot.mailbox) == &mailbox;
    if (!warp.any(outstanding)) continue;
    const CommandStatus settled =
        detail::settle(warp, device, queue, RingPosition{index, lap}, last_chance);
    if (settled == kStatusDeviceFailed) return;
  }
}

}  // namespace gofs::nvme
