// SPDX-License-Identifier: Apache-2.0
#include "host/image/striped_volume.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "format/md.h"
#include "host/image/contents.h"
#include "host/image/mkfs.h"
#include "host/image/volume_writer.h"

namespace gofs::image {

namespace {

using Targets = std::vector<std::unique_ptr<ImageTarget>>;

class StripedTarget final : public ImageTarget {
 public:
  StripedTarget(const Targets& disks, const format::Stripe& stripe)
      : disks_(disks), stripe_(stripe) {}

  uint64_t size_bytes() const override { return format::stripe_bytes(stripe_); }
  Status write(uint64_t offset_bytes, const void* data, size_t bytes) override {
    const auto* const from = static_cast<const uint8_t*>(data);
    return deal(offset_bytes, bytes, [&](ImageTarget& disk, uint64_t at, uint64_t done, size_t n) {
      return disk.write(at, from + done, n);
    });
  }
  Status read(uint64_t offset_bytes, void* data, size_t bytes) override {
    auto* const to = static_cast<uint8_t*>(data);
    return deal(offset_bytes, bytes, [&](ImageTarget& disk, uint64_t at, uint64_t done, size_t n) {
      return disk.read(at, to + done, n);
    });
  }
  Status write_zeros(uint64_t offset_bytes, uint64_t bytes) override {
    const uint64_t end = offset_bytes + bytes;
    for (uint32_t disk = 0; disk < stripe_.disks; ++disk) {
      const uint64_t from = format::bytes_on_disk(stripe_, disk, offset_bytes);
      const uint64_t to = format::bytes_on_disk(stripe_, disk, end);
      GOFS_RETURN_IF_FAILED(disks_[disk]->write_zeros(stripe_.start_bytes[disk] + from, to - from));
    }
    return {};
  }
  Status flush() override {
    for (const auto& disk : disks_) GOFS_RETURN_IF_FAILED(disk->flush());
    return {};
  }

 private:
  /// Calls `move(disk, offset there, bytes before, bytes)` for each part that lies together.
  template <typename Move>
  Status deal(uint64_t offset, size_t bytes, Move move) {
    const uint64_t chunk = uint64_t{1} << stripe_.chunk_shift;
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t at = offset + done;
      const format::StripePlace place = format::place_in_stripe(stripe_, at);
      const uint64_t part = std::min(bytes - done, chunk - (at & (chunk - 1)));
      GOFS_RETURN_IF_FAILED(move(*disks_[place.disk], place.offset, done, part));
      done += part;
    }
    return {};
  }

  const Targets& disks_;
  const format::Stripe stripe_;
};

Status fill_random(void* bytes, size_t count) {
  const ssize_t got = getrandom(bytes, count, 0);
  return got == static_cast<ssize_t>(count) ? Status{} : Status::system_failure(-EIO, "getrandom");
}

/// Writes the superblocks of a new array. What was before the volume on each disk goes.
Status write_superblocks(const Targets& disks, const format::Stripe& stripe) {
  const auto super = std::make_unique<format::MdSuperblock>();
  std::memset(static_cast<void*>(super.get()), 0, sizeof(*super));
  super->magic = format::kMdMagic;
  super->major_version = 1;
  // With one zone both of its layouts are the same; Linux wants the layout all the same.
  super->feature_map = format::kMdFeatureRaid0Layout;
  super->layout = 2;
  GOFS_RETURN_IF_FAILED(fill_random(super->set_uuid, sizeof(super->set_uuid)));
  std::memcpy(super->set_name, "gofs", 4);
  super->ctime = super->utime = static_cast<uint64_t>(std::time(nullptr));
  super->chunk_sectors = 1u << (stripe.chunk_shift - format::kMdSectorShift);
  super->raid_disks = stripe.disks;
  super->data_size = stripe.disk_bytes >> format::kMdSectorShift;
  super->super_offset = format::kMdSuperblockOffset >> format::kMdSectorShift;
  super->resync_offset = ~uint64_t{0};  // in step, as there is nothing to be
  constexpr uint32_t kRoles = 128;
  super->max_dev = kRoles;
  for (uint32_t i = 0; i < kRoles; ++i) {
    super->dev_roles[i] = static_cast<uint16_t>(i < stripe.disks ? i : format::kMdRoleSpare);
  }
  for (uint32_t disk = 0; disk < stripe.disks; ++disk) {
    super->data_offset = stripe.start_bytes[disk] >> format::kMdSectorShift;
    super->dev_number = disk;
    GOFS_RETURN_IF_FAILED(fill_random(super->device_uuid, sizeof(super->device_uuid)));
    super->sb_csum = format::md_checksum(*super);
    GOFS_RETURN_IF_FAILED(disks[disk]->write_zeros(0, stripe.start_bytes[disk]));
    GOFS_RETURN_IF_FAILED(
        disks[disk]->write(format::kMdSuperblockOffset, super.get(), sizeof(*super)));
  }
  return {};
}

/// The stripe of disks of `bytes` each, or of those sizes that the disks have.
Status plan_stripe(const Targets& disks, const std::vector<std::string>& paths, uint64_t size_bytes,
                   uint64_t chunk_bytes, format::Stripe& stripe) {
  stripe.disks = static_cast<uint32_t>(disks.size());
  stripe.chunk_shift = static_cast<uint32_t>(std::countr_zero(chunk_bytes));
  if (size_bytes != 0) {
    const uint64_t each = (size_bytes + disks.size() - 1) / disks.size();
    stripe.disk_bytes = (each + chunk_bytes - 1) >> stripe.chunk_shift << stripe.chunk_shift;
  }
  for (uint32_t disk = 0; disk < stripe.disks; ++disk) {
    stripe.start_bytes[disk] = kArrayStartBytes;
    if (size_bytes != 0) continue;
    const uint64_t bytes = disks[disk]->size_bytes();
    const uint64_t room = bytes > kArrayStartBytes ? bytes - kArrayStartBytes : 0;
    const uint64_t whole = room >> stripe.chunk_shift << stripe.chunk_shift;
    if (disk == 0) stripe.disk_bytes = whole;
    if (whole != stripe.disk_bytes) {
      return Status::failure(
          -EINVAL, paths[disk] + ": of another size than " + paths[0] + ", which is not supported");
    }
  }
  return {};
}

Status open_all(const std::vector<std::string>& paths, Targets& disks) {
  disks.clear();
  for (const std::string& path : paths) {
    GOFS_RETURN_IF_FAILED(open_file_target(path, 0, &disks.emplace_back()));
  }
  return {};
}

Status with_path(const std::string& path, const Status& status) {
  if (status.ok() || status.message.starts_with(path)) return status;
  return Status::failure(status.error, path + ": " + status.message);
}

}  // namespace

