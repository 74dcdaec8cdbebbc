// SPDX-License-Identifier: Apache-2.0
//
// Where a new entry goes in a directory with hash levels: level by level, block by block of its
// bucket, to the first place with enough unused slots in a row. A block that does not exist yet is
// all room. The lanes of a warp look at the candidates of many levels at once.
#pragma once

#include "f2fs/dentry_space.h"

namespace gofs::f2fs {

/// Room for an entry.
struct DirectoryRoom {
  uint64_t index;  // block of the directory
  uint32_t slot;
  uint32_t depth;  // levels that the directory needs for it
  bool is_hole;    // the block is to be made
};

/// Finds room for an entry of `slots` slots. Collective, uniform. 0 or a negative errno: -ENOSPC
/// (no level is left), those of with_directory_blocks where a block cannot be read that would come
/// first.
GOFS_NOINLINE GOFS_HD inline int find_room(simt::AnyWarp auto warp, Volume& volume,
                                           const Inode& directory, uint32_t hash, uint32_t slots,
                                           DirectoryRoom& room) {
  const uint64_t blocks_max =
      simt::min(kDirectoryBlocksMax, format::file_blocks_max(directory.slot_count));
  // One level more than there are: nothing stands there yet.
  detail::Candidates candidates{
      hash, directory.dir_level,
      simt::min(directory.dir_depth, uint32_t{format::kDirDepthMax - 1}) + 1};
  while (candidates.more()) {
    uint64_t index = 0;
    uint32_t level = 0;
    const bool candidate = candidates.next(warp, index, level) && index < blocks_max;
    const bool exists = candidate && index < directory.size_blocks();
    uint64_t span = 1;
    uint32_t slot = 0;
    const int read = with_directory_blocks(
        warp, volume, warp.ballot(exists), directory, index, span, [&](const uint8_t* page) {
          slot = detail::find_free_slots(detail::block_view(page), slots);
        });
    const bool is_hole = !exists || read == -ENOENT;
    const bool failed = exists && read < 0 && !is_hole;
    const uint32_t settled = warp.ballot(candidate && (failed || slot != detail::kNoSlot));
    if (settled == 0) continue;
    const uint32_t first = simt::lowest_bit(settled);
    if (warp.shfl(failed ? 1u : 0u, first) != 0) return warp.shfl(read, first);
    room.index = warp.shfl(index, first);
    room.slot = warp.shfl(slot, first);
    room.depth = simt::max(directory.dir_depth, warp.shfl(level, first) + 1);
    room.is_hole = warp.shfl(is_hole ? 1u : 0u, first) != 0;
    return 0;
  }
  return -ENOSPC;
}

}  // namespace gofs::f2fs
