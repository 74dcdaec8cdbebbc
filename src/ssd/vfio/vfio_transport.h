// SPDX-License-Identifier: Apache-2.0
//
// A physical NVMe SSD that is bound to vfio-pci. It reaches only the memory that map() gave it: the
// IOMMU stops everything else. Whoever has one has the SSD alone; when the process ends in whatever
// way, the kernel resets the SSD and takes the memory back. Host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/transport.h"
#include "ssd/vfio/iova_space.h"
#include "ssd/vfio/pci_function.h"
#include "ssd/vfio/vfio_container.h"

namespace gofs::ssd::vfio {

class VfioTransport final : public Transport {
 public:
  /// Takes the SSD at a PCI address ("0000:65:00.0" or "65:00.0") and resets it: its registers can
  /// be used, and it is disabled. `root` is empty but for tests (system_files.h). Throws
  /// std::system_error, whose text says what would mend it.
  explicit VfioTransport(const std::string& address, const std::string& root = {});
  ~VfioTransport() override;
  VfioTransport(const VfioTransport&) = delete;
  VfioTransport& operator=(const VfioTransport&) = delete;

  const std::string& name() const override { return function_.address; }
  uint8_t* bar() const override { return bar_; }
  uint64_t bar_bytes() const override { return bar_bytes_; }
  uint32_t read_register(uint32_t offset) override;
  void write_register(uint32_t offset, uint32_t value) override;
  uint64_t map(void* memory, uint64_t bytes) override;
  void unmap(uint64_t address, uint64_t bytes) override;

  const PciFunction& function() const { return function_; }

 private:
  void reset_device();
  void map_bar();
  void set_command_bits(uint16_t set, uint16_t clear);
  void close_bar();

  PciFunction function_;
  VfioContainer container_;
  Descriptor device_;
  uint64_t config_offset_ = 0;  // of PCI configuration space in device_
  uint8_t* bar_ = nullptr;
  uint64_t bar_bytes_ = 0;
  std::vector<IovaRange> mapped_;
};

}  // namespace gofs::ssd::vfio
