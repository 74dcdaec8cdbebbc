// SPDX-License-Identifier: Apache-2.0
//
// The end of a physical controller's use, as far as the host must see to it. Host only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "format/nvme.h"
#include "ssd/transport.h"

namespace gofs::ssd {

/// Clears CC.EN and waits until CSTS.RDY is 0, for as long as CAP.TO says. True once the controller
/// does nothing more of its own accord, which one that is gone does not either. Errors are those of
/// the transport.
inline bool stop_controller(Transport& transport) {
  using namespace format::nvme;
  constexpr std::chrono::milliseconds kReadyUnit{500};  // of CAP.TO
  const uint64_t capabilities = transport.read_wide(offsetof(Registers, cap));
  if (static_cast<uint32_t>(capabilities) == kRegisterGone) return true;
  // As if there were one unit more, since a controller may say 0.
  const auto timeout = kReadyUnit * ((capabilities >> kCapTimeoutShift & 0xff) + 1);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const uint32_t configuration = transport.read_register(offsetof(Registers, cc));
  if ((configuration & kCcEnable) != 0) {
    transport.write_register(offsetof(Registers, cc), configuration & ~kCcEnable);
  }
  for (;;) {
    const uint32_t status = transport.read_register(offsetof(Registers, csts));
    if ((status & kCstsReady) == 0 || status == kRegisterGone) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gofs::ssd
