// SPDX-License-Identifier: Apache-2.0
#include "ssd/device_use.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <optional>
#include <sstream>

#include "ssd/descriptor.h"
#include "ssd/vfio/system_files.h"

namespace gofs::ssd {

namespace {

using vfio::file_exists;
using vfio::file_lines;
using vfio::file_text;
using vfio::folder_names;

/// Linux writes blanks in paths as \040.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// Where it is mounted, by its number or by its name: btrfs shows a number of its own.
std::string mount_point(const std::string& root, const std::string& name,
                        const std::string& number) {
  for (const std::string& line : file_lines(root + "/proc/self/mountinfo")) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string inside;
    std::string where;
    words >> id >> parent >> device >> inside >> where;
    std::string word;
    while (words >> word && word != "-") {
    }
    std::string type;
    std::string source;
    words >> type >> source;
    if ((!number.empty() && device == number) || source == "/dev/" + name) {
      return without_escapes(where);
    }
  }
  return {};
}

bool is_swap(const std::string& root, const std::string& name) {
  for (const std::string& line : file_lines(root + "/proc/swaps")) {
    std::istringstream words(line);
    std::string path;
    words >> path;
    if (path == "/dev/" + name) return true;
  }
  return false;
}

/// "md127", or "dm-0 (home)": the device mapper's have names of their own.
std::string with_mapper_name(const std::string& root, const std::string& name) {
  const std::string mapped = file_text(root + "/sys/class/block/" + name + "/dm/name");
  return mapped.empty() ? name : name + " (" + mapped + ")";
}

/// What the driver says of a loop device, if it may be asked.
std::optional<loop_info64> ask_loop(const std::string& path) {
  const Descriptor loop = Descriptor::open(path, O_RDONLY | O_NONBLOCK);
  loop_info64 info{};
  if (!loop.is_open() || ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) != 0) return std::nullopt;
  return info;
}

bool is_of(const loop_info64& info, const struct stat& file) {
  if (S_ISBLK(file.st_mode)) return info.lo_rdevice == file.st_rdev && info.lo_rdevice != 0;
  return info.lo_device == file.st_dev && info.lo_inode == file.st_ino;
}

bool loop_has(const std::string& root, const std::string& name, const struct stat& file) {
  const std::string bound = root + "/sys/class/block/" + name + "/loop/backing_file";
  if (!file_exists(bound)) return false;
  if (const auto told = ask_loop(root + "/dev/" + name); told && is_of(*told, file)) return true;
  // By its name, as it was when the device got it.
  struct stat backing {};
  return ::stat(file_text(bound).c_str(), &backing) == 0 && is_same_file(backing, file);
}

/// In bytes; sysfs counts sectors of 512.
uint64_t start_of_partition(const std::string& folder) {
  uint64_t sectors = 0;
  std::istringstream(file_text(folder + "/start")) >> sectors;
  return sectors * 512;
}

}  // namespace

bool is_same_file(const struct stat& a, const struct stat& b) {
  if (S_ISBLK(a.st_mode) || S_ISBLK(b.st_mode)) {
    return S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode) && a.st_rdev == b.st_rdev;
  }
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string use_of_device(const std::string& root, const std::string& name) {
  const std::string folder = root + "/sys/class/block/" + name;
  const std::string where = mount_point(root, name, file_text(folder + "/dev"));
  if (!where.empty()) return "mounted at " + where;
  if (is_swap(root, name)) return "swap";
  const std::vector<std::string> holders = folder_names(folder + "/holders");
  if (!holders.empty()) return "part of " + with_mapper_name(root, holders.front());
  return {};
}

std::string holder_of_device(const std::string& root, dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string name = vfio::link_name(root + "/sys/dev/block/" + number);
  if (name.empty()) return {};
  std::string use = use_of_device(root, name);
  if (!use.empty()) return use;
  const std::string folder = root + "/sys/class/block/" + name;
  for (const std::string& part : folder_names(folder)) {
    if (!file_exists(folder + "/" + part + "/partition")) continue;
    use = use_of_device(root, part);
    if (!use.empty()) return part + " is " + use;
  }
  return {};
}

std::string loop_device_of(const std::string& root, const struct stat& file) {
  for (const std::string& name : folder_names(root + "/sys/class/block")) {
    if (name.rfind("loop", 0) == 0 && loop_has(root, name, file)) return "/dev/" + name;
  }
  return {};
}

LoopFile file_of_loop_device(const std::string& root, dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string link = root + "/sys/dev/block/" + number;
  const bool is_part = file_exists(link + "/partition");
  const std::string bound = file_text(link + (is_part ? "/../loop/" : "/loop/") + "backing_file");
  if (bound.empty()) return {};
  std::string name = vfio::link_name(link);
  if (is_part) name.resize(name.rfind('p'));  // loop0p1
  struct stat status {};
  const auto info = ask_loop(root + "/dev/" + name);
  if (!info || ::stat(bound.c_str(), &status) != 0 || !is_of(*info, status)) return {};
  const bool whole = !is_part && info->lo_offset == 0 && info->lo_sizelimit == 0;
  return {bound, whole, info->lo_offset + (is_part ? start_of_partition(link) : 0)};
}

}  // namespace gofs::ssd
