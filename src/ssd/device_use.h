// SPDX-License-Identifier: Apache-2.0
//
// What Linux uses a disk or a file for, as sysfs, procfs and the loop driver tell it. Nothing here
// throws or writes; what cannot be read is empty. `root` is empty but for tests, which have a tree
// of their own with sys/ and proc/ in it. Host only.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gofs::ssd {

/// Whether `stat` of two places finds the same file, or the same device.
bool is_same_file(const struct stat& a, const struct stat& b);

/// "mounted at /home", "swap", "part of md127" of the disk or partition `name` ("nvme0n1p2").
/// Empty: none of these.
std::string use_of_device(const std::string& root, const std::string& name);

/// The same of a device by its number, or of one of its partitions: "sda2 is mounted at /home".
std::string holder_of_device(const std::string& root, dev_t device);

/// The loop device that has this file or device, "/dev/loop0", or empty.
std::string loop_device_of(const std::string& root, const struct stat& file);

/// The file or device that a loop device, or one that a partition is of, has.
struct LoopFile {
  std::string path;     // empty: it is no loop device, or the file no longer has this name
  bool whole = false;   // all of it is the device
  uint64_t offset = 0;  // where in it the device begins
};
LoopFile file_of_loop_device(const std::string& root, dev_t device);

}  // namespace gofs::ssd
