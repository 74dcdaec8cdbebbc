// SPDX-License-Identifier: Apache-2.0
//
// A controller of host threads over a block device, a loop device with a file: what becomes of
// blocks that are given back or zeroed, and of commands when the device changes beneath it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssd/hosted/hosted_controller.h"
#include "ssd/loop_device_for_test.h"
#include "ssd/prp_buffer.h"
#include "ssd/temporary_file_for_test.h"
#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;
using namespace std::chrono_literals;

constexpr uint64_t kDeviceBytes = 8 << 20;

class HostedDevice : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (GetParam() == EngineKind::kUring && uring_refusal() != 0) {
      GTEST_SKIP() << "io_uring: " << std::strerror(uring_refusal());
    }
    file_.resize(kDeviceBytes);
    loop_.emplace(file_.path());
    if (!loop_->is_there()) GTEST_SKIP() << "no loop devices here";
    attach();
  }
  void TearDown() override { detach(); }

  /// The controller goes first: it may still post to the queues, whose memory is the driver's.
  void detach() {
    controller_.reset();
    driver_.reset();
  }

  void attach() {
    detach();
    HostedOptions options;
    options.engine = GetParam();
    options.queue_pairs_max = 2;
    controller_ = std::make_unique<HostedController>(
        std::make_unique<BackingStore>(loop_->path(), FileAccess::kReadWrite), memory_.space(),
        options);
    driver_ = std::make_unique<TestDriver>(controller_->ref(), VirtualSsdConfig());
    driver_->enable_ready();
    queue_ = driver_->create_pair(1, 16);
  }
  uint32_t lba_bytes() const { return controller_->store().traits().lba_bytes; }
  SubmissionEntry entry(IoOpcode opcode, uint64_t offset, uint64_t bytes, const void* data) const {
    return TestDriver::io_entry(opcode, offset / lba_bytes(),
                                static_cast<uint32_t>(bytes / lba_bytes()), data);
  }
  Status run(IoOpcode opcode, uint64_t offset, uint64_t bytes = 4096) {
    const bool moves = opcode == IoOpcode::kRead || opcode == IoOpcode::kWrite;
    return driver_->run(queue_, entry(opcode, offset, bytes, moves ? buffer_ : nullptr));
  }
  Status flush() { return driver_->run(queue_, TestDriver::io_entry(IoOpcode::kFlush)); }
  Status deallocate(uint64_t offset, uint64_t bytes) {
    auto* const range = reinterpret_cast<DatasetRange*>(ranges_);
    *range = {0, static_cast<uint32_t>(bytes / lba_bytes()), offset / lba_bytes()};
    SubmissionEntry command = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, range);
    command.cdw10 = 0;
    command.cdw11 = kDeallocate;
    command.cdw12 = 0;
    return driver_->run(queue_, command);
  }
  /// Fills the device, past Linux's page cache.
  void fill() {
    constexpr uint32_t kBytes = 128 << 10;
    PrpBuffer bytes(memory_, 0, kBytes);
    bytes.fill(std::vector<uint8_t>(kBytes, 0x5a));
    for (uint64_t at = 0; at < kDeviceBytes; at += kBytes) {
      SubmissionEntry command = entry(IoOpcode::kWrite, at, kBytes, nullptr);
      bytes.set_prps(command);
      ASSERT_EQ(driver_->run(queue_, command), kSuccess);
    }
    ASSERT_EQ(flush(), kSuccess);
  }
  bool reads_as(uint64_t offset, uint8_t value) {
    std::memset(buffer_, 0x11, 4096);
    EXPECT_EQ(run(IoOpcode::kRead, offset), kSuccess);
    return std::memcmp(buffer_, std::vector<uint8_t>(4096, value).data(), 4096) == 0;
  }
  uint16_t optional_commands() {
    SubmissionEntry command = TestDriver::admin_entry(AdminOpcode::kIdentify);
    uint8_t* const page = memory_.bytes(4096);
    command.prp1 = address_of(page);
    command.cdw10 = kIdentifyController;
    EXPECT_EQ(driver_->run(driver_->admin(), command), kSuccess);
    return reinterpret_cast<const IdentifyController*>(page)->oncs;
  }
  /// A command that finds that all is lost.
  void expect_fatal(IoOpcode opcode, uint64_t offset) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NE(run(opcode, offset), kSuccess);
    EXPECT_TRUE(driver_->wait_csts(kCstsReady | kCstsFatal));
    EXPECT_NE(run(IoOpcode::kRead, 0), kSuccess) << "and none is answered later than this";
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_TRUE(controller_->store().is_gone());
    driver_->write_cc(0);
    EXPECT_TRUE(driver_->wait_csts(0));
  }

  TestMemory memory_;
  TemporaryFile file_;
  std::optional<LoopDevice> loop_;
  std::unique_ptr<HostedController> controller_;
  std::unique_ptr<TestDriver> driver_;
  TestQueue queue_;
  uint8_t* const buffer_ = memory_.bytes(4096);
  uint8_t* const ranges_ = memory_.bytes(4096);
};
INSTANTIATE_TEST_SUITE_P(Engines, HostedDevice,
                         ::testing::Values(EngineKind::kUring, EngineKind::kThreads),
                         [](const auto& test) {
                           return test.param == EngineKind::kUring ? "io_uring" : "threads";
                         });

