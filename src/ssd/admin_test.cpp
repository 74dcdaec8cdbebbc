// SPDX-License-Identifier: Apache-2.0
//
// Registers and admin commands: each command, each status that NVMe gives it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "ssd/media_host.h"
#include "ssd/prp_buffer.h"
#include "ssd/test_driver.h"
#include "testing/teams.hpp"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint64_t kAdminMediaBytes = 1 << 20;

class Admin : public ::testing::Test {
 protected:
  explicit Admin(const VirtualSsdConfig& config = make_config())
      : driver_(config, media_.media()) {}

  static VirtualSsdConfig make_config() {
    VirtualSsdConfig config;
    config.queue_pairs_max = 8;
    config.queue_entries_max = 100;
    config.mdts = 6;
    return config;
  }
  Status run(const SubmissionEntry& entry, uint32_t* dw0 = nullptr) {
    return driver_.run(driver_.admin(), entry, dw0);
  }
  SubmissionEntry identify(uint32_t cns, uint32_t nsid, const void* data) {
    auto entry = TestDriver::admin_entry(AdminOpcode::kIdentify);
    entry.cdw10 = cns;
    entry.nsid = nsid;
    entry.prp1 = address_of(data);
    return entry;
  }
  static SubmissionEntry feature(AdminOpcode opcode, uint32_t cdw10, uint32_t cdw11 = 0) {
    auto entry = TestDriver::admin_entry(opcode);
    entry.cdw10 = cdw10;
    entry.cdw11 = cdw11;
    return entry;
  }
  static SubmissionEntry log_page(uint32_t page, uint32_t bytes, const void* data,
                                  uint64_t offset = 0) {
    auto entry = TestDriver::admin_entry(AdminOpcode::kGetLogPage);
    entry.cdw10 = (bytes / 4 - 1) << 16 | page;
    entry.cdw11 = (bytes / 4 - 1) >> 16;
    entry.cdw12 = static_cast<uint32_t>(offset);
    entry.cdw13 = static_cast<uint32_t>(offset >> 32);
    entry.prp1 = address_of(data);
    return entry;
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), kAdminMediaBytes};
  TestDriver driver_;
};

TEST_F(Admin, registers_say_what_was_configured) {
  const Registers& registers = driver_.registers();
  EXPECT_EQ(registers.cap & 0xffff, 99u);
  EXPECT_EQ(registers.cap >> 16 & 1, 1u);  // contiguous queues
  EXPECT_NE(registers.cap >> 24 & 0xff, 0u);
  EXPECT_EQ(registers.cap >> 32 & 0xf, 5u);
  EXPECT_EQ(registers.cap >> 37 & 1, 1u);
  EXPECT_EQ(registers.cap >> 48, 0u);  // 4 KiB pages only
  EXPECT_EQ(registers.vs, 0x00010400u);
  EXPECT_EQ(driver_.csts(), 0u);
}

TEST_F(Admin, enables_resets_and_enables_again) {
  for (uint32_t round = 0; round < 3; ++round) {
    driver_.step(0);
    EXPECT_EQ(driver_.csts(), 0u);
    driver_.enable_ready();
    driver_.create_pair(1, 4);
    driver_.write_cc(0);
    driver_.step(0);
    EXPECT_EQ(driver_.csts(), 0u);
  }
}

