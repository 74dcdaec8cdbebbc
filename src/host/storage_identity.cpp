// SPDX-License-Identifier: Apache-2.0
#include "host/storage_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "ssd/descriptor.h"

namespace gofs::host {
namespace {

namespace fs = std::filesystem;

/// Where Linux tells of a block device; empty if nowhere.
fs::path sysfs_folder(dev_t device) {
  std::error_code error;
  const std::string link = fmt::format("/sys/dev/block/{}:{}", major(device), minor(device));
  fs::path folder = fs::canonical(link, error);
  return error ? fs::path() : folder;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number of the device that has the folder `folder` in sysfs.
std::optional<dev_t> device_of_folder(const fs::path& folder) {
  unsigned int number[2];
  if (std::sscanf(first_line(folder / "dev").c_str(), "%u:%u", &number[0], &number[1]) != 2) {
    return std::nullopt;
  }
  return makedev(number[0], number[1]);
}

std::vector<dev_t> devices_below(const fs::path& folder) {
  std::vector<dev_t> devices;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "slaves", error)) {
    if (const auto device = device_of_folder(entry.path())) devices.push_back(*device);
  }
  return devices;
}

struct BackingFile {
  dev_t device;
  ino_t inode;
};

/// The file that a loop device has. Asked of the device itself, since the path in sysfs may be that
/// of another file by now; by the path where the device may not be opened.
std::optional<BackingFile> backing_file(const fs::path& folder) {
  const std::string path = first_line(folder / "loop" / "backing_file");
  if (path.empty()) return std::nullopt;
  const auto loop = ssd::Descriptor::open("/dev/" + folder.filename().string(), O_RDONLY);
  loop_info64 info{};
  if (loop.is_open() && ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) == 0) {
    return BackingFile{static_cast<dev_t>(info.lo_device), static_cast<ino_t>(info.lo_inode)};
  }
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return BackingFile{status.st_dev, status.st_ino};
}

}  // namespace

StorageIdentity::StorageIdentity(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat status;
    if (::stat(path.c_str(), &status) == 0) add(volume_, status);
  }
}

void StorageIdentity::add(Pieces& pieces, const struct stat& status) {
  if (S_ISREG(status.st_mode)) pieces.whole.insert({false, status.st_dev, status.st_ino});
  if (S_ISBLK(status.st_mode)) add_device(pieces, status.st_rdev);
}

void StorageIdentity::add_device(Pieces& pieces, dev_t device) {
  struct Pending {
    dev_t device;
    bool in_part;
  };
  std::vector<Pending> pending = {{device, false}};
  while (!pending.empty()) {
    const auto [next, in_part] = pending.back();
    pending.pop_back();
    std::set<Piece>& known = in_part ? pieces.disks : pieces.whole;
    if (!known.insert({true, next, 0}).second) continue;
    const fs::path folder = sysfs_folder(next);
    if (folder.empty()) continue;
    if (const auto file = backing_file(folder)) known.insert({false, file->device, file->inode});
    for (const dev_t below : devices_below(folder)) pending.push_back({below, in_part});
    std::error_code error;
    if (!fs::exists(folder / "partition", error)) continue;
    if (const auto disk = device_of_folder(folder.parent_path())) pending.push_back({*disk, true});
  }
}

bool StorageIdentity::has(const struct stat& status) const {
  Pieces other;
  add(other, status);
  const auto meet = [](const std::set<Piece>& some, const std::set<Piece>& others) {
    return std::any_of(some.begin(), some.end(),
                       [&](const Piece& piece) { return others.contains(piece); });
  };
  // Two partitions of one disk have the disk in common and nothing else.
  return meet(other.whole, volume_.whole) || meet(other.whole, volume_.disks) ||
         meet(other.disks, volume_.whole);
}

}  // namespace gofs::host
