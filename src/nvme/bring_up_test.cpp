// SPDX-License-Identifier: Apache-2.0
//
// Bringing the virtual controller up and shutting it down: what is learnt from it, what is refused
// and by which name, and that a controller which fails, or never answers, costs bounded time and is
// left disabled.
#include "nvme/bring_up.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "nvme/execute.h"
#include "nvme/shut_down.h"
#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::AdminOpcode;
using gofs::testing::all_lanes;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;
using ssd::FaultAction;
using ssd::FaultRule;

/// A command that is answered takes microseconds; these are for those that are not.
constexpr uint64_t kShortNs = 100'000'000;
/// What is not to be waited for: the test's own limit would end it.
constexpr uint64_t kDayNs = 86'400'000'000'000;

class BringUpTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static SsdRigOptions faulty() {
    SsdRigOptions options;
    options.ssd.fault_capacity = 4;
    options.device.admin_timeout_ns = kDayNs;
    return options;
  }
  static FaultRule admin_rule(AdminOpcode opcode, FaultAction action) {
    FaultRule rule;
    rule.admin = true;
    rule.opcode_mask = 1u << static_cast<uint32_t>(opcode);
    rule.action = action;
    return rule;
  }
  /// One block read from the start of queue 0's device.
  CommandStatus read_one(SsdRig& rig) {
    uint8_t* const buffer = rig.arena().bytes(rig.lba_bytes());
    CommandStatus status = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const CommandStatus mine =
          execute(warp, rig.device(), rig.queue(), 1u, rig.read(3, 1, buffer));
      if (warp.thread_rank() == 0) status = mine;
    });
    if (status == 0) {
      EXPECT_TRUE(rig.holds(buffer, 3, 1));
    }
    return status;
  }
  static void expect_disabled(SsdRig& rig) {
    const auto& registers = rig.controller().registers();
    EXPECT_EQ(registers.cc & format::nvme::kCcEnable, 0u);
    EXPECT_EQ(registers.csts & format::nvme::kCstsReady, 0u);
  }
};
GOFS_AT_BOTH_WIDTHS(BringUpTest);

TEST_P(BringUpTest, learns_what_the_controller_is) {
  for (const uint32_t lba_shift : {9u, 12u}) {
    for (const uint32_t mdts : {0u, 1u, 5u, 6u, 7u}) {
      if (width() != 1 && mdts % 5 != 0) continue;  // a team takes its time
      SsdRigOptions options;
      options.ssd.lba_shift = lba_shift;
      options.ssd.mdts = mdts;
      options.ssd.volatile_write_cache = mdts != 5;
      options.ssd.doorbell_stride = mdts;
      options.ssd.atomic_bytes = mdts == 5 && lba_shift == 9 ? 2048 : 4096;
      SsdRig rig(options);
      rig.bring_up_ready(width());
      const Device& device = rig.device();
      EXPECT_EQ(device.lba_shift, lba_shift);
      EXPECT_EQ(device.lba_count, options.media_bytes >> lba_shift);
      EXPECT_EQ(device.volatile_write_cache, mdts != 5 ? 1u : 0u);
      EXPECT_EQ(device.doorbell_stride, mdts);
      EXPECT_EQ(device.atomic_blocks, lba_shift == 12 || mdts != 5 ? 1u : 0u);
      // Never more than a slot's PRP list can name.
      EXPECT_EQ(device.transfer_bytes_max,
                mdts == 0 || mdts > 6 ? kPrpBytesMax : kBlockBytes << mdts);
      EXPECT_EQ(read_one(rig), 0u);
    }
  }
}

