// SPDX-License-Identifier: Apache-2.0
//
// The disks that Linux has of an NVMe controller, and what they are used for: so that none is taken
// away that is in use. Reads sysfs, procfs and udev's notes, never the disks. Host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/vfio/pci_function.h"

namespace gofs::ssd::vfio {

/// A disk or a partition of one.
struct BlockDevice {
  std::string name;  // "nvme0n1p2"
  uint64_t bytes = 0;
  std::string use;       // "mounted at /home", "swap", "part of md127"; empty: none
  std::string contents;  // "ext4", "gpt partition table", "nothing known"; empty: udev did not look
  bool is_known() const { return !contents.empty() && contents != kNothingKnown; }

  static constexpr const char* kNothingKnown = "nothing known";
};

/// Each namespace of the controller with its partitions after it; none while nvme does not drive
/// it.
std::vector<BlockDevice> read_block_devices(const std::string& root, const PciFunction& function);

/// "nvme0n1p2 is mounted at /home"; empty if none is in use.
std::string what_is_in_use(const std::vector<BlockDevice>& devices);

}  // namespace gofs::ssd::vfio
