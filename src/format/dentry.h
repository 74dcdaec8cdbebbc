// SPDX-License-Identifier: Apache-2.0
//
// Directory entries. A dentry area, which is a directory's block or the inline area of its inode,
// has n slots: a bitmap of used slots, n entries of 11 bytes, n pieces of name of 8 bytes. A longer
// name takes further slots, whose bits are set and whose entries' name_len is 0; names do not span
// areas. Blocks are arranged in hash levels: an entry of hash h may be in any level L, in bucket h
// % dir_buckets(L), and nowhere else. Start at DentryArea.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"
#include "format/node.h"

namespace gofs::format {

inline constexpr uint32_t kDentrySlotsPerBlock = 214;
inline constexpr uint32_t kNameSlotBytes = 8;
inline constexpr uint32_t kDirDepthMax = 63;  // hash levels

using gofs::FileType;
using gofs::kTypeBlockDevice;
using gofs::kTypeCharDevice;
using gofs::kTypeDirectory;
using gofs::kTypeFifo;
using gofs::kTypeRegular;
using gofs::kTypeSocket;
using gofs::kTypeSymlink;
using gofs::kTypeUnknown;

struct Dentry {
  le32 hash_code;
  le32 ino;
  le16 name_len;
  uint8_t file_type;
};
static_assert(sizeof(Dentry) == 11 && offsetof(Dentry, name_len) == 8);

struct DentryBlock {
  uint8_t dentry_bitmap[27];  // least significant bit first
  uint8_t reserved[3];
  Dentry dentry[kDentrySlotsPerBlock];
  uint8_t filename[kDentrySlotsPerBlock][kNameSlotBytes];
};
static_assert(sizeof(DentryBlock) == kBlockBytes && offsetof(DentryBlock, dentry) == 30 &&
              offsetof(DentryBlock, filename) == 2384);

/// Where the parts of an area of some size lie, in bytes from its start (where the bitmap is).
struct DentryArea {
  uint32_t slot_count;
  uint32_t bitmap_bytes;
  uint32_t dentry_offset;
  uint32_t name_offset;

  GOFS_HD constexpr uint32_t dentry_at(uint32_t slot) const {
    return dentry_offset + slot * static_cast<uint32_t>(sizeof(Dentry));
  }
  GOFS_HD constexpr uint32_t name_at(uint32_t slot) const {
    return name_offset + slot * kNameSlotBytes;
  }
  /// Whether a name of `name_len` bytes may begin in `slot`: check it before reading the name.
  GOFS_HD constexpr bool name_fits(uint32_t slot, uint32_t name_len) const {
    return name_len <= kNameBytesMax && slot < slot_count &&
           name_len <= (slot_count - slot) * kNameSlotBytes;
  }
};

GOFS_HD constexpr DentryArea dentry_block_area() {
  return {kDentrySlotsPerBlock, sizeof(DentryBlock::dentry_bitmap), offsetof(DentryBlock, dentry),
          offsetof(DentryBlock, filename)};
}

/// The area that `bytes` of inline room make (InodeLayout::inline_bytes).
GOFS_HD constexpr DentryArea inline_dentry_area(uint32_t bytes) {
  DentryArea area{};
  constexpr uint32_t kBitsPerSlot = (sizeof(Dentry) + kNameSlotBytes) * 8 + 1;
  area.slot_count = bytes * 8 / kBitsPerSlot;
  area.bitmap_bytes = (area.slot_count + 7) / 8;
  area.name_offset = bytes - area.slot_count * kNameSlotBytes;
  area.dentry_offset = area.name_offset - area.slot_count * static_cast<uint32_t>(sizeof(Dentry));
  return area;
}

/// Slots that a name takes.
GOFS_HD constexpr uint32_t name_slots(uint32_t name_len) {
  return (name_len + kNameSlotBytes - 1) / kNameSlotBytes;
}

/// Buckets of hash level `level`.
GOFS_HD constexpr uint32_t dir_buckets(uint32_t level, uint32_t dir_level) {
  return level + dir_level < 31 ? 1u << (level + dir_level) : 1u << 30;
}

/// Blocks of each bucket of `level`.
GOFS_HD constexpr uint32_t dir_bucket_blocks(uint32_t level) { return level < 31 ? 2 : 4; }

/// First file block of `level`, at most kDirDepthMax. May lie beyond what a file can hold.
GOFS_HD constexpr uint64_t dir_level_start(uint32_t level, uint32_t dir_level) {
  // Levels below `growing` double, those from there to 31 have 2^30 buckets of 2 blocks, the rest
  // 2^30 of 4.
  const uint32_t room = dir_level < 31 ? 31 - dir_level : 0;
  const uint32_t growing = level < room ? level : room;
  const uint32_t flat_end = level < 31 ? level : 31;
  uint64_t start = 0;
  if (growing > 0)
    start = 2 * ((uint64_t{1} << (dir_level + growing)) - (uint64_t{1} << dir_level));
  start += (uint64_t{flat_end} - growing) << 31;
  start += uint64_t{level - flat_end} << 32;
  return start;
}

/// First of the dir_bucket_blocks(level) file blocks where an entry of `hash` may be in `level`.
GOFS_HD constexpr uint64_t dir_bucket_start(uint32_t level, uint32_t dir_level, uint32_t hash) {
  const uint64_t bucket = hash % dir_buckets(level, dir_level);
  return dir_level_start(level, dir_level) + bucket * dir_bucket_blocks(level);
}

/// The dentry type of an i_mode; kTypeUnknown for a mode that is no file type.
GOFS_HD constexpr FileType file_type_of_mode(uint32_t mode) {
  switch (mode & kModeTypeMask) {
    case kModeRegular:
      return kTypeRegular;
    case kModeDirectory:
      return kTypeDirectory;
    case kModeCharDevice:
      return kTypeCharDevice;
    case kModeBlockDevice:
      return kTypeBlockDevice;
    case kModeFifo:
      return kTypeFifo;
    case kModeSocket:
      return kTypeSocket;
    case kModeSymlink:
      return kTypeSymlink;
    default:
      return kTypeUnknown;
  }
}

}  // namespace gofs::format
