// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint pack: the consistent state that a mount starts from. Two packs, one segment each, at
// cp_blkaddr and one segment later. In a pack, in order:
//   checkpoint | cp_payload blocks | orphan blocks | data summaries | [node summaries] | checkpoint
// A pack is valid when both checkpoint blocks have a good sum and the same version; the higher
// version wins, pack 1 if they are equal. Functions here only compute places; what they return may
// lie outside the block if the checkpoint is corrupt, except where a bound is promised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/crc32.h"
#include "format/little_endian.h"
#include "format/superblock.h"

namespace gofs::format {

inline constexpr uint32_t kCheckpointSeed = kSuperMagic;
inline constexpr uint32_t kCheckpointBitmapOffset = 192;
inline constexpr uint32_t kCheckpointChecksumOffset = 4092;
/// With kCheckpointLargeNatBitmap the sum lies before the bitmaps.
inline constexpr uint32_t kCheckpointChecksumOffsetMin = 192;
inline constexpr uint32_t kPackBlocksMin = 3;
inline constexpr uint32_t kNullSegno = 0xFFFFFFFF;
inline constexpr uint32_t kOrphansPerBlock = 1020;

/// The six logs, in the order of alloc_type and of segment types in the SIT.
enum Log : uint32_t {
  kHotData = 0,
  kWarmData = 1,
  kColdData = 2,
  kHotNode = 3,
  kWarmNode = 4,
  kColdNode = 5,
};
inline constexpr uint32_t kLogCount = 6;
inline constexpr uint32_t kDataLogCount = 3;
GOFS_HD constexpr bool is_node_log(uint32_t log) { return log >= kHotNode; }

enum AllocType : uint8_t { kAllocLfs = 0, kAllocSsr = 1 };

/// Bits of Checkpoint::ckpt_flags.
enum CheckpointFlag : uint32_t {
  kCheckpointUmount = 0x1,
  kCheckpointOrphan = 0x2,
  kCheckpointCompactSummary = 0x4,
  kCheckpointError = 0x8,
  kCheckpointFsck = 0x10,
  kCheckpointFastboot = 0x20,
  kCheckpointCrcRecovery = 0x40,
  kCheckpointNatBits = 0x80,
  kCheckpointTrimmed = 0x100,
  kCheckpointNoCrcRecovery = 0x200,
  kCheckpointLargeNatBitmap = 0x400,
  kCheckpointQuotaNeedFsck = 0x800,
  kCheckpointDisabled = 0x1000,
  kCheckpointDisabledQuick = 0x2000,
  kCheckpointResize = 0x4000,
};

/// The head of a checkpoint block; version bitmaps follow (see version_bitmap_places).
struct Checkpoint {
  le64 checkpoint_ver;
  le64 user_block_count;
  le64 valid_block_count;
  le32 rsvd_segment_count;
  le32 overprov_segment_count;
  le32 free_segment_count;
  le32 cur_node_segno[8];  // hot, warm, cold; the rest kNullSegno
  le16 cur_node_blkoff[8];
  le32 cur_data_segno[8];
  le16 cur_data_blkoff[8];
  le32 ckpt_flags;
  le32 cp_pack_total_block_count;
  le32 cp_pack_start_sum;  // block of the pack where data summaries start
  le32 valid_node_count;
  le32 valid_inode_count;
  le32 next_free_nid;  // a hint
  le32 sit_ver_bitmap_bytesize;
  le32 nat_ver_bitmap_bytesize;
  le32 checksum_offset;
  le64 elapsed_time;
  uint8_t alloc_type[16];

