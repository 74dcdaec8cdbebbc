// SPDX-License-Identifier: Apache-2.0
//
// What `gofs doctor` says in a line.
#pragma once

#include <string>
#include <vector>

namespace gofs::cli {

struct Finding {
  std::string name;  // up to 14 letters
  bool ok;
  std::string detail;   // what there is; where it is not ok, why and the command that mends it
  bool needed = false;  // without it, what was asked about cannot be used at all
};

/// All about one PCI function, an NVMe SSD. Reads what Linux says of it; the SSD itself is asked
/// only if it is bound to vfio-pci, and so not a disk in use. `root` is empty but for tests
/// (ssd/vfio/system_files.h).
std::vector<Finding> examine_ssd(const std::string& root, const std::string& address);

/// The SSDs that are bound to vfio-pci.
Finding look_for_ssds(const std::string& root);

}  // namespace gofs::cli
