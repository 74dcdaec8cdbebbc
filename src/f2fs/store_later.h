// SPDX-License-Identifier: Apache-2.0
//
// store_blocks.h in two steps, each an operation of its own, with the SSD at work in between: first
// new blocks are taken and held (held_blocks.h), then, when the contents are there, their addresses
// are entered and the former blocks given back. Until then the file is as it was, for everybody and
// after a crash.
#pragma once

#include "f2fs/held_blocks.h"
#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

/// The first step: takes a new block for whole file block `index` of each lane in `lanes`, with the
/// nodes that are missing. Collective, inside the gate; the caller has these blocks of the file for
/// himself until the second step. `inode` is one object for all lanes, without inline contents.
/// Uniform answer: 0, or a negative errno as of store_pieces(), and nothing more is held. Pages:
/// kPagesToGrowRun.
GOFS_NOINLINE GOFS_HD inline int take_to_store(simt::AnyWarp auto warp, Volume& volume,
                                               Writer& writer, uint32_t lanes, Inode& inode,
                                               uint64_t index, HeldBlocks& held, uint32_t& block) {
  AddressPlace place{};
  uint32_t places = 0;
  const int error =
      detail::take_new_blocks(warp, volume, writer, lanes, inode, index, place, places, block);
  if (error == 0) hold_blocks(warp, volume, writer, held, lanes, block, places);
  return error;
}

/// The second step, for blocks of `held`, one a lane of `lanes`, which the SSD has: they become
/// file blocks `index`, and the inode what `update` says. Collective, inside the gate. Uniform
/// answer: 0, or a negative errno, and the file is as it was. Pages: kPagesToGrowRun.
GOFS_NOINLINE GOFS_HD inline int enter_stored(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, uint32_t lanes, Inode& inode,
                                              uint64_t index, HeldBlocks& held, uint32_t block,
                                              InodeUpdate update) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = keep_inode(warp, volume, inode.ino);
  if (error < 0) return error;
  // They are there, and so they stay, since the blocks are the caller's.
  AddressPlace place{};
  const int found = grow_nodes(warp, volume, writer, lanes, inode, index, place);
  error = simt::first_error(warp, mine ? found : 0);
  if (error < 0) return error;
  const uint32_t places = simt::popcount(warp.ballot(mine && place.address == format::kNullAddr));
  update.blocks += places;
  use_held(warp, volume, writer, lanes, block);
  error = detail::enter_addresses(warp, volume, lanes, inode, index, place, block,
                                  [&] { return update_inode(warp, volume, inode, update); });
  if (error < 0) {
    free_blocks(warp, volume, writer, lanes, block);
    return error;
  }
  if (warp.thread_rank() == 0) {
    held.places -= places;
    simt::add_relaxed(writer.promised_blocks, ~uint64_t{places} + 1);
  }
  free_blocks(warp, volume, writer, warp.ballot(mine && volume.is_main_block(place.address)),
              place.address);
  return 0;
}

}  // namespace gofs::f2fs