// As a controller says it, or its namespace, which may have boundaries that writes must not cross.
TEST(AtomicBlocks, are_those_that_no_write_leaves_torn) {
  format::nvme::IdentifyNamespace space{};
  EXPECT_FALSE(writes_blocks_atomically(0, space, 9));
  EXPECT_FALSE(writes_blocks_atomically(6, space, 9));
  EXPECT_TRUE(writes_blocks_atomically(7, space, 9));
  EXPECT_TRUE(writes_blocks_atomically(0xffff, space, 9));
  EXPECT_TRUE(writes_blocks_atomically(0, space, 12));
  space.nawupf = 7;
  EXPECT_FALSE(writes_blocks_atomically(0, space, 9));  // without its bit it says nothing
  space.nsfeat = 1u << 1;
  EXPECT_TRUE(writes_blocks_atomically(0, space, 9));
  space.nawupf = 3;
  EXPECT_FALSE(writes_blocks_atomically(7, space, 9));
  space.nawupf = 7;
  space.nabspf = 15;
  EXPECT_TRUE(writes_blocks_atomically(0, space, 9));
  space.nabspf = 11;
  EXPECT_FALSE(writes_blocks_atomically(0, space, 9));
  space.nabspf = 15;
  space.nabo = 1;
  EXPECT_FALSE(writes_blocks_atomically(0, space, 9));
  space.nabo = 8;
  EXPECT_TRUE(writes_blocks_atomically(0, space, 9));
}

TEST_P(BringUpTest, takes_fewer_and_shorter_queues_where_the_controller_has_no_more) {
  SsdRigOptions options;
  options.ssd.queue_pairs_max = 3;
  options.ssd.queue_entries_max = 5;
  options.device.io_queues = 7;
  options.device.queue_depth = 1024;
  options.device.admin_depth = 64;
  SsdRig rig(options);
  rig.bring_up_ready(width());
  EXPECT_EQ(rig.device().io_queue_count, 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(rig.queue(i).depth(), 5u);
  for (uint32_t turn = 0; turn < 12; ++turn) EXPECT_EQ(read_one(rig), 0u);
}

TEST_P(BringUpTest, the_smallest_queues_work) {
  SsdRigOptions options;
  options.device.io_queues = 1;
  options.device.queue_depth = 2;
  options.device.admin_depth = 2;
  SsdRig rig(options);
  rig.bring_up_ready(width());
  for (uint32_t turn = 0; turn < 5; ++turn) EXPECT_EQ(read_one(rig), 0u);
}

TEST_P(BringUpTest, a_controller_that_is_in_use_is_reset_first) {
  SsdRig rig{SsdRigOptions()};
  rig.bring_up_ready(width());
  // Another driver takes it over, with queues of its own.
  Device* const other =
      create_device(rig.arena().space(), rig.controller(), SsdRigOptions().device);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(bring_up(warp, *other).step, BringUpStep::kDone);
    alignas(4) uint8_t buffer[512];
    EXPECT_EQ(execute(warp, *other, other->io[0], all_lanes(warp), rig.read(9, 1, buffer)), 0u);
    EXPECT_TRUE(rig.holds(buffer, 9, 1));
  });
  destroy_device(rig.arena().space(), other);
}

TEST_P(BringUpTest, a_namespace_that_does_not_exist_is_refused) {
  SsdRigOptions options;
  options.device.nsid = 2;
  SsdRig rig(options);
  const BringUpResult result = rig.bring_up(width());
  EXPECT_EQ(result.step, BringUpStep::kIdentifyNamespace);
  EXPECT_EQ(to_errno(result.status), -ENODEV);
  expect_disabled(rig);
  EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
}

TEST_P(BringUpTest, a_namespace_that_is_not_active_is_refused) {
  SsdRig rig{SsdRigOptions()};
  std::memset(static_cast<void*>(rig.controller().controller->identify_namespace), 0, 4096);
  EXPECT_EQ(rig.bring_up(width()).step, BringUpStep::kNoNamespace);
  expect_disabled(rig);
}

