// SPDX-License-Identifier: Apache-2.0
//
// The sample volume dealt out over several images, with md's superblocks or without, for tests of
// stripes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/md.h"
#include "format/stripe.h"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/image/striped_volume.h"
#include "host/volume_for_test.h"

namespace gofs::host {

/// The sample volume on several images.
class Striped {
 public:
  Striped(uint32_t disks, uint32_t chunk_shift, bool is_array) {
    std::vector<char> whole = bytes_of(sample_volume().path());
    bytes_ = whole.size();
    const uint64_t chunk = uint64_t{1} << chunk_shift;
    stripe_ = {disks, chunk_shift, (bytes_ / disks + chunk) >> chunk_shift << chunk_shift, {}};
    whole.resize(format::stripe_bytes(stripe_));
    for (uint32_t disk = 0; disk < disks; ++disk) {
      stripe_.start_bytes[disk] = is_array ? uint64_t{4096} * (4 + disk) : 0;
      members_.push_back(std::make_unique<image::TemporaryPath>());
      std::vector<char> bytes(stripe_.start_bytes[disk] + stripe_.disk_bytes);
      for (uint64_t at = uint64_t{disk} << chunk_shift; at < whole.size(); at += disks * chunk) {
        const auto place = format::place_in_stripe(stripe_, at);
        std::memcpy(bytes.data() + place.offset, whole.data() + at, chunk);
      }
      write(disk, 0, bytes.data(), bytes.size());
      if (is_array) write_super(disk, [](format::MdSuperblock&) {});
    }
  }

  std::string path(uint32_t disk) const { return members_[disk]->path(); }
  std::string spec(const std::vector<uint32_t>& order, const std::string& options = "") const {
    std::string text;
    for (const uint32_t disk : order) text += (text.empty() ? "" : "+") + path(disk);
    return text + options;
  }
  const format::Stripe& stripe() const { return stripe_; }

  void write(uint32_t disk, uint64_t offset, const void* bytes, size_t count) const {
    const int file = ::open(path(disk).c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(file, bytes, count, static_cast<off_t>(offset)),
              static_cast<ssize_t>(count));
    ::close(file);
  }
  /// The superblock of a member as mdadm would make it, but for what `spoil` does to it.
  void write_super(uint32_t disk, const std::function<void(format::MdSuperblock&)>& spoil,
                   bool mends_checksum = true) const {
    auto super = std::make_unique<format::MdSuperblock>();
    std::memset(static_cast<void*>(super.get()), 0, sizeof(*super));
    super->magic = format::kMdMagic;
    super->major_version = 1;
    super->set_uuid[0] = 0x5e;
    super->chunk_sectors = 1u << (stripe_.chunk_shift - 9);
    super->raid_disks = stripe_.disks;
    super->data_offset = stripe_.start_bytes[disk] >> 9;
    super->data_size = stripe_.disk_bytes >> 9;
    super->super_offset = 8;
    super->dev_number = disk + 2;  // numbers are not places
    super->max_dev = 16;
    for (uint32_t i = 0; i < 16; ++i) {
      const bool is_member = i >= 2 && i < 2 + stripe_.disks;
      super->dev_roles[i] = static_cast<uint16_t>(is_member ? i - 2 : format::kMdRoleSpare);
    }
    spoil(*super);
    if (mends_checksum) super->sb_csum = format::md_checksum(*super);
    write(disk, format::kMdSuperblockOffset, super.get(), sizeof(*super));
  }

  /// What the members hold, as one image.
  void gather(const std::string& to) const {
    std::vector<std::unique_ptr<image::ImageTarget>> disks;
    for (const auto& member : members_) {
      ASSERT_TRUE(image::open_file_target(member->path(), 0, &disks.emplace_back()).ok());
    }
    std::vector<char> whole(bytes_);
    ASSERT_TRUE(image::make_striped_target(disks, stripe_)->read(0, whole.data(), bytes_).ok());
    std::ofstream(to, std::ios::binary).write(whole.data(), static_cast<std::streamsize>(bytes_));
  }

 private:
  static std::vector<char> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::vector<char> bytes(static_cast<size_t>(file.tellg()));
    file.seekg(0);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }

  uint64_t bytes_ = 0;
  format::Stripe stripe_{};
  std::vector<std::unique_ptr<image::TemporaryPath>> members_;
};

/// All files of the sample volume are as they were made.
inline void expect_whole(Volume& volume) {
  for (const auto& [path, sample] : sample_volume().files()) {
    const uint64_t bytes = std::min<uint64_t>(sample.size_bytes, 12 << 20);
    const int fd = volume.open(path).value();
    std::vector<uint8_t> got(bytes + 1);
    const auto read = volume.pread(fd, got.data(), bytes, 0);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(*read, bytes);
    EXPECT_TRUE(sample_volume().has(path, got.data(), bytes, 0));
    EXPECT_TRUE(volume.close(fd));
  }
}

}  // namespace gofs::host
