// SPDX-License-Identifier: Apache-2.0
//
// Entries of directories that go, and lead elsewhere; how they come is in add_entries.h. Readers
// look names up meanwhile: they see an entry wholly or not at all, and one that stays they find.
//
// Callers hold the directory exclusively but for readers, and have loaded `directory` since; it is
// brought up to date. Or several warps have it, all of which add entries or remove them, each under
// a name of its own: they share the locks of those who add (Adding::locks), and leave blocks that
// have become empty. What is changed is seen at once and durable after the next checkpoint. All is
// collective and uniform.
#pragma once

#include "f2fs/add_entries.h"

namespace gofs::f2fs {

/// Pages that remove_entry() and set_entry() change: the block, the node that holds its address,
/// the inode.
inline constexpr uint32_t kPagesToChangeEntry = 3;

namespace detail {

/// Changes an entry where it stands: `use(const DentrySpace&)`, on one lane. Where others have the
/// directory as well, `locks` are theirs, and an entry in the inode is changed by a caller that
/// holds it.
template <typename Use>
GOFS_HD int change_entry(simt::AnyWarp auto warp, Operation& op, Inode& directory,
                         const EntryPlace& place, DirectoryLocks* locks, Use use) {
  if (place.in_inode) {
    const int error = change_inode(warp, op, directory.ino, [&](format::Inode& inode) {
      use(inline_space(*reinterpret_cast<format::NodeBlock*>(&inode), directory));
      set_modified(inode, op.now);
    });
    if (error == 0) note_modified(directory, op.now);
    return error;
  }
  const bool kept = warp.thread_rank() == 0 &&
                    is_kept(op.volume.cache, directory_key(directory.ino, place.index));
  int error = 0;
  if (!warp.any(kept)) {
    error = mark_holders(warp, op, 1u, directory, place.index);
    error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  }
  if (error == 0) error = note_entry_change(warp, op, directory, 0, {{}, locks, nullptr});
  if (error < 0) return error;
  error = change_directory_blocks(warp, op, 1u, directory, place.index, [&](uint8_t* page) {
    use(block_space(page));
    return true;
  });
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

}  // namespace detail

/// A block that remove_shared_entry() has left without entries.
struct EmptiedBlock {
  bool is_empty;
  uint64_t index;  // in the directory
};

/// Removes an entry, also beside others (`locks` is then not null, see above). Changes up to
/// kPagesToChangeEntry pages. 0 or a negative errno: -ENOENT, -EBUSY, -EUCLEAN, what the device
/// says. What it leaves empty, drop_if_empty() can drop.
GOFS_NOINLINE GOFS_HD inline int remove_shared_entry(simt::AnyWarp auto warp, Operation& op,
                                                     Inode& directory, const EntryName& name,
                                                     DirectoryLocks* locks, EmptiedBlock& emptied) {
  emptied = {};
  // Who has the lock sees whether others have moved the entries out of the inode.
  const bool locked = locks != nullptr && directory.has_inline_dentries();
  int error = locked ? lock_growth(warp, locks) : 0;
  if (error < 0) return error;
  if (locked) error = load_again(warp, op.volume, directory);
  EntryPlace place{};
  if (error == 0) {
    error = detail::find_place(warp, op.volume, directory, name.bytes, name.length, place);
  }
  if (error == 0) {
    if (warp.thread_rank() == 0) {
      note_freed(op, freed_name(directory.ino, format::name_hash(name.bytes, name.length)));
    }
    bool empty = false;
    error = detail::change_entry(warp, op, directory, place, locks,
                                 [&](const detail::DentrySpace& space) {
                                   detail::clear_entry(space, place.slot, name.length);
                                   empty = !detail::any_used_slot({space.base, space.area}, 0);
                                 });
    emptied = {error == 0 && !place.in_inode && warp.any(empty), place.index};
  }
  if (locked) unlock_growth(warp, locks);
  return error;
}

/// Drops block `index` of the directory, which the caller holds exclusively, if it has no entries.
/// Changes up to kPagesToChangeEntry pages. 0 or a negative errno, and it stays.
GOFS_NOINLINE GOFS_HD inline int drop_if_empty(simt::AnyWarp auto warp, Operation& op,
                                               Inode& directory, uint64_t index) {
  if (directory.has_inline_dentries() || index >= directory.size_blocks()) return 0;
  AddressPlace at{};
  int error = detail::find_address(warp, op.volume, directory, index, at);
  if (error < 0 || at.nid == 0 || at.address == format::kNullAddr) return error;
  bool empty = false;
  error = detail::change_directory_blocks(warp, op, 1u, directory, index, [&](const uint8_t* page) {
    empty = !detail::any_used_slot(detail::block_view(page), 0);
    return false;
  });
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  if (error < 0 || !warp.any(empty)) return error;
  return detail::drop_directory_block(warp, op, directory, index);
}

/// Removes an entry of a directory that the caller holds exclusively. A block that is empty then
/// goes, if that can be. As remove_shared_entry().
GOFS_NOINLINE GOFS_HD inline int remove_entry(simt::AnyWarp auto warp, Operation& op,
                                              Inode& directory, const EntryName& name) {
  EmptiedBlock emptied{};
  const int error = remove_shared_entry(warp, op, directory, name, nullptr, emptied);
  if (error == 0 && emptied.is_empty) {
    (void)detail::drop_directory_block(warp, op, directory, emptied.index);
  }
  return error;
}

/// Makes the entry `name`, which exists, lead to `entry`. Pages and errors as remove_entry().
GOFS_NOINLINE GOFS_HD inline int set_entry(simt::AnyWarp auto warp, Operation& op, Inode& directory,
                                           const EntryName& name, const DirectoryEntry& entry) {
  EntryPlace place{};
  const int error = detail::find_place(warp, op.volume, directory, name.bytes, name.length, place);
  if (error < 0) return error;
  return detail::change_entry(warp, op, directory, place, nullptr,
                              [&](const detail::DentrySpace& space) {
                                format::Dentry& dentry = space.dentry(place.slot);
                                dentry.ino = entry.ino;
                                dentry.file_type = entry.type;
                              });
}

}  // namespace gofs::f2fs
