// SPDX-License-Identifier: Apache-2.0
//
// The superblock that Linux's md driver keeps on each disk of an array, version 1.2: 4 KiB from the
// disk's beginning. Facts from linux/raid/md_p.h's description of the format and from arrays that
// mdadm has made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

inline constexpr uint32_t kMdMagic = 0xa92b4efc;
inline constexpr uint32_t kMdSuperblockOffset = 4096;  // bytes from the beginning of the disk
inline constexpr uint32_t kMdSectorShift = 9;          // sizes and places are in 512 bytes
inline constexpr uint32_t kMdRolesMax = 1920;          // what is left of 4 KiB
inline constexpr uint32_t kMdRoleSpare = 0xffff;

/// Features that say how an array is laid out at RAID level 0: `layout` counts.
inline constexpr uint32_t kMdFeatureRaid0Layout = 4096;

struct MdSuperblock {
  // The array.
  le32 magic;
  le32 major_version;  // 1
  le32 feature_map;
  le32 pad0;
  uint8_t set_uuid[16];
  char set_name[32];
  le64 ctime;
  le32 level;
  le32 layout;
  le64 size;  // of what is used of each disk, in sectors; of level 0 it does not count
  le32 chunk_sectors;
  le32 raid_disks;
  le32 bitmap_offset;
  le32 new_level;
  le64 reshape_position;
  le32 delta_disks;
  le32 new_layout;
  le32 new_chunk;
  le32 new_offset;
  // This disk.
  le64 data_offset;  // sectors
  le64 data_size;    // sectors
  le64 super_offset;
  le64 recovery_offset;
  le32 dev_number;
  le32 cnt_corrected_read;
  uint8_t device_uuid[16];
  uint8_t devflags;
  uint8_t bblog_shift;
  le16 bblog_size;
  le32 bblog_offset;
  // The array's state.
  le64 utime;
  le64 events;
  le64 resync_offset;
  le32 sb_csum;
  le32 max_dev;
  uint8_t pad3[32];
  le16 dev_roles[kMdRolesMax];  // max_dev of them: of each disk, by its number, its place
};
static_assert(sizeof(MdSuperblock) == 4096);
static_assert(offsetof(MdSuperblock, data_offset) == 128 && offsetof(MdSuperblock, utime) == 192 &&
              offsetof(MdSuperblock, dev_roles) == 256);

/// sb_csum as it should be: the 32-bit words of what counts, without sb_csum, added up; what is
/// above 32 bits is added once more. `max_dev` is at most kMdRolesMax.
inline uint32_t md_checksum(const MdSuperblock& super) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&super);
  const size_t end = offsetof(MdSuperblock, dev_roles) + size_t{2} * super.max_dev;
  uint64_t sum = 0;
  for (size_t at = 0; at + 4 <= end; at += 4) {
    if (at != offsetof(MdSuperblock, sb_csum)) sum += load_u32(bytes + at);
  }
  if (end % 4 != 0) sum += load_u16(bytes + end - 2);
  return static_cast<uint32_t>(sum) + static_cast<uint32_t>(sum >> 32);
}

}  // namespace gofs::format
