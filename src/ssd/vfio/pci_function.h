// SPDX-License-Identifier: Apache-2.0
//
// What sysfs says of a PCI function: who drives it, with whom it shares an IOMMU group, how large
// its BARs are, where it hangs. Reads only, and never the device itself. Host only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gofs::ssd::vfio {

inline constexpr uint32_t kNvmeClass = 0x010802;  // mass storage, non-volatile memory, NVMe
inline constexpr const char* kDriverName = "vfio-pci";

/// "0000:65:00.0" of that, and of "65:00.0"; hexadecimal digits in either case. Nothing if the text
/// is no address of a PCI function.
std::optional<std::string> full_pci_address(std::string_view text);

struct PciLink {
  std::string speed;   // as Linux has it: "16.0 GT/s PCIe"; empty if it does not say
  uint32_t width = 0;  // lanes
};

/// Another function of the same IOMMU group.
struct GroupMember {
  std::string address;
  std::string driver;  // empty: none
  bool bridge = false;

  /// Whether VFIO gives the group away while this is so: it has no driver, or one that leaves the
  /// device alone.
  bool lets_group_go() const;
};

struct PciFunction {
  std::string address;  // "0000:65:00.0"
  std::string folder;   // of sysfs
  uint32_t class_code = 0;
  uint32_t vendor = 0;
  uint32_t device = 0;
  std::string driver;                      // empty: none
  std::optional<uint32_t> iommu_group;     // nothing: the IOMMU is off
  std::vector<GroupMember> group_members;  // without this one
  std::array<uint64_t, 6> bar_bytes{};     // 0: there is no such BAR, or half of one of 64 bits
  PciLink link;
  PciLink link_max;
  int numa_node = -1;     // -1: not known
  std::string root_port;  // the function below the root bus on the way to this; empty: itself

  bool is_nvme() const { return class_code == kNvmeClass; }
  bool is_bound_to_vfio() const { return driver == kDriverName; }
};

/// `root` is empty but for tests (system_files.h). Throws std::system_error if `address` is none or
/// there is no such function.
PciFunction read_pci_function(const std::string& root, std::string_view address);

/// All addresses that there are.
std::vector<std::string> pci_addresses(const std::string& root);

/// The commands that bind the function to vfio-pci: one line for a shell.
std::string bind_command(const PciFunction& function);
/// Those that return it to the driver that Linux has for it.
std::string release_command(const PciFunction& function);

/// The members for whose sake VFIO does not give the group away, "0000:65:00.1 (nouveau)"; empty
/// if there are none.
std::string who_keeps_group(const PciFunction& function);

}  // namespace gofs::ssd::vfio