TEST_F(Admin, a_reset_forgets_all_queues) {
  driver_.enable_ready();
  TestQueue queue = driver_.create_pair(1, 4);
  driver_.write_cc(0);
  driver_.step(0);
  driver_.enable_ready();
  EXPECT_EQ(run(TestDriver::delete_queue(AdminOpcode::kDeleteSubmissionQueue, 1)),
            kInvalidQueueIdentifier);
  TestDriver::restart(queue);
  EXPECT_EQ(run(TestDriver::create_completion_queue(queue)), kSuccess);
  EXPECT_EQ(run(TestDriver::create_submission_queue(queue)), kSuccess);
  EXPECT_EQ(driver_.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
}

TEST_F(Admin, is_fatal_if_enabled_with_nonsense) {
  const auto fails = [&](auto spoil) {
    TestDriver driver(make_config(), media_.media());
    driver.registers().aqa = 31 << 16 | 31;
    driver.registers().asq = address_of(driver.admin().entries);
    driver.registers().acq = address_of(driver.admin().completions);
    uint32_t cc = kCcEntrySizes | kCcEnable;
    spoil(driver.registers(), cc);
    driver.write_cc(cc);
    driver.step(0, 3);
    EXPECT_EQ(driver.csts(), kCstsFatal);
    // A reset cures it.
    driver.write_cc(0);
    driver.step(0);
    EXPECT_EQ(driver.csts(), 0u);
    driver.enable_ready();
  };
  fails([](Registers& r, uint32_t&) { r.aqa = 31 << 16; });
  fails([](Registers& r, uint32_t&) { r.aqa = 31; });
  fails([](Registers& r, uint32_t&) { r.asq = 0; });
  fails([](Registers& r, uint32_t&) { r.acq = 0; });
  fails([](Registers& r, uint32_t&) { r.asq += 64; });
  fails([](Registers& r, uint32_t&) { r.acq += 2048; });
  fails([](Registers&, uint32_t& cc) { cc |= 1u << 7; });   // 8 KiB pages
  fails([](Registers&, uint32_t& cc) { cc |= 6u << 4; });   // another command set
  fails([](Registers&, uint32_t& cc) { cc |= 1u << 11; });  // weighted arbitration
}

TEST_F(Admin, a_shutdown_flushes_and_says_when_it_is_done) {
  driver_.enable_ready();
  driver_.write_cc(kCcEntrySizes | kCcEnable | kCcShutdownNormal);
  driver_.step(0);
  EXPECT_EQ(driver_.csts(), kCstsReady | kCstsShutdownComplete);
  EXPECT_EQ(read_counters(driver_.memory().space(), driver_.ref()).flush_requests, 1u);
  driver_.write_cc(0);
  driver_.step(0);
  EXPECT_EQ(driver_.csts(), 0u);
}

TEST_F(Admin, identify_controller) {
  driver_.enable_ready();
  auto* const data = reinterpret_cast<IdentifyController*>(memory_.bytes(4096));
  ASSERT_EQ(run(identify(kIdentifyController, 0, data)), kSuccess);
  EXPECT_EQ(std::string(data->model_number, 40), "GoFS virtual NVMe SSD" + std::string(19, ' '));
  EXPECT_EQ(data->mdts, 6);
  EXPECT_EQ(data->version, 0x00010400u);
  EXPECT_EQ(data->sqes, 0x66);
  EXPECT_EQ(data->cqes, 0x44);
  EXPECT_EQ(data->nn, 1u);
  EXPECT_EQ(data->oncs, 0x0c);
  EXPECT_EQ(data->vwc, 1);
}

TEST_F(Admin, identify_says_whether_it_wants_to_know_what_is_free) {
  VirtualSsdConfig config = make_config();
  config.dataset_management = false;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  auto* const data = reinterpret_cast<IdentifyController*>(memory_.bytes(4096));
  ASSERT_EQ(driver.run(driver.admin(), identify(kIdentifyController, 0, data)), kSuccess);
  EXPECT_EQ(data->oncs, 0x08);
}

TEST_F(Admin, identify_namespace) {
  for (const uint32_t shift : {9u, 12u}) {
    VirtualSsdConfig config = make_config();
    config.lba_shift = shift;
    config.capacity_bytes = 512 << 10;
    TestDriver driver(config, media_.media());
    driver.enable_ready();
    auto* const data = reinterpret_cast<IdentifyNamespace*>(memory_.bytes(4096));
    ASSERT_EQ(driver.run(driver.admin(), identify(kIdentifyNamespace, 1, data)), kSuccess);
    EXPECT_EQ(data->nsze, (512u << 10) >> shift);
    EXPECT_EQ(data->flbas & 0xf, 0);
    EXPECT_EQ(data->lbaf[0].lba_shift, shift);
    EXPECT_EQ(driver.run(driver.admin(), identify(kIdentifyNamespace, 2, data)), kInvalidNamespace);
    EXPECT_EQ(driver.run(driver.admin(), identify(kIdentifyNamespace, 0, data)), kInvalidNamespace);
  }
}

TEST_F(Admin, identify_lists_the_one_namespace) {
  driver_.enable_ready();
  auto* const list = reinterpret_cast<uint32_t*>(memory_.bytes(4096));
  list[1] = 99;
  ASSERT_EQ(run(identify(2, 0, list)), kSuccess);
  EXPECT_EQ(list[0], 1u);
  EXPECT_EQ(list[1], 0u);
  ASSERT_EQ(run(identify(2, 1, list)), kSuccess);
  EXPECT_EQ(list[0], 0u);
  EXPECT_EQ(run(identify(2, 0xfffffffe, list)), kInvalidNamespace);
  EXPECT_EQ(run(identify(2, 0xffffffff, list)), kInvalidNamespace);
  ASSERT_EQ(run(identify(3, 1, list)), kSuccess);
  EXPECT_EQ(list[0] & 0xffff, 0x0801u);  // EUI-64, 8 bytes
  EXPECT_EQ(run(identify(3, 2, list)), kInvalidNamespace);
  EXPECT_EQ(run(identify(0x10, 0, list)), kInvalidField);
}

TEST_F(Admin, identify_data_may_lie_across_two_pages) {
  driver_.enable_ready();
  PrpBuffer whole(memory_, 0, 4096);
  auto entry = identify(kIdentifyController, 0, nullptr);
  whole.set_prps(entry);
  ASSERT_EQ(run(entry), kSuccess);
  PrpBuffer split(memory_, 1004, 4096);
  split.set_prps(entry);
  ASSERT_EQ(run(entry), kSuccess);
  EXPECT_EQ(split.collect(), whole.collect());
  EXPECT_TRUE(split.guards_intact());

  entry.prp2 += 8;
  EXPECT_EQ(run(entry), kInvalidPrpOffset);
  entry.prp2 = 0;
  EXPECT_EQ(run(entry), kDataTransferError);
  entry.prp1 += 1;
  EXPECT_EQ(run(entry), kInvalidPrpOffset);
  entry.prp1 = 0;
  EXPECT_EQ(run(entry), kDataTransferError);
}

TEST_F(Admin, create_completion_queue_statuses) {
  driver_.enable_ready();
  const TestQueue queue = driver_.make_queue(1, 10, 10);
  const SubmissionEntry good = TestDriver::create_completion_queue(queue);
  const auto with = [&](auto change) {
    SubmissionEntry entry = good;
    change(entry);
    return run(entry);
  };
  EXPECT_EQ(with([](auto& e) { e.cdw10 &= 0xffff0000; }), kInvalidQueueIdentifier);
  EXPECT_EQ(with([](auto& e) { e.cdw10 += 8; }), kInvalidQueueIdentifier);  // 9 of 8
  EXPECT_EQ(with([](auto& e) { e.cdw10 = 1; }), kInvalidQueueSize);
  EXPECT_EQ(with([](auto& e) { e.cdw10 = 100 << 16 | 1; }), kInvalidQueueSize);
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 0; }), kInvalidField);
  EXPECT_EQ(with([](auto& e) { e.prp1 += 16; }), kInvalidPrpOffset);
  EXPECT_EQ(with([](auto& e) { e.prp1 = 0; }), kInvalidField);
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 3; }), kInvalidInterruptVector);
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 1 | 1 << 16; }), kInvalidInterruptVector);
  EXPECT_EQ(run(good), kSuccess);
  EXPECT_EQ(run(good), kInvalidQueueIdentifier);
}

