// SPDX-License-Identifier: Apache-2.0
//
// Planned faults: each action, and which commands a rule hits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ssd/media_host.h"
#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint32_t kReads = 1u << static_cast<uint32_t>(IoOpcode::kRead);
constexpr uint32_t kWrites = 1u << static_cast<uint32_t>(IoOpcode::kWrite);

class Faults : public ::testing::Test {
 protected:
  Faults() {
    driver_.enable_ready();
    queue_ = driver_.create_pair(1, 16);
  }
  static VirtualSsdConfig config() {
    VirtualSsdConfig config;
    config.queue_pairs_max = 2;
    config.fault_capacity = 4;
    config.virtual_clock = true;
    return config;
  }
  void plan(const FaultRule& rule) { add_fault(driver_.memory().space(), driver_.ref(), rule); }
  void clear() { clear_faults(driver_.memory().space(), driver_.ref()); }
  Status read(uint64_t lba, uint32_t count = 1) {
    return driver_.run(queue_, TestDriver::io_entry(IoOpcode::kRead, lba, count, data_));
  }
  void submit(uint16_t cid, IoOpcode opcode = IoOpcode::kRead) {
    auto entry = TestDriver::io_entry(opcode, cid, 1, data_ + cid % 8 * 512);
    entry.cid = cid;
    driver_.submit(queue_, entry);
  }
  /// The cids that complete within some steps, in order.
  std::vector<uint16_t> collect(uint32_t steps = 50) {
    std::vector<uint16_t> cids;
    for (uint32_t i = 0; i < steps; ++i) {
      driver_.step(1);
      while (const auto done = TestDriver::take(queue_)) cids.push_back(done->cid);
      driver_.ring_completion(queue_);
    }
    return cids;
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), 1 << 20};
  TestDriver driver_{config(), media_.media()};
  TestQueue queue_;
  uint8_t* const data_ = memory_.bytes(4096);
};

using Cids = std::vector<uint16_t>;

TEST_F(Faults, a_status_is_returned_and_nothing_is_carried_out) {
  FaultRule rule;
  rule.opcode_mask = kWrites;
  rule.status = kWriteFault;
  plan(rule);
  std::memset(data_, 0x11, 512);
  EXPECT_EQ(driver_.run(queue_, TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data_)), kWriteFault);
  EXPECT_EQ(media_.media().base[0], 0);
  data_[0] = 0x22;
  EXPECT_EQ(read(0), kSuccess);
  EXPECT_EQ(data_[0], 0);
  clear();
  rule.opcode_mask = kReads;
  rule.status = kUnrecoveredReadError | kDoNotRetry;
  plan(rule);
  data_[0] = 0x33;
  EXPECT_EQ(read(0), kUnrecoveredReadError);
  EXPECT_EQ(data_[0], 0x33);
}

TEST_F(Faults, a_rule_skips_then_hits_a_number_of_commands) {
  FaultRule rule;
  rule.skip = 2;
  rule.count = 3;
  rule.status = kInternalError;
  plan(rule);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(read(0), i >= 2 && i < 5 ? kInternalError : kSuccess) << i;
  }
}

TEST_F(Faults, a_rule_is_about_a_range_of_lbas) {
  FaultRule rule;
  rule.lba_first = 10;
  rule.lba_last = 12;
  rule.status = kUnrecoveredReadError;
  plan(rule);
  EXPECT_EQ(read(9), kSuccess);
  EXPECT_EQ(read(10), kUnrecoveredReadError);
  EXPECT_EQ(read(12), kUnrecoveredReadError);
  EXPECT_EQ(read(13), kSuccess);
  EXPECT_EQ(read(7, 3), kSuccess);
  EXPECT_EQ(read(7, 4), kUnrecoveredReadError);
  EXPECT_EQ(read(8, 8), kUnrecoveredReadError);
}

TEST_F(Faults, the_first_rule_that_hits_is_the_only_one) {
  FaultRule first;
  first.skip = 1;
  first.count = 1;
  first.status = kInternalError;
  plan(first);
  FaultRule second;
  second.status = kUnrecoveredReadError;
  second.skip = 1;
  plan(second);
  EXPECT_EQ(read(0), kSuccess);               // passed by both
  EXPECT_EQ(read(0), kInternalError);         // by the first; the second does not count it
  EXPECT_EQ(read(0), kUnrecoveredReadError);  // by the second
  clear();
  EXPECT_EQ(read(0), kSuccess);
}

