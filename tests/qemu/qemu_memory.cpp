// SPDX-License-Identifier: Apache-2.0
#include "qemu_memory.h"

#include "simt/platform.h"

namespace gofs::ssd {

QemuMemory::QemuMemory(QemuMachine& machine, uint64_t bytes)
    : ram_(machine.ram()),
      bytes_(simt::align_up(bytes, GuestRam::kPageBytes)),
      base_(ram_.take(bytes_)) {}

QemuMemory::~QemuMemory() { ram_.release(base_); }

std::string QemuMemory::description() const {
  return std::to_string(bytes_ >> 10) + " KiB of a QEMU machine's memory";
}

}  // namespace gofs::ssd
