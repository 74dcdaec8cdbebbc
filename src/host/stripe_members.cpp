// SPDX-License-Identifier: Apache-2.0
#include "host/stripe_members.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "format/md.h"
#include "host/messages.h"
#include "host/probe_ssd.h"
#include "ssd/descriptor.h"
#include "ssd/hosted/backing_store.h"

namespace gofs::host {

namespace {

/// What there is of one member.
struct Member {
  VolumeSpec spec;
  std::pair<dev_t, ino_t> file;  // which it is
  uint64_t bytes = 0;
  uint32_t lba_bytes = 0;  // of a physical SSD, or asked for; 0: any
  std::optional<format::MdSuperblock> super;
  uint32_t role = 0;  // of super: its place in the array
};

std::string name_of(const Member& member) {
  return member.spec.path.empty() ? member.spec.text : member.spec.path;
}

Error fault(int code, const Member& member, const std::string& words) {
  return make_error(code, name_of(member), words);
}

/// As look_at().
Expected<void> look_at_physical(Member& member) {
  auto probed = probe_ssd(member.spec, format::kMdSuperblockOffset);
  if (!probed) return probed.error();
  member.bytes = probed->bytes;
  member.lba_bytes = probed->lba_bytes;
  static_assert(sizeof(format::MdSuperblock) <= kBlockBytes);
  format::MdSuperblock super;
  if (probed->block.size() < sizeof(super)) return {};
  std::memcpy(static_cast<void*>(&super), probed->block.data(), sizeof(super));
  if (super.magic == format::kMdMagic) member.super = super;
  return {};
}

/// Finds the size of an image, device or SSD, and md's superblock if it has one.
Expected<void> look_at(Member& member) {
  if (member.spec.is_physical()) return look_at_physical(member);
  member.lba_bytes = member.spec.lba_bytes.value_or(0);
  if (member.spec.path.empty()) {
    member.bytes = member.spec.memory_bytes;
    return {};
  }
  const ssd::Descriptor file = ssd::Descriptor::open(member.spec.path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) return make_error(errno, member.spec.path);
  const int descriptor = file.get();
  struct stat status {};
  ssize_t got = 0;
  format::MdSuperblock super;
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  member.file = {status.st_dev, status.st_ino};
  member.bytes = static_cast<uint64_t>(status.st_size);
  if (error == 0 && S_ISBLK(status.st_mode)) {
    member.file = {status.st_rdev, 0};  // by whichever of its nodes
    if (::ioctl(descriptor, BLKGETSIZE64, &member.bytes) != 0) error = errno;
  }
  if (error == 0) {
    got = ::pread(descriptor, &super, sizeof(super), format::kMdSuperblockOffset);
    if (got < 0) error = errno;
  }
  if (error != 0) return make_error(error, member.spec.path);
  if (got == sizeof(super) && super.magic == format::kMdMagic) member.super = super;
  return {};
}

/// Whether a member's superblock is sound and one that we can follow; finds its place.
Expected<void> check_super(Member& member, size_t count) {
  const format::MdSuperblock& super = *member.super;
  if (super.major_version != 1 ||
      super.super_offset != format::kMdSuperblockOffset >> format::kMdSectorShift) {
    return fault(EOPNOTSUPP, member, "its md superblock is not of version 1.2");
  }
  if (super.max_dev > format::kMdRolesMax || format::md_checksum(super) != super.sb_csum) {
    return fault(EUCLEAN, member, "damaged: its md superblock has a wrong checksum");
  }
  if (super.level != 0) {
    return fault(EOPNOTSUPP, member,
                 fmt::format("a disk of an md array of RAID level {}: only level 0 is supported",
                             static_cast<int32_t>(super.level.value())));
  }
  const uint32_t unknown = super.feature_map & ~format::kMdFeatureRaid0Layout;
  if (unknown != 0) {
    return fault(EOPNOTSUPP, member,
                 fmt::format("its md array has features {:#x}, which are not supported", unknown));
  }
  if (super.raid_disks != count) {
    return fault(EINVAL, member,
                 fmt::format("a disk of an md array of {} disks, and {} are given",
                             super.raid_disks.value(), count));
  }
  const uint64_t chunk_bytes = uint64_t{super.chunk_sectors} << format::kMdSectorShift;
  if (!std::has_single_bit(chunk_bytes) || chunk_bytes < kBlockBytes) {
    return fault(EOPNOTSUPP, member,
                 fmt::format("its md array has chunks of {} bytes: powers of two from 4K on are "
                             "supported",
                             chunk_bytes));
  }
  // Whole chunks count; behind the last one of a file there may be less than was said.
  const uint64_t sectors = member.bytes >> format::kMdSectorShift;
  const uint64_t used = super.data_size / super.chunk_sectors * super.chunk_sectors;
  if (super.data_offset > sectors || used > sectors - super.data_offset ||
      (super.data_offset & 7) != 0) {
    return fault(EUCLEAN, member, "damaged: its md superblock names data that is not there");
  }
  if (super.dev_number >= super.max_dev || super.dev_roles[super.dev_number] >= count) {
    return fault(EUCLEAN, member, "damaged: its md superblock gives it no place in the array");
  }
  member.role = super.dev_roles[super.dev_number];
  return {};
}

/// What each member has for the volume, `bytes` cut down to whole chunks: as much as the first.
Expected<void> settle_size(const Member& member, const Member& first, uint64_t bytes,
                           format::Stripe& stripe) {
  const uint64_t whole = bytes >> stripe.chunk_shift << stripe.chunk_shift;
  if (&member == &first) stripe.disk_bytes = whole;
  if (whole == stripe.disk_bytes) return {};
  return fault(EOPNOTSUPP, member,
               "of another size than " + name_of(first) + ", which is not supported");
}

/// Members that all have md's superblock, in any order.
Expected<format::Stripe> arrange_array(std::vector<Member>& members) {
  for (Member& member : members) {
    if (auto checked = check_super(member, members.size()); !checked) return checked.error();
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.role < b.role; });
  const format::MdSuperblock& first = *members.front().super;
  format::Stripe stripe{};
  stripe.disks = static_cast<uint32_t>(members.size());
  const uint64_t chunk_bytes = uint64_t{first.chunk_sectors} << format::kMdSectorShift;
  stripe.chunk_shift = static_cast<uint32_t>(std::countr_zero(chunk_bytes));
  for (uint32_t disk = 0; disk < stripe.disks; ++disk) {
    const Member& member = members[disk];
    const format::MdSuperblock& super = *member.super;
    if (std::memcmp(super.set_uuid, first.set_uuid, sizeof(first.set_uuid)) != 0) {
      return fault(EINVAL, member, "a disk of another md array than " + name_of(members.front()));
    }
    if (member.role != disk) {
      return fault(EINVAL, member,
                   fmt::format("disk {} of its md array, as another one that is given, or disk {} "
                               "is missing",
                               member.role, disk));
    }
    if (super.chunk_sectors != first.chunk_sectors) {
      return fault(EUCLEAN, member, "damaged: its md superblock has chunks of another size");
    }
    const uint64_t data_bytes = uint64_t{super.data_size} << format::kMdSectorShift;
    auto settled = settle_size(member, members.front(), data_bytes, stripe);
    if (!settled) return settled.error();
    stripe.start_bytes[disk] = uint64_t{super.data_offset} << format::kMdSectorShift;
  }
  return stripe;
}

/// Members of which none has md's superblock.
Expected<format::Stripe> arrange_plain(const std::vector<Member>& members, uint64_t chunk_bytes) {
  format::Stripe stripe{};
  stripe.disks = static_cast<uint32_t>(members.size());
  stripe.chunk_shift = static_cast<uint32_t>(std::countr_zero(chunk_bytes));
  for (const Member& member : members) {
    if (member.bytes >> stripe.chunk_shift == 0) {
      return fault(EINVAL, member, "smaller than a chunk of the stripe");
    }
    auto settled = settle_size(member, members.front(), member.bytes, stripe);
    if (!settled) return settled.error();
  }
  return stripe;
}

/// Each physical SSD once. Before any of them is asked.
Expected<void> check_addresses(const std::vector<VolumeSpec>& specs) {
  for (size_t i = 1; i < specs.size(); ++i) {
    const VolumeSpec& spec = specs[i];
    for (size_t other = 0; spec.is_physical() && other < i; ++other) {
      if (specs[other].provider != spec.provider || specs[other].address != spec.address) continue;
      return make_error(EINVAL, spec.text,
                        specs[other].nsid == spec.nsid
                            ? "named twice"
                            : "another namespace of it is named too: each is to be of an SSD of "
                              "its own");
    }
  }
  return {};
}

/// The least LBAs that a controller of this process can give a member.
Expected<uint32_t> least_lba_bytes(const VolumeSpec& spec) {
  const bool may_be_hosted = spec.is_hosted() || spec.media == MediaKind::kAuto;
  if (spec.path.empty() || !may_be_hosted) return 512u;
  try {
    const ssd::BackingStore store(spec.path, ssd::FileAccess::kReadOnly);
    return store.traits().lba_bytes <= 512 ? 512u : uint32_t{kBlockBytes};
  } catch (const std::system_error& problem) {
    return Error{problem.code().value(), problem.what()};
  }
}

/// Gives the members whose LBAs are for us to choose those that the others have, or the least that
/// all of them can have.
Expected<void> settle_lbas(std::vector<Member>& members) {
  const auto decided = std::find_if(members.begin(), members.end(),
                                    [](const Member& member) { return member.lba_bytes != 0; });
  uint32_t bytes = decided != members.end() ? decided->lba_bytes : 0;
  std::vector<uint32_t> least(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    if (member.lba_bytes != 0) {
      if (member.lba_bytes == bytes) continue;
      return fault(EOPNOTSUPP, member,
                   fmt::format("has LBAs of {} bytes, and {} of {}, which is not supported",
                               member.lba_bytes, name_of(*decided), bytes));
    }
    const auto found = least_lba_bytes(member.spec);
    if (!found) return found.error();
    least[i] = *found;
    if (decided == members.end()) bytes = std::max(bytes, *found);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].lba_bytes != 0) continue;
    if (bytes < least[i] || (bytes != 512 && bytes != kBlockBytes)) {
      return fault(EOPNOTSUPP, members[i],
                   fmt::format("can have LBAs of {} bytes, and {} has {}, which is not supported",
                               least[i] == 512 ? "512 or 4096" : "4096", name_of(*decided), bytes));
    }
    members[i].spec.lba_bytes = bytes;
  }
  return {};
}

}  // namespace