TEST_F(Faults, rules_need_room_and_sense) {
  FaultRule rule;
  rule.count = 0;
  for (int i = 0; i < 4; ++i) plan(rule);
  EXPECT_THROW(plan(rule), std::invalid_argument);
  clear();
  rule.admin = true;
  rule.action = FaultAction::kHold;
  EXPECT_THROW(plan(rule), std::invalid_argument);
  TestDriver other(VirtualSsdConfig{}, media_.media());
  EXPECT_THROW(add_fault(other.memory().space(), other.ref(), FaultRule{}), std::invalid_argument);
  EXPECT_NO_THROW(clear_faults(other.memory().space(), other.ref()));
}

TEST_F(Faults, a_lost_completion_never_comes_and_its_place_is_used_again) {
  FaultRule rule;
  rule.action = FaultAction::kLose;
  rule.skip = 1;
  rule.count = 1;
  plan(rule);
  for (uint16_t cid = 0; cid < 3; ++cid) submit(cid);
  EXPECT_EQ(collect(), (Cids{0, 2}));
  for (uint16_t round = 0; round < 10; ++round) {
    for (uint16_t cid = 0; cid < 14; ++cid) submit(cid);
    EXPECT_EQ(collect().size(), 14u);
  }
  // It is not in flight for the controller any more.
  auto abort = TestDriver::admin_entry(AdminOpcode::kAbort);
  abort.cdw10 = 1 << 16 | 1;
  uint32_t dw0 = 0;
  EXPECT_EQ(driver_.run(driver_.admin(), abort, &dw0), kSuccess);
  EXPECT_EQ(dw0, 1u);
}

TEST_F(Faults, a_delayed_completion_comes_later_by_that_much) {
  FaultRule rule;
  rule.action = FaultAction::kDelay;
  rule.delay_ns = 123456;
  rule.count = 1;
  plan(rule);
  submit(0);
  submit(1);
  EXPECT_EQ(collect(), (Cids{1, 0}));
  EXPECT_EQ(read_counters(driver_.memory().space(), driver_.ref()).virtual_now_ns, 123456u);
}

TEST_F(Faults, a_delayed_command_can_be_aborted) {
  FaultRule rule;
  rule.action = FaultAction::kDelay;
  rule.delay_ns = 1000000;
  rule.count = 1;
  plan(rule);
  submit(5);
  driver_.step(1);
  EXPECT_FALSE(TestDriver::peek(queue_));
  auto abort = TestDriver::admin_entry(AdminOpcode::kAbort);
  abort.cdw10 = 5 << 16 | 1;
  uint32_t dw0 = 1;
  EXPECT_EQ(driver_.run(driver_.admin(), abort, &dw0), kSuccess);
  EXPECT_EQ(dw0, 0u);
  const auto done = driver_.wait(queue_);
  EXPECT_EQ(done.cid, 5);
  EXPECT_EQ(TestDriver::status_of(done), kAbortRequested);
  EXPECT_EQ(collect(), Cids{});
}

TEST_F(Faults, a_duplicate_is_posted_twice) {
  FaultRule rule;
  rule.action = FaultAction::kDuplicate;
  rule.skip = 1;
  rule.count = 1;
  plan(rule);
  for (uint16_t cid = 0; cid < 3; ++cid) submit(cid);
  EXPECT_EQ(collect(), (Cids{0, 1, 1, 2}));
}

TEST_F(Faults, duplicates_go_round_the_ring_and_wait_for_room) {
  TestDriver driver(config(), media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16, 4);
  FaultRule rule;
  rule.action = FaultAction::kDuplicate;
  add_fault(driver.memory().space(), driver.ref(), rule);
  for (uint16_t cid = 0; cid < 15; ++cid) {
    auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, 1, data_);
    entry.cid = cid;
    driver.submit(queue, entry);
  }
  Cids cids;
  for (int i = 0; i < 200; ++i) {
    driver.step(1);
    if (const auto done = TestDriver::take(queue)) cids.push_back(done->cid);
    driver.ring_completion(queue);
  }
  ASSERT_EQ(cids.size(), 30u);
  for (uint16_t i = 0; i < 30; ++i) EXPECT_EQ(cids[i], i / 2);
}

