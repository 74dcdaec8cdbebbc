// SPDX-License-Identifier: Apache-2.0
//
// Entries that come to a directory whose entries are in its inode, and their way to a block when
// there is no more room. Readers find what stays, also while it moves.
//
// Callers hold the directory exclusively but for readers; or the lock of those who have it together
// (add_entries.h).
#pragma once

#include "f2fs/dentry_slots.h"
#include "f2fs/directory_blocks.h"

namespace gofs::f2fs::detail {

/// Adds the entry of each lane in `lanes` to the inode, as far as there is room. Collective. Per
/// lane 0; -EEXIST; -EAGAIN (no room); or another negative errno.
GOFS_NOINLINE GOFS_HD inline int add_inline_entries(simt::AnyWarp auto warp, Operation& op,
                                                    uint32_t lanes, const Inode& directory,
                                                    const NewEntry& mine) {
  int result = 0;
  const int error =
      change_nodes(warp, op, lanes, directory.ino, directory.ino, [&](format::NodeBlock& node) {
        const DentryView view = inline_view(node, directory);
        if (has_entry(view, sought_name(mine))) {
          result = -EEXIST;
          return;
        }
        const uint32_t slot = find_free_slots(view, format::name_slots(mine.name.length));
        if (slot == kNoSlot) {
          result = -EAGAIN;
          return;
        }
        put_entry(inline_space(node, directory), slot, mine.name, mine.entry);
        renew_times(node.inode, op.now);
      });
  return error < 0 ? error : result;
}

/// Moves the entries of an inode to block 0, each to the slot that it had. One lane, which holds
/// both exclusively.
GOFS_HD inline void move_entries(format::NodeBlock& node, const Inode& directory, uint32_t feature,
                                 uint8_t* page) {
  static_assert(format::inline_dentry_area(4 * format::kInodeSlots).slot_count <=
                format::kDentrySlotsPerBlock);
  const DentrySpace from = inline_space(node, directory);
  const DentrySpace to = block_space(page);
  for (uint32_t slot = 0; slot < from.area.slot_count; ++slot) {
    if (!format::lsb_bit(from.base, slot)) continue;
    format::set_lsb_bit(to.base, slot, true);
    to.dentry(slot) = from.dentry(slot);
    for (uint32_t i = 0; i < format::kNameSlotBytes; ++i) {
      to.base[to.area.name_at(slot) + i] = from.base[from.area.name_at(slot) + i];
    }
  }
  format::Inode& inode = node.inode;
  inode.i_inline = static_cast<uint8_t>(inode.i_inline & ~format::kInlineDentry);
  // It had no meaning so far; with 0, all entries of block 0 are in their bucket.
  inode.i_dir_level = 0;
  const format::InodeLayout layout = format::inode_layout(inode, feature);
  for (uint32_t slot = 0; slot < layout.slot_count; ++slot) {
    inode.i_addr[layout.word_of_slot(slot)] = format::kNullAddr;
  }
  inode.i_addr[layout.word_of_slot(0)] = format::kNewAddr;
  inode.i_blocks = inode.i_blocks + 1;
  inode.i_size = kBlockBytes;
  inode.i_current_depth = 1;
}

/// Makes an inline directory one with entries in blocks.
GOFS_NOINLINE GOFS_HD inline int convert_inline_directory(simt::AnyWarp auto warp, Operation& op,
                                                          Inode& directory) {
  if (!count_directory_block(warp, op)) return -ENOSPC;
  int error = make_directory_pages(
      warp, op, 1u, directory.ino, directory.ino, 0, [&](format::NodeBlock& node, uint8_t* page) {
        move_entries(node, directory, op.volume.geometry.feature, page);
      });
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  if (error < 0) {
    uncount_directory_block(warp, op.volume);
    return error;
  }
  return simt::first_error(
      warp, load_inodes(warp, op.volume, warp.ballot(true), directory.ino, directory));
}

}  // namespace gofs::f2fs::detail
