// SPDX-License-Identifier: Apache-2.0
//
// An IOMMU group that this process holds exclusively, in a VFIO container of its own with a type1
// IOMMU: what its devices may reach, and at which addresses. Not iommufd, which refuses to map
// another device's BAR. Host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/descriptor.h"
#include "ssd/vfio/iova_space.h"
#include "ssd/vfio/pci_function.h"

namespace gofs::ssd::vfio {

/// The ranges in what VFIO_IOMMU_GET_INFO answered; cautious ones if it does not say.
std::vector<IovaRange> ranges_in_iommu_info(const std::vector<uint8_t>& info);

class VfioContainer {
 public:
  /// Opens the group of `function`. `root` as in system_files.h. Throws std::system_error.
  VfioContainer(const std::string& root, const PciFunction& function);

  /// The function as a file of VFIO; throws std::system_error.
  Descriptor open_device(const std::string& address);

  /// As Transport has them.
  uint64_t map(void* memory, uint64_t bytes);
  void unmap(uint64_t address, uint64_t bytes);

 private:
  void open_container(const std::string& root);
  void open_group(const std::string& root, const PciFunction& function);
  void choose_iommu();
  void read_ranges();

  std::string name_;
  Descriptor container_;
  Descriptor group_;
  IovaSpace space_{{}};
};

}  // namespace gofs::ssd::vfio