TEST_F(Faults, a_held_completion_comes_after_later_ones) {
  FaultRule rule;
  rule.action = FaultAction::kHold;
  rule.hold_commands = 3;
  rule.count = 1;
  plan(rule);
  for (uint16_t cid = 0; cid < 3; ++cid) submit(cid);
  EXPECT_EQ(collect(), (Cids{1, 2}));
  submit(3);
  submit(4);
  EXPECT_EQ(collect(), (Cids{3, 0, 4}));
}

TEST_F(Faults, reordering_many_at_once) {
  FaultRule rule;
  rule.action = FaultAction::kHold;
  rule.hold_commands = 2;
  rule.count = 6;
  plan(rule);
  for (uint16_t cid = 0; cid < 12; ++cid) submit(cid);
  const Cids cids = collect();
  ASSERT_EQ(cids.size(), 12u);
  EXPECT_EQ(cids[0], 6);
  Cids sorted = cids;
  std::sort(sorted.begin(), sorted.end());
  for (uint16_t i = 0; i < 12; ++i) EXPECT_EQ(sorted[i], i);
}

TEST_F(Faults, a_fatal_controller_stops_until_reset) {
  FaultRule rule;
  rule.action = FaultAction::kFatal;
  rule.skip = 2;
  rule.count = 1;
  plan(rule);
  EXPECT_EQ(read(0), kSuccess);
  EXPECT_EQ(read(0), kSuccess);
  submit(0);
  submit(1);
  EXPECT_EQ(collect(), Cids{});
  EXPECT_EQ(driver_.csts(), kCstsReady | kCstsFatal);
  auto get = TestDriver::admin_entry(AdminOpcode::kGetFeatures);
  get.cdw10 = 6;
  driver_.submit(driver_.admin(), get);
  driver_.step(0, 10);
  EXPECT_FALSE(TestDriver::peek(driver_.admin()));
  EXPECT_NE(driver_.csts() & kCstsFatal, 0u);

  driver_.write_cc(0);
  driver_.step(0);
  EXPECT_EQ(driver_.csts(), 0u);
  driver_.enable_ready();
  queue_ = driver_.create_pair(1, 16);
  EXPECT_EQ(read(0), kSuccess);
}

TEST_F(Faults, admin_commands_have_rules_of_their_own) {
  auto get = TestDriver::admin_entry(AdminOpcode::kGetFeatures);
  get.cdw10 = 6;
  FaultRule rule;
  rule.admin = true;
  rule.opcode_mask = 1u << static_cast<uint32_t>(AdminOpcode::kGetFeatures);
  rule.count = 1;
  rule.status = kInternalError;
  plan(rule);
  EXPECT_EQ(read(0), kSuccess);
  EXPECT_EQ(driver_.run(driver_.admin(), get), kInternalError);
  EXPECT_EQ(driver_.run(driver_.admin(), get), kSuccess);

  clear();
  rule.action = FaultAction::kLose;
  plan(rule);
  driver_.submit(driver_.admin(), get);
  driver_.step(0, 10);
  EXPECT_FALSE(TestDriver::peek(driver_.admin()));
  EXPECT_EQ(driver_.run(driver_.admin(), get), kSuccess);

  clear();
  rule.action = FaultAction::kDuplicate;
  plan(rule);
  get.cid = 7;
  driver_.submit(driver_.admin(), get);
  EXPECT_EQ(driver_.wait(driver_.admin()).cid, 7);
  EXPECT_EQ(driver_.wait(driver_.admin()).cid, 7);

  clear();
  rule.action = FaultAction::kFatal;
  plan(rule);
  driver_.submit(driver_.admin(), get);
  driver_.step(0, 10);
  EXPECT_FALSE(TestDriver::peek(driver_.admin()));
  EXPECT_EQ(driver_.csts(), kCstsReady | kCstsFatal);
}

}  // namespace
}  // namespace gofs::ssd
