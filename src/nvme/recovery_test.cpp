// SPDX-License-Identifier: Apache-2.0
//
// Completions that are lost, late, repeated or out of order, errors, controllers that die: every
// command ends with a decoded status in bounded time, no slot is lost by it, and once a command has
// ended nothing writes to its buffer any more.
#include "nvme/recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "nvme/execute.h"
#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::AdminOpcode;
using format::nvme::IoOpcode;
using gofs::testing::all_lanes;
using gofs::testing::failed_commands;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;
using ssd::FaultAction;
using ssd::FaultRule;

constexpr uint64_t kMillisecond = 1'000'000;
/// What is not to be waited for: the test's own limit would end it.
constexpr uint64_t kDayMs = 86'400'000;
/// What is waited for in vain. A command that is answered takes microseconds, but a busy machine
/// may keep it waiting this long as well: tests do not rely on the contrary.
constexpr uint64_t kShortMs = 60;

class RecoveryTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  bool narrow() const { return GetParam() == 1; }

  /// Commands have `timeout_ms`; the controller is trusted to answer aborts.
  static SsdRigOptions faulty(uint32_t depth, uint64_t timeout_ms) {
    SsdRigOptions options;
    options.ssd.fault_capacity = 8;
    options.device.io_queues = 1;
    options.device.queue_depth = depth;
    options.device.command_timeout_ns = timeout_ms * kMillisecond;
    return options;
  }
  /// From now on nothing is waited for long. Not before bring-up, which is to succeed.
  static void set_short_limits(SsdRig& rig) {
    rig.device().limits = {kShortMs * kMillisecond, 200 * kMillisecond};
  }
  /// Reads of the LBAs from `first` to `last`.
  static FaultRule about(uint64_t first, uint64_t last, FaultAction action) {
    FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(IoOpcode::kRead);
    rule.lba_first = first;
    rule.lba_last = last;
    rule.action = action;
    return rule;
  }
  static FaultRule about_aborts(FaultAction action) {
    FaultRule rule;
    rule.admin = true;
    rule.opcode_mask = 1u << static_cast<uint32_t>(AdminOpcode::kAbort);
    rule.action = action;
    return rule;
  }

  /// Every warp reads LBA `first + who` `turns` times; calls `judge(who, turn, status)` per lane.
  /// Buffers are scribbled over after each command: a controller that still writes there is seen by
  /// the comparison, or by ThreadSanitizer.
  template <typename Judge>
  void read_each(SsdRig& rig, uint32_t warps, uint32_t turns, uint64_t first, Judge judge) {
    std::vector<uint8_t*> buffers;
    for (uint32_t i = 0; i < warps * width(); ++i) buffers.push_back(rig.arena().bytes(512));
    std::atomic<uint32_t> wrong{0};
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t who = index * width() + warp.thread_rank();
      uint8_t* const buffer = buffers[who];
      for (uint32_t turn = 0; turn < turns; ++turn) {
        std::memset(buffer, 0x5c, 512);
        const CommandStatus status = execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                                             rig.read(first + who, 1, buffer));
        if (status == 0 && !rig.holds(buffer, first + who, 1)) ++wrong;
        judge(who, turn, status);
        std::memset(buffer, 0x11, 512);
      }
    });
    EXPECT_EQ(wrong, 0u) << "wrong data";
    for (const uint8_t* buffer : buffers) {
      EXPECT_TRUE(std::all_of(buffer, buffer + 512, [](uint8_t byte) { return byte == 0x11; }));
    }
  }
  /// Reads as read_each does, of LBAs from 0 on. Commands for which `is_lost(who, turn)` time out;
  /// the others succeed, but for those that a busy machine kept waiting: each of these was counted
  /// as one timeout more.
  template <typename IsLost>
  void expect_lost(SsdRig& rig, uint32_t warps, uint32_t turns, IsLost is_lost) {
    std::atomic<uint32_t> timed_out{0};
    read_each(rig, warps, turns, 0, [&](uint32_t who, uint32_t turn, CommandStatus status) {
      if (status != 0 || is_lost(who, turn)) {
        EXPECT_EQ(status, kStatusTimedOut) << who << ": " << status_name(status);
        ++timed_out;
      }
    });
    EXPECT_GE(rig.device().timeouts, timed_out);
  }
  /// Three laps of the queue, none of which may fail: no slot was lost.
  void expect_healthy(SsdRig& rig) {
    rig.device().limits.command_timeout_ns = kDayMs * kMillisecond;
    const uint32_t turns = 3 * rig.queue().depth() / width() + 1;
    read_each(rig, 1, turns, 1000, [](uint32_t, uint32_t turn, CommandStatus status) {
      EXPECT_EQ(status, 0u) << "turn " << turn << ": " << status_name(status);
    });
    EXPECT_EQ(rig.queue().tail, rig.queue().next_ticket);
    EXPECT_EQ(rig.device().failure, uint32_t{kWorking});
  }
  static void expect_dead(SsdRig& rig) {
    EXPECT_EQ(rig.device().failure, uint32_t{kFailed});
    const auto& registers = rig.controller().registers();
    EXPECT_EQ(registers.cc & format::nvme::kCcEnable, 0u);
    EXPECT_EQ(registers.csts & format::nvme::kCstsReady, 0u);
  }
};
GOFS_AT_BOTH_WIDTHS(RecoveryTest);

