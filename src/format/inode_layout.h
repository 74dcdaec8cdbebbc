// SPDX-License-Identifier: Apache-2.0
//
// What the i_addr area of an inode holds, which depends on i_inline, on the extra attributes and on
// the volume's features:
//
//   360            360+4E                                   4052-4X        4052
//   | extra attrs  | data slots, or reserved word + inline | inline xattrs |
//
// Start at inode_layout(). Values come from the disk, so they may be anything: every layout
// returned lies within the inode; `sane` tells whether it is what the inode said.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/crc32.h"
#include "format/node.h"
#include "format/superblock.h"

namespace gofs::format {

inline constexpr uint32_t kDefaultInlineXattrWords = 50;
inline constexpr uint32_t kExtraAttrBytesMax = sizeof(ExtraAttr);

struct InodeLayout {
  uint32_t extra_words;    // E
  uint32_t xattr_words;    // X
  uint32_t slot_count;     // A: data slots; at least 1
  uint32_t inline_offset;  // of inline data or dentries, in bytes from the start of the block
  uint32_t inline_bytes;   // room there; may be 0
  uint32_t xattr_offset;   // of inline xattrs, which are there only if kInlineXattr is set
  uint32_t xattr_bytes;
  bool sane;

  /// Index into i_addr of data slot `slot` < slot_count.
  GOFS_HD constexpr uint32_t word_of_slot(uint32_t slot) const { return extra_words + slot; }
};

/// E and X are what the inode says; too large ones are cut and the layout is marked insane.
GOFS_HD constexpr InodeLayout make_inode_layout(uint32_t extra_words, uint32_t xattr_words) {
  InodeLayout layout{};
  layout.sane = true;
  if (extra_words > kExtraAttrBytesMax / 4) {
    extra_words = kExtraAttrBytesMax / 4;
    layout.sane = false;
  }
  // One word, the reserved slot, must remain.
  const uint32_t xattr_words_max = kInodeSlots - extra_words - 1;
  if (xattr_words > xattr_words_max) {
    xattr_words = xattr_words_max;
    layout.sane = false;
  }
  layout.extra_words = extra_words;
  layout.xattr_words = xattr_words;
  layout.slot_count = kInodeSlots - extra_words - xattr_words;
  layout.inline_offset = kInodeAddrOffset + 4 * (extra_words + 1);
  layout.inline_bytes = 4 * (layout.slot_count - 1);
  layout.xattr_offset = kInodeAddrEnd - 4 * xattr_words;
  layout.xattr_bytes = 4 * xattr_words;
  return layout;
}

/// The extra attributes' bytes. Meaningful only with kInlineExtraAttr; always within the inode.
GOFS_HD inline const ExtraAttr& extra_attr(const Inode& inode) {
  return *reinterpret_cast<const ExtraAttr*>(&inode.i_addr[0]);
}
GOFS_HD inline ExtraAttr& extra_attr(Inode& inode) {
  return *reinterpret_cast<ExtraAttr*>(&inode.i_addr[0]);
}

/// Whether the extra attribute field that ends `end` bytes into ExtraAttr is present, e.g.
/// has_extra_field(inode, kExtraChecksumEnd).
GOFS_HD inline bool has_extra_field(const Inode& inode, uint32_t end) {
  return (inode.i_inline & kInlineExtraAttr) != 0 && extra_attr(inode).i_extra_isize >= end;
}
inline constexpr uint32_t kExtraInlineXattrSizeEnd = 4;
inline constexpr uint32_t kExtraProjidEnd = 8;
inline constexpr uint32_t kExtraChecksumEnd = 12;
inline constexpr uint32_t kExtraCrtimeEnd = 24;
inline constexpr uint32_t kExtraCompressEnd = 36;

/// Insane: extra attributes without the feature, of a wrong size, or missing where flexible inline
/// xattrs need them; inline xattrs that leave no room.
GOFS_HD inline InodeLayout inode_layout(const Inode& inode, uint32_t feature) {
  bool sane = true;
  uint32_t extra_bytes = 0;
  if ((inode.i_inline & kInlineExtraAttr) != 0) {
    extra_bytes = extra_attr(inode).i_extra_isize;
    sane = (feature & kFeatureExtraAttr) != 0 && extra_bytes % 4 == 0 && extra_bytes >= 4;
  }
  uint32_t xattr_words = 0;
  if ((feature & kFeatureFlexibleInlineXattr) != 0) {
    if (has_extra_field(inode, kExtraInlineXattrSizeEnd)) {
      xattr_words = extra_attr(inode).i_inline_xattr_size;
    } else {
      sane = false;
    }
  } else if ((inode.i_inline & (kInlineXattr | kInlineDentry)) != 0) {
    xattr_words = kDefaultInlineXattrWords;
  }
  InodeLayout layout = make_inode_layout(extra_bytes / 4, xattr_words);
  layout.sane = layout.sane && sane;
  return layout;
}

/// Seed of inode_checksum: once per volume.
GOFS_HD inline uint32_t inode_checksum_seed(const uint8_t (&uuid)[16]) {
  return crc32(0xFFFFFFFF, uuid, sizeof(uuid));
}

/// The sum to compare with or to store in i_inode_checksum. It covers the whole block, footer
/// included, with the sum's own bytes as zero. Only for inodes with has_extra_field(...,
/// kExtraChecksumEnd) on volumes with kFeatureInodeChecksum.
GOFS_HD inline uint32_t inode_checksum(uint32_t volume_seed, const NodeBlock& block) {
  constexpr uint32_t kSumOffset = kInodeAddrOffset + offsetof(ExtraAttr, i_inode_checksum);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&block);
  const uint8_t zero[4] = {};
  uint32_t crc = crc32(volume_seed, &block.footer.ino, sizeof(le32));
  crc = crc32(crc, &block.inode.i_generation, sizeof(le32));
  crc = crc32(crc, bytes, kSumOffset);
  crc = crc32(crc, zero, sizeof(zero));
  return crc32(crc, bytes + kSumOffset + 4, kBlockBytes - kSumOffset - 4);
}

/// Device numbers of character and block devices are kept in the first two data slots.
struct DeviceNumber {
  uint32_t major;
  uint32_t minor;
};

GOFS_HD constexpr DeviceNumber decode_device(uint32_t slot0, uint32_t slot1) {
  if (slot0 != 0) return {(slot0 >> 8) & 0xff, slot0 & 0xff};
  return {(slot1 >> 8) & 0xfff, (slot1 & 0xff) | ((slot1 >> 12) & 0xfff00)};
}

struct DeviceSlots {
  uint32_t slot0;
  uint32_t slot1;
};

/// `major` below 4096, `minor` below 2^20, as Linux has them.
GOFS_HD constexpr DeviceSlots encode_device(DeviceNumber device) {
  if (device.major < 256 && device.minor < 256) return {device.major << 8 | device.minor, 0};
  return {0, (device.minor & 0xff) | device.major << 8 | (device.minor & ~0xffu) << 12};
}

}  // namespace gofs::format
