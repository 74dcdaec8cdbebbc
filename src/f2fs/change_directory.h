// SPDX-License-Identifier: Apache-2.0
//
// Entries of directories that come, go, and lead elsewhere. Readers look names up meanwhile: they
// see an entry wholly or not at all, and one that stays they find, also while the entries of an
// inode move to a block.
//
// Callers are inside the gate (operation.h), have the directory for themselves but for readers, and
// have loaded `directory` since; it is brought up to date. What is changed is seen at once and
// durable after the next checkpoint. All is collective and uniform.
#pragma once

#include "f2fs/directory_blocks.h"
#include "f2fs/directory_room.h"

namespace gofs::f2fs {

/// Pages that remove_entry() and set_entry() change: the block, the node that holds its address,
/// the inode.
inline constexpr uint32_t kPagesToChangeEntry = 3;

/// Pages that add_entry() changes at most. Up to a depth where the node tree begins: the inode, and
/// two blocks where entries move out of it.
GOFS_HD inline uint32_t pages_to_add_entry(const Inode& directory) {
  const uint32_t depth = simt::min(directory.dir_depth, uint32_t{format::kDirDepthMax - 1}) + 1;
  const bool in_inode = format::dir_level_start(depth, directory.dir_level) <= directory.slot_count;
  return in_inode ? 3 : 1 + pages_to_grow(1);
}

namespace detail {

GOFS_HD inline void note_modified(Inode& directory, const TimeStamp& now) {
  directory.modified = directory.changed = now;
}

/// Adds an entry to the inode of an inline directory. 1; 0 where it has no room; or a negative
/// errno.
GOFS_NOINLINE GOFS_HD inline int add_inline_entry(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& directory, const EntryName& name,
                                                  const DirectoryEntry& entry,
                                                  const TimeStamp& now) {
  bool added = false;
  int error =
      change_nodes(warp, volume, 1u, directory.ino, directory.ino, [&](format::NodeBlock& node) {
        const uint32_t slot =
            find_free_slots(inline_view(node, directory), format::name_slots(name.length));
        if (slot == kNoSlot) return;
        put_entry(inline_space(node, directory), slot, name, entry);
        set_modified(node.inode, now);
        added = true;
      });
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  if (error < 0) return error;
  return warp.any(added) ? 1 : 0;
}

/// Moves the entries of an inode to block 0, each to the slot that it had. One lane, with both for
/// itself.
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
GOFS_NOINLINE GOFS_HD inline int convert_inline_directory(simt::AnyWarp auto warp, Volume& volume,
                                                          Inode& directory) {
  if (!count_directory_block(warp, volume)) return -ENOSPC;
  const int error = make_directory_page(
      warp, volume, directory.ino, directory.ino, 0, [&](format::NodeBlock& node, uint8_t* page) {
        move_entries(node, directory, volume.geometry.feature, page);
      });
  if (error < 0) {
    uncount_directory_block(warp, volume);
    return error;
  }
  return simt::first_error(warp,
                           load_inodes(warp, volume, warp.ballot(true), directory.ino, directory));
}

/// Adds an entry to a block that exists.
GOFS_NOINLINE GOFS_HD inline int add_to_block(simt::AnyWarp auto warp, Volume& volume,
                                              Inode& directory, const DirectoryRoom& room,
                                              const EntryName& name, const DirectoryEntry& entry,
                                              const TimeStamp& now) {
  int error = mark_holder(warp, volume, directory, room.index);
  if (error < 0) return error;
  error = change_inode(warp, volume, directory.ino, [&](format::Inode& inode) {
    inode.i_current_depth = room.depth;
    set_modified(inode, now);
  });
  if (error < 0) return error;
  directory.dir_depth = room.depth;
  return change_directory_block(warp, volume, directory, room.index, [&](uint8_t* page) {
    put_entry(block_space(page), room.slot, name, entry);
  });
}

/// Adds an entry to a block that is made for it.
GOFS_NOINLINE GOFS_HD inline int add_to_new_block(simt::AnyWarp auto warp, Volume& volume,
                                                  Writer& writer, Inode& directory,
                                                  const DirectoryRoom& room, const EntryName& name,
                                                  const DirectoryEntry& entry,
                                                  const TimeStamp& now) {
  AddressPlace at{};
  int error = simt::first_error(
      warp, grow_nodes(warp, volume, writer, warp.ballot(true), directory, room.index, at));
  if (error < 0) return error;
  if (at.address != format::kNullAddr && at.address != format::kNewAddr) {
    return report_once(warp, *volume.corruptions,
                       {Structure::kDirectory, at.address, directory.ino, room.index});
  }
  // A block may be reserved already, and is counted then.
  const bool counts = at.address == format::kNullAddr;
  if (counts && !count_directory_block(warp, volume)) return -ENOSPC;
  const uint64_t size = (room.index + 1) * kBlockBytes;
  const auto enlarge = [&](format::Inode& inode) {
    inode.i_blocks = inode.i_blocks + (counts ? 1 : 0);
    if (inode.i_size < size) inode.i_size = size;
    inode.i_current_depth = room.depth;
    set_modified(inode, now);
  };
  const bool elsewhere = at.nid != directory.ino;
  // First, since the inode stays in memory then: to set it right again does not need the disk.
  if (elsewhere) error = change_inode(warp, volume, directory.ino, enlarge);
  if (error == 0) {
    error = make_directory_page(warp, volume, at.nid, directory.ino, room.index,
                                [&](format::NodeBlock& holder, uint8_t* page) {
                                  put_entry(block_space(page), 0, name, entry);
                                  format::store_u32(reinterpret_cast<uint32_t*>(&holder) + at.word,
                                                    format::kNewAddr);
                                  if (!elsewhere) enlarge(holder.inode);
                                });
    if (error < 0 && elsewhere) {
      (void)change_inode(warp, volume, directory.ino, [&](format::Inode& inode) {
        inode.i_blocks = inode.i_blocks - (counts ? 1 : 0);
      });
    }
  }
  if (error < 0) {
    if (counts) uncount_directory_block(warp, volume);
    return error;
  }
  return simt::first_error(warp,
                           load_inodes(warp, volume, warp.ballot(true), directory.ino, directory));
}

/// Changes an entry where it stands: `use(const DentrySpace&)`, on one lane.
template <typename Use>
GOFS_HD int change_entry(simt::AnyWarp auto warp, Volume& volume, Inode& directory,
                         const EntryPlace& place, const TimeStamp& now, Use use) {
  int error = 0;
  if (place.in_inode) {
    error =
        change_nodes(warp, volume, 1u, directory.ino, directory.ino, [&](format::NodeBlock& node) {
          use(inline_space(node, directory));
          set_modified(node.inode, now);
        });
    error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  } else {
    error = mark_holder(warp, volume, directory, place.index);
    if (error == 0) {
      error = change_inode(warp, volume, directory.ino,
                           [&](format::Inode& inode) { set_modified(inode, now); });
    }
    if (error == 0) {
      error = change_directory_block(warp, volume, directory, place.index,
                                     [&](uint8_t* page) { use(block_space(page)); });
    }
  }
  if (error == 0) note_modified(directory, now);
  return error;
}

}  // namespace detail

/// Adds an entry, of a name that is not there (the caller has looked). Changes up to
/// pages_to_add_entry() pages. 0 or a negative errno, with all names as they were: -ENOSPC (of the
/// volume, or no hash level is left), -EFBIG, -EBUSY, -EUCLEAN, what the device says.
GOFS_NOINLINE GOFS_HD inline int add_entry(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                           Inode& directory, const EntryName& name,
                                           const DirectoryEntry& entry, const TimeStamp& now) {
  GOFS_ASSERT(name.length != 0 && name.length <= format::kNameBytesMax);
  int error = 0;
  if (directory.has_inline_dentries()) {
    error = detail::add_inline_entry(warp, volume, directory, name, entry, now);
    if (error == 1) detail::note_modified(directory, now);
    if (error != 0) return error < 0 ? error : 0;
    error = detail::convert_inline_directory(warp, volume, directory);
    if (error < 0) return error;
  }
  DirectoryRoom room{};
  error = find_room(warp, volume, directory, format::name_hash(name.bytes, name.length),
                    format::name_slots(name.length), room);
  if (error < 0) return error;
  if (room.is_hole) {
    return detail::add_to_new_block(warp, volume, writer, directory, room, name, entry, now);
  }
  error = detail::add_to_block(warp, volume, directory, room, name, entry, now);
  if (error == 0) detail::note_modified(directory, now);
  return error;
}

/// Removes an entry. A block that is empty then goes, if that can be. Changes up to
/// kPagesToChangeEntry pages. 0 or a negative errno: -ENOENT, -EBUSY, -EUCLEAN, what the device
/// says.
GOFS_NOINLINE GOFS_HD inline int remove_entry(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, Inode& directory,
                                              const EntryName& name, const TimeStamp& now) {
  EntryPlace place{};
  int error = detail::find_place(warp, volume, directory, name.bytes, name.length, place);
  if (error < 0) return error;
  if (warp.thread_rank() == 0) {
    note_gone(writer, gone_name(directory.ino, format::name_hash(name.bytes, name.length)));
  }
  bool empty = false;
  error = detail::change_entry(warp, volume, directory, place, now,
                               [&](const detail::DentrySpace& space) {
                                 detail::clear_entry(space, place.slot, name.length);
                                 empty = !detail::any_used_slot({space.base, space.area}, 0);
                               });
  if (error == 0 && !place.in_inode && warp.any(empty)) {
    (void)detail::drop_directory_block(warp, volume, writer, directory, place.index);
  }
  return error;
}

/// Makes the entry `name`, which exists, lead to `entry`. Pages and errors as remove_entry().
GOFS_NOINLINE GOFS_HD inline int set_entry(simt::AnyWarp auto warp, Volume& volume,
                                           Inode& directory, const EntryName& name,
                                           const DirectoryEntry& entry, const TimeStamp& now) {
  EntryPlace place{};
  const int error = detail::find_place(warp, volume, directory, name.bytes, name.length, place);
  if (error < 0) return error;
  return detail::change_entry(warp, volume, directory, place, now,
                              [&](const detail::DentrySpace& space) {
                                format::Dentry& dentry = space.dentry(place.slot);
                                dentry.ino = entry.ino;
                                dentry.file_type = entry.type;
                              });
}

}  // namespace gofs::f2fs
