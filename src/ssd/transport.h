// SPDX-License-Identifier: Apache-2.0
//
// A physical NVMe controller as far as the host must help to reach it: its registers, and the
// memory that it may use. What is done with them is the driver's (nvme/), by warps. There are two:
// vfio/ for an SSD that is bound to vfio-pci, and qemu/ for QEMU's controller, in tests. Host only.
#pragma once

#include <cstdint>
#include <string>

namespace gofs::ssd {

/// A controller that is this process's alone. Registers may be used from several threads at once;
/// map() and unmap() by one at a time. When it goes, the controller is stopped before it loses the
/// memory that was mapped.
class Transport {
 public:
  virtual ~Transport() = default;

  /// For people: "0000:65:00.0".
  virtual const std::string& name() const = 0;

  /// BAR 0 as memory of this process, as long as this lives: registers, and doorbells from 0x1000
  /// on. Null where they are reached by the two functions below alone.
  virtual uint8_t* bar() const = 0;
  virtual uint64_t bar_bytes() const = 0;

  /// A register of 32 bits, `offset` a multiple of 4 within BAR 0. A device that is gone reads as
  /// all ones.
  virtual uint32_t read_register(uint32_t offset) = 0;
  /// The device sees what was stored to mapped memory before.
  virtual void write_register(uint32_t offset, uint32_t value) = 0;
  /// Those of 64 bits, as two, the lower half first.
  uint64_t read_wide(uint32_t offset) {
    const uint64_t low = read_register(offset);
    return low | uint64_t{read_register(offset + 4)} << 32;
  }
  void write_wide(uint32_t offset, uint64_t value) {
    write_register(offset, static_cast<uint32_t>(value));
    write_register(offset + 4, static_cast<uint32_t>(value >> 32));
  }

  /// From now on the controller reaches `bytes` at `memory`, both multiples of 4 KiB, by a range of
  /// addresses of its own, whose first is returned. The memory stays where it is until unmap().
  /// Throws std::system_error, whose text says what is wrong and what would mend it.
  virtual uint64_t map(void* memory, uint64_t bytes) = 0;
  /// As map() had it. Afterwards the controller does not reach it any more.
  virtual void unmap(uint64_t address, uint64_t bytes) = 0;
};

}  // namespace gofs::ssd
