// SPDX-License-Identifier: Apache-2.0
//
// The end of a device's use (NVMe 1.4, section 7.6.2): the controller is notified, so that it
// brings what it has not yet written to its media, and is then disabled.
#pragma once

#include "nvme/recovery.h"

namespace gofs::nvme {

/// Shuts the controller down and disables it. Collective, by one warp; no command is under way and
/// none comes any more. 0, or -ETIMEDOUT when it did not say in time that it was done; disabled it
/// is in any case. A device that had failed before is disabled already: -EIO.
GOFS_HD inline int shut_down(simt::AnyWarp auto warp, Device& device) {
  if (warp.any(simt::load_relaxed(device.failure) != kWorking)) return -EIO;
  const bool leader = warp.thread_rank() == 0;
  auto& registers = device.controller.registers();
  if (leader) {
    const uint32_t configuration = simt::load_system_relaxed(registers.cc);
    simt::store_system_release(registers.cc, (configuration & ~format::nvme::kCcShutdownMask) |
                                                 format::nvme::kCcShutdownNormal);
  }
  warp.sync();
  const simt::Deadline deadline = simt::Deadline::after_ns(
      simt::max(device.limits.admin_timeout_ns, device.limits.shutdown_timeout_ns));
  simt::Backoff backoff;
  int result = 0;
  for (;;) {
    device.controller.step(warp, 0);
    const uint32_t status = simt::load_system_acquire(registers.csts);
    if (warp.any((status & format::nvme::kCstsShutdownMask) ==
                 format::nvme::kCstsShutdownComplete)) {
      break;
    }
    if (warp.any((status & format::nvme::kCstsFatal) != 0 || deadline.passed())) {
      result = -ETIMEDOUT;
      break;
    }
    backoff.pause();
  }
  fail_device(warp, device);
  return result;
}

}  // namespace gofs::nvme
