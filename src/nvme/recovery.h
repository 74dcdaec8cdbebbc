// SPDX-License-Identifier: Apache-2.0
//
// What happens when a command does not complete in time: the controller is asked to abort it; if it
// does not know the command, the completion was lost and the slot is given back; if it does not even
// answer, it is disabled, so that it touches no memory any more, and every waiter fails.
#pragma once

#include "nvme/device.h"

namespace gofs::nvme {

/// Declares the device dead. CC.EN = 0 stops its DMA; waits for CSTS.RDY = 0 as long as admin
/// commands may take. Returns at once where another warp is at it. Collective.
GOFS_NOINLINE GOFS_HD inline void fail_device(const simt::Warp& warp, Device& device) {
  const bool leader = warp.thread_rank() == 0;
  uint32_t first = 0;
  if (leader) {
    uint32_t working = kWorking;
    first = simt::AtomicRef<uint32_t>(device.failure)
                .compare_exchange_strong(working, kFailing, simt::memory_order_acq_rel,
                                         simt::memory_order_relaxed);
  }
  if (warp.shfl(first, 0) == 0) return;
  auto& registers = device.controller.registers();
  if (leader) simt::store_system_release(registers.cc, 0u);
  const simt::Deadline deadline = simt::Deadline::after_ns(device.limits.admin_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    device.controller.step(warp, 0);
    const bool ready =
        (simt::load_system_acquire(registers.csts) & format::nvme::kCstsReady) != 0;
    if (!warp.any(ready) || warp.any(deadline.passed())) break;
    backoff.pause();
  }
  if (leader) simt::store_release(device.failure, uint32_t{kFailed});
}

/// Runs one admin command. Collective, `entry` uniform but for the cid, which is filled in. `dw0`
/// receives the command's result. A device that does not answer in time is failed.
GOFS_NOINLINE GOFS_HD inline CommandStatus execute_admin(const simt::Warp& warp, Device& device,
                                           format::nvme::SubmissionEntry entry, uint32_t& dw0) {
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
    const bool dead = device_failed(device) ||
                      (simt::load_system_relaxed(device.controller.registers().csts) &
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

/// Settles one overdue command, at `position`: what becomes of it when the controller is asked.
/// Collective, uniform. Its slot is still to be retired, unless the device has failed or the command
/// reported to a mailbox.
GOFS_NOINLINE GOFS_HD inline CommandStatus settle(const simt::Warp& warp, Device& device, QueuePair& queue,
                                    const RingPosition& position) {
  const bool leader = warp.thread_rank() == 0;
  if (leader) simt::add_relaxed(device.timeouts, uint64_t{1});
  format::nvme::SubmissionEntry abort{};
  abort.opcode = static_cast<uint8_t>(format::nvme::AdminOpcode::kAbort);
  abort.cdw10 = queue.qid | uint32_t{queue.cid_of(position)} << 16;
  uint32_t not_aborted = 0;
  const CommandStatus answer = execute_admin(warp, device, abort, not_aborted);
  if (answer == kStatusDeviceFailed) return kStatusDeviceFailed;
  // A completion may have come in the meantime, and an aborted command completes too: it gets the
  // time of an admin command.
  const bool expected = answer == 0 && (not_aborted & 1u) == 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(device.limits.admin_timeout_ns);
  const Token token{position, 0};
  simt::Backoff backoff;
  for (;;) {
    progress(warp, device, queue);
    CommandStatus status = 0;
    const bool done = warp.shfl(leader && completed(queue, token, status) ? 1u : 0u, 0) != 0;
    if (done) {
      status = warp.shfl(status, 0);
      // Aborted at our wish because it was late: that is what the caller should hear.
      const bool aborted =
          (status & format::nvme::kStatusCodeMask) == format::nvme::kAbortRequested;
      return aborted ? kStatusTimedOut : status;
    }
    if (warp.any(device_failed(device))) return kStatusDeviceFailed;
    if (!expected) return kStatusTimedOut;
    if (warp.any(deadline.passed())) {
      fail_device(warp, device);
      return kStatusDeviceFailed;
    }
    backoff.pause();
  }
}

GOFS_HD inline bool fatal(const simt::Warp& warp, const Device& device) {
  const auto& registers = device.controller.registers();
  return warp.any((simt::load_system_relaxed(registers.csts) & format::nvme::kCstsFatal) != 0);
}

}  // namespace detail

/// Settles the overdue commands of `lanes`. Collective. Each of those lanes returns the verdict on
/// its command, whose slot is retired unless the device has failed.
GOFS_NOINLINE GOFS_HD inline CommandStatus recover(const simt::Warp& warp, Device& device, QueuePair& queue,
                                     uint32_t lanes, const Token& token) {
  CommandStatus verdict = kStatusDeviceFailed;
  if (detail::fatal(warp, device)) {
    fail_device(warp, device);
    return verdict;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = simt::lowest_bit(lanes);
    const RingPosition position{warp.shfl(token.position.index, lane),
                                warp.shfl(token.position.lap, lane)};
    const CommandStatus settled = detail::settle(warp, device, queue, position);
    if (settled == kStatusDeviceFailed) return settled;
    if (warp.thread_rank() == lane) {
      verdict = settled;
      retire(queue, token);
    }
  }
  return verdict;
}

/// Settles the overdue commands that report to `mailbox`. Collective, uniform. Afterwards none
/// remains, unless the device has failed.
GOFS_NOINLINE GOFS_HD inline void recover_mailbox(const simt::Warp& warp, Device& device, QueuePair& queue,
                                    Mailbox& mailbox) {
  if (detail::fatal(warp, device)) {
    fail_device(warp, device);
    return;
  }
  for (uint32_t index = 0; index < queue.depth(); ++index) {
    Slot& slot = queue.slots[index];
    const uint32_t lap = warp.shfl(simt::load_acquire(slot.lap), 0);
    const bool outstanding = warp.thread_rank() == 0 &&
                             simt::load_acquire(slot.issued) == lap + 1 &&
                             slot.mailbox == &mailbox;
    if (!warp.any(outstanding)) continue;
    const CommandStatus settled = detail::settle(warp, device, queue, RingPosition{index, lap});
    if (settled == kStatusDeviceFailed) return;
    // Delivered meanwhile: the slot is on its next lap and the mailbox knows.
    if (warp.thread_rank() == 0 && settled == kStatusTimedOut &&
        simt::load_acquire(slot.lap) == lap) {
      simt::store_relaxed(mailbox.status, settled);
      simt::AtomicRef<uint32_t>(mailbox.remaining).fetch_sub(1, simt::memory_order_release);
      simt::store_release(slot.lap, lap + 1);
    }
    warp.sync();
  }
}

}  // namespace gofs::nvme
