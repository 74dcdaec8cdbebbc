// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/pci_function.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "ssd/system_failure.h"
#include "ssd/vfio/system_files.h"

namespace gofs::ssd::vfio {

namespace {

constexpr uint32_t kBridgeClass = 0x06;
constexpr const char* kDevices = "/sys/bus/pci/devices/";

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Whether `text` is as `form`, in which 'x' is a hexadecimal digit, '1' is 0 or 1, '7' an octal
/// one.
bool has_form(std::string_view text, std::string_view form) {
  if (text.size() != form.size()) return false;
  for (size_t i = 0; i < form.size(); ++i) {
    const char c = text[i];
    const bool fits = form[i] == 'x'   ? is_hex(c)
                      : form[i] == '1' ? c == '0' || c == '1'
                      : form[i] == '7' ? c >= '0' && c <= '7'
                                       : c == form[i];
    if (!fits) return false;
  }
  return true;
}

uint32_t number_or_zero(const std::string& path) {
  return static_cast<uint32_t>(file_number(path).value_or(0));
}

PciLink read_link(const std::string& folder, const std::string& which) {
  return {file_text(folder + which + "_link_speed"),
          number_or_zero(folder + which + "_link_width")};
}

/// A line for each BAR and the ROM: first address, last address, flags.
std::array<uint64_t, 6> read_bar_bytes(const std::string& folder) {
  std::array<uint64_t, 6> sizes{};
  const std::vector<std::string> lines = file_lines(folder + "resource");
  for (size_t i = 0; i < sizes.size() && i < lines.size(); ++i) {
    uint64_t first = 0;
    uint64_t last = 0;
    const int count = std::sscanf(lines[i].c_str(), "%" SCNx64 " %" SCNx64, &first, &last);
    if (count == 2 && last > first) sizes[i] = last - first + 1;
  }
  return sizes;
}

std::vector<GroupMember> read_members(const std::string& root, const std::string& folder,
                                      const std::string& address) {
  std::vector<GroupMember> members;
  for (const std::string& name : folder_names(folder + "iommu_group/devices")) {
    if (name == address) continue;
    const std::string other = root + kDevices + name + "/";
    const bool bridge = number_or_zero(other + "class") >> 16 == kBridgeClass;
    members.push_back({name, link_name(other + "driver"), bridge});
  }
  return members;
}

/// Of /sys/devices/pci0000:00/0000:00:01.0/0000:65:00.0 the first function.
std::string read_root_port(const std::string& folder, const std::string& address) {
  const std::string path = real_path(folder);
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (has_form(part, "xxxx:xx:1x.7")) return part == address ? std::string() : part;
    at = end + 1;
  }
  return {};
}

}  // namespace

std::optional<std::string> full_pci_address(std::string_view text) {
  std::string full(text);
  if (has_form(text, "xx:1x.7")) full = "0000:" + full;
  if (!has_form(full, "xxxx:xx:1x.7")) return std::nullopt;
  std::transform(full.begin(), full.end(), full.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return full;
}

bool GroupMember::lets_group_go() const {
  return bridge || driver.empty() || driver == kDriverName || driver == "pci-stub" ||
         driver == "pcieport";
}

PciFunction read_pci_function(const std::string& root, std::string_view address) {
  const auto full = full_pci_address(address);
  if (!full) {
    throw std::system_error(
        EINVAL, std::generic_category(),
        "'" + std::string(address) + "' is no address of a PCI function, such as 0000:65:00.0");
  }
  PciFunction function;
  function.address = *full;
  function.folder = root + kDevices + *full;
  const std::string folder = function.folder + "/";
  if (!file_exists(function.folder)) {
    fail_with(ENODEV, *full + ": there is no such PCI function; 'lspci -D' lists them");
  }
  function.class_code = number_or_zero(folder + "class");
  function.vendor = number_or_zero(folder + "vendor");
  function.device = number_or_zero(folder + "device");
  function.driver = link_name(folder + "driver");
  const std::string group = link_name(folder + "iommu_group");
  if (!group.empty() && group.find_first_not_of("0123456789") == std::string::npos) {
    function.iommu_group = static_cast<uint32_t>(std::strtoul(group.c_str(), nullptr, 10));
    function.group_members = read_members(root, folder, *full);
  }
  function.bar_bytes = read_bar_bytes(folder);
  function.link = read_link(folder, "current");
  function.link_max = read_link(folder, "max");
  function.numa_node = static_cast<int>(file_number(folder + "numa_node").value_or(-1));
  function.root_port = read_root_port(function.folder, *full);
  return function;
}

std::vector<std::string> pci_addresses(const std::string& root) {
  return folder_names(root + kDevices);
}

std::string bind_command(const PciFunction& function) {
  const std::string devices = std::string(kDevices) + function.address;
  std::string command = "modprobe vfio-pci; echo vfio-pci > " + devices + "/driver_override; ";
  if (!function.driver.empty()) {
    command += "echo " + function.address + " > " + devices + "/driver/unbind; ";
  }
  return command + "echo " + function.address + " > /sys/bus/pci/drivers_probe";
}

std::string release_command(const PciFunction& function) {
  const std::string devices = std::string(kDevices) + function.address;
  return "echo > " + devices + "/driver_override; echo " + function.address + " > " + devices +
         "/driver/unbind; echo " + function.address + " > /sys/bus/pci/drivers_probe";
}

std::string who_keeps_group(const PciFunction& function) {
  std::string names;
  for (const GroupMember& member : function.group_members) {
    if (member.lets_group_go()) continue;
    names += (names.empty() ? "" : ", ") + member.address + " (" + member.driver + ")";
  }
  return names;
}

}  // namespace gofs::ssd::vfio
