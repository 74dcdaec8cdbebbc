// SPDX-License-Identifier: Apache-2.0
#include "disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "host/image/fsck_for_test.h"
#include "host/image/striped_volume.h"

namespace gofs::judges {

namespace {

/// Writes what is not a hole of the volume to the members.
void deal_out(const testing::ImageFile& volume, const format::Stripe& stripe,
              std::vector<testing::ImageFile>& members) {
  std::vector<std::unique_ptr<image::ImageTarget>> targets;
  for (testing::ImageFile& member : members) {
    targets.push_back(image::make_memory_target(member.data(), member.bytes()));
  }
  const auto whole = image::make_striped_target(targets, stripe);
  image::Status status;
  volume.for_each_part([&](uint64_t offset, uint64_t bytes) {
    if (status.ok()) status = whole->write(offset, volume.data() + offset, bytes);
  });
  if (!status.ok()) throw std::runtime_error("striping: " + status.message);
}

/// Copies what is not a hole of a member to where it lies in the volume: to read a large volume
/// through its stripe would fill all of its holes.
void join(const testing::ImageFile& member, const format::Stripe& stripe, uint32_t disk,
          testing::ImageFile& volume) {
  const uint64_t chunk_bytes = uint64_t{1} << stripe.chunk_shift;
  member.for_each_part([&](uint64_t offset, uint64_t bytes) {
    const uint64_t end = offset + bytes;
    for (uint64_t at = std::max(offset, stripe.start_bytes[disk]); at < end;) {
      const uint64_t there = at - stripe.start_bytes[disk];
      const uint64_t within = there % chunk_bytes;
      const uint64_t chunk = there / chunk_bytes * stripe.disks + disk;
      const uint64_t place = chunk * chunk_bytes + within;
      const uint64_t part = std::min(end - at, chunk_bytes - within);
      // The last round may go on behind the volume.
      if (place < volume.bytes()) {
        std::memcpy(volume.data() + place, member.data() + at,
                    std::min(part, volume.bytes() - place));
      }
      at += part;
    }
  });
}

}  // namespace

std::string Striping::options() const {
  return disks == 1 ? std::string() : fmt::format(" --disks {} --chunk {}", disks, chunk_bytes);
}

Disks::Disks(testing::ImageFile volume, const Striping& striping) : volume_bytes_(volume.bytes()) {
  const uint64_t round_bytes = striping.disks * striping.chunk_bytes;
  const uint64_t rounds = (volume.bytes() + round_bytes - 1) / round_bytes;
  stripe_.disks = striping.disks;
  stripe_.chunk_shift = static_cast<uint32_t>(std::countr_zero(striping.chunk_bytes));
  stripe_.disk_bytes = rounds * striping.chunk_bytes;
  if (striping.disks == 1) {
    members_.push_back(std::move(volume));
    return;
  }
  for (uint32_t disk = 0; disk < striping.disks; ++disk) {
    // Each at a place of its own, so that nobody takes one for the other unnoticed.
    stripe_.start_bytes[disk] = (disk + 1) * uint64_t{2 * kBlockBytes};
    members_.emplace_back(stripe_.start_bytes[disk] + stripe_.disk_bytes);
  }
  deal_out(volume, stripe_, members_);
}

const testing::ImageFile& Disks::joined() {
  if (members_.size() == 1) return members_.front();
  joined_.emplace(volume_bytes_);
  for (uint32_t disk = 0; disk < stripe_.disks; ++disk) {
    join(members_[disk], stripe_, disk, *joined_);
  }
  return *joined_;
}

testing::ImageFile make_empty_volume(uint64_t bytes, const std::string& mkfs_options,
                                     const std::string& old_bytes) {
  testing::ImageFile volume(bytes);
  for (uint64_t at = 0; at < bytes && !old_bytes.empty(); at += old_bytes.size()) {
    std::memcpy(volume.data() + at, old_bytes.data(), std::min(old_bytes.size(), bytes - at));
  }
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

std::string complaints_of(Disks& disks, bool torn) {
  const auto verdict = image::fsck_is_clean(disks.joined().path(), torn ? "Invalid CP CRC" : "");
  return verdict ? std::string() : verdict.message();
}

void cut_power(Disks& disks, const ssd::PowerCut& cut, uint64_t unit_bytes,
               const ssd::PowerCut::Survives& survives) {
  for (uint32_t disk = 0; disk < disks.count(); ++disk) {
    cut.apply({disks[disk].data(), disks[disk].bytes()}, unit_bytes, survives, disk);
  }
}

void put_back(Disks& copy, const Disks& base, const ssd::WriteTrace& trace) {
  for (const ssd::LoggedCommand& command : trace.commands) {
    copy[command.disk].assign(base[command.disk], command.offset, command.bytes);
  }
}

}  // namespace gofs::judges
