// SPDX-License-Identifier: Apache-2.0
//
// Inodes by number, for those who have listed them before: what a number belonged to may have been
// removed since.
#pragma once

#include "vfs/path.h"

namespace gofs::vfs {

namespace detail {

/// Whether the volume is damaged where no inode was found. With a writer, the NAT knows whether
/// there is to be one: none while its number is being taken or given back. Otherwise nothing is
/// removed, and no name has a number that is not an inode's. Collective, while reading paths. Per
/// lane in `lanes` -ESTALE; -EUCLEAN (reported), and others from the device.
GOFS_NOINLINE GOFS_HD inline int judge_missing(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t lanes, uint32_t ino) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool possible = mine && ino < fs.volume.geometry.nid_count();
  f2fs::NatRecord record{};
  const int looked = f2fs::look_up_nat(warp, fs.volume, warp.ballot(possible), ino, record);
  const bool is_there =
      record.ino == ino && record.block != format::kNullAddr && record.block != format::kNewAddr;
  const uint32_t wrong = warp.ballot(possible && looked == 0 && (is_there || fs.writer == nullptr));
  f2fs::Inode inode{};
  const int loaded = wrong == 0 ? 0 : f2fs::load_inodes(warp, fs.volume, wrong, ino, inode);
  if (possible && looked < 0) return looked;
  return (wrong >> warp.thread_rank() & 1u) != 0 && loaded < 0 ? loaded : -ESTALE;
}

}  // namespace detail

/// Loads one inode a lane, as f2fs::find_inodes(); -ESTALE where there is none, or it has been
/// removed. Collective, while reading paths (reading_paths()).
template <typename Use>
GOFS_HD int use_numbered(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes, uint32_t ino,
                         f2fs::Inode& inode, Use use) {
  const int error = f2fs::find_inodes(warp, fs.volume, lanes, ino, inode, use);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t missing = warp.ballot(mine && error == -ENOENT);
  const int judged = missing == 0 ? 0 : detail::judge_missing(warp, fs, missing, ino);
  if ((missing >> warp.thread_rank() & 1u) != 0) return judged;
  const bool removed = mine && error == 0 && inode.links == 0 && fs.writer != nullptr;
  return removed ? -ESTALE : error;
}
/// The same without more to be done.
GOFS_NOINLINE GOFS_HD inline int load_numbered(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t lanes, uint32_t ino, f2fs::Inode& inode) {
  return use_numbered(warp, fs, lanes, ino, inode, [](const format::NodeBlock&) {});
}

/// The same where the inode is to have this generation: -ESTALE where another file has its number.
GOFS_HD inline int load_known(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes, uint32_t ino,
                              uint32_t generation, f2fs::Inode& inode) {
  const int error = load_numbered(warp, fs, lanes, ino, inode);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  return mine && error == 0 && inode.generation != generation ? -ESTALE : error;
}

}  // namespace gofs::vfs
