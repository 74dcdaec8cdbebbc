// SPDX-License-Identifier: Apache-2.0
//
// What Linux tells in small files: of sysfs, procfs and udev. All paths begin with a root that is
// empty but for tests, which have a tree of their own with sys/, proc/, dev/ and run/ in it.
// Nothing here throws or writes: what cannot be read is empty. Host only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gofs::ssd::vfio {

/// The contents without blanks at the end; empty where there is no such file.
std::string file_text(const std::string& path);
std::vector<std::string> file_lines(const std::string& path);
/// A number as Linux writes it: "4096", "0x010802", "-1".
std::optional<int64_t> file_number(const std::string& path);

bool file_exists(const std::string& path);
/// The last part of where a link leads: "nvme" of driver -> ../../bus/pci/drivers/nvme.
std::string link_name(const std::string& path);
/// The path with all links followed; empty where there is nothing.
std::string real_path(const std::string& path);
/// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> folder_names(const std::string& path);

}  // namespace gofs::ssd::vfio
