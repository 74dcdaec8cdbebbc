// SPDX-License-Identifier: Apache-2.0
#include "qtest_transport.h"

#include <algorithm>
#include <cstdio>

#include "hexadecimal.h"
#include "simt/platform.h"
#include "ssd/stop_controller.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

// Each device has a window of its own for BAR 0, between the machine's memory (GuestRam) and what
// q35 has from 0xfec00000 on.
constexpr uint64_t kFirstWindow = 0xc0000000;
constexpr uint64_t kWindowBytes = uint64_t{16} << 20;
static_assert(kFirstWindow >= GuestRam::kBytesMax &&
              kFirstWindow + kPciDevices * kWindowBytes <= 0xfec00000);

// BAR 0, bits 0..3: memory, and 64 bits wide. NVMe wants both.
constexpr uint32_t kBarFlags = 0xf;
constexpr uint32_t kBarMemory64 = 0x4;

std::string name_of_device(uint32_t device) {
  char text[32];
  std::snprintf(text, sizeof(text), "QEMU's 00:%02x.0", device);
  return text;
}

}  // namespace

QtestTransport::QtestTransport(QemuMachine& machine, size_t disk)
    : machine_(machine), device_(find_controller(disk)), name_(name_of_device(device_)) {
  place_bar();
  set_command(kPciMemorySpace | kPciBusMaster | kPciNoInterruptLine);
}

QtestTransport::~QtestTransport() {
  try {
    stop_controller(*this);
    set_command(kPciNoInterruptLine);
  } catch (const std::system_error&) {
    // A QEMU that hangs is killed with its machine, before the memory goes.
  }
}

uint32_t QtestTransport::find_controller(size_t disk) {
  size_t found = 0;
  for (uint32_t device = 0; device < kPciDevices; ++device) {
    const uint32_t identity = machine_.pci().read({device, kPciIdentity});
    if (identity == ~0u) continue;
    if (machine_.pci().read({device, kPciClass}) >> 8 != kPciClassNvme) continue;
    if (found++ == disk) return device;
  }
  if (machine_.qtest().gone()) fail_with(ENODEV, "QEMU is gone: " + machine_.messages());
  fail_with(ENODEV, "the QEMU machine has " + std::to_string(found) +
                        " NVMe controllers, and none with the number " + std::to_string(disk));
}

void QtestTransport::place_bar() {
  PciConfig& pci = machine_.pci();
  const PciRegister low{device_, kPciBar0};
  const PciRegister high{device_, kPciBar0 + 4};
  set_command(kPciNoInterruptLine);  // while the BAR is nowhere, nothing must answer there
  // What stays 0 of all ones is below its size.
  pci.write(low, ~0u);
  pci.write(high, ~0u);
  const uint32_t low_mask = pci.read(low);
  const uint64_t mask = uint64_t{pci.read(high)} << 32 | (low_mask & ~kBarFlags);
  bar_bytes_ = ~mask + 1;
  if (machine_.qtest().gone()) fail_with(ENODEV, name_ + ": QEMU is gone");
  if ((low_mask & kBarFlags & ~8u) != kBarMemory64 || bar_bytes_ < 2 * GuestRam::kPageBytes ||
      bar_bytes_ > kWindowBytes) {
    fail_with(ENOTSUP, name_ + ": BAR 0 is not of 8 KiB to 16 MiB, or not of 64-bit memory: " +
                           hexadecimal(mask | (low_mask & kBarFlags)));
  }
  bar_address_ = kFirstWindow + device_ * kWindowBytes;
  pci.write(low, static_cast<uint32_t>(bar_address_));
  pci.write(high, static_cast<uint32_t>(bar_address_ >> 32));
}

void QtestTransport::set_command(uint32_t flags) {
  // The upper half is the status, whose bits are cleared by ones.
  machine_.pci().write({device_, kPciCommand}, flags);
  machine_.pci().read({device_, kPciCommand});  // which waits until it is done
}

uint32_t QtestTransport::read_register(uint32_t offset) {
  GOFS_ASSERT(offset % 4 == 0 && offset < bar_bytes_);
  return machine_.qtest().readl(bar_address_ + offset);
}

void QtestTransport::write_register(uint32_t offset, uint32_t value) {
  GOFS_ASSERT(offset % 4 == 0 && offset < bar_bytes_);
  machine_.qtest().writel(bar_address_ + offset, value);
}

uint64_t QtestTransport::map(void* memory, uint64_t bytes) {
  const std::optional<uint64_t> address = machine_.ram().guest_address(memory, bytes);
  if (!address) {
    fail_with(EINVAL, name_ + " reaches no memory but its machine's, and " +
                          hexadecimal(reinterpret_cast<uintptr_t>(memory)) + " to " +
                          hexadecimal(reinterpret_cast<uintptr_t>(memory) + bytes) +
                          " is not all in it: use QemuMemory");
  }
  if (*address % GuestRam::kPageBytes != 0 || bytes % GuestRam::kPageBytes != 0 || bytes == 0) {
    fail_with(EINVAL, name_ + ": memory to be mapped begins and ends at a multiple of 4 KiB, and " +
                          hexadecimal(bytes) + " bytes at " +
                          hexadecimal(reinterpret_cast<uintptr_t>(memory)) + " do not");
  }
  mapped_.emplace(*address, bytes);
  return *address;
}

void QtestTransport::unmap(uint64_t address, uint64_t bytes) {
  const auto [first, last] = mapped_.equal_range(address);
  const auto found =
      std::find_if(first, last, [&](const auto& one) { return one.second == bytes; });
  GOFS_ASSERT(found != last);
  mapped_.erase(found);
}

}  // namespace gofs::ssd