TEST_P(RecoveryTest, an_error_status_is_that_of_its_lba) {
  SsdRig rig(faulty(7, kDayMs));
  rig.bring_up_ready();
  FaultRule rule = about(2, 3, FaultAction::kStatus);
  rule.status = format::nvme::kUnrecoveredReadError;
  rig.add_fault(rule);
  rule = about(5, 5, FaultAction::kStatus);
  rule.status = format::nvme::kNamespaceNotReady;
  rig.add_fault(rule);
  read_each(rig, 8 / width(), 6, 0, [](uint32_t who, uint32_t, CommandStatus status) {
    const int wanted = who == 2 || who == 3 ? -EIO : who == 5 ? -EAGAIN : 0;
    EXPECT_EQ(to_errno(status), wanted) << status_name(status);
  });
  expect_healthy(rig);
}

TEST_P(RecoveryTest, errors_that_come_now_and_then_cost_no_slot) {
  SsdRig rig(faulty(3, kDayMs));
  rig.bring_up_ready();
  FaultRule rule = about(0, 100, FaultAction::kStatus);
  rule.skip = 10;
  rule.count = 20;
  rig.add_fault(rule);
  std::atomic<uint32_t> failed{0};
  read_each(rig, 8 / width(), 8, 0, [&](uint32_t, uint32_t, CommandStatus status) {
    if (status != 0) ++failed;
  });
  EXPECT_EQ(failed, 20u);
  EXPECT_EQ(failed_commands(rig.queue()), 20u);
  expect_healthy(rig);
}

TEST_P(RecoveryTest, lost_completions_time_out_and_give_their_slots_back) {
  for (const uint32_t depth : {2u, 3u, 13u}) {
    SsdRig rig(faulty(depth, kShortMs));
    rig.bring_up_ready();
    // Two of eight callers lose each of their commands; more in all than there are slots.
    rig.add_fault(about(2, 3, FaultAction::kLose));
    expect_lost(rig, 8 / width(), depth == 2 ? 2 : 3,
                [](uint32_t who, uint32_t) { return who == 2 || who == 3; });
    expect_healthy(rig);
  }
}

