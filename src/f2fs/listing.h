// SPDX-License-Identifier: Apache-2.0
//
// Listing directories. There is one way through a directory's entries, walk_entries(): a window of
// blocks is mapped and fetched side by side, then each block is gone through a slot a lane. It ends
// soon also where the directory claims an enormous size, since whole subtrees of holes are skipped;
// so does each part when several warps share a directory.
#pragma once

#include "f2fs/directory.h"

namespace gofs::f2fs {

using gofs::NamedEntry;

/// A place in a directory's listing: 0 is the start. Counts slots of blocks, or of the inline area.
using DirectoryCursor = uint64_t;

/// Blocks that a listing goes through; an inline area counts as one, since it has fewer slots.
GOFS_HD inline uint64_t listing_blocks(const Inode& directory) {
  return directory.has_inline_dentries() ? 1 : directory_blocks(directory);
}

/// Where the listing of `block` begins.
GOFS_HD inline DirectoryCursor cursor_of_block(uint64_t block) {
  return block * format::kDentrySlotsPerBlock;
}

/// A sound entry of one lane's slot. The name has no terminator and stays as long as the call that
/// gives it.
struct SeenEntry {
  DirectoryEntry entry;
  uint32_t name_length;
  const char* name;
};

namespace detail {

GOFS_HD inline bool is_dot_or_dotdot(const char* name, uint32_t length) {
  return length >= 1 && length <= 2 && name[0] == '.' && (length == 1 || name[1] == '.');
}

/// The entries of block `index` of a directory, or of its inode, which counts as block 0.
struct EntryArea {
  DentryView view;
  uint64_t index;
};

/// What a slot holds.
struct SlotLook {
  bool is_entry;    // a name begins here that a listing gives
  Structure fault;  // or one that it leaves out
  uint32_t value;   // what is wrong with it
};

/// Whether no name before it reaches `slot`, which is used and has no name of its own; of several
/// such, one after the other, the first.
GOFS_HD inline bool lacks_name(const DentryView& view, uint32_t slot) {
  constexpr uint32_t kSlotsMax = format::name_slots(format::kNameBytesMax);
  for (uint32_t back = 1; back <= simt::min(slot, kSlotsMax); ++back) {
    if (!view.used(slot - back)) return back == 1;
    const uint32_t length = view.dentry(slot - back).name_len;
    if (length != 0) return format::name_slots(length) == back;
  }
  return slot == 0;
}

/// Whether a name of `length` bytes can be one of those that a listing gives or, `.` and `..`,
/// stands in its place.
GOFS_HD inline bool is_name(const EntryArea& area, uint32_t slot, const char* name,
                            uint32_t length) {
  if (!area.view.area.name_fits(slot, length)) return false;
  for (uint32_t i = 0; i < length; ++i) {
    if (name[i] == '/' || name[i] == '\0') return false;
  }
  return !is_dot_or_dotdot(name, length) || (area.index == 0 && slot + 1 == length);
}

/// By each lane for itself.
GOFS_HD inline SlotLook look_at_slot(const Volume& volume, const EntryArea& area, uint32_t slot,
                                     SeenEntry& seen) {
  constexpr SlotLook kNothing{false, Structure::kNone, 0};
  const DentryView& view = area.view;
  if (slot >= view.area.slot_count) return kNothing;
  if (!view.used(slot)) {
    // Every directory has `.` and `..`.
    const bool missing = area.index == 0 && slot < kDotSlots;
    return missing ? SlotLook{false, Structure::kDentryName, 0} : kNothing;
  }
  const format::Dentry& dentry = view.dentry(slot);
  const uint32_t length = dentry.name_len;
  if (length == 0) {  // a further slot of a long name
    return lacks_name(view, slot) ? SlotLook{false, Structure::kDentryName, 0} : kNothing;
  }
  seen = SeenEntry{{dentry.ino, dentry.file_type}, length, view.name(slot)};
  if (!is_name(area, slot, seen.name, length)) return {false, Structure::kDentryName, length};
  if (is_dot_or_dotdot(seen.name, length)) return kNothing;
  const Structure fault = fault_of_entry(volume, seen.entry);
  if (fault != Structure::kNone) return {false, fault, faulty_value(fault, seen.entry)};
  return {true, Structure::kNone, 0};
}

/// Goes through one area from `slot` on; `take` and `damage` as in walk_entries. Returns the slot
/// to go on from when `take` wants no more, and then clears `more`; sets `unsound` if entries were
/// left out. Collective, uniform.
template <typename Take>
GOFS_HD uint32_t walk_area(simt::AnyWarp auto warp, const Volume& volume, const EntryArea& area,
                           uint32_t slot, bool& more, bool& unsound, int& damage, Take& take) {
  for (; slot < area.view.area.slot_count && more; slot += warp.size()) {
    SeenEntry seen{};
    const SlotLook look = look_at_slot(volume, area, slot + warp.thread_rank(), seen);
    if (warp.any(look.fault != Structure::kNone)) {
      unsound = true;
      damage = -EUCLEAN;
    }
    const uint32_t given = warp.ballot(look.is_entry);
    if (given != 0) more = take(given, seen);
  }
  return simt::min(slot, area.view.area.slot_count);
}

/// Reports what walk_area() has left out of the slots from `slot` up to `end_slot`. Each lane for
/// some slots, not collective.
GOFS_NOINLINE GOFS_HD inline void report_slots(Volume& volume, uint32_t ino, uint32_t block,
                                               const EntryArea& area, uint32_t slot,
                                               uint32_t end_slot, uint32_t step) {
  for (; slot < end_slot; slot += step) {
    SeenEntry seen{};
    const SlotLook look = look_at_slot(volume, area, slot, seen);
    if (look.fault == Structure::kNone) continue;
    report(*volume.corruptions, {look.fault, block, ino, slot_value(slot, look.value)});
  }
}

/// The same of block `index`, or of the inode, once more, since its place is not known before.
/// Collective, uniform; nothing is pinned.
GOFS_NOINLINE GOFS_HD inline void report_unsound(simt::AnyWarp auto warp, Volume& volume,
                                                 const Inode& directory, uint64_t index,
                                                 uint32_t first_slot, uint32_t end_slot) {
  const uint32_t block = block_of_entries(warp, volume, directory, index);
  const uint32_t slot = first_slot + warp.thread_rank();
  if (directory.has_inline_dentries()) {
    (void)with_nodes(warp, volume, warp.ballot(true), directory.ino, directory.ino,
                     [&](const format::NodeBlock& node) {
                       if (!is_still_inline(node)) return;
                       report_slots(volume, directory.ino, block,
                                    {inline_view(node, directory), index}, slot, end_slot,
                                    warp.size());
                     });
  } else {
    uint64_t span = 1;
    (void)with_directory_blocks(
        warp, volume, warp.ballot(true), directory, index, span, [&](const uint8_t* page) {
          report_slots(volume, directory.ino, block, {block_view(page), index}, slot, end_slot,
                       warp.size());
        });
  }
  warp.sync();
}

/// Whether a directory that has lost its block 0 is there still: then its names are lost too, and
/// that is damage. Collective, uniform. -EUCLEAN, -ENOENT if it was removed, or what the device
/// says.
GOFS_NOINLINE GOFS_HD inline int report_lost_head(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& directory) {
  Inode now{};
  const int error =
      simt::first_error(warp, load_inodes(warp, volume, warp.ballot(true), directory.ino, now));
  if (error < 0) return error;
  if (!now.is_directory() || now.generation != directory.generation || now.links == 0) {
    return -ENOENT;
  }
  return report_once(warp, *volume.corruptions, {Structure::kDirectory, 0, directory.ino, 0});
}

/// As walk_entries, of a directory with entries in blocks.
template <typename Take>
GOFS_HD void walk_blocks(simt::AnyWarp auto warp, Volume& volume, const Inode& directory,
                         DirectoryCursor& cursor, uint64_t end_block, int& damage, Take& take) {
  const uint32_t all = warp.ballot(true);
  bool more = true;
  while (more) {
    // A window of blocks, one a lane, fetched side by side.
    const uint64_t first = cursor / format::kDentrySlotsPerBlock;
    if (first >= end_block) break;
    const uint64_t index = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(index < end_block);
    const uint32_t in_window = simt::popcount(lanes);
    uint64_t span = 1;
    int fetched = 0;
    if (in_window > 1) {
      fetched = fetch_directory_blocks(warp, volume, lanes, directory, index, span);
    }
    uint32_t present = warp.ballot(index < end_block && fetched == 0);
    for (uint32_t k = 0; k < in_window && more; ++k) {
      int error = warp.shfl(fetched, k);
      const DirectoryCursor start = cursor_of_block(first + k);
      uint32_t slot = cursor > start ? static_cast<uint32_t>(cursor - start) : 0;
      if (error == 0) {
        uint64_t found_span = 1;
        bool unsound = false;
        const uint32_t first_slot = slot;
        const int read = with_directory_blocks(
            warp, volume, all, directory, first + k, found_span, [&](const uint8_t* page) {
              slot = walk_area(warp, volume, {block_view(page), first + k}, slot, more, unsound,
                               damage, take);
            });
        if (unsound) report_unsound(warp, volume, directory, first + k, first_slot, slot);
        error = simt::first_error(warp, read);
        if (error < 0) {
          present &= ~(1u << k);
          found_span = warp.shfl(found_span, 0);
          if (warp.thread_rank() == k) span = found_span;
        }
      }
      if (error == -ENOENT && start == 0) error = report_lost_head(warp, volume, directory);
      if (error < 0 && error != -ENOENT) damage = error;
      cursor = more ? cursor_of_block(first + k + 1) : start + slot;
    }
    if (present == 0) {
      // Nothing here: on to the first block that the last lane's hole does not cover.
      const uint32_t last = in_window - 1;
      cursor = cursor_of_block(first + last + warp.shfl(span, last));
    }
  }
  warp.sync();
}

}  // namespace detail

/// Goes through the entries of `directory` from `cursor` up to the beginning of block `end_block`
/// (at most listing_blocks()), without `.` and `..`, and moves the cursor past those that it has
/// given. Calls `take(given, seen)` for a group of them, in order: lane k of `given` has one.
/// `take` is called by the whole warp and says, the same on all lanes, whether it wants more.
///
/// Collective, uniform. 0, or a negative errno where an inline directory cannot be read. Entries
/// that make no sense are reported and passed over, and so is a block that cannot be mapped or
/// read: the last errno of those is kept in `damage` for the caller, who sees it there before later
/// entries.
template <typename Take>
GOFS_HD int walk_entries(simt::AnyWarp auto warp, Volume& volume, const Inode& directory,
                         DirectoryCursor& cursor, uint64_t end_block, int& damage, Take take) {
  if (!directory.has_inline_dentries()) {
    if (!has_possible_size(directory)) {
      damage = report_once(warp, *volume.corruptions,
                           {Structure::kDirectory, 0, directory.ino, directory.size_bytes});
    }
    detail::walk_blocks(warp, volume, directory, cursor, end_block, damage, take);
    return 0;
  }
  end_block = simt::min<uint64_t>(end_block, 1);
  if (cursor >= cursor_of_block(end_block)) return 0;
  auto slot = static_cast<uint32_t>(cursor);
  const uint32_t first_slot = slot;
  bool more = true;
  bool moved = false;
  bool unsound = false;
  const int read = with_nodes(
      warp, volume, warp.ballot(true), directory.ino, directory.ino,
      [&](const format::NodeBlock& node) {
        moved = !detail::is_still_inline(node);
        if (moved) return;
        const detail::DentryView view = detail::inline_view(node, directory);
        slot = detail::walk_area(warp, volume, {view, 0}, slot, more, unsound, damage, take);
      });
  warp.sync();
  if (moved) {
    // To block 0, each entry to the slot that it had.
    Inode now{};
    const int error = detail::reload_moved(warp, volume, directory, now);
    if (error < 0) return error;
    detail::walk_blocks(warp, volume, now, cursor, end_block, damage, take);
    return 0;
  }
  if (unsound) detail::report_unsound(warp, volume, directory, 0, first_slot, slot);
  cursor = slot;
  return simt::first_error(warp, read);
}

/// Copies up to `capacity` (at least the warp's width) entries from `cursor` on to `entries`, and
/// moves the cursor past them. Collective, uniform, by one warp. Returns how many; 0 at the end; or
/// a negative errno. What is left out, and `damage`: as walk_entries.
GOFS_NOINLINE GOFS_HD inline int64_t list_entries(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& directory, DirectoryCursor& cursor,
                                                  NamedEntry* entries, uint32_t capacity,
                                                  int& damage) {
  const uint32_t rank = warp.thread_rank();
  GOFS_ASSERT(capacity >= warp.size());
  uint32_t count = 0;
  const int error = walk_entries(
      warp, volume, directory, cursor, listing_blocks(directory), damage,
      [&](uint32_t given, const SeenEntry& seen) {
        if ((given >> rank & 1u) != 0) {
          NamedEntry& out = entries[count + simt::popcount(given & simt::ranks_below(rank))];
          out.ino = seen.entry.ino;
          out.type = seen.entry.type;
          out.name_length = static_cast<uint16_t>(seen.name_length);
          for (uint32_t i = 0; i < seen.name_length; ++i) out.name[i] = seen.name[i];
          out.name[seen.name_length] = '\0';
        }
        count += simt::popcount(given);
        return count + warp.size() <= capacity;
      });
  return error < 0 ? error : count;
}

}  // namespace gofs::f2fs
