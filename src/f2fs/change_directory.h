// SPDX-License-Identifier: Apache-2.0
//
// Entries of directories that go, and lead elsewhere; how they come is in add_entries.h. Readers
// look names up meanwhile: they see an entry wholly or not at all, and one that stays they find.
//
// Callers are inside the gate (operation.h), have the directory for themselves but for readers, and
// have loaded `directory` since; it is brought up to date. What is changed is seen at once and
// durable after the next checkpoint. All is collective and uniform.
#pragma once

#include "f2fs/add_entries.h"

namespace gofs::f2fs {

/// Pages that remove_entry() and set_entry() change: the block, the node that holds its address,
/// the inode.
inline constexpr uint32_t kPagesToChangeEntry = 3;

namespace detail {

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
    error = mark_holders(warp, volume, 1u, directory, place.index);
    error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
    if (error == 0) {
      error = change_inode(warp, volume, directory.ino,
                           [&](format::Inode& inode) { set_modified(inode, now); });
    }
    if (error == 0) {
      error = change_directory_blocks(warp, volume, 1u, directory, place.index, [&](uint8_t* page) {
        use(block_space(page));
        return true;
      });
      error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
    }
  }
  if (error == 0) note_modified(directory, now);
  return error;
}

}  // namespace detail

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
