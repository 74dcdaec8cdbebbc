// SPDX-License-Identifier: Apache-2.0
//
// QEMU's NVMe controller for the driver: registers by qtest, memory as far as it is the machine's.
// Host only, in tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "qemu_machine.h"
#include "ssd/transport.h"

namespace gofs::ssd {

/// Goes before its machine does. There is no IOMMU: the controller reaches all of the machine's
/// memory, mapped or not.
class QtestTransport final : public Transport {
 public:
  /// The machine's controller number `disk`: places its BAR 0, lets it answer, and lets it reach
  /// memory. One transport per controller. Throws std::system_error.
  explicit QtestTransport(QemuMachine& machine, size_t disk = 0);
  /// Disables the controller and waits for that as long as CAP.TO says, then keeps it from memory.
  ~QtestTransport() override;
  QtestTransport(const QtestTransport&) = delete;
  QtestTransport& operator=(const QtestTransport&) = delete;

  const std::string& name() const override { return name_; }
  /// Null: the registers are in another process.
  uint8_t* bar() const override { return nullptr; }
  uint64_t bar_bytes() const override { return bar_bytes_; }

  /// Takes 60 us. Like write_register, throws what QtestClient does, if QEMU hangs.
  uint32_t read_register(uint32_t offset) override;
  /// Takes 5 us, and returns before the device has seen it; a read afterwards waits for that.
  void write_register(uint32_t offset, uint32_t value) override;

  /// `memory` is QemuMemory, or a part of it.
  uint64_t map(void* memory, uint64_t bytes) override;
  void unmap(uint64_t address, uint64_t bytes) override;

 private:
  uint32_t find_controller(size_t disk);
  void place_bar();
  void set_command(uint32_t flags);

  QemuMachine& machine_;
  uint32_t device_;  // on PCI bus 0
  std::string name_;
  uint64_t bar_address_ = 0;
  uint64_t bar_bytes_ = 0;
  std::multimap<uint64_t, uint64_t> mapped_;  // address -> bytes
};

}  // namespace gofs::ssd