TEST_P(BringUpTest, lba_formats_are_found_by_their_whole_index) {
  struct Case {
    uint8_t nlbaf;
    uint8_t flbas;
    BringUpStep step;
    uint32_t lba_shift;
  };
  // Formats 1 and 17 differ; 2 has metadata. The index has no upper bits where formats are few.
  for (const Case& one :
       {Case{1, 0x01, BringUpStep::kDone, 12}, Case{20, 0x21, BringUpStep::kDone, 9},
        Case{15, 0x21, BringUpStep::kDone, 12}, Case{3, 0x02, BringUpStep::kNamespaceFormat, 0},
        Case{3, 0x03, BringUpStep::kNamespaceFormat, 0}}) {
    SsdRig rig{SsdRigOptions()};
    auto& space = *rig.controller().controller->identify_namespace;
    space.nlbaf = one.nlbaf;
    space.flbas = one.flbas;
    space.lbaf[1] = {0, 12, 0};
    space.lbaf[17] = {0, 9, 0};
    space.lbaf[2] = {8, 12, 0};
    space.lbaf[3] = {0, 0, 0};
    EXPECT_EQ(rig.bring_up(width()).step, one.step) << uint32_t{one.flbas};
    if (one.step == BringUpStep::kDone) {
      EXPECT_EQ(rig.device().lba_shift, one.lba_shift);
    }
  }
}

TEST_P(BringUpTest, a_size_that_no_ssd_has_is_refused) {
  SsdRig rig{SsdRigOptions()};
  auto& space = *rig.controller().controller->identify_namespace;
  space.nsze = uint64_t{1} << 54;  // times 512: 8 EiB
  EXPECT_EQ(rig.bring_up(width()).step, BringUpStep::kNamespaceSize);
  expect_disabled(rig);
}

TEST_P(BringUpTest, capabilities_that_are_missing_are_named) {
  for (const uint64_t change : {uint64_t{1} << format::nvme::kCapNvmCommandSetShift,  // cleared
                                uint64_t{1} << 48,                                    // MPSMIN set
                                uint64_t{1023}}) {  // MQES cleared
    SsdRig rig{SsdRigOptions()};
    rig.controller().registers().cap ^= change;
    EXPECT_EQ(rig.bring_up(width()).step, BringUpStep::kCapabilities);
    expect_disabled(rig);
    EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
  }
}

TEST_P(BringUpTest, each_step_reports_the_status_it_got) {
  struct Case {
    AdminOpcode opcode;
    uint64_t skip;
    BringUpStep step;
  };
  const Case cases[] = {
      {AdminOpcode::kIdentify, 0, BringUpStep::kIdentifyController},
      {AdminOpcode::kIdentify, 1, BringUpStep::kIdentifyNamespace},
      {AdminOpcode::kSetFeatures, 0, BringUpStep::kNumberOfQueues},
      {AdminOpcode::kCreateCompletionQueue, 1, BringUpStep::kCreateCompletionQueue},
      {AdminOpcode::kCreateSubmissionQueue, 1, BringUpStep::kCreateSubmissionQueue},
  };
  for (const Case& one : cases) {
    SsdRig rig(faulty());
    FaultRule rule = admin_rule(one.opcode, FaultAction::kStatus);
    rule.skip = one.skip;
    rule.status = format::nvme::kInvalidField;
    rig.add_fault(rule);
    const BringUpResult result = rig.bring_up(width());
    EXPECT_EQ(result.step, one.step) << step_name(result.step);
    EXPECT_EQ(to_errno(result.status), -EINVAL);
    expect_disabled(rig);
    EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
  }
}

TEST_P(BringUpTest, an_admin_command_without_an_answer_fails_the_device) {
  for (const AdminOpcode opcode : {AdminOpcode::kIdentify, AdminOpcode::kCreateSubmissionQueue}) {
    SsdRigOptions options = faulty();
    options.device.admin_timeout_ns = kShortNs;
    SsdRig rig(options);
    rig.add_fault(admin_rule(opcode, FaultAction::kLose));
    const BringUpResult result = rig.bring_up(width());
    EXPECT_NE(result.step, BringUpStep::kDone);
    EXPECT_EQ(result.status, kStatusDeviceFailed);
    expect_disabled(rig);
  }
}

TEST_P(BringUpTest, a_fatal_controller_is_noticed_at_once) {
  SsdRig rig(faulty());
  rig.add_fault(admin_rule(AdminOpcode::kSetFeatures, FaultAction::kFatal));
  const BringUpResult result = rig.bring_up(width());
  EXPECT_EQ(result.step, BringUpStep::kNumberOfQueues);
  EXPECT_EQ(result.status, kStatusDeviceFailed);
  expect_disabled(rig);
}

