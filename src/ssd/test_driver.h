// SPDX-License-Identifier: Apache-2.0
//
// The least driver that can talk to a controller: writes entries and doorbells, reads completions.
// Unlike the real driver it lets a test do anything, also what is forbidden. For tests of ssd/
// only. The engine is compiled once, in test_driver.cpp.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "simt/host_memory.h"
#include "ssd/virtual_ssd.h"

namespace gofs::ssd {

/// Memory for one test, released at its end. Blocks are aligned to pages.
class TestMemory {
 public:
  TestMemory() = default;
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;
  ~TestMemory();
  uint8_t* bytes(size_t count);
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
  TestDriver(const VirtualSsdConfig& config, const Media& media, uint32_t admin_depth = 32);
  /// Of a controller that belongs to another, whose doorbells are as those of `config`.
  TestDriver(const ControllerRef& ref, const VirtualSsdConfig& config, uint32_t admin_depth = 32);
  TestDriver(const TestDriver&) = delete;
  TestDriver& operator=(const TestDriver&) = delete;
  ~TestDriver();

  ControllerRef ref() const { return ref_; }
  TestMemory& memory() { return memory_; }
  TestQueue& admin() { return admin_; }
  format::nvme::Registers& registers() { return ref_.registers(); }

  uint32_t csts();
  void write_cc(uint32_t value);
  void step(uint32_t qid, uint32_t times = 1);
  void step(const simt::Warp& warp, uint32_t qid);

  /// Steps until CSTS is `status`, or for long. Whether it is.
  bool wait_csts(uint32_t status);
  /// Sets the admin queue up anew and enables; the caller checks CSTS.
  void enable();
  void enable_ready();

  TestQueue make_queue(uint32_t qid, uint32_t depth, uint32_t completion_depth);
  /// Creates both queues of a pair; completion depth 0: as deep as the other.
  TestQueue create_pair(uint32_t qid, uint32_t depth, uint32_t completion_depth = 0);
  static void restart(TestQueue& queue);

  /// Writes an entry without ringing the doorbell.
  static void put(TestQueue& queue, const format::nvme::SubmissionEntry& entry);
  void ring(const TestQueue& queue) { write_tail(queue.qid, queue.tail); }
  void submit(TestQueue& queue, const format::nvme::SubmissionEntry& entry);
  void write_tail(uint32_t qid, uint32_t value);
  void write_head(uint32_t qid, uint32_t value);

  /// The next completion, if it is there; peek() leaves it. Neither rings the doorbell.
  static std::optional<format::nvme::CompletionEntry> peek(const TestQueue& queue);
  static std::optional<format::nvme::CompletionEntry> take(TestQueue& queue);
  void ring_completion(const TestQueue& queue) { write_head(queue.completion_qid, queue.head); }

  /// Steps until a completion comes, takes it and rings. Fails the test if none comes.
  format::nvme::CompletionEntry wait(TestQueue& queue);
  /// Submits one command, waits for it, checks its cid. Its status without "do not retry".
  format::nvme::Status run(TestQueue& queue, format::nvme::SubmissionEntry entry,
                           uint32_t* dw0 = nullptr);
  static format::nvme::Status status_of(const format::nvme::CompletionEntry& entry);

  static format::nvme::SubmissionEntry admin_entry(format::nvme::AdminOpcode opcode);
  static format::nvme::SubmissionEntry create_completion_queue(const TestQueue& queue);
  static format::nvme::SubmissionEntry create_submission_queue(const TestQueue& queue);
  static format::nvme::SubmissionEntry delete_queue(format::nvme::AdminOpcode opcode, uint32_t qid);
  static format::nvme::SubmissionEntry io_entry(format::nvme::IoOpcode opcode, uint64_t lba = 0,
                                                uint32_t lba_count = 1, const void* data = nullptr,
                                                const void* second = nullptr);

 private:
  VirtualSsdConfig config_;
  TestMemory memory_;
  ControllerRef ref_;
  bool owns_ = false;
  TestQueue admin_;
  uint16_t next_cid_ = 100;
};

}  // namespace gofs::ssd
