// SPDX-License-Identifier: Apache-2.0
//
// Blocks of directories that come, change and go. A page that has changed, or was just made, is
// dirty and stays in memory until a checkpoint gives it a place (write_directories.h); the node
// that holds its address is made dirty with it, so that the checkpoint needs no more room.
//
// Callers hold the directory exclusively, but for readers.
#pragma once

#include "f2fs/directory_pages.h"
#include "f2fs/grow_nodes.h"
#include "f2fs/update_inode.h"

namespace gofs::f2fs::detail {

/// Calls `use(format::Inode&)` on one lane to change the inode of a directory. Collective, uniform.
template <typename Use>
GOFS_HD int change_inode(simt::AnyWarp auto warp, Operation& op, uint32_t ino, Use use) {
  const int error =
      change_nodes(warp, op, 1u, ino, ino, [&](format::NodeBlock& node) { use(node.inode); });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

GOFS_HD inline void set_modified(format::Inode& inode, const TimeStamp& now) {
  inode.i_mtime = now.seconds;
  inode.i_mtime_nsec = now.nanoseconds;
  inode.i_ctime = now.seconds;
  inode.i_ctime_nsec = now.nanoseconds;
}

/// Sets the times of a directory whose entries change, unless others have, now or later.
GOFS_HD inline void renew_times(format::Inode& inode, const TimeStamp& now) {
  if (!is_modified_since(inode, now)) set_modified(inode, now);
}

/// Looks up where the address of block `index` stands; nid 0: nowhere. Collective, uniform.
GOFS_HD inline int find_address(simt::AnyWarp auto warp, Volume& volume, const Inode& directory,
                                uint64_t index, AddressPlace& at) {
  BlockPlace place{};
  LastNode last{};
  const int error =
      walk_nodes(warp, volume, warp.ballot(true), directory, index, place, last, SupplyNothing{});
  const auto slot = static_cast<uint32_t>(index - last.first_index);
  at = AddressPlace{last.nid, last.first_word + slot, slot, last.address};
  return simt::first_error(warp, error);
}

/// Sees to it that the node `nid` of each lane in `lanes`, of the file `ino`, stays in memory until
/// the caller ends its operation. Collective. Per lane 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int keep_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            uint32_t nid, uint32_t ino) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t marking =
      warp.ballot(mine && !is_kept(op.volume.cache, page_key(PageKind::kNode, nid)));
  return change_words(warp, op, marking, nid, ino, [](const format::NodeBlock&) {});
}

/// Makes the node dirty that holds the address of block `index` of each lane in `lanes`. The inode
/// is not looked at: who changes a directory changes its times. The node stays as it is, so others
/// may look at it meanwhile; of a directory, only checkpoints write any. Collective. Per lane 0 or
/// a negative errno.
GOFS_NOINLINE GOFS_HD inline int mark_holders(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const Inode& directory,
                                              uint64_t index) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0 && index >= directory.slot_count;
  const uint32_t looking = warp.ballot(mine);
  if (looking == 0) return 0;
  BlockPlace place{};
  LastNode last{};
  int error = walk_nodes(warp, op.volume, looking, directory, index, place, last, SupplyNothing{});
  if (mine && error == 0 && last.nid == 0) {
    error = report(*op.volume.corruptions, {Structure::kDirectory, 0, directory.ino, index});
  }
  const uint32_t found = warp.ballot(mine && error == 0);
  const int kept = keep_nodes(warp, op, found, last.nid, directory.ino);
  return (found >> rank & 1u) != 0 ? kept : error;
}

/// Calls `use(uint8_t* page)` on each lane in `lanes` with block `index`, which exists, to change
/// it; it says whether it has. Collective as change_pages is. The caller has made the block's
/// holder dirty.
template <typename Use>
GOFS_HD int change_directory_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                    const Inode& directory, uint64_t index, Use use) {
  return change_pages(
      warp, op, lanes, directory_key(directory.ino, index),
      [&](uint32_t missing) {
        uint64_t span = 0;
        return fetch_directory_blocks(warp, op.volume, missing, directory, index, span);
      },
      use);
}

