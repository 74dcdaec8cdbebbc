// SPDX-License-Identifier: Apache-2.0
//
// A mounted F2FS volume as it lies in a backend's memory. mount.h fills it; everything else here
// reads it. Memory is laid out by the host (layout.h) before the disk is known.
#pragma once

#include "f2fs/cache_counts.h"
#include "f2fs/corruption.h"
#include "f2fs/map_arena.h"
#include "f2fs/page_cache.h"
#include "format/f2fs.h"
#include "nvme/array.h"
#include "simt/shared_lock.h"

namespace gofs::f2fs {

/// Block addresses and nids are plain 32-bit numbers on disk and in the node tree's arithmetic;
/// parameters say which they are by `block` and `nid` (or `ino`) in their names.
struct NatRecord {
  uint32_t ino;
  uint32_t block;
  uint8_t version;
};

struct JournaledNat {
  uint32_t nid;
  NatRecord record;
};

struct JournaledSit {
  uint32_t segno;
  format::SitEntry entry;
};

/// A checkpoint block and its payload: at most a segment less two.
inline constexpr uint32_t kCheckpointBlocksMax = format::kBlocksPerSegment - 2;
inline constexpr uint32_t kLabelBytes = 512 * 3 + 1;

struct Volume {
  nvme::Array array;
  PageCache cache;
  CacheCounts* cache_counts;  // simt::kCountPlaces
  CorruptionLog* corruptions;
  uint8_t* checkpoint_blocks;  // kCheckpointBlocksMax blocks: the chosen checkpoint and its payload
  uint8_t* scratch;            // two blocks, for mount alone
  simt::SharedLock* xattr_locks;  // kXattrLocks (xattr_lock.h); null: mounted read-only
  alignas(128) MapArena maps;     // of open files

  format::Geometry geometry;
  uint32_t checksum_seed;  // of inode checksums
  uint8_t uuid[16];
  uint16_t label[format::kVolumeNameUnits];
  uint8_t writer[256];  // the kernel or tool that wrote the superblock

  uint64_t checkpoint_version;
  uint32_t checkpoint_pack;
  uint32_t checkpoint_flags;
  const uint8_t* nat_bitmap;
  const uint8_t* sit_bitmap;
  uint64_t user_block_count;  // without those that are withheld: falls where such become available
  uint64_t withheld_blocks;   // free, but the SSD has no room for them (f2fs/writer.h)
  uint64_t valid_block_count;
  uint64_t newly_counted;  // blocks counted since the last checkpoint, also those that went again
  uint32_t reserved_segments;
  uint32_t overprovision_segments;
  uint32_t free_segments;
  uint32_t valid_node_count;
  uint32_t valid_inode_count;
  uint64_t elapsed_seconds;  // for which it has been mounted, in all its mounts before

  uint32_t nat_journal_count;
  uint32_t sit_journal_count;
  JournaledNat nat_journal[format::kNatJournalEntries];
  JournaledSit sit_journal[format::kSitJournalEntries];

  GOFS_HD bool has_feature(uint32_t feature) const { return (geometry.feature & feature) != 0; }
  GOFS_HD bool cleanly_unmounted() const {
    return (checkpoint_flags & format::kCheckpointUmount) != 0;
  }
  /// Blocks that hold file data or nodes.
  GOFS_HD bool is_main_block(uint32_t block) const {
    return geometry.in_main(block) && block < geometry.block_count;
  }
};

/// How long a caller waits for a page, or for room in the page cache. Others release them within
/// microseconds, or when a command has ended: lost ones, which have a time limit of 5 s, are
/// recovered first.
inline constexpr uint64_t kFrameTimeoutNs = 120'000'000'000;

}  // namespace gofs::f2fs
