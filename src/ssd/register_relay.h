// SPDX-License-Identifier: Apache-2.0
//
// Registers for warps that cannot reach a controller's own: a copy in memory that they do reach,
// and a thread that carries what they store there to the device, doorbells first, and back what the
// device says. It is what the option doorbell=cpu asks for, and how QEMU's controller is driven.
// Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "format/nvme.h"
#include "ssd/transport.h"

namespace gofs::ssd {

/// Runs from its construction to its end.
class RegisterRelay {
 public:
  /// Bytes of the copy for `io_queues` queue pairs; CAP.DSTRD is 0 there, whatever the device has.
  static uint64_t copy_bytes(uint32_t io_queues);

  /// `copy` is zeroed memory that host and warps reach. Both outlive the relay.
  RegisterRelay(Transport& transport, uint8_t* copy, uint32_t io_queues);
  ~RegisterRelay();
  RegisterRelay(const RegisterRelay&) = delete;
  RegisterRelay& operator=(const RegisterRelay&) = delete;

 private:
  format::nvme::Registers& copy() const {
    return *reinterpret_cast<format::nvme::Registers*>(copy_);
  }
  uint32_t* doorbells() const {
    return reinterpret_cast<uint32_t*>(copy_ + format::nvme::kDoorbellOffset);
  }
  void run();
  void relay();
  bool relay_doorbells();
  void relay_configuration();
  void relay_status();
  /// Whether the device is on its way to what CC asks for.
  bool changes() const;

  Transport& transport_;
  uint8_t* const copy_;
  uint32_t stride_shift_;         // of the device's doorbells
  std::vector<uint32_t> passed_;  // of each doorbell, what was written to the device
  uint32_t configuration_ = 0;    // CC, likewise
  uint32_t status_ = 0;           // CSTS, as the device had it last
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace gofs::ssd