TEST_F(Admin, create_submission_queue_statuses) {
  driver_.enable_ready();
  const TestQueue queue = driver_.make_queue(1, 10, 10);
  const SubmissionEntry good = TestDriver::create_submission_queue(queue);
  EXPECT_EQ(run(good), kCompletionQueueInvalid);
  EXPECT_EQ(run(TestDriver::create_completion_queue(queue)), kSuccess);
  const auto with = [&](auto change) {
    SubmissionEntry entry = good;
    change(entry);
    return run(entry);
  };
  EXPECT_EQ(with([](auto& e) { e.cdw10 &= 0xffff0000; }), kInvalidQueueIdentifier);
  EXPECT_EQ(with([](auto& e) { e.cdw10 += 8; }), kInvalidQueueIdentifier);
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 1; }), kInvalidQueueIdentifier);            // CQ 0
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 9 << 16 | 1; }), kInvalidQueueIdentifier);  // CQ 9
  EXPECT_EQ(with([](auto& e) { e.cdw11 = 2 << 16 | 1; }), kCompletionQueueInvalid);
  EXPECT_EQ(with([](auto& e) { e.cdw10 = 1; }), kInvalidQueueSize);
  EXPECT_EQ(with([](auto& e) { e.cdw10 = 100 << 16 | 1; }), kInvalidQueueSize);
  EXPECT_EQ(with([](auto& e) { e.cdw11 &= ~1u; }), kInvalidField);
  EXPECT_EQ(with([](auto& e) { e.prp1 += 64; }), kInvalidPrpOffset);
  EXPECT_EQ(with([](auto& e) { e.prp1 = 0; }), kInvalidField);
  EXPECT_EQ(run(good), kSuccess);
  EXPECT_EQ(run(good), kInvalidQueueIdentifier);
}

