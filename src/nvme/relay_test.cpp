// SPDX-License-Identifier: Apache-2.0
//
// The driver on a copy of the registers that a thread relays to the device: bring-up, commands by
// many warps at once, reset, shutdown, and what happens when the device fails or is pulled out.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <vector>

#include "nvme/array.h"
#include "ssd/register_relay.h"
#include "testing/ssd_rig.hpp"
#include "testing/virtual_transport.hpp"

namespace gofs::nvme {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;
using gofs::testing::VirtualTransport;

class RelayTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    options_.device.io_queues = 3;
    prepare();
    rig_.emplace(options_);
    spoil();
    transport_.emplace(rig_->controller(), options_.device.io_queues);
    uint8_t* const copy = rig_->arena().bytes(ssd::RegisterRelay::copy_bytes(3));
    relay_.emplace(*transport_, copy, 3);
    device_ = create_device(rig_->arena().space(), ssd::ControllerRef{copy, nullptr, nullptr},
                            options_.device);
  }
  void TearDown() override {
    stop();
    destroy_device(rig_->arena().space(), device_);
  }
  virtual void prepare() {}
  virtual void spoil() {}
  void stop() {
    relay_.reset();
    transport_.reset();
  }

  uint32_t width() const { return GetParam(); }
  BringUpStep bring_device_up() { return gofs::testing::bring_up_alone(width(), *device_).step; }
  /// Reads with every warp; how many commands failed. Wrong bytes fail the test.
  uint32_t read_much(uint32_t turns) {
    std::atomic<uint32_t> failed{0};
    run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
      std::vector<uint8_t> buffer(4096);
      for (uint32_t turn = 0; turn < turns; ++turn) {
        const uint64_t lba = image::pattern_word(index * width() + warp.thread_rank(), turn) % 8000;
        const CommandStatus status = execute(warp, *device_, device_->io[index % 3],
                                             all_lanes(warp), rig_->read(lba, 8, buffer.data()));
        if (status != 0) ++failed;
        EXPECT_TRUE(status != 0 || rig_->holds(buffer.data(), lba, 8));
      }
    });
    return failed;
  }
  /// At the end of a test.
  uint64_t invalid_doorbells() {
    stop();
    return rig_->counters().invalid_doorbells;
  }

  SsdRigOptions options_;
  std::optional<SsdRig> rig_;
  std::optional<VirtualTransport> transport_;
  std::optional<ssd::RegisterRelay> relay_;
  Device* device_ = nullptr;
};

GOFS_AT_BOTH_WIDTHS(RelayTest);

TEST_P(RelayTest, commands_come_through) {
  ASSERT_EQ(bring_device_up(), BringUpStep::kDone);
  EXPECT_EQ(device_->io_queue_count, 3u);
  EXPECT_EQ(read_much(300), 0u);
  EXPECT_EQ(invalid_doorbells(), 0u);
}

TEST_P(RelayTest, a_device_comes_up_again_after_its_shutdown) {
  ASSERT_EQ(bring_device_up(), BringUpStep::kDone);
  EXPECT_EQ(read_much(20), 0u);
  run_alone(width(), [&](const simt::Warp& warp) { EXPECT_EQ(shut_down(warp, *device_), 0); });
  const ssd::ControllerRef controller = device_->controller;
  destroy_device(rig_->arena().space(), device_);
  device_ = create_device(rig_->arena().space(), controller, options_.device);
  ASSERT_EQ(bring_device_up(), BringUpStep::kDone);
  EXPECT_EQ(read_much(20), 0u);
  EXPECT_EQ(invalid_doorbells(), 0u);
}

TEST_P(RelayTest, a_device_that_is_gone_is_said_to_be) {
  transport_->remove();
  // The relay asks now and then while nothing changes.
  while (simt::load_system_acquire(device_->controller.registers().csts) !=
         format::nvme::kRegisterGone) {
    std::this_thread::yield();
  }
  EXPECT_NE(bring_device_up(), BringUpStep::kDone);
}

TEST_P(RelayTest, who_waits_for_a_device_that_is_pulled_out_is_told_in_time) {
  ASSERT_EQ(bring_device_up(), BringUpStep::kDone);
  EXPECT_EQ(read_much(5), 0u);
  device_->limits.command_timeout_ns = 100'000'000;
  device_->limits.admin_timeout_ns = 100'000'000;
  transport_->remove();
  EXPECT_EQ(read_much(3), 4u * width() * 3);
  EXPECT_EQ(device_->failure, static_cast<uint32_t>(kFailed));
}

/// A controller whose completions of what touches LBA 8100 get lost.
class LossyRelayTest : public RelayTest {
 protected:
  void prepare() override { options_.ssd.fault_capacity = 1; }
  void spoil() override {
    ssd::FaultRule rule;
    rule.lba_first = rule.lba_last = 8100;
    rule.action = ssd::FaultAction::kLose;
    rig_->add_fault(rule);
  }
};

GOFS_AT_BOTH_WIDTHS(LossyRelayTest);

// A physical controller that does not abort a command may be at work on it: no thread gets its
// buffer back before it is stopped.
TEST_P(LossyRelayTest, a_command_of_which_nothing_is_heard_ends_with_the_device) {
  ASSERT_EQ(bring_device_up(), BringUpStep::kDone);
  device_->limits.command_timeout_ns = 200'000'000;
  run_alone(width(), [&](const simt::Warp& warp) {
    std::vector<uint8_t> buffer(512);
    EXPECT_EQ(execute(warp, *device_, device_->io[0], all_lanes(warp),
                      rig_->read(8100, 1, buffer.data())),
              kStatusDeviceFailed);
  });
  EXPECT_EQ(device_->failure, static_cast<uint32_t>(kFailed));
  EXPECT_GE(device_->timeouts, 1u);
  EXPECT_EQ(
      transport_->read_register(offsetof(format::nvme::Registers, csts)) & format::nvme::kCstsReady,
      0u);
}

}  // namespace
}  // namespace gofs::nvme