/// Makes the page of a new block for each lane in `lanes`, each another one. Calls
/// `make(format::NodeBlock& holder, uint8_t* page)` with the node `nid` and the page, zeros, while
/// no other thread sees either, so that readers find what moves from one to the other; lanes with
/// the same holder change other words of it, at once. Collective, `make` is not. Per lane 0 or a
/// negative errno: nothing has changed then.
template <typename Make>
GOFS_HD int make_directory_pages(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                 uint32_t nid, uint32_t ino, uint64_t index, Make make) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  PageCache& cache = op.volume.cache;
  bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  // The holder stays in memory from then on: nothing is brought in while frames are claimed.
  int result = keep_nodes(warp, op, lanes, nid, ino);
  wanted = wanted && result == 0;
  if (!warp.any(wanted)) return result;
  for (;;) {
    // Before the holder is taken: who has one, which others wait for, waits for nothing.
    const uint32_t frame = wanted ? claim_frame(cache, directory_key(ino, index)) : kNoFrame;
    const bool claimed = frame != kNoFrame;
    const uint32_t claimers = warp.ballot(claimed);
    for (uint32_t left = claimers; left != 0; left &= left - 1) {
      const uint32_t theirs = warp.shfl(frame, simt::lowest_bit(left));
      simt::zero_bytes(warp, cache.page(theirs), kBlockBytes);
    }
    warp.sync();
    if (claimers != 0) {
      const int error = change_nodes_together(
          warp, op, claimers, nid, ino,
          [&](format::NodeBlock& holder) { make(holder, cache.page(frame)); });
      if (claimed && error == 0) release_frame(op, frame, true);
      if (claimed && error < 0) abandon_frame(cache, frame);
      if (claimed) {
        result = error;
        wanted = false;
      }
    }
    if (!warp.any(wanted)) return result;
    if (warp.any(deadline.passed())) return wanted ? -EBUSY : result;
    backoff.pause();
  }
}

/// Counts a block of a directory, or takes it off the count. Collective, uniform: false if there is
/// none.
GOFS_HD inline bool count_directory_block(simt::AnyWarp auto warp, Operation& op) {
  return warp.any(warp.thread_rank() == 0 && count_blocks(op, 1));
}
GOFS_HD inline void uncount_directory_block(simt::AnyWarp auto warp, Volume& volume) {
  if (warp.thread_rank() == 0) detail::uncount_blocks(volume, 1);
}

/// Takes block `index` out of a directory, whose size stays. Collective, uniform. 0, also where
/// there is none, or a negative errno: the block is then still there.
GOFS_NOINLINE GOFS_HD inline int drop_directory_block(simt::AnyWarp auto warp, Operation& op,
                                                      Inode& directory, uint64_t index) {
  AddressPlace at{};
  int error = find_address(warp, op.volume, directory, index, at);
  if (error < 0 || at.nid == 0 || at.address == format::kNullAddr) return error;
  // The inode first: it is in memory then, and can be set right again.
  const auto count = [&](uint64_t blocks) {
    return change_inode(warp, op, directory.ino,
                        [&](format::Inode& inode) { inode.i_blocks = inode.i_blocks + blocks; });
  };
  const auto enter = [&](uint32_t address) {
    const int entered =
        change_nodes(warp, op, 1u, at.nid, directory.ino, [&](format::NodeBlock& node) {
          format::store_u32(reinterpret_cast<uint32_t*>(&node) + at.word, address);
        });
    return simt::first_error(warp, warp.thread_rank() == 0 ? entered : 0);
  };
  error = count(~uint64_t{0});
  if (error < 0) return error;
  error = enter(format::kNullAddr);
  if (error == 0) {
    error = simt::first_error(warp,
                              invalidate_pages(warp, op, 1u, directory_key(directory.ino, index)));
    if (error < 0) (void)enter(at.address);
  }
  if (error < 0) {
    (void)count(1);
    return error;
  }
  free_blocks(warp, op, op.volume.is_main_block(at.address) ? 1u : 0u, at.address);
  uncount_directory_block(warp, op.volume);
  --directory.block_count;
  return 0;
}

}  // namespace gofs::f2fs::detail
