// SPDX-License-Identifier: Apache-2.0
//
// Commands of one device run to their end, one a lane. The file system, for data and metadata
// alike, calls execute() of array.h, which ends here. Below it: submit (submit.h), the four moves
// (queue_pair.h), the wire (format/nvme.h).
#pragma once

#include "nvme/submit.h"

namespace gofs::nvme {

/// Waits for the commands of `lanes` and retires their slots. Collective. Each lane of `lanes`
/// returns its command's status.
GOFS_NOINLINE GOFS_HD inline CommandStatus wait(simt::AnyWarp auto warp, Device& device,
                                                QueuePair& queue, uint32_t lanes,
                                                const Token& token) {
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  CommandStatus status = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(device.limits.command_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    progress(warp, device, queue);
    if (waiting && completed(queue, token, status)) {
      retire(queue, token);
      waiting = false;
    }
    const uint32_t left = warp.ballot(waiting);
    if (left == 0) return status;
    if (warp.any(device_failed(device))) {
      warp.sync();  // what one lane has acquired [N5], all may rely on
      return waiting ? kStatusDeviceFailed : status;
    }
    if (warp.any(deadline.passed())) {
      const CommandStatus verdict = recover(warp, device, queue, left, token);
      return waiting ? verdict : status;
    }
    backoff.pause();
  }
}

namespace detail {

/// As many of `lanes` as one reservation may hold; the rest stays. A ring shorter than the warp is
/// used in portions, so that no thread waits for admission while holding slots.
GOFS_HD inline uint32_t take_portion(const QueuePair& queue, uint32_t& lanes) {
  uint32_t portion = lanes;
  while (simt::popcount(portion) > queue.batch_max()) {
    portion &= ~(1u << (31 - simt::leading_zeros(portion)));
  }
  lanes &= ~portion;
  return portion;
}

}  // namespace detail

/// Runs the command of each lane in `lanes` to its end. Collective. Each lane of `lanes` returns
/// its status; data read is visible to the lane that asked, and after sync() to its warp.
GOFS_NOINLINE GOFS_HD inline CommandStatus execute(simt::AnyWarp auto warp, Device& device,
                                                   QueuePair& queue, uint32_t lanes,
                                                   const Command& command) {
  CommandStatus status = 0;
  while (lanes != 0) {
    const uint32_t portion = detail::take_portion(queue, lanes);
    Token token;
    CommandStatus result = kStatusDeviceFailed;
    if (submit(warp, device, queue, portion, command, nullptr, token) == 0) {
      result = wait(warp, device, queue, portion, token);
    }
    if ((portion >> warp.thread_rank() & 1u) != 0) status = result;
  }
  return status;
}

/// Starts the command of each lane in `lanes`; they report to `mailbox`, one for all. Collective.
/// 0, or -EIO when the device has failed; the mailbox counts those alone that were started before.
GOFS_NOINLINE GOFS_HD inline int start(simt::AnyWarp auto warp, Device& device, QueuePair& queue,
                                       uint32_t lanes, const Command& command, Mailbox& mailbox) {
  while (lanes != 0) {
    const uint32_t portion = detail::take_portion(queue, lanes);
    if (warp.thread_rank() == 0) {
      simt::add_relaxed(mailbox.remaining, simt::popcount(portion));
    }
    warp.sync();
    Token token;
    const int error = submit(warp, device, queue, portion, command, &mailbox, token);
    if (error == 0) continue;
    if (warp.thread_rank() == 0) {
      simt::add_relaxed(mailbox.remaining, ~simt::popcount(portion) + 1);
    }
    return error;
  }
  return 0;
}

}  // namespace gofs::nvme
