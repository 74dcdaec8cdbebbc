// SPDX-License-Identifier: Apache-2.0
//
// The least driver that can talk to a controller: writes entries and doorbells, reads completions.
// Unlike the real driver it lets a test do anything, also what is forbidden. One thread, or a team
// steps while it only looks. For tests of ssd/ only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "ssd/virtual_ssd.h"

namespace gofs::ssd {

/// Memory for one test, released at its end. Blocks are aligned to pages.
class TestMemory {
 public:
  ~TestMemory() {
    for (void* block : blocks_) space_.release(block);
  }
  uint8_t* bytes(size_t count) {
    blocks_.push_back(space_.allocate(count));
    return static_cast<uint8_t*>(blocks_.back());
  }
  simt::HostMemorySpace& space() { return space_; }

 private:
  simt::HostMemorySpace space_;
  std::vector<void*> blocks_;
};

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

struct TestQueue {
  uint32_t qid = 0;
  uint32_t depth = 0;
  uint32_t completion_qid = 0;
  uint32_t completion_depth = 0;
  format::nvme::SubmissionEntry* entries = nullptr;
  uint8_t* completions = nullptr;
  uint32_t tail = 0;
  uint32_t head = 0;
  uint32_t phase = 1;
  uint16_t sq_head = 0;  // as last reported
};

class TestDriver {
 public:
  explicit TestDriver(const VirtualSsdConfig& config, const Media& media, uint32_t admin_depth = 32)
      : config_(config), ref_(create_virtual_controller(memory_.space(), config, media)) {
    admin_ = make_queue(0, admin_depth, admin_depth);
  }
  TestDriver(const TestDriver&) = delete;
  TestDriver& operator=(const TestDriver&) = delete;
  ~TestDriver() { destroy_virtual_controller(memory_.space(), ref_); }

  ControllerRef ref() const { return ref_; }
  TestMemory& memory() { return memory_; }
  TestQueue& admin() { return admin_; }
  format::nvme::Registers& registers() { return ref_.registers(); }

  uint32_t csts() { return simt::load_system_acquire(registers().csts); }
  void write_cc(uint32_t value) { simt::store_system_release(registers().cc, value); }
  void step(uint32_t qid, uint32_t times = 1) {
    for (uint32_t i = 0; i < times; ++i) ref_.step(simt::Warp(), qid);
  }

  /// Sets the admin queue up anew and enables; the caller checks CSTS.
  void enable(uint32_t cc_extra = 0) {
    using namespace format::nvme;
    restart(admin_);
    registers().aqa = (admin_.completion_depth - 1) << 16 | (admin_.depth - 1);
    registers().asq = address_of(admin_.entries);
    registers().acq = address_of(admin_.completions);
    write_cc(kCcEntrySizes | kCcEnable | cc_extra);
    step(0);
  }
  void enable_ready() {
    enable();
    ASSERT_EQ(csts(), format::nvme::kCstsReady);
  }

  TestQueue make_queue(uint32_t qid, uint32_t depth, uint32_t completion_depth) {
    TestQueue queue;
    queue.qid = queue.completion_qid = qid;
    queue.depth = depth;
    queue.completion_depth = completion_depth;
    queue.entries = reinterpret_cast<format::nvme::SubmissionEntry*>(
        memory_.bytes(depth * sizeof(format::nvme::SubmissionEntry)));
    queue.completions = memory_.bytes(completion_depth * sizeof(format::nvme::CompletionEntry));
    return queue;
  }
  static void restart(TestQueue& queue) {
    queue.tail = queue.head = 0;
    queue.phase = 1;
    queue.sq_head = 0;
    std::memset(queue.completions, 0,
                queue.completion_depth * sizeof(format::nvme::CompletionEntry));
  }

  /// Writes an entry without ringing the doorbell.
  static void put(TestQueue& queue, const format::nvme::SubmissionEntry& entry) {
    queue.entries[queue.tail] = entry;
    queue.tail = queue.tail + 1 == queue.depth ? 0 : queue.tail + 1;
  }
  void ring(const TestQueue& queue) { write_tail(queue.qid, queue.tail); }
  void write_tail(uint32_t qid, uint32_t value) {
    simt::store_system_release(*ref_.doorbell(qid, false, config_.doorbell_stride), value);
  }
  void write_head(uint32_t qid, uint32_t value) {
    simt::store_system_release(*ref_.doorbell(qid, true, config_.doorbell_stride), value);
  }
  void submit(TestQueue& queue, const format::nvme::SubmissionEntry& entry) {
    put(queue, entry);
    ring(queue);
  }