TEST_P(BringUpTest, repeated_admin_completions_do_no_harm) {
  SsdRig rig(faulty());
  FaultRule rule;
  rule.admin = true;
  rule.action = FaultAction::kDuplicate;
  rig.add_fault(rule);
  rig.bring_up_ready(width());
  EXPECT_GT(rig.device().admin->spurious, 0u);
  EXPECT_EQ(read_one(rig), 0u);
}

/// A controller that is not stepped does nothing.
TEST_P(BringUpTest, a_dead_controller_costs_bounded_time) {
  for (const bool stays_ready : {false, true}) {
    SsdRigOptions options;
    options.device.admin_timeout_ns = kShortNs;
    SsdRig rig(options);
    auto& registers = rig.controller().registers();
    registers.cap &= ~(uint64_t{0xff} << format::nvme::kCapTimeoutShift);  // half a second
    if (stays_ready) registers.csts = format::nvme::kCstsReady;
    rig.device().controller.controller = nullptr;
    const BringUpResult result = rig.bring_up(width());
    EXPECT_EQ(result.step, stays_ready ? BringUpStep::kDisable : BringUpStep::kEnable);
    EXPECT_EQ(registers.cc & format::nvme::kCcEnable, 0u);
    EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
  }
}

TEST_P(BringUpTest, shut_down_flushes_and_disables) {
  SsdRig rig{SsdRigOptions()};
  rig.bring_up_ready(width());
  EXPECT_EQ(read_one(rig), 0u);
  run_alone(width(), [&](const simt::Warp& warp) { EXPECT_EQ(shut_down(warp, rig.device()), 0); });
  EXPECT_EQ(rig.counters().flush_requests, 1u);
  expect_disabled(rig);
  EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
  run_alone(width(),
            [&](const simt::Warp& warp) { EXPECT_EQ(shut_down(warp, rig.device()), -EIO); });
}

TEST_P(BringUpTest, shut_down_of_a_dead_controller_ends_and_says_so) {
  SsdRig rig{SsdRigOptions()};
  rig.bring_up_ready(width());
  rig.device().limits.admin_timeout_ns = kShortNs;
  rig.device().limits.stop_timeout_ns = kShortNs;
  rig.device().controller.controller = nullptr;
  run_alone(width(),
            [&](const simt::Warp& warp) { EXPECT_EQ(shut_down(warp, rig.device()), -ETIMEDOUT); });
  EXPECT_EQ(read_one(rig), kStatusDeviceFailed);
}

/// A controller that the test plays: the virtual one is not stepped, and a thread does to the
/// registers what it likes.
class PlayedController {
 public:
  using Registers = format::nvme::Registers;
  PlayedController(SsdRig& rig, const std::function<void(Registers&)>& play) {
    rig.device().controller.controller = nullptr;
    thread_ = std::jthread([&registers = rig.controller().registers(), play, this] {
      while (!ends_) {
        play(registers);
        std::this_thread::yield();
      }
    });
  }
  ~PlayedController() { ends_ = true; }
  PlayedController(const PlayedController&) = delete;
  PlayedController& operator=(const PlayedController&) = delete;

 private:
  std::atomic<bool> ends_{false};
  std::jthread thread_;
};

/// True from `pause` after the first call on.
class Later {
 public:
  explicit Later(std::chrono::milliseconds pause) : pause_(pause) {}
  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (begin_ == std::chrono::steady_clock::time_point()) begin_ = now;
    return now - begin_ > pause_;
  }

 private:
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point begin_;
};

