// SPDX-License-Identifier: Apache-2.0
//
// Starting commands, one a lane: a ticket, the wait until its slot is free, the entry, the
// doorbell.
#pragma once

#include "nvme/recovery.h"

namespace gofs::nvme {

namespace detail {

/// The command that a warp found in its way when it last looked.
struct Obstacle {
  RingPosition position;
  bool outstanding;
};

/// Called by a warp that has waited for admission for as long as a command may take. A command that
/// reports to a mailbox may have no thread that waits for it; it may even be one of the caller's
/// own. One that was in the way at the last call already is settled here. Collective. 0, or -EIO
/// when the device has failed.
GOFS_NOINLINE GOFS_HD inline int clear_obstacle(simt::AnyWarp auto warp, Device& device,
                                                QueuePair& queue, bool mine, const Token& token,
                                                Obstacle& known) {
  const bool waits = mine && !admitted(queue, token);
  const uint32_t waiting = warp.ballot(waits);
  if (waiting == 0) return 0;
  RingPosition position = token.position;
  if (waits) {
    position.lap = simt::load_acquire(queue.slots[position.index].lap);
    if (position.lap == token.position.lap) {
      position = token.position.plus(1, queue.depth());
      position.lap = simt::load_acquire(queue.slots[position.index].lap);
    }
  }
  const uint32_t lane = simt::lowest_bit(waiting);
  position = RingPosition{warp.shfl(position.index, lane), warp.shfl(position.lap, lane)};
  uint32_t outstanding = 0;
  uint32_t unattended = 0;
  if (warp.thread_rank() == 0) {
    const Slot& slot = queue.slots[position.index];
    outstanding = simt::load_acquire(slot.issued) == position.lap + 1 ? 1 : 0;
    unattended = outstanding != 0 && simt::load_relaxed(slot.mailbox) != nullptr ? 1 : 0;
  }
  outstanding = warp.shfl(outstanding, 0);
  unattended = warp.shfl(unattended, 0);
  const bool again = known.outstanding && known.position.index == position.index &&
                     known.position.lap == position.lap;
  known = Obstacle{position, outstanding != 0};
  if (!again || unattended == 0) return 0;
  const simt::Deadline last_chance = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  return settle(warp, device, queue, position, last_chance) == kStatusDeviceFailed ? -EIO : 0;
}

}  // namespace detail

/// Puts the command of each lane in `lanes` (at most batch_max() bits) into the ring and rings the
/// doorbell. With a mailbox, whose `remaining` already counts these commands, no thread needs to
/// wait for them. Collective. Returns 0, or -EIO on a device that has failed: nothing was
/// submitted, or the device is lost with what was.
GOFS_NOINLINE GOFS_HD inline int submit(simt::AnyWarp auto warp, Device& device, QueuePair& queue,
                                        uint32_t lanes, const Command& command, Mailbox* mailbox,
                                        Token& token) {
  if (warp.any(simt::load_relaxed(device.failure) != kWorking)) return -EIO;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  token = reserve(warp, queue, lanes);
  simt::Deadline deadline = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  detail::Obstacle obstacle{};
  simt::Backoff backoff;
  // Others retire the slots we wait for within their own deadlines, or we do, or the device is
  // failed.
  while (!warp.all(!mine || admitted(queue, token))) {
    progress(warp, device, queue);
    if (warp.any(device_failed(device))) return -EIO;
    if (warp.any(deadline.passed())) {
      if (detail::clear_obstacle(warp, device, queue, mine, token, obstacle) < 0) return -EIO;
      deadline = simt::Deadline::after_ns(device.limits.command_timeout_ns);
    }
    backoff.pause();
  }
  if (queue.staging.areas != nullptr) {
    const bool reached = device.controller.reaches(command.buffer, command.bytes);
    const ssd::StagedBuffer data{
        command.bytes == 0 || reached ? nullptr : static_cast<uint8_t*>(command.buffer),
        command.bytes, command.opcode == format::nvme::IoOpcode::kRead ? 1u : 0u};
    ssd::stage(warp, queue.staging, lanes, token.position.index, data);
    warp.sync();
  }
  if (mine) publish(queue, token, make_entry(device, queue, token, command), mailbox);
  warp.sync();
  ring(warp, queue);
  return 0;
}

}  // namespace gofs::nvme
