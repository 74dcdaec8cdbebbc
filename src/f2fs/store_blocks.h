// SPDX-License-Identifier: Apache-2.0
//
// New contents for file blocks, one a lane, or where a warp has a single lane several. Nothing is
// written over: the contents go to new blocks of a log, then their addresses are entered in the
// nodes, then the former blocks are released. What fails on the way releases the new blocks, and
// the file is as it was.
#pragma once

#include "f2fs/file_hold.h"
#include "f2fs/new_addresses.h"
#include "f2fs/new_contents.h"
#include "f2fs/update_inode.h"

namespace gofs::f2fs {

namespace detail {

/// The blocks that the pieces of a warp's lanes go to, and where their addresses stand.
struct PieceBlocks {
  AddressPlace places[kPieceBlocksMax];
  uint32_t blocks[kPieceBlocksMax];
};

/// Calls `each(those, i)` for the `i`-th block of the lanes' pieces: `those` of `lanes` have one.
/// Collective, uniform, and so is `each`. 0, or its first negative answer; `rounds` went well.
template <typename Each>
GOFS_HD int for_each_block(simt::AnyWarp auto warp, uint32_t lanes, const WritePiece& piece,
                           uint32_t& rounds, Each each) {
  rounds = 0;
  if constexpr (kPieceBlocksMax == 1) {
    const int error = each(lanes, 0u);
    rounds = error < 0 ? 0 : 1;
    return error;
  } else {
    const uint32_t mine = (lanes >> warp.thread_rank() & 1u) != 0 ? piece.block_count() : 0;
    for (;; ++rounds) {
      const uint32_t those = warp.ballot(rounds < mine);
      if (those == 0) return 0;
      const int error = each(those, rounds);
      if (error < 0) return error;
    }
  }
}

/// Releases the first `rounds` blocks of each piece, to which nothing refers. Collective, uniform.
GOFS_HD inline void drop_new_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                    const WritePiece& piece, uint32_t rounds,
                                    const PieceBlocks& taken) {
  uint32_t done = 0;
  (void)for_each_block(warp, lanes, piece, done, [&](uint32_t those, uint32_t i) {
    if (i < rounds) free_blocks(warp, op, those, taken.blocks[i]);
    return 0;
  });
}

/// Takes new blocks for all of the pieces; `holes` as take_new_blocks() of all of them. Collective.
/// Returns, identical in all lanes: 0 or a negative errno, and no block is taken.
GOFS_HD inline int take_for_pieces(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                   Inode& inode, const WritePiece& piece, PieceBlocks& taken,
                                   uint32_t& holes) {
  holes = 0;
  uint32_t rounds = 0;
  const int error = for_each_block(warp, lanes, piece, rounds, [&](uint32_t those, uint32_t i) {
    uint32_t more = 0;
    const int result = take_new_blocks(warp, op, those, inode, (piece.offset >> kBlockShift) + i,
                                       taken.places[i], more, taken.blocks[i]);
    if (result == 0) holes += more;
    return result;
  });
  if (error == 0) return 0;
  drop_new_blocks(warp, op, lanes, piece, rounds, taken);
  if (warp.thread_rank() == 0) uncount_blocks(op.volume, holes);
  return error;
}

/// Writes pieces of several blocks, those that follow each other on an SSD with one command.
/// Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_rows(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                            const Inode& inode, const WritePiece& piece,
                                            const PieceBlocks& taken) {
  const nvme::Route route = nvme::pick_route(volume.array);
  const uint32_t most = route.array.run_bytes_max / kBlockBytes;
  const uint32_t count = (lanes >> warp.thread_rank() & 1u) != 0 ? piece.block_count() : 0;
  int result = 0;
  for (uint32_t done = 0; warp.any(done < count && result == 0);) {
    const uint32_t writing = warp.ballot(done < count && result == 0);
    const bool mine = (writing >> warp.thread_rank() & 1u) != 0;
    const uint32_t block = mine ? taken.blocks[done] : 0;
    uint32_t row = 1;
    while (mine && done + row < count && row < most && taken.blocks[done + row] == block + row &&
           ((block + row) & route.array.chunk_mask) != 0) {
      ++row;
    }
    const uint64_t from = uint64_t{done} << kBlockShift;
    const int written = write_data(warp, route, writing,
                                   {inode.ino, piece.offset + from, block, row * kBlockBytes,
                                    const_cast<uint8_t*>(piece.source) + from},
                                   Merge::kNothing);
    if (mine) {
      result = written;
      done += row;
    }
  }
  return result;
}

