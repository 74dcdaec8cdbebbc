// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a directory that are made before the names come that stand in them: warps that enter
// names side by side (add_entries.h) then do not wait for each other to make blocks.
#pragma once

#include "f2fs/add_entries.h"

namespace gofs::f2fs {

namespace detail {

/// The hash level that block `index` belongs to.
GOFS_HD inline uint32_t level_of_block(const Inode& directory, uint64_t index) {
  uint32_t level = 0;
  while (format::dir_level_start(level + 1, directory.dir_level) <= index) ++level;
  return level;
}

}  // namespace detail

/// Where the blocks begin that a directory does not have yet. Collective, uniform.
GOFS_HD inline uint64_t first_new_block(const Inode& directory) {
  if (directory.has_inline_dentries()) return 0;
  return format::dir_level_start(directory.dir_depth, directory.dir_level);
}

/// Has a directory keep its entries in blocks, where they are in its inode. By a caller that holds
/// it exclusively but for readers. Collective, uniform. 0 or a negative errno, and it is as it was:
/// those of add_entries(). Pages: as there, for one entry.
GOFS_NOINLINE GOFS_HD inline int move_out_entries(simt::AnyWarp auto warp, Operation& op,
                                                  Inode& directory, DirectoryGrowth& growth) {
  if (!directory.has_inline_dentries()) return 0;
  const int error = detail::convert_inline_directory(warp, op, directory);
  if (error == 0) detail::tell_depth(warp, directory, &growth);
  return error;
}

/// Makes the blocks of `directory`, which keeps its entries in blocks, from `first` on, one a lane
/// and below the level how.levels.end, without entries, unless they are there. By a caller that
/// holds the directory exclusively but for readers and others who do this with other blocks of it.
/// Collective, uniform. 0 or a negative errno, and some of them may have been made: those of
/// add_entries(). Pages: as there, for an entry a lane.
GOFS_NOINLINE GOFS_HD inline int prealloc_dentry_blocks(simt::AnyWarp auto warp, Operation& op,
                                                        Inode& directory, uint64_t first,
                                                        const Adding& how) {
  int error = 0;
  DentrySlots room{};
  room.index = first + warp.thread_rank();
  const bool mine =
      room.index <
      simt::min(format::dir_level_start(how.levels.end, directory.dir_level), kDirectoryBlocksMax);
  if (mine) room.level = detail::level_of_block(directory, room.index);
  AddressPlace at{};
  const int placed =
      detail::place_new_blocks(warp, op, directory, warp.ballot(mine), room.index, at);
  const uint32_t making = warp.ballot(mine && placed == 0);
  const int made = making == 0 ? 0 : detail::make_blocks(warp, op, directory, making, {}, room, at);
  detail::tell_depth(warp, directory, how.growth);
  if (mine && placed != -EAGAIN) error = placed < 0 ? placed : made;
  return simt::first_error(warp, error);
}

}  // namespace gofs::f2fs