TEST_F(Admin, delete_queue_statuses) {
  driver_.enable_ready();
  driver_.create_pair(1, 10);
  const auto submission = AdminOpcode::kDeleteSubmissionQueue;
  const auto completion = AdminOpcode::kDeleteCompletionQueue;
  for (const uint32_t qid : {0u, 2u, 9u, 0xffffu}) {
    EXPECT_EQ(run(TestDriver::delete_queue(submission, qid)), kInvalidQueueIdentifier);
    EXPECT_EQ(run(TestDriver::delete_queue(completion, qid)), kInvalidQueueIdentifier);
  }
  EXPECT_EQ(run(TestDriver::delete_queue(completion, 1)), kInvalidQueueDeletion);
  EXPECT_EQ(run(TestDriver::delete_queue(submission, 1)), kSuccess);
  EXPECT_EQ(run(TestDriver::delete_queue(submission, 1)), kInvalidQueueIdentifier);
  EXPECT_EQ(run(TestDriver::delete_queue(completion, 1)), kSuccess);
  EXPECT_EQ(run(TestDriver::delete_queue(completion, 1)), kInvalidQueueIdentifier);
}

TEST_F(Admin, deleting_a_submission_queue_completes_what_waits) {
  VirtualSsdConfig config = make_config();
  config.model = parse_timing_model("latency_ns=1000000");
  config.virtual_clock = true;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  // The completion queue has room for three of the five.
  TestQueue queue = driver.create_pair(1, 10, 4);
  uint8_t* const data = memory_.bytes(512);
  for (uint16_t cid = 0; cid < 5; ++cid) {
    auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, 1, data);
    entry.cid = cid;
    driver.submit(queue, entry);
    driver.step(1);
  }
  driver.submit(driver.admin(), TestDriver::delete_queue(AdminOpcode::kDeleteSubmissionQueue, 1));
  driver.step(0, 20);
  EXPECT_FALSE(TestDriver::peek(driver.admin())) << "deleted with completions still to post";
  for (uint16_t cid = 0; cid < 5; ++cid) {
    const auto done = TestDriver::take(queue);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->cid, cid);
    EXPECT_EQ(TestDriver::status_of(*done), kAbortedQueueDeletion);
    driver.ring_completion(queue);
    driver.step(0, 3);
  }
  EXPECT_EQ(TestDriver::status_of(driver.wait(driver.admin())), kSuccess);
  EXPECT_FALSE(TestDriver::peek(queue));
}

