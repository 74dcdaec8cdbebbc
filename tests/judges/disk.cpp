// SPDX-License-Identifier: Apache-2.0
#include "disk.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "host/image/fsck_for_test.h"

namespace gofs::judges {

testing::ImageFile make_empty_volume(uint64_t bytes, const std::string& mkfs_options) {
  testing::ImageFile volume(bytes);
  const auto made = image::run_tool("mkfs.f2fs -q " + mkfs_options + " '" + volume.path() + "'");
  if (made.exit_code != 0) throw std::runtime_error("mkfs.f2fs: " + made.output);
  return volume;
}

testing::ImageFile load_volume(const std::string& path) {
  testing::ImageFile volume(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(volume.data()), static_cast<std::streamsize>(volume.bytes()));
  if (!file.good()) throw std::runtime_error("cannot read " + path);
  return volume;
}

std::string complaints_of(const std::string& path, bool torn) {
  const auto verdict = image::fsck_is_clean(path, torn ? "Invalid CP CRC" : "");
  return verdict ? std::string() : verdict.message();
}

void put_back(testing::ImageFile& copy, const testing::ImageFile& base,
              const ssd::WriteTrace& trace) {
  for (const ssd::LoggedCommand& command : trace.commands) {
    copy.assign(base, command.offset, command.bytes);
  }
}

}  // namespace gofs::judges
