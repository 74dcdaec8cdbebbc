// SPDX-License-Identifier: Apache-2.0
//
// The superblock: what a volume is and where its areas begin. Two copies, at byte 1024 of blocks 0
// and 1. Field names are F2FS's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

inline constexpr uint32_t kSuperMagic = 0xF2F52010;
inline constexpr uint32_t kSuperOffset = 1024;  // within its block
inline constexpr uint32_t kSuperCopies = 2;
inline constexpr uint32_t kSuperBytes = 3072;
inline constexpr uint32_t kSuperChecksumOffset = 3068;  // with Feature::kSuperChecksum
inline constexpr uint32_t kVolumeNameUnits = 512;       // UTF-16
inline constexpr uint32_t kExtensionCount = 64;
inline constexpr uint32_t kExtensionBytes = 8;
inline constexpr uint32_t kDeviceCount = 8;
inline constexpr uint32_t kQuotaKinds = 3;  // user, group, project

inline constexpr uint32_t kNodeIno = 1;  // these three are fixed
inline constexpr uint32_t kMetaIno = 2;
inline constexpr uint32_t kRootIno = 3;
inline constexpr uint32_t kFirstFreeNid = 4;

/// Bits of Superblock::feature.
enum Feature : uint32_t {
  kFeatureEncrypt = 0x1,
  kFeatureZoned = 0x2,
  kFeatureAtomicWrite = 0x4,
  kFeatureExtraAttr = 0x8,
  kFeatureProjectQuota = 0x10,
  kFeatureInodeChecksum = 0x20,
  kFeatureFlexibleInlineXattr = 0x40,
  kFeatureQuota = 0x80,
  kFeatureInodeCrtime = 0x100,
  kFeatureLostFound = 0x200,
  kFeatureVerity = 0x400,
  kFeatureSuperChecksum = 0x800,
  kFeatureCasefold = 0x1000,
  kFeatureCompression = 0x2000,
  kFeatureReadOnly = 0x4000,
  kFeaturesKnown = 0x7fff,
  // Of these only the names are known.
  kFeatureDeviceAlias = 0x8000,
  kFeaturePackedSsa = 0x10000,
};

struct DeviceEntry {
  uint8_t path[64];
  le32 total_segments;
};
static_assert(sizeof(DeviceEntry) == 68);

struct Superblock {
  le32 magic;
  le16 major_ver;
  le16 minor_ver;
  le32 log_sectorsize;
  le32 log_sectors_per_block;
  le32 log_blocksize;
  le32 log_blocks_per_seg;
  le32 segs_per_sec;
  le32 secs_per_zone;
  le32 checksum_offset;
  le64 block_count;
  le32 section_count;
  le32 segment_count;  // from segment0_blkaddr to the end
  le32 segment_count_ckpt;
  le32 segment_count_sit;  // both copies
  le32 segment_count_nat;  // both copies
  le32 segment_count_ssa;
  le32 segment_count_main;
  le32 segment0_blkaddr;
  le32 cp_blkaddr;
  le32 sit_blkaddr;
  le32 nat_blkaddr;
  le32 ssa_blkaddr;
  le32 main_blkaddr;
  le32 root_ino;
  le32 node_ino;
  le32 meta_ino;
  uint8_t uuid[16];
  le16 volume_name[kVolumeNameUnits];
  le32 extension_count;  // cold ones; hot ones follow them in the list
  uint8_t extension_list[kExtensionCount][kExtensionBytes];
  le32 cp_payload;  // blocks of SIT version bitmap that follow a checkpoint block
  uint8_t version[256];
  uint8_t init_version[256];
  le32 feature;
  uint8_t encryption_level;
  uint8_t encrypt_pw_salt[16];
  DeviceEntry devs[kDeviceCount];
  le32 qf_ino[kQuotaKinds];
  uint8_t hot_ext_count;
  le16 s_encoding;
  le16 s_encoding_flags;
  uint8_t s_stop_reason[32];
  uint8_t s_errors[16];
  uint8_t reserved[258];
  le32 crc;
};
static_assert(sizeof(Superblock) == kSuperBytes && alignof(Superblock) == 1);
static_assert(offsetof(Superblock, block_count) == 36 && offsetof(Superblock, section_count) == 44);
static_assert(offsetof(Superblock, segment_count_main) == 68);
static_assert(offsetof(Superblock, segment0_blkaddr) == 72 &&
              offsetof(Superblock, main_blkaddr) == 92);
static_assert(offsetof(Superblock, uuid) == 108 && offsetof(Superblock, volume_name) == 124);
static_assert(offsetof(Superblock, extension_count) == 1148 &&
              offsetof(Superblock, extension_list) == 1152);
static_assert(offsetof(Superblock, cp_payload) == 1664 && offsetof(Superblock, version) == 1668 &&
              offsetof(Superblock, init_version) == 1924);
static_assert(offsetof(Superblock, feature) == 2180 &&
              offsetof(Superblock, encryption_level) == 2184 &&
              offsetof(Superblock, devs) == 2201 && offsetof(Superblock, qf_ino) == 2745);
static_assert(offsetof(Superblock, hot_ext_count) == 2757 &&
              offsetof(Superblock, s_encoding) == 2758 &&
              offsetof(Superblock, s_stop_reason) == 2762 &&
              offsetof(Superblock, s_errors) == 2794);
static_assert(offsetof(Superblock, crc) == kSuperChecksumOffset);

}  // namespace gofs::format
