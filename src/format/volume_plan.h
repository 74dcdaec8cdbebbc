// SPDX-License-Identifier: Apache-2.0
//
// How a new volume of a given size is divided: the arithmetic of mkfs, without writing anything.
// The results are those of mkfs.f2fs 1.15 for one segment per section and one device; a kernel's
// cleaner relies on the reserve being about that big. Start at plan_volume().
#pragma once

#include <cstdint>

#include "format/checkpoint.h"
#include "format/geometry.h"
#include "simt/platform.h"
#include "simt/result.h"

namespace gofs::format {

inline constexpr uint64_t kVolumeBytesMin = uint64_t{64} << 20;
/// Block addresses above 2^32 - 2 have other meanings, so one segment less than 16 TiB is usable.
inline constexpr uint64_t kVolumeBytesMax = uint64_t{16} << 40;
inline constexpr uint32_t kSegmentsMax = 8388608;
inline constexpr uint32_t kSuperblockSegments = 1;  // before segment0
inline constexpr uint32_t kCheckpointSegments = 2;

struct VolumePlan {
  Geometry geometry{};
  uint32_t rsvd_segment_count = 0;
  uint32_t overprov_segment_count = 0;  // rsvd_segment_count included
  uint64_t user_block_count = 0;
};

/// Segments kept back for cleaning.
struct Overprovision {
  uint32_t rsvd_segments;
  uint32_t overprov_segments;
};

/// Cleaning with p percent kept back needs about 100/p segments at hand for each of the logs that
/// it fills, twice over, and one for each current segment. The percentage that takes least in all
/// is found by trying.
GOFS_HD inline Overprovision choose_overprovision(uint32_t main_segments) {
  const bool small = main_segments < 256;  // 10 to 95 % by 5, else 0.01 to 10 % by 0.01
  const double step = small ? 5.0 : 0.01;
  const int steps = small ? 18 : 1000;
  double best_total = main_segments;
  Overprovision best{main_segments, main_segments};
  double percent = small ? 5.0 : 0.0;
  for (int i = 0; i < steps; ++i) {
    percent += step;  // a sum rather than a multiple: it rounds as mkfs.f2fs does
    const double reserved = 2 * (100 / percent + 1) + kLogCount;
    const double rest = main_segments - reserved;
    if (rest <= 0) continue;
    const double total = rest * percent / 100 + reserved;
    if (total < best_total) {
      best_total = total;
      best.rsvd_segments = static_cast<uint32_t>(reserved);
      const uint32_t free_segments = main_segments - best.rsvd_segments;
      best.overprov_segments =
          static_cast<uint32_t>(free_segments * percent / 100) + best.rsvd_segments;
    }
  }
  return best;
}

/// Divides `block_count` blocks; whatever is over after the last whole segment stays unused.
/// Errors: ENOSPC below kVolumeBytesMin, EFBIG above kVolumeBytesMax.
GOFS_HD inline Result<VolumePlan> plan_volume(uint64_t block_count, uint32_t feature) {
  using simt::divide_up;
  constexpr uint64_t kEntryBits = kBlocksPerSegment / 8;  // version bitmap bytes of a table segment
  constexpr uint64_t kBitmapRoom = kCheckpointChecksumOffset - kCheckpointBitmapOffset;

  if (block_count < kVolumeBytesMin / kBlockBytes) {
    return Result<VolumePlan>::failure(-ENOSPC);
  }
  if (block_count > kVolumeBytesMax / kBlockBytes) {
    return Result<VolumePlan>::failure(-EFBIG);
  }
  const uint64_t segments =
      (block_count - kSuperblockSegments * kBlocksPerSegment) / kBlocksPerSegment;

  const uint64_t sit = divide_up(divide_up(segments, kSitEntriesPerBlock), kBlocksPerSegment);
  uint64_t rest = segments - kCheckpointSegments - 2 * sit;
  uint64_t nat =
      divide_up(divide_up(rest * kBlocksPerSegment, kNatEntriesPerBlock), kBlocksPerSegment);
  // The checkpoint block has room for both version bitmaps, or the SIT's moves to payload blocks
  // and the NAT's may fill the room, less one segment's worth of slack.
  uint64_t payload = 0;
  uint64_t nat_max = (kBitmapRoom - sit * kEntryBits) / kEntryBits;
  if (sit * kEntryBits > kBitmapRoom - kEntryBits) {
    payload = divide_up(sit * kEntryBits, kBlockBytes);
    nat_max = kBitmapRoom / kEntryBits;
  }
  nat = simt::min(nat, nat_max);
  rest -= 2 * nat;
  const uint64_t ssa = divide_up(rest + 1, kBlocksPerSegment);
  const uint64_t main = rest - ssa;

  Result<VolumePlan> result;
  VolumePlan& plan = result.value;
  Geometry& geometry = plan.geometry;
  geometry.block_count = block_count;
  geometry.segment_count = static_cast<uint32_t>(segments);
  geometry.sit_segments = static_cast<uint32_t>(sit);
  geometry.nat_segments = static_cast<uint32_t>(nat);
  geometry.ssa_segments = static_cast<uint32_t>(ssa);
  geometry.main_segments = static_cast<uint32_t>(main);
  geometry.segment0_blkaddr = kSuperblockSegments * kBlocksPerSegment;
  geometry.cp_blkaddr = geometry.segment0_blkaddr;
  geometry.sit_blkaddr = geometry.cp_blkaddr + kCheckpointSegments * kBlocksPerSegment;
  geometry.nat_blkaddr = geometry.sit_blkaddr + 2 * geometry.sit_segments * kBlocksPerSegment;
  geometry.ssa_blkaddr = geometry.nat_blkaddr + 2 * geometry.nat_segments * kBlocksPerSegment;
  geometry.main_blkaddr = geometry.ssa_blkaddr + geometry.ssa_segments * kBlocksPerSegment;
  geometry.cp_payload = static_cast<uint32_t>(payload);
  geometry.feature = feature;
  geometry.root_ino = kRootIno;

  const Overprovision kept = choose_overprovision(geometry.main_segments);
  plan.rsvd_segment_count = kept.rsvd_segments;
  plan.overprov_segment_count = kept.overprov_segments;
  plan.user_block_count = (main - kept.overprov_segments) * kBlocksPerSegment;
  return result;
}

}  // namespace gofs::format