TEST_F(Admin, the_number_of_queues_is_negotiated_before_they_exist) {
  driver_.enable_ready();
  uint32_t granted = 0;
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 7, 3 << 16 | 2), &granted), kSuccess);
  EXPECT_EQ(granted, 3u << 16 | 3u);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 7), &granted), kSuccess);
  EXPECT_EQ(granted, 3u << 16 | 3u);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 1 << 8 | 7), &granted), kSuccess);
  EXPECT_EQ(granted, 7u << 16 | 7u);  // default
  const TestQueue fifth = driver_.make_queue(5, 4, 4);
  EXPECT_EQ(run(TestDriver::create_completion_queue(fifth)), kInvalidQueueIdentifier);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 7, 0xfffe << 16 | 0xfffe), &granted), kSuccess);
  EXPECT_EQ(granted, 7u << 16 | 7u);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 7, 0xffff)), kInvalidField);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 7, 0xffffu << 16)), kInvalidField);
  EXPECT_EQ(run(TestDriver::create_completion_queue(fifth)), kSuccess);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 7, 1 << 16 | 1)), kCommandSequenceError);
}

TEST_F(Admin, volatile_write_cache_feature) {
  driver_.enable_ready();
  TestQueue queue = driver_.create_pair(1, 4);
  uint8_t* const data = memory_.bytes(512);
  const auto flushes = [&] {
    return read_counters(driver_.memory().space(), driver_.ref()).flush_requests;
  };
  uint32_t value = 0;
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 6), &value), kSuccess);
  EXPECT_EQ(value, 1u);
  driver_.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data));
  EXPECT_EQ(flushes(), 0u);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 6, 0)), kSuccess);
  EXPECT_EQ(flushes(), 1u);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 6), &value), kSuccess);
  EXPECT_EQ(value, 0u);
  driver_.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data));
  EXPECT_EQ(flushes(), 2u);  // every write is durable now
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 1 << 8 | 6), &value), kSuccess);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 3 << 8 | 6), &value), kSuccess);
  EXPECT_EQ(value, 4u);  // changeable
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 1u << 31 | 6, 1)), kFeatureNotSaveable);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 4 << 8 | 6)), kInvalidField);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 0x55)), kInvalidField);
  EXPECT_EQ(run(feature(AdminOpcode::kSetFeatures, 0x55)), kInvalidField);
}

TEST_F(Admin, without_a_volatile_cache_there_is_no_such_feature) {
  VirtualSsdConfig config = make_config();
  config.volatile_write_cache = false;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  auto* const data = reinterpret_cast<IdentifyController*>(memory_.bytes(4096));
  ASSERT_EQ(driver.run(driver.admin(), identify(kIdentifyController, 0, data)), kSuccess);
  EXPECT_EQ(data->vwc, 0);
  EXPECT_EQ(driver.run(driver.admin(), feature(AdminOpcode::kSetFeatures, 6, 1)), kInvalidField);
  EXPECT_EQ(driver.run(driver.admin(), feature(AdminOpcode::kGetFeatures, 6)), kInvalidField);
}

TEST_F(Admin, the_error_log_has_the_newest_failure_first) {
  driver_.enable_ready();
  TestQueue queue = driver_.create_pair(3, 4);
  uint8_t* const data = memory_.bytes(4096);
  EXPECT_EQ(driver_.run(queue, TestDriver::io_entry(IoOpcode::kRead, 1 << 20, 1, data)),
            kLbaOutOfRange);
  EXPECT_EQ(run(feature(AdminOpcode::kGetFeatures, 0x55)), kInvalidField);
  auto* const log = reinterpret_cast<ErrorLogEntry*>(memory_.bytes(4096));
  ASSERT_EQ(run(log_page(kLogErrorInformation, 4096, log)), kSuccess);
  EXPECT_EQ(log[0].number, 2u);
  EXPECT_EQ(log[0].submission_queue, 0);
  EXPECT_EQ(log[0].status >> 1 & kStatusCodeMask, kInvalidField);
  EXPECT_EQ(log[1].number, 1u);
  EXPECT_EQ(log[1].submission_queue, 3);
  EXPECT_EQ(log[1].status >> 1 & kStatusCodeMask, kLbaOutOfRange);
  EXPECT_EQ(log[1].lba, 1u << 20);
  EXPECT_EQ(log[1].nsid, 1u);
  EXPECT_EQ(log[2].number, 0u);
  // From the second entry on, one entry.
  auto* const part = reinterpret_cast<ErrorLogEntry*>(memory_.bytes(4096));
  ASSERT_EQ(run(log_page(kLogErrorInformation, 64, part, 64)), kSuccess);
  EXPECT_EQ(part[0].number, 1u);
  EXPECT_EQ(part[1].number, 0u);
  for (int i = 0; i < 100; ++i) run(feature(AdminOpcode::kGetFeatures, 0x55));
  ASSERT_EQ(run(log_page(kLogErrorInformation, 4096, log)), kSuccess);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(log[i].number, 102 - i);
}

