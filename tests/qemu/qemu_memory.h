// SPDX-License-Identifier: Apache-2.0
//
// Memory of a QEMU machine, for a controller in it and the driver outside to share. Host only.
#pragma once

#include <cstdint>
#include <string>

#include "qemu_machine.h"
#include "ssd/memory_source.h"

namespace gofs::ssd {

/// Goes before its machine does.
class QemuMemory final : public MemorySource {
 public:
  /// `bytes` are rounded up to 4 KiB. Throws std::system_error if the machine has not as much left.
  QemuMemory(QemuMachine& machine, uint64_t bytes);
  ~QemuMemory() override;
  QemuMemory(const QemuMemory&) = delete;
  QemuMemory& operator=(const QemuMemory&) = delete;

  uint8_t* base() const override { return base_; }
  uint64_t bytes() const override { return bytes_; }
  std::string description() const override;

 private:
  GuestRam& ram_;
  uint64_t bytes_;
  uint8_t* base_;
};

}  // namespace gofs::ssd
