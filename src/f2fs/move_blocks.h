// SPDX-License-Identifier: Apache-2.0
//
// Moving blocks of a file out of a segment: their contents are copied to new blocks of the log for
// what seldom changes, then the new addresses are entered, then the former blocks are released, as
// store_blocks.h does. Nothing about the file changes but where it lies.
#pragma once

#include "f2fs/store_blocks.h"
#include "f2fs/victims.h"

namespace gofs::f2fs {

/// Pages that move_blocks() changes: for each block the node that holds its address, and the inode.
GOFS_HD constexpr uint32_t pages_to_move(uint32_t blocks) { return blocks + 1; }

namespace detail {

/// Copies block `index` of file `ino` of each lane, through a spare block. Collective; per lane of
/// `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int copy_blocks(simt::AnyWarp auto warp, Volume& volume,
                                             const PagePool& pool, uint32_t lanes, uint32_t ino,
                                             uint64_t index, uint32_t from, uint32_t to) {
  const nvme::Route route = nvme::pick_route(volume.array);
  bool todo = (lanes >> warp.thread_rank() & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  while (warp.any(todo)) {
    uint8_t* const page = todo ? pool.try_take(warp) : nullptr;
    const bool holds = page != nullptr;
    const uint32_t holders = warp.ballot(holds);
    if (holders == 0) {
      if (warp.any(deadline.passed())) return todo ? -EBUSY : result;
      backoff.pause();
      continue;
    }
    DataPart whole{ino, index << kBlockShift, from, kBlockBytes, page};
    int error = read_data(warp, route, holders, whole, Merge::kNothing);
    warp.sync();
    const uint32_t writing = warp.ballot(holds && error == 0);
    if (writing != 0) {
      whole.block = to;
      const int written = write_data(warp, route, writing, whole, Merge::kNothing);
      if (holds && error == 0) error = written;
    }
    if (holds) {
      result = error;
      pool.release(page);
      todo = false;
    }
  }
  return result;
}

}  // namespace detail

/// Moves the block of each lane's `owner`, which is block `index` of the file, each lane another
/// one, where that is still so; `moved` are the lanes where it was. Collective, uniform answer;
/// `file`, one without inline contents, holds these blocks, but for address readers, and the caller
/// has no spare blocks. 0 or a negative errno, and the file is as it was: -ENOSPC, -EBUSY,
/// -EUCLEAN, what the device says. Pages: pages_to_move().
GOFS_NOINLINE GOFS_HD inline int move_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                             const FileHold& file, uint64_t index,
                                             const BlockOwner& owner, uint32_t& moved) {
  const Inode& inode = file.inode;
  const uint32_t rank = warp.thread_rank();
  bool mine = (lanes >> rank & 1u) != 0;
  moved = 0;
  file.check_block(mine, index);
  BlockPlace place{};
  detail::LastNode holder{};
  const int walked = detail::walk_nodes(warp, op.volume, lanes, inode, index, place, holder,
                                        detail::SupplyNothing{});
  int error = simt::first_error(warp, mine ? walked : 0);
  if (error < 0) return error;
  mine = mine && holder.nid == owner.nid && holder.address == owner.block;
  const uint32_t moving = warp.ballot(mine);
  if (moving == 0) return 0;
  NatRecord record{};
  const int known = look_up_nat(warp, op.volume, moving, holder.nid, record);
  error = simt::first_error(warp, mine ? known : 0);
  if (error < 0) return error;
  // Linux would read through a hint that is out of date.
  const int hinted = change_nodes(warp, op, 1u, inode.ino, inode.ino,
                                  [](format::NodeBlock& node) { node.inode.i_ext.len = 0; });
  error = simt::first_error(warp, rank == 0 ? hinted : 0);
  if (error < 0) return error;

  const auto slot = static_cast<uint32_t>(index - holder.first_index);
  format::SummaryEntry summary{};
  summary.nid = holder.nid;
  summary.version = record.version;
  summary.ofs_in_node = static_cast<uint16_t>(slot);
  uint32_t block = 0;
  error = allocate_blocks(warp, op, moving, format::kColdData, summary, block);
  if (error < 0) return error;
  const int copied =
      detail::copy_blocks(warp, op.volume, op.pool(), moving, inode.ino, index, owner.block, block);
  error = simt::first_error(warp, mine ? copied : 0);
  if (error == 0) {
    const AddressPlace at{holder.nid, holder.first_word + slot, slot, holder.address};
    error = detail::enter_addresses(warp, op, moving, inode, row_of_one(index, at, block),
                                    [] { return 0; });
  }
  free_blocks(warp, op, moving, error == 0 ? owner.block : block);
  if (error == 0) moved = moving;
  return error;
}

}  // namespace gofs::f2fs
