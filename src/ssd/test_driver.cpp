// SPDX-License-Identifier: Apache-2.0
#include "ssd/test_driver.h"

#include <cstring>

#include "simt/clock.h"

namespace gofs::ssd {

using namespace format::nvme;

TestMemory::~TestMemory() {
  for (void* block : blocks_) space_.release(block);
}

uint8_t* TestMemory::bytes(size_t count) {
  blocks_.push_back(space_.allocate(count));
  return static_cast<uint8_t*>(blocks_.back());
}

TestDriver::TestDriver(const VirtualSsdConfig& config, const Media& media, uint32_t admin_depth)
    : config_(config),
      ref_(create_virtual_controller(memory_.space(), config, media)),
      owns_(true) {
  admin_ = make_queue(0, admin_depth, admin_depth);
}

TestDriver::TestDriver(const ControllerRef& ref, const VirtualSsdConfig& config,
                       uint32_t admin_depth)
    : config_(config), ref_(ref) {
  admin_ = make_queue(0, admin_depth, admin_depth);
}

TestDriver::~TestDriver() {
  if (owns_) destroy_virtual_controller(memory_.space(), ref_);
}

uint32_t TestDriver::csts() { return simt::load_system_acquire(registers().csts); }

void TestDriver::write_cc(uint32_t value) { simt::store_system_release(registers().cc, value); }

void TestDriver::step(uint32_t qid, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) ref_.step(simt::Warp(), qid);
}

void TestDriver::step(const simt::Warp& warp, uint32_t qid) { ref_.step(warp, qid); }

void TestDriver::enable() {
  restart(admin_);
  registers().aqa = (admin_.completion_depth - 1) << 16 | (admin_.depth - 1);
  registers().asq = address_of(admin_.entries);
  registers().acq = address_of(admin_.completions);
  write_cc(kCcEntrySizes | kCcEnable);
  step(0);
}

