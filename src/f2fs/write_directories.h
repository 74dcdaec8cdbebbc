// SPDX-License-Identifier: Apache-2.0
//
// Writing changed directory pages: each goes to a new block of a data log, the node that holds its
// address says so from then on, and its former block is released. So this comes before the nodes
// are written. Who makes a directory page dirty makes that node dirty too (directory_blocks.h), so
// nothing has to be brought into memory that would then have to stay.
#pragma once

#include "f2fs/directory_pages.h"
#include "f2fs/write_nodes.h"

namespace gofs::f2fs {

namespace detail {

/// Where a block of a directory lies and which node says so.
struct DirectoryBlock {
  uint64_t index;
  BlockPlace place;
  LastNode holder;
  uint8_t version;  // of the holder's nid
};

/// Looks up the block `key` of each lane in `lanes`. Collective. Per lane 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int look_up_directory_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                          uint32_t lanes, uint64_t key,
                                                          DirectoryBlock& found) {
  const uint32_t rank = warp.thread_rank();
  const auto still = [&](int error) {
    return warp.ballot((lanes >> rank & 1u) != 0 && error == 0);
  };
  Inode directory{};
  found.index = directory_index_of(key);
  int error = load_inodes(warp, volume, lanes, directory_of(key), directory);
  const int walked = walk_nodes(warp, volume, still(error), directory, found.index, found.place,
                                found.holder, SupplyNothing{});
  if (error == 0) error = walked;
  if (still(error) >> rank & 1u && found.holder.nid == 0) {
    error = report(*volume.corruptions, {Structure::kDirectory, 0, directory.ino, found.index});
  }
  NatRecord record{};
  const int looked_up = look_up_nat(warp, volume, still(error), found.holder.nid, record);
  found.version = record.version;
  return error == 0 ? looked_up : error;
}

/// Writes the pages in the frames of `lanes`, which the caller has taken, of directories. As
/// write_nodes.
GOFS_NOINLINE GOFS_HD inline int write_directory_pages(simt::AnyWarp auto warp, Operation& op,
                                                       uint32_t lanes, uint32_t frame, uint32_t ino,
                                                       const DirectoryBlock& old) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const auto slot = static_cast<uint32_t>(old.index - old.holder.first_index);
  format::SummaryEntry summary{};
  summary.nid = old.holder.nid;
  summary.version = old.version;
  summary.ofs_in_node = static_cast<uint16_t>(slot);
  uint32_t block = 0;
  const int allocated = allocate_blocks(warp, op, lanes, format::kHotData, summary, block);
  if (allocated < 0) return allocated;
  int error =
      write_blocks(warp, op.volume, lanes, block, mine ? op.volume.cache.page(frame) : nullptr);
  const int entered = change_nodes_together(
      warp, op, warp.ballot(mine && error == 0), old.holder.nid, ino, [&](format::NodeBlock& node) {
        format::store_u32(reinterpret_cast<uint32_t*>(&node) + old.holder.first_word + slot, block);
      });
  if (error == 0) error = entered;
  // Of the two blocks, the one that counts is kept.
  const uint32_t unused = error == 0 ? old.place.block : block;
  free_blocks(warp, op, warp.ballot(mine && unused != format::kNullAddr), unused);
  return mine ? error : 0;
}

}  // namespace detail

/// Writes the pages of directories in `range` that have changed. Collective, by one warp; others
/// may write other ranges, and no thread changes anything else. Returns, identical in all lanes: 0
/// or a negative errno, after which those that were not written are still dirty.
GOFS_NOINLINE GOFS_HD inline int write_dirty_directories(simt::AnyWarp auto warp, Operation& op,
                                                         const MapRange& range) {
  PageCache& cache = op.volume.cache;
  return for_dirty_pages(
      warp, cache, PageKind::kDirectory, range, [&](uint32_t lanes, uint32_t frame, uint64_t key) {
        const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
        // Before the pages are taken, since this may have to wait for others.
        detail::DirectoryBlock old{};
        int error = detail::look_up_directory_blocks(warp, op.volume, lanes, key, old);
        error = simt::first_error(warp, mine ? error : 0);
        if (error < 0) return error;
        if (!detail::take_frames(warp, cache, mine, frame, key)) return -EBUSY;
        const int written =
            detail::write_directory_pages(warp, op, lanes, frame, directory_of(key), old);
        if (mine) {
          if (written == 0) clean_frame(cache, frame, key);
          release_frame(cache, frame, written < 0);
        }
        return simt::first_error(warp, mine ? written : 0);
      });
}

}  // namespace gofs::f2fs