TEST_P(RecoveryTest, a_queue_full_of_lost_commands_recovers) {
  constexpr uint32_t kDepth = 5;
  SsdRig rig(faulty(kDepth, kShortMs));
  rig.bring_up_ready();
  FaultRule rule = about(0, 100, FaultAction::kLose);
  rule.count = 3 * kDepth;
  rig.add_fault(rule);
  std::atomic<uint32_t> timed_out{0};
  read_each(rig, 8 / width(), 4, 0, [&](uint32_t, uint32_t, CommandStatus status) {
    if (status == kStatusTimedOut) ++timed_out;
  });
  // More only where the machine kept others waiting.
  EXPECT_GE(timed_out, 3 * kDepth);
  EXPECT_LE(timed_out, rig.device().timeouts);
  expect_healthy(rig);
}

TEST_P(RecoveryTest, a_late_command_is_aborted) {
  SsdRig rig(faulty(7, kShortMs));
  rig.bring_up_ready();
  FaultRule rule = about(1, 1, FaultAction::kDelay);
  rule.delay_ns = kDayMs * kMillisecond;
  rig.add_fault(rule);
  expect_lost(rig, 4 / width(), 3, [](uint32_t who, uint32_t) { return who == 1; });
  expect_healthy(rig);
}

TEST_P(RecoveryTest, a_command_that_is_slow_but_in_time_succeeds) {
  SsdRig rig(faulty(4, kDayMs));
  rig.bring_up_ready();
  FaultRule rule = about(1, 1, FaultAction::kDelay);
  rule.delay_ns = 40 * kMillisecond;
  rig.add_fault(rule);
  read_each(rig, 4 / width(), 2, 0, [](uint32_t, uint32_t, CommandStatus status) {
    EXPECT_EQ(status, 0u) << status_name(status);
  });
  EXPECT_EQ(rig.device().timeouts, 0u);
}

TEST_P(RecoveryTest, repeated_completions_are_counted_and_ignored) {
  // A completion queue of two entries never has room for both.
  for (const uint32_t depth : {3u, 7u, 64u}) {
    SsdRig rig(faulty(depth, kDayMs));
    rig.bring_up_ready();
    rig.add_fault(about(0, 100, FaultAction::kDuplicate));
    const uint32_t turns = narrow() ? 30 : 8;
    read_each(rig, 8 / width(), turns, 0, [](uint32_t, uint32_t, CommandStatus status) {
      EXPECT_EQ(status, 0u) << status_name(status);
    });
    rig.clear_faults();
    expect_healthy(rig);
    EXPECT_EQ(rig.queue().spurious, uint64_t{8} * turns) << depth;
  }
}

TEST_P(RecoveryTest, completions_out_of_order_find_their_commands) {
  // A ring goes on for less than a lap behind a command that is held.
  for (const uint32_t depth : {13u, 64u}) {
    // Should they ever wait for each other, a minute says so.
    SsdRig rig(faulty(depth, 60'000));
    rig.bring_up_ready();
    // The readers of LBAs 1 to 3 are overtaken by one to three others; the others go on until those
    // have what they want.
    for (uint32_t hold = 1; hold <= 3; ++hold) {
      FaultRule rule = about(hold, hold, FaultAction::kHold);
      rule.hold_commands = hold;
      rig.add_fault(rule);
    }
    const uint32_t warps = 8 / width();
    const uint32_t held_warps = narrow() ? 3 : 1;
    std::atomic<uint32_t> finished{0};
    std::atomic<uint32_t> wrong{0};
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint64_t lba = index * width() + warp.thread_rank();
      const bool held = narrow() ? index >= 1 && index <= 3 : index == 0;
      alignas(4) uint8_t buffer[512];
      for (uint32_t turn = 0; held ? turn < 8 : !warp.all(finished == held_warps); ++turn) {
        std::memset(buffer, 0x5c, 512);
        const CommandStatus status =
            execute(warp, rig.device(), rig.queue(), all_lanes(warp), rig.read(lba, 1, buffer));
        if (status != 0 || !rig.holds(buffer, lba, 1)) ++wrong;
      }
      if (held && warp.thread_rank() == 0) ++finished;
    });
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rig.device().timeouts, 0u);
    expect_healthy(rig);
  }
}

