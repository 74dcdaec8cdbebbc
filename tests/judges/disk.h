// SPDX-License-Identifier: Apache-2.0
//
// Volumes for judges: what mkfs.f2fs makes, on one SSD or striped over several, and as images that
// fsck.f2fs can look at while they are in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/stripe.h"
#include "ssd/power_cut.h"
#include "testing/image_file.h"

namespace gofs::judges {

/// Over how many SSDs a volume is striped.
struct Striping {
  uint32_t disks = 1;                  // up to format::kStripeDisksMax
  uint64_t chunk_bytes = kBlockBytes;  // a power of two, at least a block

  /// As add_striping_options() has it, behind a space; nothing for one SSD.
  std::string options() const;
};

/// What the SSDs of a volume hold.
class Disks {
 public:
  /// Deals `volume` out to them. Throws std::runtime_error, std::system_error.
  explicit Disks(testing::ImageFile volume, const Striping& striping = {});

  uint32_t count() const { return stripe_.disks; }
  const format::Stripe& stripe() const { return stripe_; }
  testing::ImageFile& operator[](uint32_t disk) { return members_[disk]; }
  const testing::ImageFile& operator[](uint32_t disk) const { return members_[disk]; }

  /// The volume as one image: with one SSD what it holds, with several a copy of what they hold at
  /// this moment, with its holes, which is good until the next call. Throws std::system_error.
  const testing::ImageFile& joined();

 private:
  format::Stripe stripe_{};
  std::vector<testing::ImageFile> members_;
  uint64_t volume_bytes_;
  std::optional<testing::ImageFile> joined_;
};

/// What mkfs.f2fs makes with these options, of a disk that was full of `old_bytes`, or zeros.
/// Throws std::runtime_error.
testing::ImageFile make_empty_volume(uint64_t bytes, const std::string& mkfs_options = "",
                                     const std::string& old_bytes = "");

/// Throws std::runtime_error.
testing::ImageFile load_volume(const std::string& path);

/// What fsck.f2fs complains about, or nothing. `torn`: one checkpoint may be half written.
std::string complaints_of(Disks& disks, bool torn = false);

/// Makes of the disks, which hold what was there before the cut's trace, what is there after it.
void cut_power(Disks& disks, const ssd::PowerCut& cut, uint64_t unit_bytes,
               const ssd::PowerCut::Survives& survives);

/// Undoes on a copy of `base` what the commands of a trace did, whatever of it took place.
void put_back(Disks& copy, const Disks& base, const ssd::WriteTrace& trace);

}  // namespace gofs::judges