TEST_F(Admin, the_health_log_counts) {
  driver_.enable_ready();
  TestQueue queue = driver_.create_pair(1, 4);
  uint8_t* const data = memory_.bytes(4096);
  for (int i = 0; i < 3; ++i) {
    driver_.run(queue, TestDriver::io_entry(IoOpcode::kRead, 0, 8, data));
  }
  driver_.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 0, 8, data));
  driver_.run(queue, TestDriver::io_entry(IoOpcode::kRead, 1 << 20, 1, data));
  auto* const log = reinterpret_cast<uint64_t*>(memory_.bytes(512));
  ASSERT_EQ(run(log_page(kLogHealth, 512, log)), kSuccess);
  EXPECT_EQ(reinterpret_cast<uint8_t*>(log)[0], 0);    // no warning
  EXPECT_EQ(reinterpret_cast<uint8_t*>(log)[3], 100);  // spare
  EXPECT_EQ(log[32 / 8], 1u);                          // up to 1000 units of 512 bytes
  EXPECT_EQ(log[48 / 8], 1u);
  EXPECT_EQ(log[64 / 8], 4u);
  EXPECT_EQ(log[80 / 8], 1u);
  EXPECT_EQ(log[176 / 8], 1u);
  auto for_a_namespace = log_page(kLogHealth, 512, log);
  for_a_namespace.nsid = 1;
  EXPECT_EQ(run(for_a_namespace), kInvalidField);
  for_a_namespace.nsid = 0xffffffff;
  EXPECT_EQ(run(for_a_namespace), kSuccess);
}

TEST_F(Admin, log_page_statuses) {
  driver_.enable_ready();
  uint8_t* const data = memory_.bytes(8192);
  EXPECT_EQ(run(log_page(3, 512, data)), kInvalidLogPage);
  EXPECT_EQ(run(log_page(0, 512, data)), kInvalidLogPage);
  EXPECT_EQ(run(log_page(kLogHealth, 512, data, 512)), kInvalidField);
  EXPECT_EQ(run(log_page(kLogHealth, 512, data, 2)), kInvalidField);
  EXPECT_EQ(run(log_page(kLogErrorInformation, 64, data, 4096)), kInvalidField);
  EXPECT_EQ(run(log_page(kLogErrorInformation, 64, data, uint64_t{1} << 32)), kInvalidField);
  // More than there is: what there is.
  data[512] = 0x77;
  EXPECT_EQ(run(log_page(kLogHealth, 8192, data)), kSuccess);
  EXPECT_EQ(data[512], 0x77);
}

TEST_F(Admin, abort_finds_a_command_that_waits) {
  VirtualSsdConfig config = make_config();
  config.model = parse_timing_model("read_latency_ns=1000000000,units=1");
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 10);
  uint8_t* const data = memory_.bytes(512);
  for (uint16_t cid = 40; cid < 43; ++cid) {
    auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, 1, data);
    entry.cid = cid;
    driver.submit(queue, entry);
  }
  driver.step(1, 5);
  EXPECT_FALSE(TestDriver::peek(queue));
  const auto abort = [&](uint32_t qid, uint32_t cid) {
    auto entry = TestDriver::admin_entry(AdminOpcode::kAbort);
    entry.cdw10 = cid << 16 | qid;
    uint32_t dw0 = 99;
    EXPECT_EQ(driver.run(driver.admin(), entry, &dw0), kSuccess);
    return dw0;
  };
  EXPECT_EQ(abort(1, 41), 0u);
  driver.step(1);
  const auto done = TestDriver::take(queue);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->cid, 41);
  EXPECT_EQ(TestDriver::status_of(*done), kAbortRequested);
  EXPECT_FALSE(TestDriver::peek(queue));
  EXPECT_EQ(abort(1, 41), 1u);  // done already
  EXPECT_EQ(abort(1, 77), 1u);
  EXPECT_EQ(abort(2, 40), 1u);  // no such queue
  EXPECT_EQ(abort(0, 40), 1u);
  EXPECT_EQ(abort(0xffff, 40), 1u);
}

