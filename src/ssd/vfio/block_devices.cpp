// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/block_devices.h"

#include <cctype>
#include <string_view>

#include "ssd/device_use.h"
#include "ssd/vfio/system_files.h"

namespace gofs::ssd::vfio {

namespace {

constexpr uint64_t kSectorBytes = 512;  // of sysfs, whatever the disk has

std::string take_digits(std::string_view& rest) {
  size_t count = 0;
  while (count < rest.size() && std::isdigit(static_cast<unsigned char>(rest[count])) != 0) ++count;
  std::string digits(rest.substr(0, count));
  rest.remove_prefix(count);
  return digits;
}

bool take_letter(std::string_view& rest, char letter) {
  if (rest.empty() || rest.front() != letter) return false;
  rest.remove_prefix(1);
  return true;
}

/// "nvme0n1" of that and of nvme0c1n1, which is one of several ways to the disk; empty if the name
/// is of something else.
std::string disk_name(const std::string& name) {
  std::string_view rest = name;
  if (rest.substr(0, 4) != "nvme") return {};
  rest.remove_prefix(4);
  const std::string subsystem = take_digits(rest);
  if (subsystem.empty()) return {};
  if (take_letter(rest, 'c') && take_digits(rest).empty()) return {};
  if (!take_letter(rest, 'n')) return {};
  const std::string space = take_digits(rest);
  if (space.empty() || !rest.empty()) return {};
  return "nvme" + subsystem + "n" + space;
}

/// What udev found when the disk appeared.
std::string read_contents(const std::string& root, const std::string& number) {
  const std::string notes = root + "/run/udev/data/b" + number;
  if (number.empty() || !file_exists(notes)) return {};
  std::string table;
  for (const std::string& line : file_lines(notes)) {
    if (line.rfind("E:ID_FS_TYPE=", 0) == 0 && line.size() > 13) return line.substr(13);
    if (line.rfind("E:ID_PART_TABLE_TYPE=", 0) == 0) table = line.substr(21) + " partition table";
  }
  return table.empty() ? BlockDevice::kNothingKnown : table;
}

BlockDevice read_block_device(const std::string& root, const std::string& name) {
  const std::string folder = root + "/sys/class/block/" + name;
  const std::string number = file_text(folder + "/dev");
  BlockDevice device;
  device.name = name;
  device.bytes = static_cast<uint64_t>(file_number(folder + "/size").value_or(0)) * kSectorBytes;
  device.use = use_of_device(root, name);
  device.contents = read_contents(root, number);
  return device;
}

}  // namespace

std::vector<BlockDevice> read_block_devices(const std::string& root, const PciFunction& function) {
  std::vector<BlockDevice> devices;
  const std::string controllers = function.folder + "/nvme/";
  for (const std::string& controller : folder_names(controllers)) {
    for (const std::string& entry : folder_names(controllers + controller)) {
      const std::string disk = disk_name(entry);
      if (disk.empty()) continue;
      devices.push_back(read_block_device(root, disk));
      for (const std::string& part : folder_names(root + "/sys/class/block/" + disk)) {
        if (part.rfind(disk + "p", 0) != 0) continue;
        devices.push_back(read_block_device(root, part));
      }
    }
  }
  return devices;
}

std::string what_is_in_use(const std::vector<BlockDevice>& devices) {
  for (const BlockDevice& device : devices) {
    if (device.use == "swap") return device.name + " is used for swap";
    if (!device.use.empty()) return device.name + " is " + device.use;
  }
  return {};
}

}  // namespace gofs::ssd::vfio
