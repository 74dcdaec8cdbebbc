// SPDX-License-Identifier: Apache-2.0
//
// Inodes by number, for those who have listed them before: what a number belonged to may have been
// removed since.
#pragma once

#include "vfs/path.h"

namespace gofs::vfs {

/// Whether the numbers of the lanes in `lanes` are those of inodes: per lane 0, -ESTALE where it is
/// no inode's any more, or what the device says. Collective, while reading paths (reading_paths()).
GOFS_NOINLINE GOFS_HD inline int check_numbers(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t lanes, uint32_t ino) {
  // A volume that is mounted read-only names no number that is not an inode's, unless it is
  // damaged.
  if (fs.writer == nullptr) return 0;
  f2fs::NatRecord record{};
  const int error = f2fs::look_up_nat(warp, fs.volume, lanes, ino, record);
  if ((lanes >> warp.thread_rank() & 1u) == 0 || error < 0) return error;
  return record.block == format::kNullAddr || record.ino != ino ? -ESTALE : 0;
}

/// Loads one inode a lane, as f2fs::load_inodes(); -ESTALE where it has been removed. Collective,
/// while reading paths.
GOFS_NOINLINE GOFS_HD inline int load_numbered(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t lanes, uint32_t ino, f2fs::Inode& inode) {
  const uint32_t bit = 1u << warp.thread_rank();
  const int error = check_numbers(warp, fs, lanes, ino);
  const uint32_t there = warp.ballot((lanes & bit) != 0 && error == 0);
  const int loaded = f2fs::load_inodes(warp, fs.volume, there, ino, inode);
  if ((there & bit) == 0) return error;
  return loaded == 0 && inode.links == 0 && fs.writer != nullptr ? -ESTALE : loaded;
}

}  // namespace gofs::vfs