TEST_P(HostedDevice, blocks_that_are_given_back_take_no_room) {
  fill();
  const uint64_t full = bytes_on_disk(file_.path());
  ASSERT_GE(full, kDeviceBytes);
  EXPECT_EQ(optional_commands(), 0x0c);
  EXPECT_EQ(deallocate(1 << 20, 4 << 20), kSuccess);
  EXPECT_LE(bytes_on_disk(file_.path()), full - (4 << 20));
  EXPECT_TRUE(reads_as((1 << 20) - 4096, 0x5a));
  EXPECT_TRUE(reads_as(5 << 20, 0x5a));
  EXPECT_EQ(deallocate(kDeviceBytes, 4096), kLbaOutOfRange);
}

TEST_P(HostedDevice, zeroed_blocks_read_zeros) {
  fill();
  const uint64_t full = bytes_on_disk(file_.path());
  EXPECT_EQ(run(IoOpcode::kWriteZeroes, 1 << 20, 4 << 20), kSuccess);
  EXPECT_TRUE(reads_as(1 << 20, 0));
  EXPECT_TRUE(reads_as((5 << 20) - 4096, 0));
  EXPECT_TRUE(reads_as((1 << 20) - 4096, 0x5a));
  EXPECT_TRUE(reads_as(5 << 20, 0x5a));
  EXPECT_LE(bytes_on_disk(file_.path()), full - (4 << 20)) << "nothing was written";
  // A part of what the file below can give back.
  EXPECT_EQ(run(IoOpcode::kWriteZeroes, 512, 512), kSuccess);
  EXPECT_EQ(run(IoOpcode::kRead, 0), kSuccess);
  EXPECT_EQ(buffer_[511], 0x5a);
  EXPECT_EQ(buffer_[512], 0);
  EXPECT_EQ(buffer_[1023], 0);
  EXPECT_EQ(buffer_[1024], 0x5a);
}

TEST_P(HostedDevice, a_file_that_is_cut_below_a_loop_device_is_fatal) {
  for (const IoOpcode opcode : {IoOpcode::kRead, IoOpcode::kWrite, IoOpcode::kWriteZeroes}) {
    fill();
    file_.resize(1 << 20);
    expect_fatal(opcode, 4 << 20);
    EXPECT_NE(controller_->store().problem().find("shorter than it was"), std::string::npos);
    EXPECT_LE(bytes_on_disk(file_.path()), 1u << 20) << "it is not made longer again";
    file_.resize(kDeviceBytes);
    attach();
    EXPECT_TRUE(reads_as(0, 0x5a));
    EXPECT_TRUE(reads_as(4 << 20, 0)) << "it was cut";
  }
}

TEST_P(HostedDevice, a_file_that_is_cut_below_a_loop_device_is_seen_by_a_flush) {
  EXPECT_EQ(flush(), kSuccess);
  file_.resize(1 << 20);
  TestDriver::put(queue_, TestDriver::io_entry(IoOpcode::kFlush));
  driver_->ring(queue_);
  EXPECT_TRUE(driver_->wait_csts(kCstsReady | kCstsFatal));
}

TEST_P(HostedDevice, one_that_has_become_smaller_is_fatal) {
  for (const IoOpcode opcode : {IoOpcode::kRead, IoOpcode::kWrite}) {
    file_.resize(1 << 20);
    ASSERT_TRUE(loop_->look_at_size());
    expect_fatal(opcode, 4 << 20);
    file_.resize(kDeviceBytes);
    ASSERT_TRUE(loop_->look_at_size());
    attach();
    EXPECT_EQ(run(opcode, 4 << 20), kSuccess);
  }
}

TEST_P(HostedDevice, one_that_becomes_read_only_refuses_writes_and_reads_go_on) {
  EXPECT_EQ(run(IoOpcode::kWrite, 0), kSuccess);
  ASSERT_TRUE(loop_->forbid_writing(true));
  EXPECT_EQ(run(IoOpcode::kWrite, 0), kWriteFault);
  EXPECT_EQ(controller_->store().problem(), "Operation not permitted");
  EXPECT_NE(run(IoOpcode::kWriteZeroes, 0), kSuccess);
  EXPECT_EQ(run(IoOpcode::kRead, 0), kSuccess);
  EXPECT_FALSE(controller_->store().is_gone());
  ASSERT_TRUE(loop_->forbid_writing(false));
  EXPECT_EQ(run(IoOpcode::kWrite, 0), kSuccess);
}

TEST_P(HostedDevice, one_that_is_let_go_of_stays_until_it_is_closed) {
  loop_->let_go();
  fill();
  EXPECT_EQ(file_.read(4096, 4096), std::vector<uint8_t>(4096, 0x5a));
}

TEST_P(HostedDevice, discards_go_on_beside_other_commands) {
  fill();
  auto* const ranges = reinterpret_cast<DatasetRange*>(ranges_);
  uint32_t answers = 0;
  for (uint32_t round = 0; round < 50; ++round) {
    for (uint32_t i = 0; i < 6; ++i) {
      ranges[i] = {0, 131072 / lba_bytes(), (4u << 20) / lba_bytes() + i * 131072 / lba_bytes()};
      SubmissionEntry discard = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, ranges);
      discard.cdw10 = i;
      discard.cdw11 = kDeallocate;
      discard.cdw12 = 0;
      TestDriver::put(queue_, discard);
      TestDriver::put(queue_, entry(IoOpcode::kRead, 0, 4096, buffer_));
    }
    driver_->ring(queue_);
    for (uint32_t i = 0; i < 12; ++i, ++answers) {
      ASSERT_EQ(TestDriver::status_of(driver_->wait(queue_)), kSuccess) << answers;
    }
  }
  EXPECT_TRUE(reads_as(0, 0x5a));
}

}  // namespace
}  // namespace gofs::ssd
