// SPDX-License-Identifier: Apache-2.0
#include "ssd/admin_probe.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "simt/atomic.h"
#include "ssd/stop_controller.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

namespace nvme = format::nvme;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kAdminPageBytes = 4096;
constexpr uint32_t kCommandTimeoutMs = 10000;
constexpr uint32_t kReadyUnitMs = 500;  // of CAP.TO

}  // namespace

AdminProbe::AdminProbe(Transport& transport, uint8_t* memory, uint64_t address)
    : transport_(transport), memory_(memory), address_(address) {
  const uint64_t cap = transport.read_wide(offsetof(nvme::Registers, cap));
  if ((cap >> nvme::kCapNvmCommandSetShift & 1) == 0) {
    fail_with(ENOTSUP, transport_.name() + ": it lacks the NVM command set");
  }
  stride_shift_ = static_cast<uint32_t>(cap >> nvme::kCapStrideShift & 0xf);
  ready_timeout_ms_ =
      (static_cast<uint32_t>(cap >> nvme::kCapTimeoutShift & 0xff) + 1) * kReadyUnitMs;
  disable();
  std::memset(memory_, 0, kMemoryBytes);
  const uint64_t completions = address_ + kAdminPageBytes;
  transport_.write_register(offsetof(nvme::Registers, aqa), (kDepth - 1) << 16 | (kDepth - 1));
  transport_.write_wide(offsetof(nvme::Registers, asq), address_);
  transport_.write_wide(offsetof(nvme::Registers, acq), completions);
  transport_.write_register(offsetof(nvme::Registers, cc), nvme::kCcEntrySizes | nvme::kCcEnable);
  wait_ready();
}

AdminProbe::~AdminProbe() {
  try {
    disable();
  } catch (const std::system_error&) {
    // The transport tries again, and takes the memory away in any case.
  }
}

void AdminProbe::disable() {
  if (!stop_controller(transport_)) {
    fail_with(ETIMEDOUT, transport_.name() + ": it does not stop being ready");
  }
}

void AdminProbe::wait_ready() {
  const auto deadline = steady_clock::now() + milliseconds(ready_timeout_ms_);
  for (;;) {
    const uint32_t status = transport_.read_register(offsetof(nvme::Registers, csts));
    if (status == nvme::kRegisterGone) fail_with(EIO, transport_.name() + ": it is gone");
    if ((status & nvme::kCstsFatal) != 0) {
      fail_with(EIO, transport_.name() + ": it reports a fatal error (CSTS.CFS)");
    }
    if ((status & nvme::kCstsReady) != 0) return;
    if (steady_clock::now() > deadline) {
      fail_with(ETIMEDOUT, transport_.name() + ": it does not become ready");
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

nvme::CompletionEntry AdminProbe::take_completion() {
  uint8_t* const slot = memory_ + kAdminPageBytes + uint64_t{next_} * sizeof(nvme::CompletionEntry);
  // The word with the phase, which the controller writes last.
  auto& last = *reinterpret_cast<uint32_t*>(slot + offsetof(nvme::CompletionEntry, cid));
  const auto deadline = steady_clock::now() + milliseconds(kCommandTimeoutMs);
  while ((simt::load_system_acquire(last) >> 16 & 1) != phase_) {
    if (steady_clock::now() > deadline) {
      fail_with(ETIMEDOUT, transport_.name() + ": it does not answer an admin command");
    }
    if (transport_.read_register(offsetof(nvme::Registers, csts)) == nvme::kRegisterGone) {
      fail_with(EIO, transport_.name() + ": it is gone");
    }
  }
  nvme::CompletionEntry completion{};
  std::memcpy(&completion, slot, sizeof completion);
  return completion;
}

nvme::CompletionEntry AdminProbe::execute(nvme::SubmissionEntry entry) {
  entry.cid = static_cast<uint16_t>(next_);
  std::memcpy(memory_ + uint64_t{next_} * sizeof entry, &entry, sizeof entry);
  const uint32_t after = (next_ + 1) % kDepth;
  transport_.write_register(nvme::kDoorbellOffset, after);
  const nvme::CompletionEntry completion = take_completion();
  next_ = after;
  if (after == 0) phase_ ^= 1;
  transport_.write_register(nvme::kDoorbellOffset + (4u << stride_shift_), after);
  if (completion.cid != entry.cid) {
    fail_with(EPROTO, transport_.name() + ": it answered a command that was not asked");
  }
  return completion;
}

void AdminProbe::identify(uint32_t nsid, uint32_t what, void* result) {
  uint8_t* const page = memory_ + 2 * kAdminPageBytes;
  nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kIdentify);
  entry.nsid = nsid;
  entry.prp1 = address_ + 2 * kAdminPageBytes;
  entry.cdw10 = what;
  const nvme::Status status = status_of(execute(entry));
  if (status != nvme::kSuccess) {
    fail_with(EIO, transport_.name() + ": Identify failed with status " + std::to_string(status));
  }
  std::memcpy(result, page, kAdminPageBytes);
}

nvme::IdentifyController AdminProbe::identify_controller() {
  nvme::IdentifyController answer;
  identify(0, nvme::kIdentifyController, &answer);
  return answer;
}

nvme::IdentifyNamespace AdminProbe::identify_namespace(uint32_t nsid) {
  nvme::IdentifyNamespace answer;
  identify(nsid, nvme::kIdentifyNamespace, &answer);
  return answer;
}

uint32_t AdminProbe::io_queue_count() {
  constexpr uint32_t kMost = 0xfffe;  // 0xffff is not allowed
  nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kSetFeatures);
  entry.cdw10 = nvme::kFeatureNumberOfQueues;
  entry.cdw11 = kMost << 16 | kMost;
  const nvme::CompletionEntry completion = execute(entry);
  if (status_of(completion) != nvme::kSuccess) {
    fail_with(EIO, transport_.name() + ": Set Features (Number of Queues) failed with status " +
                       std::to_string(status_of(completion)));
  }
  return std::min(completion.dw0 & 0xffff, completion.dw0 >> 16) + 1;
}

}  // namespace gofs::ssd
