// SPDX-License-Identifier: Apache-2.0
//
// The blocks of directories in the page cache. Their key is the directory and the block's number in
// it: a page that is there needs no mapping, and one that has changed can stay although its place
// on disk changes each time it is written.
#pragma once

#include "f2fs/map.h"
#include "format/dentry.h"

namespace gofs::f2fs {

/// Blocks of a directory, which has entries in blocks.
GOFS_HD inline uint64_t directory_blocks(const Inode& directory) {
  return simt::min(directory.size_blocks(), kDirectoryBlocksMax);
}

/// Calls `use(const uint8_t* page)` on each lane in `lanes` with block `index` <
/// kDirectoryBlocksMax of `directory`, of which one that was loaded earlier will do. Collective as
/// with_pages is. Per lane 0; -ENOENT, where there is no such block; or another negative errno.
/// `span`, unless it is 0: file blocks from this one that share the answer. Lanes that ask for the
/// same block get it on the first of them only.
template <typename Use>
GOFS_HD int with_directory_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                  const Inode& directory, uint64_t index, uint64_t& span, Use use) {
  span = 1;
  return with_pages(
      warp, volume, lanes, directory_key(directory.ino, index),
      [&](uint32_t missing, uint32_t& block) {
        BlockPlace place{};
        const int error = map_blocks(warp, volume, missing, directory, index, place);
        if ((missing >> warp.thread_rank() & 1u) == 0) return 0;
        block = place.block;
        span = place.span;
        return error == 0 && block == format::kNullAddr ? -ENOENT : error;
      },
      [](const uint8_t*, uint32_t) { return 0; }, use);
}

/// Brings block `index` of each lane in `lanes` into memory. Answers as with_directory_blocks.
GOFS_NOINLINE GOFS_HD inline int fetch_directory_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                        uint32_t lanes, const Inode& directory,
                                                        uint64_t index, uint64_t& span) {
  return with_directory_blocks(warp, volume, lanes, directory, index, span, [](const uint8_t*) {});
}

}  // namespace gofs::f2fs
