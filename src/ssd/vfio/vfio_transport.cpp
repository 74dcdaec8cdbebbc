// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/vfio_transport.h"

#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "format/nvme.h"
#include "simt/atomic.h"
#include "ssd/stop_controller.h"
#include "ssd/system_failure.h"

namespace gofs::ssd::vfio {

namespace {

namespace nvme = format::nvme;

constexpr uint64_t kRegisterPageBytes = 4096;

/// The function, if VFIO can be asked for it. Better said here than by what an ioctl returns.
PciFunction checked_function(const std::string& root, const std::string& address) {
  PciFunction function = read_pci_function(root, address);
  const std::string& name = function.address;
  if (!function.is_nvme()) fail_with(ENOTSUP, name + ": no NVMe SSD (its PCI class is another)");
  if (!function.iommu_group) {
    fail_with(ENODEV,
              name +
                  ": the IOMMU is off: turn VT-d or AMD-Vi on in the firmware, and boot with "
                  "intel_iommu=on iommu=pt (AMD: iommu=pt)");
  }
  if (!function.is_bound_to_vfio()) {
    fail_with(EBUSY, name + ": not bound to vfio-pci but to " +
                         (function.driver.empty() ? "no driver" : function.driver) +
                         "; if nothing on it is needed: " + bind_command(function));
  }
  const std::string who = who_keeps_group(function);
  if (!who.empty()) {
    fail_with(EPERM, name + ": IOMMU group " + std::to_string(*function.iommu_group) +
                         " is shared with " + who +
                         "; unbind these from their drivers, or move the SSD to another slot");
  }
  return function;
}

vfio_region_info region_of(const Descriptor& device, uint32_t index, const std::string& name) {
  vfio_region_info info{};
  info.argsz = sizeof info;
  info.index = index;
  if (::ioctl(device.get(), VFIO_DEVICE_GET_REGION_INFO, &info) != 0) {
    fail_with(errno, name + ": VFIO does not describe region " + std::to_string(index));
  }
  return info;
}

}  // namespace

VfioTransport::VfioTransport(const std::string& address, const std::string& root)
    : function_(checked_function(root, address)),
      container_(root, function_),
      device_(container_.open_device(function_.address)) {
  reset_device();
  config_offset_ = region_of(device_, VFIO_PCI_CONFIG_REGION_INDEX, name()).offset;
  // Registers first, DMA only when the controller does nothing of its own accord.
  set_command_bits(PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE, PCI_COMMAND_MASTER);
  map_bar();
  try {
    if (read_register(0) == nvme::kRegisterGone) {
      fail_with(EIO, name() + ": its registers read as all ones: it is gone, or without power");
    }
    if (!stop_controller(*this)) {
      fail_with(ETIMEDOUT, name() +
                               ": it does not stop (CSTS.RDY stays 1); switch the machine off and "
                               "on");
    }
    set_command_bits(PCI_COMMAND_MASTER, 0);
  } catch (...) {
    close_bar();
    throw;
  }
}

VfioTransport::~VfioTransport() {
  // No access of the device may find the memory gone: first it stops, then it may not, then it
  // cannot.
  stop_controller(*this);
  try {
    set_command_bits(0, PCI_COMMAND_MASTER);
    for (const IovaRange& range : mapped_) {
      container_.unmap(range.first, range.last - range.first + 1);
    }
  } catch (const std::system_error&) {
    // The kernel does both when the files are closed.
  }
  close_bar();
}

void VfioTransport::reset_device() {
  vfio_device_info info{};
  info.argsz = sizeof info;
  if (::ioctl(device_.get(), VFIO_DEVICE_GET_INFO, &info) != 0) {
    fail_with(errno, name() + ": VFIO does not describe it");
  }
  if ((info.flags & VFIO_DEVICE_FLAGS_PCI) == 0)
    fail_with(ENOTSUP, name() + ": no PCI device to VFIO");
  if ((info.flags & VFIO_DEVICE_FLAGS_RESET) == 0) return;
  if (::ioctl(device_.get(), VFIO_DEVICE_RESET) != 0) {
    fail_with(errno, name() + ": it cannot be reset");
  }
}

void VfioTransport::map_bar() {
  const vfio_region_info info = region_of(device_, VFIO_PCI_BAR0_REGION_INDEX, name());
  if ((info.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0 || info.size < 2 * kRegisterPageBytes) {
    fail_with(ENOTSUP, name() + ": VFIO does not let its registers be mapped (BAR 0 of " +
                           std::to_string(info.size) + " bytes)");
  }
  void* const base = ::mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_.get(),
                            static_cast<off_t>(info.offset));
  if (base == MAP_FAILED) fail_with(errno, name() + ": its registers cannot be mapped");
  ::madvise(base, info.size, MADV_DONTFORK);
  bar_ = static_cast<uint8_t*>(base);
  bar_bytes_ = info.size;
}

void VfioTransport::close_bar() {
  if (bar_ != nullptr) ::munmap(bar_, bar_bytes_);
  bar_ = nullptr;
}

void VfioTransport::set_command_bits(uint16_t set, uint16_t clear) {
  uint16_t command = 0;
  const auto offset = static_cast<off_t>(config_offset_ + PCI_COMMAND);
  if (::pread(device_.get(), &command, sizeof command, offset) != ssize_t{sizeof command}) {
    fail_with(errno, name() + ": its PCI configuration space cannot be read");
  }
  command = static_cast<uint16_t>((command | set) & ~clear);
  if (::pwrite(device_.get(), &command, sizeof command, offset) != ssize_t{sizeof command}) {
    fail_with(errno, name() + ": its PCI configuration space cannot be written");
  }
}

uint32_t VfioTransport::read_register(uint32_t offset) {
  // What was read decides what is read of memory afterwards.
  return simt::load_system_acquire(*reinterpret_cast<uint32_t*>(bar_ + offset));
}

void VfioTransport::write_register(uint32_t offset, uint32_t value) {
  // Stores to memory are seen by the device before this one; a full fence, because some memory
  // (another device's BAR) is mapped write-combining.
  __sync_synchronize();
  simt::store_system_release(*reinterpret_cast<uint32_t*>(bar_ + offset), value);
}

uint64_t VfioTransport::map(void* memory, uint64_t bytes) {
  const uint64_t address = container_.map(memory, bytes);
  mapped_.push_back({address, address + bytes - 1});
  return address;
}

void VfioTransport::unmap(uint64_t address, uint64_t bytes) {
  container_.unmap(address, bytes);
  mapped_.erase(
      std::remove_if(mapped_.begin(), mapped_.end(),
                     [address](const IovaRange& range) { return range.first == address; }),
      mapped_.end());
}

}  // namespace gofs::ssd::vfio