Expected<format::Stripe> arrange_stripe(std::vector<VolumeSpec>& specs) {
  if (specs.size() > format::kStripeDisksMax) {
    return make_error(EINVAL, specs.back().text,
                      fmt::format("more than {} SSDs", format::kStripeDisksMax));
  }
  if (auto checked = check_addresses(specs); !checked) return checked.error();
  std::vector<Member> members;
  const std::optional<uint64_t> wanted = specs.back().stripe_bytes;
  for (VolumeSpec& spec : specs) {
    Member& member = members.emplace_back();
    member.spec = std::move(spec);
    if (auto looked = look_at(member); !looked) return looked.error();
    for (const Member& other : members) {
      if (&other == &member || member.spec.path.empty() || other.spec.path.empty()) continue;
      if (other.file == member.file) return fault(EINVAL, member, "named twice");
    }
  }
  if (auto settled = settle_lbas(members); !settled) return settled.error();
  const auto has_super = [](const Member& member) { return member.super.has_value(); };
  const bool is_array = std::any_of(members.begin(), members.end(), has_super);
  const auto bare = std::find_if_not(members.begin(), members.end(), has_super);
  if (is_array && bare != members.end()) {
    return fault(EINVAL, *bare, "has no md superblock, as others of the stripe have");
  }
  auto stripe = is_array ? arrange_array(members)
                         : arrange_plain(members, wanted.value_or(kStripeBytesUsual));
  if (!stripe) return stripe.error();
  if (wanted && *wanted != uint64_t{1} << stripe->chunk_shift) {
    return fault(EINVAL, members.front(),
                 fmt::format("its md array has chunks of {} bytes, not of {}",
                             uint64_t{1} << stripe->chunk_shift, *wanted));
  }
  for (size_t i = 0; i < members.size(); ++i) specs[i] = std::move(members[i].spec);
  return stripe;
}

bool has_md_superblock(const std::vector<VolumeSpec>& members) {
  return std::any_of(members.begin(), members.end(), [](const VolumeSpec& spec) {
    Member member;
    member.spec = spec;
    return look_at(member) && member.super.has_value();
  });
}

}  // namespace gofs::host
