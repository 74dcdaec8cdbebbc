// SPDX-License-Identifier: Apache-2.0
#include "disk.h"

#include <fmt/format.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "host/image/fsck_for_test.h"
#include "host/image/striped_volume.h"

namespace gofs::judges {

namespace {

/// Calls `work(target)` with the members as one volume.
template <typename Work>
void on_members(std::vector<testing::ImageFile>& members, const format::Stripe& stripe,
                const Work& work) {
  std::vector<std::unique_ptr<image::ImageTarget>> targets;
  for (testing::ImageFile& member : members) {
    targets.push_back(image::make_memory_target(member.data(), member.bytes()));
  }
  const auto whole = image::make_striped_target(targets, stripe);
  const image::Status status = work(*whole);
  if (!status.ok()) throw std::runtime_error("striping: " + status.message);
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
  on_members(members_, stripe_, [&](image::ImageTarget& whole) {
    image::Status status;
    volume.for_each_part([&](uint64_t offset, uint64_t bytes) {
      if (status.ok()) status = whole.write(offset, volume.data() + offset, bytes);
    });
    return status;
  });
}

const testing::ImageFile& Disks::joined() {
  if (members_.size() == 1) return members_.front();
  if (!joined_) joined_.emplace(volume_bytes_);
  on_members(members_, stripe_, [&](image::ImageTarget& whole) {
    return whole.read(0, joined_->data(), volume_bytes_);
  });
  return *joined_;
}

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
