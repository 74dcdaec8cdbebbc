// SPDX-License-Identifier: Apache-2.0
//
// New contents for file blocks, one a lane or a row of them. Nothing is written over: the contents
// go to new blocks of a log, then their addresses are entered in the nodes, then the former blocks
// are released. What fails on the way releases the new blocks, and the file is as it was. What is
// done once for a piece, whatever it has: its node is found and pinned, its blocks are taken, and a
// command started.
#pragma once

#include "f2fs/file_hold.h"
#include "f2fs/new_addresses.h"
#include "f2fs/new_contents.h"
#include "f2fs/update_inode.h"

namespace gofs::f2fs {

namespace detail {

/// The file blocks of a piece, of which nothing is known yet.
GOFS_HD inline AddressRow row_of_piece(const WritePiece& piece) {
  AddressRow row;
  row.index = piece.offset >> kBlockShift;
  row.count = piece.block_count();
  return row;
}

/// Writes the pieces to the blocks of their rows. Collective; per lane of `lanes` 0 or a negative
/// errno.
GOFS_HD inline int write_taken(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                               const Inode& inode, const WritePiece& piece, const AddressRow& row) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  // What lies behind the end of a file is not part of it.
  const uint64_t start = piece.offset & ~uint64_t{kBlockBytes - 1};
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  NewBlocks where{inode.ino, row.blocks, row.former[0], 0};
  if (mine && op.volume.is_main_block(where.old_block) && size > start) {
    where.old_bytes = static_cast<uint32_t>(simt::min<uint64_t>(size - start, kBlockBytes));
  }
  return write_new_blocks(warp, op.volume, op.pool(), lanes, where, piece);
}

/// Writes the new blocks, which were taken, and enters them; where `update` is null, the inode says
/// what it should. Collective, uniform; where the answer is an error, nothing refers to them.
GOFS_HD inline int fill_new_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                   Inode& inode, const WritePiece& piece, const AddressRow& row,
                                   const InodeUpdate* update) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int written = write_taken(warp, op, lanes, inode, piece, row);
  const int error = simt::first_error(warp, mine ? written : 0);
  if (error < 0) return error;
  return enter_addresses(warp, op, lanes, inode, row, [&] {
    return update == nullptr ? 0 : bring_up_to_date(warp, op, inode, *update);
  });
}

}  // namespace detail

/// Stores one piece a lane, all of the same file and each of other blocks of it, which `file`
/// holds, and makes the inode what `update` says. A row has at most row_blocks_max() blocks, whose
/// addresses stand in one node (row_room()). Collective; the caller has no spare blocks. The
/// inode is one without inline contents. Bytes of the blocks that are not in a piece stay, those
/// behind the end of the file become zeros. Returns, identical in all lanes: 0, or a negative
/// errno, and the file is as it was but for its times and nodes without addresses: those of
/// grow_nodes(), -ENOSPC. Pages: pages_to_grow() or kPagesToGrowRun.  -ENOSPC may also mean that no
/// block can be had before the next checkpoint, since the last one refers to those that were
/// released; is_short_of_segments() tells.
GOFS_NOINLINE GOFS_HD inline int store_pieces(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const FileHold& file,
                                              const WritePiece& piece, InodeUpdate update) {
  Inode& inode = file.inode;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  file.check_bytes(piece.offset, mine ? piece.offset + piece.bytes : piece.offset);
  const bool grows = warp.any(update.size_least > simt::load_relaxed(inode.size_bytes));
  // Times go before the contents, so that who writes beside us finds them set when he is done.
  const auto set_times = [&] {
    const InodeUpdate times = update_of_times(update.now);
    const int noted = note_times(warp, op, inode, times);
    return noted != 0 ? noted : try_to_update(warp, op, inode, times);
  };
  int noted = grows ? 0 : set_times();
  if (noted < 0) return noted;
  int error = noted == 0 || grows ? keep_inode(warp, op, inode.ino) : 0;
  if (error < 0) return error;
  AddressRow row = detail::row_of_piece(piece);
  uint32_t holes = 0;
  error = detail::take_new_blocks(warp, op, lanes, inode, row, holes);
  if (error < 0) return error;
  update.blocks += holes;
  // Those of a file that grows once there is room for it.
  if (grows) noted = set_times();
  if (noted < 0) error = noted;
  const bool updates = noted == 0 || grows || holes != 0;
  if (error == 0 && updates) error = keep_inode(warp, op, inode.ino);
  if (error == 0) {
    error =
        detail::fill_new_blocks(warp, op, lanes, inode, piece, row, updates ? &update : nullptr);
  }
  // Nothing refers to the new ones, or to those that they have replaced.
  free_rows(warp, op, mine ? row.count : 0, error < 0 ? row.blocks : row.former);
  if (error < 0 && warp.thread_rank() == 0) detail::uncount_blocks(op.volume, holes);
  return error;
}

}  // namespace gofs::f2fs
