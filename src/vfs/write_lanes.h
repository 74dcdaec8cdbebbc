// SPDX-License-Identifier: Apache-2.0
//
// Writing by threads that each have a request of their own, as pread_lanes() is for reading. Lanes
// that write different blocks of one file, within what it has, do so together (write_blocks.h), or
// with one lock from the first of the blocks to the last where somebody else reads the file or
// writes more of it. All others take their turns, each with the whole warp at work.
#pragma once

#include "vfs/write.h"

namespace gofs::vfs {

/// What one thread wants to be written.
struct WriteRequest {
  int fd;
  const void* buffer;
  uint64_t bytes;
  uint64_t offset;
};

namespace detail {

/// How long lanes wait together for their blocks, and those between them, before each waits for its
/// own: others may keep one of them, or even a lane itself (async_write.h).
inline constexpr uint64_t kTogetherPatienceNs = 2'000'000;

GOFS_HD inline f2fs::WritePiece piece_of(const WriteRequest& request) {
  return {request.offset, static_cast<uint32_t>(request.bytes),
          static_cast<const uint8_t*>(request.buffer)};
}

/// Writes the requests of `lanes`, each of another block of the open file, by the ring: from the
/// first of the blocks to the last. Collective, uniform. 0; -EAGAIN: the file has become another,
/// or they are to be written one by one; or another negative errno, of one of them.
GOFS_NOINLINE GOFS_HD inline int write_in_ring(simt::AnyWarp auto warp, Filesystem& fs,
                                               OpenInode& open, uint32_t lanes,
                                               const WriteRequest& request) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const ByteRange bytes = range_of_lanes(warp, lanes, request.offset, request.bytes);
  const uint64_t end = bytes.offset + bytes.bytes;
  const uint64_t begin = bytes.offset & ~uint64_t{kBlockBytes - 1};
  const ByteRange range{begin, simt::align_up(end, uint64_t{kBlockBytes}) - begin};
  const simt::Deadline patience =
      simt::Deadline::after_ns(simt::min(fs.lock_timeout_ns, kTogetherPatienceNs));
  RangeHold hold{};
  int error = lock_exclusive(warp, open.lock, range, patience, hold);
  if (error < 0) return error;
  if (warp.any(mine && !is_within(open.inode, request.offset, request.bytes))) error = -EAGAIN;
  if (error == 0) error = write_block_pieces(warp, fs, open.inode, lanes, piece_of(request));
  unlock_exclusive(warp, open.lock, hold);
  return error;
}

/// Writes the requests of `lanes`, each of another block of the open file, together. Collective,
/// uniform: those that were written.
GOFS_NOINLINE GOFS_HD inline uint32_t write_lanes_of_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                          OpenInode& open, uint32_t lanes,
                                                          const WriteRequest& request) {
  make_space(warp, fs, uint64_t{simt::popcount(lanes)} * kBlockBytes);
  uint32_t written = 0;
  const int error = write_queued(warp, fs, open, lanes, piece_of(request), written);
  if (error != -EAGAIN || written != 0) return written;
  return write_in_ring(warp, fs, open, lanes, request) == 0 ? lanes : 0;
}

/// Those of `lanes` that can be written together, if there are several: no two of them in one
/// block. Collective, uniform; `open` is what all of them have open.
GOFS_HD inline uint32_t lanes_to_write_together(simt::AnyWarp auto warp, const OpenInode& open,
                                                uint32_t lanes, bool append,
                                                const WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const bool fits = mine && !append && is_within(open.inode, request.offset, request.bytes);
  // No block has a number that great.
  const uint64_t key = fits ? request.offset >> kBlockShift : ~uint64_t{0} - rank;
  const bool first = simt::lowest_bit(warp.match_any(key)) == rank;
  const uint32_t together = warp.ballot(fits && first);
  return simt::popcount(together) > 1 ? together : 0;
}

/// The request of lane `owner`, by the whole warp. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t write_for(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t owner, const WriteRequest& request) {
  const auto* const buffer =
      reinterpret_cast<const void*>(warp.shfl(reinterpret_cast<uint64_t>(request.buffer), owner));
  return pwrite(warp, fs, warp.shfl(request.fd, owner), buffer, warp.shfl(request.bytes, owner),
                warp.shfl(request.offset, owner));
}

}  // namespace detail

/// pwrite by each lane for itself: descriptors, buffers and ranges may all differ. Collective. Per
/// lane bytes written or a negative errno, as pwrite(). Of lanes that write to the same bytes, any
/// may be the last.
GOFS_NOINLINE GOFS_HD inline int64_t pwrite_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  int64_t result = 0;
  for (uint32_t left = warp.ballot(true); left != 0;) {
    const uint32_t owner = simt::lowest_bit(left);
    const int fd = warp.shfl(request.fd, owner);
    const uint32_t same = warp.ballot((left >> rank & 1u) != 0 && request.fd == fd);
    const Descriptor* const descriptor =
        (same & (same - 1)) != 0 ? detail::find_writable(fs, fd) : nullptr;
    uint32_t together = 0;
    if (descriptor != nullptr && fs.writer != nullptr) {
      OpenInode& open = fs.open_inodes[descriptor->open_inode];
      const bool append = (descriptor->flags & kOpenAppend) != 0;
      together = detail::lanes_to_write_together(warp, open, same, append, request);
      if (together != 0) {
        together = detail::write_lanes_of_file(warp, fs, open, together, request);
      }
      // Which of them failed nobody knows; each then learns it for itself.
      if (together != 0 && detail::sync_if_asked(warp, fs, *descriptor) < 0) together = 0;
      if ((together >> rank & 1u) != 0) result = static_cast<int64_t>(request.bytes);
    }
    if (together == 0) {
      const int64_t written = detail::write_for(warp, fs, owner, request);
      if (rank == owner) result = written;
      together = 1u << owner;
    }
    left &= ~together;
  }
  return result;
}

}  // namespace gofs::vfs
