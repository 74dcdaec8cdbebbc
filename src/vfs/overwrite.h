// SPDX-License-Identifier: Apache-2.0
//
// The straight way of a write, as pread_lanes() has one of a read: lanes that each write whole LBAs
// within a block of one file, over what is there (f2fs/write_over.h). It is for the case that
// nothing stands in the way, and else leaves all as it was to those who can wait (write_blocks.h):
// nobody reads the file, writes more of it or the same blocks, or holds places; its block map knows
// the blocks; its times have been set in this moment; and nobody's powers are to be dropped.
#pragma once

#include "vfs/write_blocks.h"

namespace gofs::vfs {

/// What one thread wants to be written.
struct WriteRequest {
  int fd;
  const void* buffer;
  uint64_t bytes;
  uint64_t offset;  // of one that appends: where it went, in the end
};

namespace detail {

/// Whether the device can take the request as it is, within a block that the file has.
GOFS_HD inline bool is_for_device(const f2fs::Inode& inode, const WriteRequest& request,
                                  uint64_t lba_mask) {
  return is_within(inode, request.offset, request.bytes) &&
         ((request.offset | request.bytes) & lba_mask) == 0 && request.buffer != nullptr &&
         (reinterpret_cast<uint64_t>(request.buffer) & 3) == 0;
}

/// Where the request's block lies, if the file's map knows it and it may be written over; else 0.
/// By a block writer.
GOFS_HD inline uint32_t block_to_overwrite(const Filesystem& fs, const f2fs::Inode& inode,
                                           const WriteRequest& request) {
  const uint64_t index = request.offset >> kBlockShift;
  const uint32_t* const map = simt::load_here(inode.block_map);
  if (map == nullptr || index >= inode.block_map_blocks) return 0;
  const uint32_t block = simt::load_relaxed(map[index]);
  if (block == 0 || block == f2fs::detail::kMappedHole) return 0;
  return f2fs::detail::is_data_in_use(fs.volume, *fs.writer, block) ? block : 0;
}

/// Writes the requests of the lanes that `asks`, whose turn it is, if all of their blocks may be
/// written over. Collective, uniform: whether they are written.
GOFS_HD inline bool overwrite_blocks(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                     bool asks, const WriteRequest& request) {
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  const uint64_t lba_mask = (uint64_t{1} << route.lba_shift) - 1;
  // Nobody changes the size from here on.
  const bool fits = asks && is_for_device(open.inode, request, lba_mask);
  const uint32_t block = fits ? block_to_overwrite(fs, open.inode, request) : 0;
  if (!warp.all(!asks || block != 0)) return false;
  const f2fs::detail::BlockPart part{
      block, static_cast<uint32_t>(request.offset & (kBlockBytes - 1)),
      static_cast<uint32_t>(request.bytes),
      static_cast<uint8_t*>(const_cast<void*>(request.buffer))};  // which is only read
  warp.sync();  // each lane has filled its own buffer
  const int error = f2fs::detail::write_singly(warp, route, warp.ballot(asks), part);
  f2fs::note_overwrite(warp, *fs.writer);
  return warp.all(!asks || error == 0);
}

}  // namespace detail

/// Writes the requests of all lanes the straight way, if that can be; lanes without bytes ask for
/// nothing. Collective, uniform: whether all of it is written; if not, any of it may be, and is to
/// be written again.
GOFS_HD inline bool try_to_overwrite(simt::AnyWarp auto warp, Filesystem& fs,
                                     const WriteRequest& request) {
  const bool asks = request.bytes != 0;
  const uint32_t asking = warp.ballot(asks);
  f2fs::Writer* const writer = fs.writer;
  if (asking == 0 || writer == nullptr) return false;
  const int fd = warp.shfl(request.fd, simt::lowest_bit(asking));
  OpenInode* const open = find_inode_to_overwrite(fs, fd);
  const int failed = simt::load_relaxed(writer->failed);
  if (!warp.all(open != nullptr && request.fd == fd && f2fs::may_write_over(*writer) &&
                failed == 0 && fs.credentials.uid == 0) ||
      !warp.all(f2fs::detail::is_noted(open->inode, time_now(fs)) &&
                (!asks || detail::is_within(open->inode, request.offset, request.bytes)))) {
    return false;
  }
  BlockQueue& queue = detail::queue_of_block(fs, open->inode.ino, request.offset >> kBlockShift);
  uint32_t ticket = 0;
  const bool served = asks && detail::try_queue_up(queue, ticket);
  const bool joined =
      try_join_block_writers(warp, open->lock, writer->cleaning.overwriters_awaited);
  const bool goes = joined && warp.all((!asks || served) && f2fs::may_write_over(*writer));
  const bool written = goes && detail::overwrite_blocks(warp, fs, *open, asks, request);
  warp.sync();
  const simt::Release release;
  if (served) detail::serve_next(release, queue, ticket);
  if (joined) leave_block_writers(warp, open->lock, release);
  return written;
}

}  // namespace gofs::vfs
