// SPDX-License-Identifier: Apache-2.0
//
// Writing file data, the counterpart of read.h. A write begins with prepare_write(), by one warp;
// then one warp or several store its pieces, one a lane, in rounds (write_pieces).
//
// A write holds whole blocks (file_hold.h): two that write parts of one block at once would each
// keep what the other replaces. One that makes zeros of what lies behind the old end holds that
// block too, and one to a file with inline data, or that makes it outgrow its inode, holds all of
// it.
#pragma once

#include "f2fs/inline_data.h"
#include "f2fs/map.h"

namespace gofs::f2fs {

/// Pages that prepare_write() changes at most.
inline constexpr uint32_t kPagesToPrepareWrite = 2;
/// Pages that write_pieces() changes at most: for pieces of contiguous blocks, and for any.
inline constexpr uint32_t kPagesToWriteRun = kPagesToGrowRun;
GOFS_HD constexpr uint32_t pages_to_write(uint32_t pieces) { return pages_to_grow(pieces); }

namespace detail {

/// Whether the contents of a file can be changed, up to `end_bytes`: 0 or a negative errno.
GOFS_HD inline int check_change(const Writer& writer, const Inode& inode, uint64_t end_bytes) {
  // Loaded together: a GPU would wait for one after the other.
  const int failed = simt::load_relaxed(writer.failed);
  const int supported = check_supported(inode);
  const bool fits = end_bytes <= kFileBytesMax;
  if (failed < 0) return -EROFS;  // nothing becomes durable any more
  if (supported < 0) return supported;
  return fits ? 0 : -EFBIG;
}

/// Clears `bytes` bytes at `offset`, within one block, where that block is stored. Collective,
/// uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int clear_in_block(simt::AnyWarp auto warp, Operation& op,
                                                const FileHold& file, const WritePiece& piece) {
  const Inode& inode = file.inode;
  BlockPlace place{};
  const int mapped = map_blocks(warp, op.volume, 1u, inode, piece.offset >> kBlockShift, place);
  const int error = simt::first_error(warp, warp.thread_rank() == 0 ? mapped : 0);
  if (error < 0) return error;
  if (warp.shfl(place.block, 0) == format::kNullAddr) return 0;
  return store_pieces(warp, op, 1u, file, piece, update_of_times(op.now));
}

/// The end of the piece that reaches furthest, on every lane. Collective.
GOFS_HD inline uint64_t furthest_end(simt::AnyWarp auto warp, uint32_t lanes,
                                     const WritePiece& piece) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  return simt::reduce_max(warp, mine ? piece.offset + piece.bytes : uint64_t{0});
}

}  // namespace detail

/// Before the first piece of a write of [offset, end), not empty: refuses what cannot be written,
/// moves inline data out that would not fit any longer, and clears what lies behind the end of the
/// file in its last block where the write would make it part of the file: so `file` holds that
/// block then, and with inline data all. Collective, uniform. 0 or a negative errno, and the file
/// is as it was: -EFBIG, -EOPNOTSUPP, -EROFS, -ENOSPC, -EBUSY, -EUCLEAN, what the device says.
/// Pages: kPagesToPrepareWrite.
GOFS_NOINLINE GOFS_HD inline int prepare_write(simt::AnyWarp auto warp, Operation& op,
                                               const FileHold& file, uint64_t offset,
                                               uint64_t end) {
  Inode& inode = file.inode;
  int error = detail::check_change(op.writer, inode, end);
  if (error < 0) return error;
  const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  if (inode.has_inline_data()) {
    const bool fits = end <= inode.inline_bytes;
    warp.sync();  // all lanes have looked
    if (!fits) error = move_out_inline(warp, op, file);
    if (fits && offset > size) error = detail::clear_inline(warp, op, file, size, offset);
    if (fits || error < 0) return error;
  }
  const uint64_t tail = size & (kBlockBytes - 1);
  // A single piece in that block clears the rest of it by itself.
  const bool one_piece = (end - 1) >> kBlockShift == size >> kBlockShift;
  if (offset <= size || tail == 0 || one_piece) return 0;
  return detail::clear_in_block(warp, op, file,
                                {size, static_cast<uint32_t>(kBlockBytes - tail), nullptr});
}

/// Writes one piece a lane, of at least one byte, all of the same file and each of another block of
/// it (or, of inline data, other bytes), which `file` holds; a file that grows ends with the last
/// of them. Collective, after prepare_write(), possibly in another operation. Returns, identical in
/// all lanes: 0, or a negative errno as of store_pieces(), and the file is as it was. Durable after
/// the next checkpoint. Pages: kPagesToWriteRun or pages_to_write().
GOFS_NOINLINE GOFS_HD inline int write_pieces(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const FileHold& file,
                                              const WritePiece& piece,
                                              Growth growth = Growth::kStays) {
  Inode& inode = file.inode;
  const uint64_t end = detail::furthest_end(warp, lanes, piece);
  const int error = detail::check_change(op.writer, inode, end);
  if (error < 0) return error;
  InodeUpdate update = update_of_times(op.now);
  update.size_least = end;
  update.growth = growth;
  if (!inode.has_inline_data()) {
    return store_pieces(warp, op, lanes, file, piece, update);
  }
  GOFS_ASSERT(end <= inode.inline_bytes);
  return detail::store_inline(warp, op, lanes, file, piece, update);
}

}  // namespace gofs::f2fs
