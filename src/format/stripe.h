// SPDX-License-Identifier: Apache-2.0
//
// How a volume is dealt out to several disks: in chunks, one disk after the other, as Linux's md
// driver does at RAID level 0 with disks of one size ("a single zone"). Chunk c of the volume is
// chunk c / n of disk c % n.
#pragma once

#include <cstdint>

#include "simt/platform.h"

namespace gofs::format {

inline constexpr uint32_t kStripeDisksMax = 8;

struct Stripe {
  uint32_t disks;                         // 1: all lies on one, as it is
  uint32_t chunk_shift;                   // log2 of a chunk's bytes
  uint64_t disk_bytes;                    // of the volume on each disk, whole chunks
  uint64_t start_bytes[kStripeDisksMax];  // where they begin there
};

/// A place on a disk.
struct StripePlace {
  uint32_t disk;
  uint64_t offset;  // bytes
};

GOFS_HD constexpr uint64_t stripe_bytes(const Stripe& stripe) {
  return stripe.disk_bytes * stripe.disks;
}

/// Where byte `offset` of the volume lies. What follows it there is the volume's up to the end of
/// the chunk.
GOFS_HD constexpr StripePlace place_in_stripe(const Stripe& stripe, uint64_t offset) {
  // Chunks have at least a block, and a volume has fewer than 2^32 blocks.
  const auto chunk = static_cast<uint32_t>(offset >> stripe.chunk_shift);
  const uint64_t within = offset & ((uint64_t{1} << stripe.chunk_shift) - 1);
  const uint32_t disk = chunk % stripe.disks;
  const uint64_t there = uint64_t{chunk / stripe.disks} << stripe.chunk_shift;
  return {disk, stripe.start_bytes[disk] + there + within};
}

/// The bytes of the volume before `offset` that lie on disk `disk`: from there to the same of a
/// later offset, a range of the volume is one range of the disk.
GOFS_HD constexpr uint64_t bytes_on_disk(const Stripe& stripe, uint32_t disk, uint64_t offset) {
  const auto chunk = static_cast<uint32_t>(offset >> stripe.chunk_shift);
  const uint64_t chunk_bytes = uint64_t{1} << stripe.chunk_shift;
  const uint32_t turn = chunk % stripe.disks;
  const uint64_t whole = chunk / stripe.disks + (disk < turn ? 1 : 0);
  return whole * chunk_bytes + (disk == turn ? offset & (chunk_bytes - 1) : 0);
}

}  // namespace gofs::format
