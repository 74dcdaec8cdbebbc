// SPDX-License-Identifier: Apache-2.0
//
// File data, one piece a lane: mapped together, merged into few commands, moved by the device
// straight into the caller's buffer. Only what the device cannot address (parts of an LBA, odd
// buffer addresses) goes through a spare block.
#pragma once

#include "f2fs/file_data.h"
#include "f2fs/map.h"
#include "f2fs/page_pool.h"
#include "simt/copy.h"

namespace gofs::f2fs {

/// Part of one file block, or of a file's inline data, and where it shall go.
struct Piece {
  uint64_t offset;  // in the file, bytes
  uint32_t bytes;   // does not cross a block boundary
  uint8_t* target;
};

namespace detail {

/// Copies or clears one range a lane, the warp working on one lane's after the other. Collective.
GOFS_HD inline void zero_ranges(simt::AnyWarp auto warp, uint32_t lanes, const Piece& piece) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t owner = simt::lowest_bit(lanes);
    auto* target =
        reinterpret_cast<void*>(warp.shfl(reinterpret_cast<uint64_t>(piece.target), owner));
    simt::zero_bytes(warp, target, warp.shfl(piece.bytes, owner));
  }
  warp.sync();
}

/// Reads pieces of files `ino` through spare blocks. Collective; per lane of `lanes` 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int read_bounced(simt::AnyWarp auto warp, Volume& volume,
                                              const PagePool& pool, uint32_t lanes, uint32_t ino,
                                              uint32_t block, const Piece& piece) {
  const nvme::Route route = nvme::pick_route(volume.array);
  const uint32_t lba_bytes = route.array.lba_bytes();
  const uint32_t in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  const uint32_t first = in_block & ~(lba_bytes - 1);
  const auto end = static_cast<uint32_t>(simt::align_up(in_block + piece.bytes, lba_bytes));
  bool todo = (lanes >> warp.thread_rank() & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  while (warp.any(todo)) {
    uint8_t* page = todo ? pool.try_take(warp) : nullptr;
    const uint32_t holders = warp.ballot(page != nullptr);
    if (holders == 0) {
      if (warp.any(deadline.passed())) return todo ? -EBUSY : result;
      backoff.pause();
      continue;
    }
    const int read = read_data(warp, route, holders,
                               {ino, piece.offset - in_block + first, block, end - first, page},
                               Merge::kNothing);
    warp.sync();
    uint32_t arrived = warp.ballot(page != nullptr && read == 0);
    for (; arrived != 0; arrived &= arrived - 1) {
      const uint32_t owner = simt::lowest_bit(arrived);
      const uint64_t from = reinterpret_cast<uint64_t>(page) + (in_block - first);
      simt::copy_bytes(
          warp, reinterpret_cast<void*>(warp.shfl(reinterpret_cast<uint64_t>(piece.target), owner)),
          reinterpret_cast<const void*>(warp.shfl(from, owner)), warp.shfl(piece.bytes, owner));
    }
    warp.sync();
    if (page != nullptr) {
      result = read;
      pool.release(page);
      todo = false;
    }
  }
  return result;
}

}  // namespace detail

/// Reads one piece a lane of file `ino` from `block`, where its file block is stored. Collective.
/// Per lane 0 or a negative errno. The bytes are visible to the whole warp; with a mailbox (one for
/// all lanes), those that the device puts in place are only under way.
GOFS_NOINLINE GOFS_HD inline int read_stored(simt::AnyWarp auto warp, Volume& volume,
                                             const PagePool& pool, uint32_t lanes, uint32_t ino,
                                             uint32_t block, const Piece& piece,
                                             nvme::Mailbox* mailbox = nullptr) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t lba_mask = volume.array.lba_bytes() - 1;
  const uint32_t in_place = warp.ballot(
      mine && detail::is_directly_addressable(piece.target, piece.offset, piece.bytes, lba_mask));
  const uint32_t bounced = lanes & ~in_place;
  int result = 0;
  warp.sync();  // what a lane has acquired with an address, any may have read [C5]
  if (in_place != 0) {
    const int read = read_data(warp, nvme::pick_route(volume.array), in_place,
                               {ino, piece.offset, block, piece.bytes, piece.target},
                               Merge::kNeighbours, mailbox);
    if ((in_place >> rank & 1u) != 0) result = read;
  }
  if (bounced != 0) {
    const int read = detail::read_bounced(warp, volume, pool, bounced, ino, block, piece);
    if ((bounced >> rank & 1u) != 0) result = read;
  }
  warp.sync();
  return result;
}

/// Reads one piece a lane; `inode` may differ from lane to lane, and all of `lanes` have pieces of
/// at least one byte. Collective. Per lane 0 or a negative errno. Nothing is said about the file's
/// size. Mailbox and visibility as in read_stored.
GOFS_NOINLINE GOFS_HD inline int read_pieces(simt::AnyWarp auto warp, Volume& volume,
                                             const PagePool& pool, uint32_t lanes,
                                             const Inode& inode, const Piece& piece,
                                             nvme::Mailbox* mailbox = nullptr) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  int result = 0;

  const uint32_t inlined = warp.ballot(mine && inode.has_inline_data());
  bool has_left = false;  // its contents have been moved out since the caller read the inode
  bool has_gone = false;  // another file has its number since then
  if (inlined != 0) {
    // The caller's idea of the file's size may be older than this inode.
    const bool fits = piece.offset + piece.bytes <= inode.inline_bytes;
    const int read =
        find_nodes(warp, volume, inlined, inode.ino, inode.ino, [&](const format::NodeBlock& node) {
          has_gone = format::load_u32(&node.inode.i_generation) != inode.generation;
          if (has_gone) return;
          has_left = (node.inode.i_inline & format::kInlineData) == 0;
          if (has_left || !fits) return;
          const auto* from =
              reinterpret_cast<const uint8_t*>(&node) + inode.inline_offset + piece.offset;
          for (uint32_t i = 0; i < piece.bytes; ++i) piece.target[i] = from[i];
        });
    if ((inlined >> rank & 1u) != 0) {
      result = has_gone ? -ENOENT
               : read < 0 || fits || has_left
                   ? read
                   : report(*volume.corruptions, {Structure::kInode, 0, inode.ino, piece.offset});
    }
    warp.sync();
  }
  const uint32_t mapping = (lanes & ~inlined) | warp.ballot(has_left);
  if (mapping == 0) return result;

  BlockPlace place{};
  const int mapped = map_blocks(warp, volume, mapping, inode, piece.offset >> kBlockShift, place);
  const bool good = (mapping >> rank & 1u) != 0 && mapped == 0;
  if ((mapping >> rank & 1u) != 0) result = mapped;

  const uint32_t holes = warp.ballot(good && place.block == format::kNullAddr);
  if (holes != 0) detail::zero_ranges(warp, holes, piece);

  const uint32_t stored = warp.ballot(good && place.block != format::kNullAddr);
  if (stored != 0) {
    const int read =
        read_stored(warp, volume, pool, stored, inode.ino, place.block, piece, mailbox);
    if ((stored >> rank & 1u) != 0) result = read;
  }
  warp.sync();
  return result;
}

}  // namespace gofs::f2fs