bool TestDriver::wait_csts(uint32_t status) {
  const simt::Deadline deadline = simt::Deadline::after_ns(60'000'000'000);
  for (simt::Backoff backoff; csts() != status; backoff.pause()) {
    if (deadline.passed()) return false;
    step(0);
  }
  return true;
}

void TestDriver::enable_ready() {
  enable();
  ASSERT_TRUE(wait_csts(kCstsReady)) << csts();
}

TestQueue TestDriver::make_queue(uint32_t qid, uint32_t depth, uint32_t completion_depth) {
  TestQueue queue;
  queue.qid = queue.completion_qid = qid;
  queue.depth = depth;
  queue.completion_depth = completion_depth;
  queue.entries =
      reinterpret_cast<SubmissionEntry*>(memory_.bytes(depth * sizeof(SubmissionEntry)));
  queue.completions = memory_.bytes(completion_depth * sizeof(CompletionEntry));
  return queue;
}

TestQueue TestDriver::create_pair(uint32_t qid, uint32_t depth, uint32_t completion_depth) {
  TestQueue queue = make_queue(qid, depth, completion_depth == 0 ? depth : completion_depth);
  EXPECT_EQ(run(admin_, create_completion_queue(queue)), kSuccess);
  EXPECT_EQ(run(admin_, create_submission_queue(queue)), kSuccess);
  return queue;
}

void TestDriver::restart(TestQueue& queue) {
  queue.tail = queue.head = 0;
  queue.phase = 1;
  queue.sq_head = 0;
  std::memset(queue.completions, 0, queue.completion_depth * sizeof(CompletionEntry));
}

void TestDriver::put(TestQueue& queue, const SubmissionEntry& entry) {
  queue.entries[queue.tail] = entry;
  queue.tail = queue.tail + 1 == queue.depth ? 0 : queue.tail + 1;
}

void TestDriver::submit(TestQueue& queue, const SubmissionEntry& entry) {
  put(queue, entry);
  ring(queue);
}

void TestDriver::write_tail(uint32_t qid, uint32_t value) {
  simt::store_system_release(*ref_.doorbell(qid, false, config_.doorbell_stride), value);
}

void TestDriver::write_head(uint32_t qid, uint32_t value) {
  simt::store_system_release(*ref_.doorbell(qid, true, config_.doorbell_stride), value);
}

std::optional<CompletionEntry> TestDriver::peek(const TestQueue& queue) {
  const uint8_t* const at = queue.completions + queue.head * sizeof(CompletionEntry);
  const uint32_t last = simt::load_system_acquire(reinterpret_cast<const uint32_t*>(at)[3]);
  if ((last >> 16 & 1) != queue.phase) return std::nullopt;
  CompletionEntry entry;
  std::memcpy(&entry, at, sizeof(entry));
  return entry;
}

std::optional<CompletionEntry> TestDriver::take(TestQueue& queue) {
  const auto entry = peek(queue);
  if (!entry) return entry;
  queue.sq_head = entry->sq_head;
  if (++queue.head == queue.completion_depth) {
    queue.head = 0;
    queue.phase ^= 1;
  }
  return entry;
}

CompletionEntry TestDriver::wait(TestQueue& queue) {
  // Not a number of steps: a thread that another step waits for may not run for milliseconds.
  const simt::Deadline deadline = simt::Deadline::after_ns(60'000'000'000);
  simt::Backoff backoff;
  while (!deadline.passed()) {
    if (const auto entry = take(queue)) {
      ring_completion(queue);
      return *entry;
    }
    step(queue.qid);
    backoff.pause();
  }
  ADD_FAILURE() << "no completion in queue " << queue.qid;
  return {};
}

Status TestDriver::run(TestQueue& queue, SubmissionEntry entry, uint32_t* dw0) {
  entry.cid = next_cid_++;
  submit(queue, entry);
  const CompletionEntry done = wait(queue);
  EXPECT_EQ(done.cid, entry.cid);
  EXPECT_EQ(done.sq_id, queue.qid);
  if (dw0 != nullptr) *dw0 = done.dw0;
  return status_of(done);
}

Status TestDriver::status_of(const CompletionEntry& entry) {
  return static_cast<Status>(entry.status >> 1 & kStatusCodeMask);
}

SubmissionEntry TestDriver::admin_entry(AdminOpcode opcode) {
  SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(opcode);
  return entry;
}

SubmissionEntry TestDriver::create_completion_queue(const TestQueue& queue) {
  SubmissionEntry entry = admin_entry(AdminOpcode::kCreateCompletionQueue);
  entry.prp1 = address_of(queue.completions);
  entry.cdw10 = (queue.completion_depth - 1) << 16 | queue.completion_qid;
  entry.cdw11 = 1;
  return entry;
}

SubmissionEntry TestDriver::create_submission_queue(const TestQueue& queue) {
  SubmissionEntry entry = admin_entry(AdminOpcode::kCreateSubmissionQueue);
  entry.prp1 = address_of(queue.entries);
  entry.cdw10 = (queue.depth - 1) << 16 | queue.qid;
  entry.cdw11 = queue.completion_qid << 16 | 1;
  return entry;
}

SubmissionEntry TestDriver::delete_queue(AdminOpcode opcode, uint32_t qid) {
  SubmissionEntry entry = admin_entry(opcode);
  entry.cdw10 = qid;
  return entry;
}

SubmissionEntry TestDriver::io_entry(IoOpcode opcode, uint64_t lba, uint32_t lba_count,
                                     const void* data, const void* second) {
  SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(opcode);
  entry.nsid = 1;
  entry.prp1 = address_of(data);
  entry.prp2 = address_of(second);
  entry.cdw10 = static_cast<uint32_t>(lba);
  entry.cdw11 = static_cast<uint32_t>(lba >> 32);
  entry.cdw12 = lba_count - 1;
  return entry;
}

}  // namespace gofs::ssd