// CSTS is looked at when a command is late: the first that notices tells everybody.
TEST_P(RecoveryTest, a_controller_that_fails_fails_everybody) {
  SsdRig rig(faulty(7, 1000));
  rig.bring_up_ready();
  FaultRule rule = about(0, 100, FaultAction::kFatal);
  rule.skip = 20;
  rig.add_fault(rule);
  std::atomic<uint32_t> succeeded{0};
  read_each(rig, 8 / width(), 10, 0, [&](uint32_t, uint32_t, CommandStatus status) {
    if (status == 0) {
      ++succeeded;
    } else {
      EXPECT_EQ(status, kStatusDeviceFailed) << status_name(status);
    }
  });
  EXPECT_LE(succeeded, 20u);
  expect_dead(rig);
}

/// From some moment on the controller does nothing at all: not even an abort is answered.
TEST_P(RecoveryTest, a_controller_that_falls_silent_is_given_up) {
  SsdRig rig(faulty(7, kDayMs));
  rig.bring_up_ready();
  expect_healthy(rig);
  set_short_limits(rig);
  rig.device().controller.controller = nullptr;
  read_each(rig, 8 / width(), 2, 0, [](uint32_t, uint32_t, CommandStatus status) {
    EXPECT_EQ(status, kStatusDeviceFailed) << status_name(status);
  });
  EXPECT_EQ(rig.device().failure, uint32_t{kFailed});
  EXPECT_EQ(rig.controller().registers().cc & format::nvme::kCcEnable, 0u);
}

TEST_P(RecoveryTest, an_abort_without_an_answer_fails_the_device) {
  SsdRig rig(faulty(5, kDayMs));
  rig.bring_up_ready();
  set_short_limits(rig);
  rig.add_fault(about(0, 100, FaultAction::kLose));
  rig.add_fault(about_aborts(FaultAction::kLose));
  read_each(rig, 8 / width(), 2, 0, [](uint32_t, uint32_t, CommandStatus status) {
    EXPECT_EQ(status, kStatusDeviceFailed) << status_name(status);
  });
  expect_dead(rig);
}

// A controller may refuse an abort (it has a limit of them): the command is then still its own, and
// its completion is still to come.
TEST_P(RecoveryTest, a_refused_abort_is_no_proof_that_a_completion_is_lost) {
  SsdRig rig(faulty(5, 1000));
  rig.bring_up_ready();
  FaultRule rule = about(1, 1, FaultAction::kDelay);
  rule.delay_ns = 1500 * kMillisecond;  // too late, but it will come
  rig.add_fault(rule);
  rule = about_aborts(FaultAction::kStatus);
  rule.status = format::nvme::kAbortLimitExceeded;
  rig.add_fault(rule);
  read_each(rig, 4 / width(), 1, 0, [](uint32_t, uint32_t, CommandStatus status) {
    EXPECT_EQ(status, 0u) << status_name(status);
  });
  EXPECT_GE(rig.device().timeouts, 1u);
  EXPECT_EQ(rig.queue().spurious, 0u);
  expect_healthy(rig);
}

class MailboxRecoveryTest : public RecoveryTest {
 protected:
  /// Starts a read of LBA 0, 1, ... by each lane, waits for all with `timeout_ms`, then settles
  /// what is left, as the asynchronous calls of the file system do.
  CommandStatus start_and_settle(SsdRig& rig, uint32_t commands, uint64_t timeout_ms,
                                 Mailbox& mailbox) {
    std::vector<uint8_t*> buffers;
    for (uint32_t i = 0; i < commands * width(); ++i) buffers.push_back(rig.arena().bytes(512));
    run_alone(width(), [&](const simt::Warp& warp) {
      for (uint32_t i = 0; i < commands; ++i) {
        const uint32_t lba = i * width() + warp.thread_rank();
        if (start(warp, rig.device(), rig.queue(), all_lanes(warp), rig.read(lba, 1, buffers[lba]),
                  mailbox) < 0) {
          return;
        }
      }
      const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ms * kMillisecond);
      while (!warp.all(simt::load_acquire(mailbox.remaining) == 0)) {
        progress(warp, rig.device(), rig.queue());
        if (warp.any(deadline.passed())) {
          recover_mailbox(warp, rig.device(), rig.queue(), mailbox);
          break;
        }
      }
    });
    return mailbox.status;
  }
};
GOFS_AT_BOTH_WIDTHS(MailboxRecoveryTest);

