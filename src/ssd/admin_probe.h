// SPDX-License-Identifier: Apache-2.0
//
// Asks a physical controller what it is: an admin queue that one thread of the host works through a
// Transport. For `gofs doctor` and tests of transports; volumes are nvme/'s. Host only.
#pragma once

#include <cstdint>

#include "format/nvme.h"
#include "ssd/transport.h"

namespace gofs::ssd {

class AdminProbe {
 public:
  static constexpr uint64_t kMemoryBytes = 3 * 4096;  // two queues and a page of data

  /// Enables the controller, which has to be disabled. `memory`, kMemoryBytes at a multiple of 4
  /// KiB, is where the controller finds `address`. Throws std::system_error, as all below do, also
  /// where the controller does not answer in time.
  AdminProbe(Transport& transport, uint8_t* memory, uint64_t address);
  /// Disables the controller, so that the memory is its owner's again.
  ~AdminProbe();
  AdminProbe(const AdminProbe&) = delete;
  AdminProbe& operator=(const AdminProbe&) = delete;

  /// One command at a time; `cid` is filled in. The status is for the caller to look at.
  format::nvme::CompletionEntry execute(format::nvme::SubmissionEntry entry);

  format::nvme::IdentifyController identify_controller();
  format::nvme::IdentifyNamespace identify_namespace(uint32_t nsid);
  /// Pairs of I/O queues that the controller gives when it is asked for as many as there can be.
  uint32_t io_queue_count();

  static constexpr format::nvme::Status status_of(const format::nvme::CompletionEntry& entry) {
    return entry.status >> 1 & format::nvme::kStatusCodeMask;
  }

 private:
  static constexpr uint32_t kDepth = 8;

  void disable();
  void wait_ready();
  void identify(uint32_t nsid, uint32_t what, void* result);
  format::nvme::CompletionEntry take_completion();

  Transport& transport_;
  uint8_t* memory_;
  uint64_t address_;
  uint32_t stride_shift_ = 0;
  uint32_t ready_timeout_ms_ = 0;
  uint32_t next_ = 0;   // the slot of the next command, and of the next completion: they go along
  uint16_t phase_ = 1;  // of completions that are new
};

}  // namespace gofs::ssd