TEST_P(BringUpTest, a_shutdown_gets_the_time_that_the_controller_names) {
  SsdRigOptions options;
  SsdRig rig(options);
  rig.controller().controller->identify_controller->rtd3e = 20'000'000;
  rig.bring_up_ready(width());
  EXPECT_EQ(rig.device().limits.shutdown_timeout_ns, 20'000'000'000u);
  rig.device().limits.admin_timeout_ns = kShortNs;
  Later done(std::chrono::milliseconds(400));
  auto slow = std::make_unique<PlayedController>(rig, [&done](format::nvme::Registers& registers) {
    using namespace format::nvme;
    const uint32_t configuration = simt::load_system_acquire(registers.cc);
    if ((configuration & kCcEnable) == 0) {
      simt::store_system_release(registers.csts, 0u);
    } else if ((configuration & kCcShutdownMask) != 0 && done()) {
      simt::store_system_release(registers.csts, kCstsReady | kCstsShutdownComplete);
    }
  });
  run_alone(width(), [&](const simt::Warp& warp) { EXPECT_EQ(shut_down(warp, rig.device()), 0); });
  slow.reset();
  expect_disabled(rig);
}

TEST_P(BringUpTest, the_time_for_a_shutdown_is_bounded) {
  SsdRig rig{SsdRigOptions()};
  rig.controller().controller->identify_controller->rtd3e = ~0u;
  rig.bring_up_ready(width());
  EXPECT_EQ(rig.device().limits.shutdown_timeout_ns, 60'000'000'000u);
}

// Until CSTS.RDY is 0 it may write to memory, which must not be released before.
TEST_P(BringUpTest, a_device_has_failed_when_its_controller_has_stopped) {
  SsdRig rig{SsdRigOptions()};
  rig.bring_up_ready(width());
  rig.device().limits.admin_timeout_ns = kShortNs;
  EXPECT_EQ(rig.device().limits.stop_timeout_ns, 10'500'000'000u);  // CAP.TO
  Later done(std::chrono::milliseconds(400));
  PlayedController slow(rig, [&done](format::nvme::Registers& registers) {
    const bool enabled = (simt::load_system_acquire(registers.cc) & format::nvme::kCcEnable) != 0;
    if (!enabled && done()) simt::store_system_release(registers.csts, 0u);
  });
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t) {
    fail_device(warp, rig.device());
    EXPECT_TRUE(device_failed(rig.device()));
    EXPECT_EQ(simt::load_system_acquire(rig.controller().registers().csts), 0u);
  });
}

// As the standard has it: CC.EN goes from 1 to 0 only when CSTS.RDY is 1.
TEST_P(BringUpTest, a_controller_that_is_being_enabled_is_not_disabled_before_it_is_ready) {
  SsdRigOptions options;
  options.device.admin_timeout_ns = kShortNs;
  SsdRig rig(options);
  auto& registers = rig.controller().registers();
  registers.cap &= ~(uint64_t{0xff} << format::nvme::kCapTimeoutShift);  // half a second
  registers.cc = format::nvme::kCcEnable;
  std::atomic<bool> early{false};
  Later up(std::chrono::milliseconds(100));
  {
    // It comes up, stops once, and does nothing more.
    PlayedController slow(rig, [&](format::nvme::Registers& played) {
      using namespace format::nvme;
      const bool enabled = (simt::load_system_acquire(played.cc) & kCcEnable) != 0;
      const bool ready = simt::load_system_relaxed(played.csts) != 0;
      if (!up()) {
        if (!enabled) early = true;
      } else if (!enabled) {
        simt::store_system_release(played.csts, 0u);
        simt::store_system_release(played.reserved, 1u);
      } else if (!ready && simt::load_system_relaxed(played.reserved) == 0) {
        simt::store_system_release(played.csts, kCstsReady);
      }
    });
    EXPECT_EQ(rig.bring_up(width()).step, BringUpStep::kEnable);
  }
  EXPECT_FALSE(early);
}

TEST(BringUpStepTest, every_step_has_a_name) {
  for (uint32_t step = 0; step <= static_cast<uint32_t>(BringUpStep::kCreateSubmissionQueue);
       ++step) {
    EXPECT_STRNE(step_name(static_cast<BringUpStep>(step)), step_name(BringUpStep{~0u})) << step;
  }
}

}  // namespace
}  // namespace gofs::nvme