std::unique_ptr<ImageTarget> make_striped_target(const Targets& disks,
                                                 const format::Stripe& stripe) {
  return std::make_unique<StripedTarget>(disks, stripe);
}

Status make_array(const std::vector<std::string>& paths, uint64_t size_bytes, uint64_t chunk_bytes,
                  const VolumeOptions& options, Targets* disks, format::Stripe* stripe) {
  if (paths.size() > format::kStripeDisksMax) {
    return Status::failure(-EINVAL,
                           "more than " + std::to_string(format::kStripeDisksMax) + " SSDs");
  }
  GOFS_RETURN_IF_FAILED(open_all(paths, *disks));
  GOFS_RETURN_IF_FAILED(plan_stripe(*disks, paths, size_bytes, chunk_bytes, *stripe));
  GOFS_RETURN_IF_FAILED(check_request(format::stripe_bytes(*stripe), options));
  if (!options.overwrite) {
    for (size_t disk = 0; disk < disks->size(); ++disk) {
      GOFS_RETURN_IF_FAILED(with_path(paths[disk], refuse_contents(*(*disks)[disk])));
    }
  }
  for (size_t disk = 0; size_bytes != 0 && disk < disks->size(); ++disk) {
    const uint64_t bytes = kArrayStartBytes + stripe->disk_bytes;
    GOFS_RETURN_IF_FAILED(with_path(paths[disk], (*disks)[disk]->resize(bytes)));
  }
  return write_superblocks(*disks, *stripe);
}

Status make_array_volume(const std::vector<std::string>& paths, uint64_t size_bytes,
                         uint64_t chunk_bytes, const VolumeOptions& options) {
  std::vector<std::string> missing;
  for (const std::string& path : paths) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0 && errno == ENOENT) missing.push_back(path);
  }
  Targets disks;
  format::Stripe stripe{};
  Status status = make_array(paths, size_bytes, chunk_bytes, options, &disks, &stripe);
  if (status.ok()) {
    StripedTarget whole(disks, stripe);
    VolumeOptions fresh = options;
    fresh.overwrite = true;  // what an older array has left there is no volume
    status = make_volume(whole, fresh);
  }
  if (!status.ok()) {
    for (const std::string& path : missing) remove_made(path);
  }
  return status;
}

Status make_volume_on_array(const std::vector<std::string>& paths, const format::Stripe& stripe,
                            const VolumeOptions& options) {
  Targets disks;
  GOFS_RETURN_IF_FAILED(open_all(paths, disks));
  StripedTarget whole(disks, stripe);
  if (!options.overwrite) GOFS_RETURN_IF_FAILED(refuse_existing_volume(whole));
  for (uint32_t disk = 0; !options.overwrite && disk < stripe.disks; ++disk) {
    GOFS_RETURN_IF_FAILED(with_path(
        paths[disk], refuse_contents(*disks[disk], stripe.start_bytes[disk], stripe.disk_bytes)));
  }
  return make_volume(whole, options);
}

}  // namespace gofs::image