TEST_P(MailboxRecoveryTest, lost_commands_are_settled) {
  SsdRig rig(faulty(16, kShortMs));
  rig.bring_up_ready();
  FaultRule rule = about(0, 100, FaultAction::kLose);
  rule.skip = 1;
  rule.count = 2;
  rig.add_fault(rule);
  Mailbox mailbox{};
  EXPECT_EQ(start_and_settle(rig, 3, kShortMs, mailbox), kStatusTimedOut);
  EXPECT_EQ(mailbox.remaining, 0u);
  expect_healthy(rig);
}

TEST_P(MailboxRecoveryTest, late_commands_are_aborted_and_called_late) {
  SsdRig rig(faulty(16, kShortMs));
  rig.bring_up_ready();
  FaultRule rule = about(1, 1, FaultAction::kDelay);
  rule.delay_ns = kDayMs * kMillisecond;
  rig.add_fault(rule);
  Mailbox mailbox{};
  EXPECT_EQ(start_and_settle(rig, 3, kShortMs, mailbox), kStatusTimedOut);
  EXPECT_EQ(mailbox.remaining, 0u);
  expect_healthy(rig);
}

TEST_P(MailboxRecoveryTest, a_dead_controller_ends_the_wait) {
  SsdRig rig(faulty(16, kDayMs));
  rig.bring_up_ready();
  set_short_limits(rig);
  FaultRule rule = about(1, 1, FaultAction::kFatal);
  rig.add_fault(rule);
  Mailbox mailbox{};
  start_and_settle(rig, 3, kShortMs, mailbox);
  EXPECT_NE(mailbox.remaining, 0u) << "who looks must see that not all came back";
  expect_dead(rig);
}

// Many operations lose commands at once while others go on: each mailbox is counted down exactly.
TEST_P(MailboxRecoveryTest, several_warps_settle_side_by_side) {
  SsdRig rig(faulty(16, kShortMs));
  rig.bring_up_ready();
  rig.add_fault(about(0, 3, FaultAction::kLose));
  FaultRule rule = about(4, 7, FaultAction::kDelay);
  rule.delay_ns = kDayMs * kMillisecond;
  rig.add_fault(rule);
  constexpr uint32_t kWarps = 4;
  std::vector<Mailbox> mailboxes(kWarps);
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < 3 * kWarps * width(); ++i) buffers.push_back(rig.arena().bytes(512));
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * width() + warp.thread_rank();
    Mailbox& mailbox = mailboxes[index];
    for (const uint32_t lba : {index, 4 + index, 20 + index}) {
      const uint32_t buffer = (lba == index ? 0 : lba < 8 ? 1 : 2) * kWarps * width() + who;
      EXPECT_EQ(start(warp, rig.device(), rig.queue(), all_lanes(warp),
                      rig.read(lba, 1, buffers[buffer]), mailbox),
                0);
    }
    const simt::Deadline deadline = simt::Deadline::after_ns(kShortMs * kMillisecond);
    while (!warp.any(deadline.passed())) progress(warp, rig.device(), rig.queue());
    recover_mailbox(warp, rig.device(), rig.queue(), mailbox);
  });
  for (const Mailbox& mailbox : mailboxes) {
    EXPECT_EQ(mailbox.remaining, 0u);
    EXPECT_EQ(mailbox.status, kStatusTimedOut);
  }
  expect_healthy(rig);
}

}  // namespace
}  // namespace gofs::nvme