/// A Flush that a warp has taken and is held up in, as if that warp had been descheduled, while an
/// Abort of it is asked for.
class AbortOfTakenCommand : public ::testing::Test {
 protected:
  static constexpr uint16_t kCid = 40;

  void start(const VirtualSsdConfig& config) {
    Media media = media_.media();
    media.sync = [](void* context) {
      auto& test = *static_cast<AbortOfTakenCommand*>(context);
      test.entered_ = true;
      test.entered_.notify_all();
      test.released_.wait(false);
      return 0;
    };
    media.sync_context = this;
    driver_ = std::make_unique<TestDriver>(config, media);
    driver_->enable_ready();
    queue_ = driver_->create_pair(1, 10);
    submit(kCid, IoOpcode::kFlush);
    stepper_ = std::jthread([this] { driver_->step(1); });
    entered_.wait(false);
    auto entry = TestDriver::admin_entry(AdminOpcode::kAbort);
    entry.cdw10 = uint32_t{kCid} << 16 | 1;
    driver_->submit(driver_->admin(), entry);
    driver_->step(0, 20);
    EXPECT_FALSE(TestDriver::peek(driver_->admin())) << "answered while a warp is at the command";
  }
  void submit(uint16_t cid, IoOpcode opcode) {
    auto entry = TestDriver::io_entry(opcode, 0, 1, memory_.bytes(512));
    entry.cid = cid;
    driver_->submit(queue_, entry);
  }
  void release() {
    released_ = true;
    released_.notify_all();
    stepper_.join();
  }
  /// Result of the Abort.
  uint32_t answer() {
    const auto done = driver_->wait(driver_->admin());
    EXPECT_EQ(TestDriver::status_of(done), kSuccess);
    return done.dw0;
  }
  void expect_completion(uint16_t cid, Status status) {
    const auto done = driver_->wait(queue_);
    EXPECT_EQ(done.cid, cid);
    EXPECT_EQ(TestDriver::status_of(done), status);
  }
  ~AbortOfTakenCommand() override {
    if (stepper_.joinable()) release();
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), kAdminMediaBytes};
  std::unique_ptr<TestDriver> driver_;
  TestQueue queue_;
  std::atomic<bool> entered_{false};
  std::atomic<bool> released_{false};
  std::jthread stepper_;
};

