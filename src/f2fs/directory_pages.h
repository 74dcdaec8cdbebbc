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

/// Whether a directory, which has entries in blocks, can have the size that it says: at least the
/// block of `.` and `..`. Otherwise there may be names that cannot be found.
GOFS_HD inline bool has_possible_size(const Inode& directory) {
  return directory.size_blocks() != 0 && directory.size_blocks() <= kDirectoryBlocksMax;
}

namespace detail {

/// Where block `index` of each lane's directory lies. 0, or a negative errno: -ENOENT also where
/// the inode has become another's since `directory` was loaded, whose blocks are not to be taken
/// for this one's. Collective.
GOFS_NOINLINE GOFS_HD inline int find_directory_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                       uint32_t lanes, const Inode& directory,
                                                       uint64_t index, BlockPlace& place) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = map_blocks(warp, volume, lanes, directory, index, place);
  if (mine && error == 0 && place.block == format::kNullAddr) error = -ENOENT;
  const uint32_t found = warp.ballot(mine && error == 0);
  if (found == 0) return error;
  // After the walk: so it went through this directory, and who removes it from now on gives up the
  // page's key.
  bool same = false;
  const int read = with_nodes(
      warp, volume, found, directory.ino, directory.ino, [&](const format::NodeBlock& node) {
        same = format::load_u32(&node.inode.i_generation) == directory.generation &&
               (format::load_u16(&node.inode.i_mode) & format::kModeTypeMask) ==
                   format::kModeDirectory;
      });
  if ((found >> warp.thread_rank() & 1u) == 0) return error;
  return read == 0 && !same ? -ENOENT : read;
}

}  // namespace detail

/// Calls `use(const uint8_t* page)` on each lane in `lanes` with block `index` <
/// kDirectoryBlocksMax of `directory`, which may have changed since it was loaded. Collective as
/// with_pages is. Per lane 0; -ENOENT, where there is no such block; or another negative errno.
/// Where it is not 0, `span` is the number of file blocks from this one that share the answer; of
/// lanes that ask for the same block, on the first.
template <typename Use>
GOFS_HD int with_directory_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                  const Inode& directory, uint64_t index, uint64_t& span, Use use) {
  span = 1;
  return with_pages(
      warp, volume, lanes, directory_key(directory.ino, index),
      [&](uint32_t missing, uint32_t& block) {
        BlockPlace place{};
        const int error =
            detail::find_directory_blocks(warp, volume, missing, directory, index, place);
        if ((missing >> warp.thread_rank() & 1u) == 0) return 0;
        block = place.block;
        span = place.span;
        return error;
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