  /// The next completion, if it is there. Does not ring the doorbell.
  static std::optional<format::nvme::CompletionEntry> peek(const TestQueue& queue) {
    const uint8_t* const at = queue.completions + queue.head * 16;
    const uint32_t last = simt::load_system_acquire(reinterpret_cast<const uint32_t*>(at)[3]);
    if ((last >> 16 & 1) != queue.phase) return std::nullopt;
    format::nvme::CompletionEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    return entry;
  }
  static std::optional<format::nvme::CompletionEntry> take(TestQueue& queue) {
    const auto entry = peek(queue);
    if (!entry) return entry;
    queue.sq_head = entry->sq_head;
    if (++queue.head == queue.completion_depth) {
      queue.head = 0;
      queue.phase ^= 1;
    }
    return entry;
  }
  void ring_completion(const TestQueue& queue) { write_head(queue.completion_qid, queue.head); }

  /// Steps until a completion comes, takes it and rings. Fails the test if none comes.
  format::nvme::CompletionEntry wait(TestQueue& queue, uint32_t steps_max = 1000) {
    for (uint32_t i = 0; i < steps_max; ++i) {
      if (const auto entry = take(queue)) {
        ring_completion(queue);
        return *entry;
      }
      step(queue.qid);
    }
    ADD_FAILURE() << "no completion in queue " << queue.qid;
    return {};
  }

  static format::nvme::Status status_of(const format::nvme::CompletionEntry& entry) {
    return static_cast<format::nvme::Status>(entry.status >> 1 & format::nvme::kStatusCodeMask);
  }
  /// Submits one command, waits for it, checks its cid. Its status without "do not retry".
  format::nvme::Status run(TestQueue& queue, format::nvme::SubmissionEntry entry,
                           uint32_t* dw0 = nullptr) {
    entry.cid = next_cid_++;
    submit(queue, entry);
    const format::nvme::CompletionEntry done = wait(queue);
    EXPECT_EQ(done.cid, entry.cid);
    EXPECT_EQ(done.sq_id, queue.qid);
    if (dw0 != nullptr) *dw0 = done.dw0;
    return status_of(done);
  }

  static format::nvme::SubmissionEntry admin_entry(format::nvme::AdminOpcode opcode) {
    format::nvme::SubmissionEntry entry{};
    entry.opcode = static_cast<uint8_t>(opcode);
    return entry;
  }
  static format::nvme::SubmissionEntry create_completion_queue(const TestQueue& queue) {
    auto entry = admin_entry(format::nvme::AdminOpcode::kCreateCompletionQueue);
    entry.prp1 = address_of(queue.completions);
    entry.cdw10 = (queue.completion_depth - 1) << 16 | queue.completion_qid;
    entry.cdw11 = 1;
    return entry;
  }
  static format::nvme::SubmissionEntry create_submission_queue(const TestQueue& queue) {
    auto entry = admin_entry(format::nvme::AdminOpcode::kCreateSubmissionQueue);
    entry.prp1 = address_of(queue.entries);
    entry.cdw10 = (queue.depth - 1) << 16 | queue.qid;
    entry.cdw11 = queue.completion_qid << 16 | 1;
    return entry;
  }
  static format::nvme::SubmissionEntry delete_queue(format::nvme::AdminOpcode opcode,
                                                    uint32_t qid) {
    auto entry = admin_entry(opcode);
    entry.cdw10 = qid;
    return entry;
  }

  /// Creates both queues of a pair.
  TestQueue create_pair(uint32_t qid, uint32_t depth, uint32_t completion_depth = 0) {
    TestQueue queue = make_queue(qid, depth, completion_depth == 0 ? depth : completion_depth);
    EXPECT_EQ(run(admin_, create_completion_queue(queue)), format::nvme::kSuccess);
    EXPECT_EQ(run(admin_, create_submission_queue(queue)), format::nvme::kSuccess);
    return queue;
  }

  static format::nvme::SubmissionEntry io_entry(format::nvme::IoOpcode opcode, uint64_t lba = 0,
                                                uint32_t lba_count = 1, const void* data = nullptr,
                                                const void* second = nullptr) {
    format::nvme::SubmissionEntry entry{};
    entry.opcode = static_cast<uint8_t>(opcode);
    entry.nsid = 1;
    entry.prp1 = address_of(data);
    entry.prp2 = address_of(second);
    entry.cdw10 = static_cast<uint32_t>(lba);
    entry.cdw11 = static_cast<uint32_t>(lba >> 32);
    entry.cdw12 = lba_count - 1;
    return entry;
  }

 private:
  VirtualSsdConfig config_;
  TestMemory memory_;
  ControllerRef ref_;
  TestQueue admin_;
  uint16_t next_cid_ = 100;
};

}  // namespace gofs::ssd