TEST_F(AbortOfTakenCommand, is_answered_when_the_command_is_done) {
  for (const uint32_t fault_capacity : {0u, 4u}) {  // direct mode, pending mode
    SCOPED_TRACE(fault_capacity);
    VirtualSsdConfig config;
    config.fault_capacity = fault_capacity;
    entered_ = released_ = false;
    start(config);
    // What comes meanwhile is taken when the Abort is answered, and not before.
    submit(41, IoOpcode::kRead);
    driver_->step(1, 5);
    EXPECT_FALSE(TestDriver::peek(queue_));
    release();
    EXPECT_EQ(answer(), 1u);
    expect_completion(kCid, kSuccess);
    expect_completion(41, kSuccess);
    EXPECT_EQ(driver_->run(queue_, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
  }
}

TEST_F(AbortOfTakenCommand, finds_the_completion_that_waits_then) {
  VirtualSsdConfig config;
  config.model = parse_timing_model("latency_ns=4000000000");
  start(config);
  release();
  EXPECT_EQ(answer(), 0u);
  expect_completion(kCid, kAbortRequested);
}

TEST_F(AbortOfTakenCommand, is_forgotten_by_a_reset) {
  start({});
  driver_->write_cc(0);
  driver_->step(0, 5);
  EXPECT_NE(driver_->csts() & kCstsReady, 0u) << "a warp is still at work";
  release();
  driver_->step(0, 5);
  EXPECT_EQ(driver_->csts(), 0u);
  driver_->enable_ready();
  EXPECT_FALSE(TestDriver::peek(driver_->admin()));
  queue_ = driver_->create_pair(1, 10);
  EXPECT_EQ(driver_->run(queue_, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
}

TEST_F(Admin, other_commands_are_invalid) {
  driver_.enable_ready();
  for (const uint32_t opcode : {0x03u, 0x07u, 0x0cu, 0x0du, 0x10u, 0x14u, 0x80u, 0xffu}) {
    EXPECT_EQ(run(TestDriver::admin_entry(static_cast<AdminOpcode>(opcode))), kInvalidOpcode)
        << opcode;
  }
  auto with_sgl = identify(kIdentifyController, 0, memory_.bytes(4096));
  with_sgl.flags = 0x40;
  EXPECT_EQ(run(with_sgl), kInvalidField);
}

TEST_F(Admin, the_admin_queue_wraps_and_waits_for_room) {
  TestDriver driver(make_config(), media_.media(), 5);
  driver.enable_ready();
  TestQueue& admin = driver.admin();
  uint32_t value = 0;
  for (int i = 0; i < 23; ++i) {
    ASSERT_EQ(driver.run(admin, feature(AdminOpcode::kGetFeatures, 6), &value), kSuccess);
    ASSERT_EQ(admin.sq_head, admin.tail);
  }
  for (uint16_t cid = 0; cid < 4; ++cid) {
    auto entry = feature(AdminOpcode::kGetFeatures, 6);
    entry.cid = cid;
    driver.submit(admin, entry);
  }
  driver.step(0, 10);
  // All four are posted; the next command has no room until one of them is consumed.
  auto fifth = feature(AdminOpcode::kGetFeatures, 6);
  fifth.cid = 4;
  driver.submit(admin, fifth);
  const std::vector<uint8_t> before(admin.completions, admin.completions + 5 * 16);
  driver.step(0, 10);
  EXPECT_EQ(std::memcmp(before.data(), admin.completions, before.size()), 0);
  for (uint16_t cid = 0; cid < 5; ++cid) {
    const auto done = TestDriver::take(admin);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->cid, cid);
    driver.ring_completion(admin);
    driver.step(0);
  }
}

// The whole life of a controller when a team of four lanes, and two of them, step queue 0.
TEST_F(Admin, teams_may_step_queue_0) {
  std::atomic<bool> finished{false};
  uint32_t failures = 0;
  uint8_t* const data = memory_.bytes(4096);
  testing::run_teams(2, 4, [&](const simt::Warp& warp, uint32_t index) {
    uint32_t stop = 0;
    uint32_t phase = 0;
    TestQueue queue;
    while (stop == 0) {
      if (warp.thread_rank() == 0) {
        if (index == 0) {
          // One thing at a time: each is over when its completion is there.
          const bool ready = (driver_.csts() & kCstsReady) != 0;
          if (phase == 0) {
            driver_.enable();
            phase = 1;
          } else if (phase == 1 && ready) {
            queue = driver_.make_queue(1, 7, 7);
            driver_.submit(driver_.admin(), TestDriver::create_completion_queue(queue));
            driver_.submit(driver_.admin(), TestDriver::create_submission_queue(queue));
            driver_.submit(driver_.admin(), identify(kIdentifyController, 0, data));
            driver_.submit(driver_.admin(), log_page(kLogHealth, 512, data));
            driver_.submit(driver_.admin(),
                           TestDriver::delete_queue(AdminOpcode::kDeleteSubmissionQueue, 1));
            phase = 2;
          } else if (phase >= 2 && phase < 7) {
            if (const auto done = TestDriver::take(driver_.admin())) {
              failures += TestDriver::status_of(*done) != kSuccess;
              driver_.ring_completion(driver_.admin());
              ++phase;
            }
          } else if (phase == 7) {
            driver_.write_cc(0);
            phase = 8;
          } else if (phase == 8 && driver_.csts() == 0) {
            finished = true;
          }
        }
        stop = finished ? 1 : 0;
      }
      warp.sync();
      driver_.step(warp, 0);
      stop = warp.shfl(stop, 0);
    }
  });
  EXPECT_EQ(failures, 0u);
  EXPECT_EQ(driver_.csts(), 0u);
}

}  // namespace
}  // namespace gofs::ssd
