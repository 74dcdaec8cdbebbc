// SPDX-License-Identifier: Apache-2.0
//
// The PCI configuration space of a QEMU machine, by the two I/O ports that PCs have for it: one
// takes an address, the other has the register there. Host only; any thread may call any function
// at any time.
#pragma once

#include <cstdint>
#include <mutex>

#include "qtest_client.h"

namespace gofs::ssd {

/// A register of function 0 of a device on bus 0.
struct PciRegister {
  uint32_t device;  // 0 to 31
  uint32_t offset;  // a multiple of 4 below 256
};

inline constexpr uint32_t kPciDevices = 32;
inline constexpr uint32_t kPciIdentity = 0x00;  // vendor and device; all ones: nothing is there
inline constexpr uint32_t kPciCommand = 0x04;   // and status, in the upper half
inline constexpr uint32_t kPciClass = 0x08;     // class in bits 8..31
inline constexpr uint32_t kPciBar0 = 0x10;      // BAR 1 follows
inline constexpr uint32_t kPciClassNvme = 0x010802;  // mass storage, non-volatile, NVMe
inline constexpr uint32_t kPciMemorySpace = 1u << 1;
inline constexpr uint32_t kPciBusMaster = 1u << 2;
inline constexpr uint32_t kPciNoInterruptLine = 1u << 10;

class PciConfig {
 public:
  explicit PciConfig(QtestClient& client) : client_(client) {}

  // Errors are those of the client; once it is gone, reads answer all ones.
  uint32_t read(PciRegister at);
  void write(PciRegister at, uint32_t value);

 private:
  QtestClient& client_;
  std::mutex mutex_;  // from the address to the register
};

}  // namespace gofs::ssd
