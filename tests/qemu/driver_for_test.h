// SPDX-License-Identifier: Apache-2.0
//
// The least that works a controller by hand over a Transport: an admin queue and one I/O queue, one
// command at a time. It shares nothing with the driver in nvme/, which is tested against the same
// controller.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "format/nvme.h"
#include "qemu_memory.h"
#include "qtest_transport.h"
#include "simt/atomic.h"

namespace gofs::ssd {

class HandDriver {
 public:
  using SubmissionEntry = format::nvme::SubmissionEntry;
  using CompletionEntry = format::nvme::CompletionEntry;
  using Registers = format::nvme::Registers;

  static constexpr uint32_t kDepth = 8;
  static constexpr uint32_t kPage = 4096;

  HandDriver(QemuMachine& machine, Transport& transport)
      : transport_(transport),
        memory_(machine, uint64_t{kPages} * kPage),
        address_(transport.map(memory_.base(), memory_.bytes())) {}
  HandDriver(const HandDriver&) = delete;
  HandDriver& operator=(const HandDriver&) = delete;
  ~HandDriver() {
    disable();  // before it loses the memory
    transport_.unmap(address_, memory_.bytes());
  }

  /// Two pages of data, the first and the second of which commands transfer.
  uint8_t* data() { return memory_.base() + kDataPage * kPage; }
  uint64_t data_address() const { return address_ + kDataPage * kPage; }

  uint64_t read64(uint32_t offset) {
    const uint64_t low = transport_.read_register(offset);
    return uint64_t{transport_.read_register(offset + 4)} << 32 | low;
  }
  void write64(uint32_t offset, uint64_t value) {
    transport_.write_register(offset, static_cast<uint32_t>(value));
    transport_.write_register(offset + 4, static_cast<uint32_t>(value >> 32));
  }

  /// Whether CSTS.RDY becomes `ready` within 10 s, and the controller is there.
  bool wait_ready(bool ready) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const uint32_t status = transport_.read_register(offsetof(Registers, csts));
      if (status == ~0u) return false;
      if (((status & format::nvme::kCstsReady) != 0) == ready) return true;
    }
    return false;
  }
  bool enable() {
    transport_.write_register(offsetof(Registers, aqa), (kDepth - 1) << 16 | (kDepth - 1));
    write64(offsetof(Registers, asq), address_);
    write64(offsetof(Registers, acq), address_ + kPage);
    transport_.write_register(offsetof(Registers, cc),
                              format::nvme::kCcEnable | format::nvme::kCcEntrySizes);
    return wait_ready(true);
  }
  bool disable() {
    transport_.write_register(offsetof(Registers, cc), 0);
    return wait_ready(false);
  }

  /// Queue pair 1.
  void create_queues() {
    SubmissionEntry entry = admin_entry(format::nvme::AdminOpcode::kCreateCompletionQueue);
    entry.prp1 = address_ + 3 * kPage;
    entry.cdw10 = (kDepth - 1) << 16 | 1;
    entry.cdw11 = 1;  // contiguous
    ASSERT_EQ(run(0, entry), format::nvme::kSuccess);
    entry.opcode = static_cast<uint8_t>(format::nvme::AdminOpcode::kCreateSubmissionQueue);
    entry.prp1 = address_ + 2 * kPage;
    entry.cdw11 = 1 << 16 | 1;
    ASSERT_EQ(run(0, entry), format::nvme::kSuccess);
  }

  static SubmissionEntry admin_entry(format::nvme::AdminOpcode opcode) {
    SubmissionEntry entry{};
    entry.opcode = static_cast<uint8_t>(opcode);
    return entry;
  }
  SubmissionEntry identify(uint32_t what, uint32_t nsid) const {
    SubmissionEntry entry = admin_entry(format::nvme::AdminOpcode::kIdentify);
    entry.nsid = nsid;
    entry.prp1 = data_address();
    entry.cdw10 = what;
    return entry;
  }
  SubmissionEntry io_entry(format::nvme::IoOpcode opcode, uint32_t lba, uint32_t lba_count) const {
    SubmissionEntry entry{};
    entry.opcode = static_cast<uint8_t>(opcode);
    entry.nsid = 1;
    entry.prp1 = data_address();
    entry.prp2 = data_address() + kPage;
    entry.cdw10 = lba;
    entry.cdw12 = lba_count - 1;
    return entry;
  }

  /// The status of one command on queue 0 or 1; kNoAnswer if none came within 10 s.
  static constexpr format::nvme::Status kNoAnswer = 0xffff;
  format::nvme::Status run(uint32_t qid, SubmissionEntry entry) {
    Queue& queue = queues_[qid];
    entry.cid = ++cid_;
    uint8_t* const pages = memory_.base() + qid * 2 * kPage;
    reinterpret_cast<SubmissionEntry*>(pages)[queue.tail] = entry;
    queue.tail = (queue.tail + 1) % kDepth;
    transport_.write_register(doorbell(qid, false), queue.tail);

    const auto& answer = reinterpret_cast<CompletionEntry*>(pages + kPage)[queue.head];
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while ((simt::load_system_acquire(answer.status) & 1) != queue.phase) {
      if (std::chrono::steady_clock::now() > deadline) return kNoAnswer;
      std::this_thread::yield();
    }
    EXPECT_EQ(answer.cid, entry.cid);
    EXPECT_EQ(answer.sq_id, qid);
    const uint16_t status = answer.status;
    queue.head = (queue.head + 1) % kDepth;
    if (queue.head == 0) queue.phase ^= 1;
    transport_.write_register(doorbell(qid, true), queue.head);
    return status >> 1 & format::nvme::kStatusCodeMask;
  }

 private:
  static constexpr std::chrono::seconds kPatience{10};
  static constexpr uint32_t kDataPage = 4;  // after a submission and a completion page per queue
  static constexpr uint32_t kPages = kDataPage + 2;

  struct Queue {
    uint32_t tail = 0;
    uint32_t head = 0;
    uint32_t phase = 1;
  };

  /// CAP.DSTRD is 0 in QEMU.
  static uint32_t doorbell(uint32_t qid, bool completion) {
    return format::nvme::kDoorbellOffset + (2 * qid + (completion ? 1 : 0)) * 4;
  }

  Transport& transport_;
  QemuMemory memory_;
  uint64_t address_;
  Queue queues_[2];
  uint16_t cid_ = 0;
};

}  // namespace gofs::ssd
