// SPDX-License-Identifier: Apache-2.0
//
// The block map of an open file, as a companion file system gets it from its host when the file is
// opened: for each block of the file where it lies on the device.
#pragma once

#include "vfs/open_files.h"

namespace gofs::bench {

struct BlockMapParams {
  vfs::Filesystem* fs;
  int descriptor;
  uint64_t count;  // blocks of the file
  uint64_t* map;   // of each its block on the device; 0 for a hole
  int error;       // of some block that could not be found
};

GOFS_HD inline void block_map_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                   uint32_t warp_count, BlockMapParams& shared) {
  const BlockMapParams& params = shared;  // but for its error, which another warp may set
  vfs::Filesystem& fs = *params.fs;
  const vfs::Descriptor* const descriptor = vfs::find_readable(warp, fs, params.descriptor);
  if (descriptor == nullptr) {
    if (warp.thread_rank() == 0) simt::store_relaxed(shared.error, -EBADF);
    return;
  }
  const f2fs::Inode& inode = fs.open_inodes[descriptor->open_inode].inode;
  const uint64_t step = uint64_t{warp_count} * warp.size();
  for (uint64_t first = uint64_t{warp_index} * warp.size(); first < params.count; first += step) {
    const uint64_t index = first + warp.thread_rank();
    const bool mine = index < params.count;
    f2fs::BlockPlace place{};
    const int mapped = f2fs::map_blocks(warp, fs.volume, warp.ballot(mine), inode, index, place);
    if (mine && mapped == 0) params.map[index] = place.block;
    const int error = simt::first_error(warp, mine ? mapped : 0);
    if (error == 0) continue;
    if (warp.thread_rank() == 0) simt::store_relaxed(shared.error, error);
    return;
  }
}

}  // namespace gofs::bench
