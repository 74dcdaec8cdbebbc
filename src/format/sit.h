// SPDX-License-Identifier: Apache-2.0
//
// Segment information table: per main segment which blocks are valid. Block places are in
// geometry.h; entries in the SIT journal (summary.h) override these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

inline constexpr uint32_t kBlocksPerSegment = 512;
inline constexpr uint32_t kBlocksPerSegmentShift = 9;
inline constexpr uint64_t kSegmentBytes = uint64_t{kBlocksPerSegment} * kBlockBytes;

struct SitEntry {
  le16 vblocks;                              // valid blocks in bits 0..9, segment type above
  uint8_t valid_map[kBlocksPerSegment / 8];  // most significant bit first
  le64 mtime;

  GOFS_HD uint32_t valid_count() const { return vblocks & 0x3ffu; }
  GOFS_HD uint32_t type() const { return static_cast<uint32_t>(vblocks) >> 10; }  // a Log, if < 6
  GOFS_HD void set_vblocks(uint32_t valid, uint32_t type) {
    vblocks = static_cast<uint16_t>(type << 10 | valid);
  }
};
static_assert(sizeof(SitEntry) == 74 && offsetof(SitEntry, mtime) == 66);

inline constexpr uint32_t kSitEntriesPerBlock = 55;

struct SitBlock {
  SitEntry entries[kSitEntriesPerBlock];
  uint8_t unused[26];
};
static_assert(sizeof(SitBlock) == kBlockBytes);

}  // namespace gofs::format
