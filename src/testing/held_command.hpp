// SPDX-License-Identifier: Apache-2.0
//
// Steps of two warps in an order that a test chooses: one of them waits for a command that its SSD
// holds back until the other has done its part.
#pragma once

#include <gtest/gtest.h>

#include "simt/clock.h"
#include "testing/volume_rig.hpp"

namespace gofs::testing {

/// Longer than any step takes.
inline constexpr uint64_t kStepTimeoutNs = 30'000'000'000;
/// How long warps that have to wait are watched: one that does not wait is done long before.
inline constexpr uint64_t kWatchNs = 30'000'000;

/// Waits until `done()`, which stays true. Each lane for itself. False: for too long.
template <typename Done>
bool wait_until(Done done, uint64_t timeout_ns = kStepTimeoutNs) {
  const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
  for (simt::Backoff backoff; !done(); backoff.pause()) {
    if (deadline.passed()) return false;
  }
  return true;
}

/// The first command that a rule is about, of those that one queue gets, does not complete before
/// release(). The rig's SSD can be given a fault (with_a_fault()), and no other warp uses the
/// queue.
class HeldCommand {
 public:
  HeldCommand(VolumeRig& rig, uint32_t queue, ssd::FaultRule rule)
      : rig_(rig), queue_(queue), buffer_(rig.arena().bytes(kBlockBytes)) {
    rule.count = 1;
    rule.action = ssd::FaultAction::kHold;
    rule.hold_commands = 1;
    rig_.add_fault(rule);
  }
  ~HeldCommand() { rig_.clear_faults(); }
  HeldCommand(const HeldCommand&) = delete;
  HeldCommand& operator=(const HeldCommand&) = delete;

  /// Waits until the SSD has the command. Each lane for itself.
  bool wait() const {
    const uint64_t& matches = rig_.controller().controller->faults->entries[0].matches;
    return wait_until([&] { return simt::load_relaxed(matches) != 0; });
  }
  /// Has it complete, after another one. Collective, by another warp than the one that waits.
  void release(const simt::Warp& warp) const {
    nvme::Device& device = rig_.device();
    nvme::Command command{};
    command.opcode = format::nvme::IoOpcode::kRead;
    command.lba_count = kBlockBytes >> device.lba_shift;
    command.buffer = buffer_;
    command.bytes = kBlockBytes;
    const auto status = nvme::execute(warp, device, device.io[queue_], 1u, command);
    EXPECT_EQ(warp.thread_rank() == 0 ? status : 0, 0u);
  }

 private:
  VolumeRig& rig_;
  const uint32_t queue_;
  uint8_t* const buffer_;
};

}  // namespace gofs::testing
