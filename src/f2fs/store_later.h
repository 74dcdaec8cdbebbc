// SPDX-License-Identifier: Apache-2.0
//
// store_blocks.h in two steps, each an operation of its own, with the SSD at work in between: first
// new blocks are taken and held (held_blocks.h), then, when the contents are there, their addresses
// are entered and the former blocks released. Until then the file is as it was, for all threads and
// after a crash.
#pragma once

#include "f2fs/held_blocks.h"
#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

/// The first step: takes a new block for whole file block `index` of each lane in `lanes`, with the
/// nodes that are missing. Collective; `file` holds these blocks until the second step, and is one
/// without inline contents. Returns, identical in all lanes: 0, or a negative errno as of
/// store_pieces(), and nothing more is held. Pages: kPagesToGrowRun.
GOFS_NOINLINE GOFS_HD inline int take_to_store(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t lanes, const FileHold& file, uint64_t index,
                                               HeldBlocks& held, uint32_t& block) {
  Inode& inode = file.inode;
  file.check_block((lanes >> warp.thread_rank() & 1u) != 0, index);
  AddressRow row = row_of_one(index, AddressPlace{}, format::kNullAddr);
  uint32_t places = 0;
  const int error = detail::take_new_blocks(warp, op, lanes, inode, row, places);
  block = row.blocks[0];
  if (error == 0) hold_blocks(warp, op, held, lanes, block, places);
  return error;
}

/// The second step, for blocks of `held`, one a lane of `lanes`, which the SSD has: they become
/// file blocks `index`, and the inode what `update` says. Collective. Returns, identical in all
/// lanes: 0, or a negative errno, and the file is as it was. Pages: kPagesToGrowRun.
GOFS_NOINLINE GOFS_HD inline int enter_stored(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, const FileHold& file, uint64_t index,
                                              HeldBlocks& held, uint32_t block,
                                              InodeUpdate update) {
  Inode& inode = file.inode;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  file.check_block(mine, index);
  int error = keep_inode(warp, op, inode.ino);
  if (error < 0) return error;
  // They are there, and so they stay, since the blocks are the caller's.
  AddressPlace place{};
  const int found = grow_nodes(warp, op, lanes, inode, index, place);
  error = simt::first_error(warp, mine ? found : 0);
  if (error < 0) return error;
  const uint32_t places = simt::popcount(warp.ballot(mine && place.address == format::kNullAddr));
  update.blocks += places;
  use_held(warp, op, lanes, block);
  error = detail::enter_addresses(warp, op, lanes, inode, row_of_one(index, place, block),
                                  [&] { return bring_up_to_date(warp, op, inode, update); });
  if (error < 0) {
    free_blocks(warp, op, lanes, block);
    return error;
  }
  if (warp.thread_rank() == 0) {
    held.places -= places;
    simt::add_relaxed(op.writer.promised_blocks, ~uint64_t{places} + 1);
  }
  free_blocks(warp, op, warp.ballot(mine && op.volume.is_main_block(place.address)), place.address);
  return 0;
}

}  // namespace gofs::f2fs
