// SPDX-License-Identifier: Apache-2.0
//
// Moving blocks of files and directories out of a segment that is being cleaned. Who moves a file's
// blocks has them locked as one who writes them: so he has the file as those have it who opened it.
// Directories are the cleaner's as they are of who changes names in them.
//
// All functions are collective, by one warp that holds no locks and no spare blocks.
#pragma once

#include "f2fs/locate_blocks.h"
#include "f2fs/move_blocks.h"
#include "f2fs/move_nodes.h"
#include "vfs/change.h"
#include "vfs/file_lock.h"
#include "vfs/open_files.h"

namespace gofs::vfs::detail {

/// How long a cleaner waits for those who use a file; then its blocks stay where they are.
inline constexpr uint64_t kCleanLockNs = 1'000'000'000;

/// A file that the cleaner has open, the one whose blocks he met last.
struct CleanedFile {
  uint32_t ino;  // 0: none
  uint32_t index;
};

/// Loads an inode that may be gone. Collective, uniform. 0, -ENOENT or another negative errno.
GOFS_NOINLINE GOFS_HD inline int find_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                            f2fs::Inode& inode) {
  int unpacked = 0;
  const int error = f2fs::find_nodes(
      warp, fs.volume, warp.ballot(true), ino, ino, [&](const format::NodeBlock& node) {
        unpacked = f2fs::detail::unpack_inode(fs.volume, node, ino, inode);
      });
  return simt::first_error(warp, error < 0 ? error : unpacked);
}

GOFS_HD inline void leave_cleaned(simt::AnyWarp auto warp, Filesystem& fs, CleanedFile& file) {
  if (file.ino != 0) leave_open_inode(warp, fs, file.index);
  file.ino = 0;
}

/// Has `ino` open as `file`. Collective, uniform. 0 or a negative errno: -ENOENT where it was
/// removed or has no name; -EAGAIN where it is opened and closed too often.
GOFS_NOINLINE GOFS_HD inline int enter_cleaned(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t ino, CleanedFile& file) {
  if (file.ino == ino) return 0;
  leave_cleaned(warp, fs, file);
  constexpr uint32_t kTries = 8;
  SeenClosings seen{false, 0};
  int index = -EAGAIN;
  for (uint32_t attempt = 0; attempt < kTries && index == -EAGAIN; ++attempt) {
    // Who has taken the last name frees it when we have it open, or not yet.
    index = reading_paths(warp, fs, [&]() -> int {
      f2fs::Inode inode{};
      const int error = find_inode(warp, fs, ino, inode);
      if (error < 0) return error;
      if (inode.links == 0) return -ENOENT;
      int taken = 0;
      if (warp.thread_rank() == 0) taken = acquire_open_inode(fs, inode, &seen);
      return warp.shfl(taken, 0);
    });
    warp.sync();
  }
  if (index < 0) return index;
  file = {ino, static_cast<uint32_t>(index)};
  return 0;
}

/// The blocks from the first to the last of `lanes`, as a range of bytes. Collective, uniform.
GOFS_HD inline ByteRange range_of_blocks(simt::AnyWarp auto warp, uint32_t lanes, uint64_t index) {
  return range_of_lanes(warp, lanes, index << kBlockShift, kBlockBytes);
}

/// The first `count` of `lanes`.
GOFS_HD inline uint32_t first_lanes(uint32_t lanes, uint32_t count) {
  while (simt::popcount(lanes) > count) {
    lanes &= ~(1u << (31 - simt::leading_zeros(lanes)));
  }
  return lanes;
}

/// operate() for who moves blocks, which needs no room that users have.
template <typename Change>
GOFS_HD int operate_cleaning(simt::AnyWarp auto warp, Filesystem& fs, uint32_t pages,
                             Change change) {
  return operate_or_sync(warp, fs, pages, change, [] { return true; });
}

/// Moves the blocks of a file that `file` has open, one a lane. Collective, uniform answer: 0 or a
/// negative errno; `moved` are the lanes whose blocks went.
GOFS_NOINLINE GOFS_HD inline int move_file_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const CleanedFile& file, uint32_t lanes,
                                                  uint64_t index, const f2fs::BlockOwner& owner,
                                                  uint32_t& moved) {
  OpenInode& open = fs.open_inodes[file.index];
  const ByteRange range = range_of_blocks(warp, lanes, index);
  // By a write that the cleaner himself may have under way.
  if (is_detached(warp, open.lock, range)) return -EAGAIN;
  WriteHold hold{};
  const simt::Deadline deadline = simt::Deadline::after_ns(kCleanLockNs);
  int error = hold_in_ring(warp, open, Hold::kRange, range, deadline, hold);
  if (error < 0) return error;
  const bool moves = !open.inode.has_inline_data();
  if (warp.all(moves)) {
    const f2fs::FileHold held = held_file(hold);
    error = operate_cleaning(warp, fs, f2fs::pages_to_move(simt::popcount(lanes)),
                             [&](f2fs::Operation& op) {
                               return f2fs::move_blocks(warp, op, lanes, held, index, owner, moved);
                             });
  }
  release(warp, fs, hold);
  return error;
}

/// The same for blocks of the directory `ino`.
GOFS_NOINLINE GOFS_HD inline int move_directory_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                                       uint32_t ino, uint32_t lanes, uint64_t index,
                                                       const f2fs::BlockOwner& owner,
                                                       uint32_t& moved) {
  // Not for long: a thread may hold the directory exclusively and wait for us.
  const simt::Deadline deadline = simt::Deadline::after_ns(kCleanLockNs);
  if (lock_inode(warp, fs, ino, deadline) < 0) return -EAGAIN;
  f2fs::Inode directory{};
  int error = find_inode(warp, fs, ino, directory);
  // Under the lock it is not removed.
  const bool moves =
      directory.is_directory() && directory.links != 0 && !directory.has_inline_dentries();
  if (error == 0 && !moves) error = -ENOENT;
  const uint32_t pages = f2fs::kPagesToMoveDirectoryBlock * simt::popcount(lanes);
  if (error == 0) {
    error = operate_cleaning(warp, fs, pages, [&](f2fs::Operation& op) -> int {
      for (uint32_t left = lanes; left != 0; left &= left - 1) {
        const uint32_t lane = simt::lowest_bit(left);
        const f2fs::BlockOwner one{warp.shfl(owner.block, lane), warp.shfl(owner.nid, lane), 0, 0};
        const int changed =
            f2fs::move_directory_block(warp, op, directory, warp.shfl(index, lane), one);
        if (changed == 0) moved |= 1u << lane;
        if (changed < 0 && changed != -ENOENT) return changed;
      }
      return 0;
    });
  }
  unlock_inode(warp, fs, ino);
  return error == -ENOENT ? 0 : error;
}

/// Whether blocks of such a file may be moved.
GOFS_HD inline bool may_be_moved(const f2fs::Inode& inode) {
  return f2fs::check_supported(inode) == 0 && (inode.inline_flags & format::kInlinePinned) == 0;
}

}  // namespace gofs::vfs::detail