  GOFS_HD uint32_t cur_segno(uint32_t log) const {
    return is_node_log(log) ? cur_node_segno[log - kHotNode] : cur_data_segno[log];
  }
  GOFS_HD uint32_t cur_blkoff(uint32_t log) const {
    return is_node_log(log) ? cur_node_blkoff[log - kHotNode] : cur_data_blkoff[log];
  }
  GOFS_HD bool has(uint32_t flag) const { return (ckpt_flags & flag) != 0; }
};
static_assert(sizeof(Checkpoint) == kCheckpointBitmapOffset && alignof(Checkpoint) == 1);
static_assert(offsetof(Checkpoint, rsvd_segment_count) == 24 &&
              offsetof(Checkpoint, cur_node_segno) == 36 &&
              offsetof(Checkpoint, cur_node_blkoff) == 68 &&
              offsetof(Checkpoint, cur_data_segno) == 84 &&
              offsetof(Checkpoint, cur_data_blkoff) == 116);
static_assert(offsetof(Checkpoint, ckpt_flags) == 132 &&
              offsetof(Checkpoint, valid_node_count) == 144 &&
              offsetof(Checkpoint, sit_ver_bitmap_bytesize) == 156 &&
              offsetof(Checkpoint, checksum_offset) == 164 &&
              offsetof(Checkpoint, elapsed_time) == 168 && offsetof(Checkpoint, alloc_type) == 176);

/// Whether `offset` may be where a checkpoint block keeps its sum.
GOFS_HD constexpr bool checksum_offset_valid(uint32_t offset) {
  return offset >= kCheckpointChecksumOffsetMin && offset <= kCheckpointChecksumOffset &&
         offset % 4 == 0;
}

/// The sum of a checkpoint block, to be compared with or stored at `checksum_offset`, which must be
/// valid. It covers everything but itself.
GOFS_HD inline uint32_t checkpoint_checksum(const void* block, uint32_t checksum_offset) {
  const auto* byte = static_cast<const uint8_t*>(block);
  const uint32_t head = crc32(kCheckpointSeed, byte, checksum_offset);
  const uint32_t rest = checksum_offset + 4;
  return rest < kBlockBytes ? crc32(head, byte + rest, kBlockBytes - rest) : head;
}

/// Byte offsets of the two version bitmaps, in the checkpoint block followed by the payload blocks
/// as one buffer of (1 + cp_payload) * 4096 bytes.
struct VersionBitmapPlaces {
  uint64_t sit_offset;
  uint64_t nat_offset;
  /// Both bitmaps end within the buffer.
  bool fit;
};

GOFS_HD inline VersionBitmapPlaces version_bitmap_places(const Checkpoint& checkpoint,
                                                         uint32_t cp_payload) {
  const uint64_t sit_bytes = checkpoint.sit_ver_bitmap_bytesize;
  const uint64_t nat_bytes = checkpoint.nat_ver_bitmap_bytesize;
  VersionBitmapPlaces places{};
  if (checkpoint.has(kCheckpointLargeNatBitmap)) {
    places.nat_offset = kCheckpointBitmapOffset + 4;  // the sum comes first
    places.sit_offset = places.nat_offset + nat_bytes;
  } else if (cp_payload > 0) {
    places.nat_offset = kCheckpointBitmapOffset;
    places.sit_offset = kBlockBytes;
  } else {
    places.sit_offset = kCheckpointBitmapOffset;
    places.nat_offset = places.sit_offset + sit_bytes;
  }
  const uint64_t end = (1 + static_cast<uint64_t>(cp_payload)) * kBlockBytes;
  places.fit = places.sit_offset + sit_bytes <= end && places.nat_offset + nat_bytes <= end;
  return places;
}

/// Whether the pack holds node summaries. Without them they are rebuilt from node footers.
GOFS_HD inline bool has_node_summaries(const Checkpoint& checkpoint) {
  return checkpoint.has(kCheckpointUmount | kCheckpointFastboot);
}

/// Block of the pack, counted from its first, that holds the summary of `log`, for summaries in the
/// normal form; node logs only if has_node_summaries. Wraps around if the pack is too short.
GOFS_HD inline uint32_t summary_block_in_pack(const Checkpoint& checkpoint, uint32_t log) {
  const uint32_t after_last = checkpoint.cp_pack_total_block_count - 1u;  // the closing checkpoint
  const uint32_t count = has_node_summaries(checkpoint) ? kLogCount : kDataLogCount;
  return after_last - count + log;
}

/// Inodes that were unlinked while open.
struct OrphanBlock {
  le32 ino[kOrphansPerBlock];
  le32 reserved;
  le16 blk_addr;   // index of this block, from 1
  le16 blk_count;  // number of orphan blocks
  le32 entry_count;
  le32 check_sum;  // always 0
};
static_assert(sizeof(OrphanBlock) == kBlockBytes && offsetof(OrphanBlock, blk_addr) == 4084 &&
              offsetof(OrphanBlock, entry_count) == 4088);

}  // namespace gofs::format