/// Writes the pieces to the blocks that were taken. Collective; per lane of `lanes` 0 or a negative
/// errno.
GOFS_HD inline int write_taken(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                               const Inode& inode, const WritePiece& piece,
                               const PieceBlocks& taken) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t many =
      kPieceBlocksMax == 1 ? 0 : warp.ballot(mine && piece.bytes > uint32_t{kBlockBytes});
  const uint32_t single = lanes & ~many;
  int result = 0;
  if (single != 0) {
    // What lies behind the end of a file is not part of it.
    const uint64_t start = piece.offset & ~uint64_t{kBlockBytes - 1};
    const uint64_t size = simt::load_relaxed(inode.size_bytes);
    const uint32_t old_block = taken.places[0].address;
    NewBlock where{inode.ino, taken.blocks[0], old_block, 0};
    if (mine && op.volume.is_main_block(old_block) && size > start) {
      where.old_bytes = static_cast<uint32_t>(simt::min<uint64_t>(size - start, kBlockBytes));
    }
    result = write_new_blocks(warp, op.volume, op.pool(), single, where, piece);
  }
  if constexpr (kPieceBlocksMax > 1) {
    if (many != 0) {
      const int written = write_rows(warp, op.volume, many, inode, piece, taken);
      if ((many >> warp.thread_rank() & 1u) != 0) result = written;
    }
  }
  return result;
}

/// Writes the new blocks, which were taken, and enters them; where `update` is null, the inode says
/// what it should. Collective, uniform; where the answer is an error, nothing refers to them.
GOFS_HD inline int fill_new_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                   Inode& inode, const WritePiece& piece, const PieceBlocks& taken,
                                   const InodeUpdate* update) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint64_t index = piece.offset >> kBlockShift;
  const int written = write_taken(warp, op, lanes, inode, piece, taken);
  int error = simt::first_error(warp, mine ? written : 0);
  if (error < 0) return error;
  const auto also = [&] {
    return update == nullptr ? 0 : bring_up_to_date(warp, op, inode, *update);
  };
  if constexpr (kPieceBlocksMax == 1) {
    return enter_addresses(warp, op, lanes, inode, index, taken.places[0], taken.blocks[0], also);
  } else {
    uint32_t rounds = 0;
    error = for_each_block(warp, lanes, piece, rounds, [&](uint32_t those, uint32_t i) {
      return enter_addresses(warp, op, those, inode, index + i, taken.places[i], taken.blocks[i],
                             [] { return 0; });
    });
    if (error == 0) error = also();
    for (uint32_t i = 0; error < 0 && i < rounds; ++i) {
      (void)put_addresses(warp, op, warp.ballot(mine && i < piece.block_count()), inode, index + i,
                          taken.places[i], taken.places[i].address);
    }
    return error;
  }
}

/// Releases the blocks that the pieces' new ones have replaced. Collective.
GOFS_HD inline void free_former_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                       const WritePiece& piece, const PieceBlocks& taken) {
  uint32_t rounds = 0;
  (void)for_each_block(warp, lanes, piece, rounds, [&](uint32_t those, uint32_t i) {
    const uint32_t former = taken.places[i].address;
    const bool mine = (those >> warp.thread_rank() & 1u) != 0;
    free_blocks(warp, op, warp.ballot(mine && op.volume.is_main_block(former)), former);
    return 0;
  });
}

}  // namespace detail

/// Stores one piece a lane, all of the same file and each of other blocks of it, which `file`
/// holds, and makes the inode what `update` says. Collective; the caller has no spare blocks. The
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
  detail::PieceBlocks taken;
  uint32_t holes = 0;
  error = detail::take_for_pieces(warp, op, lanes, inode, piece, taken, holes);
  if (error < 0) return error;
  update.blocks += holes;
  // Those of a file that grows once there is room for it.
  if (grows) noted = set_times();
  if (noted < 0) error = noted;
  const bool updates = noted == 0 || grows || holes != 0;
  if (error == 0 && updates) error = keep_inode(warp, op, inode.ino);
  if (error == 0) {
    error =
        detail::fill_new_blocks(warp, op, lanes, inode, piece, taken, updates ? &update : nullptr);
  }
  if (error < 0) {
    detail::drop_new_blocks(warp, op, lanes, piece, kPieceBlocksMax, taken);
    if (warp.thread_rank() == 0) {
      detail::uncount_blocks(op.volume, holes);
    }
    return error;
  }
  detail::free_former_blocks(warp, op, lanes, piece, taken);
  return 0;
}

}  // namespace gofs::f2fs
