// SPDX-License-Identifier: Apache-2.0
//
// Directories: their entries, and finding one by its name. The lanes of a warp look at the
// candidate blocks of many hash levels at once, a block each.
// Listing is in listing.h.
#pragma once

#include "f2fs/directory_pages.h"

namespace gofs::f2fs {

struct DirectoryEntry {
  uint32_t ino;
  uint8_t type;  // format::FileType
};

/// Where an entry stands.
struct EntryPlace {
  DirectoryEntry entry;
  uint64_t index;  // of the block in the directory; 0 for one in the inode
  uint32_t slot;   // its first
  bool in_inode;
};

namespace detail {

/// The slots of `.` and `..`.
inline constexpr uint32_t kDotSlots = 2;

struct DentryView {
  const uint8_t* base;
  format::DentryArea area;

  GOFS_HD bool used(uint32_t slot) const { return format::lsb_bit(base, slot); }
  GOFS_HD const format::Dentry& dentry(uint32_t slot) const {
    return *reinterpret_cast<const format::Dentry*>(base + area.dentry_at(slot));
  }
  GOFS_HD const char* name(uint32_t slot) const {
    return reinterpret_cast<const char*>(base + area.name_at(slot));
  }
};

/// Word `i` of an area's bitmap; slots past its end are used. Areas begin on a word.
GOFS_HD inline uint32_t used_slots(const DentryView& view, uint32_t i) {
  const uint32_t rest = view.area.slot_count - 32 * i;
  return format::load_u32(view.base + 4 * i) | (rest < 32 ? ~0u << rest : 0u);
}

/// What is looked for.
struct SoughtName {
  const char* name;
  uint32_t length;
  uint32_t hash;
};

/// Whether an area has an entry of that name. One lane.
GOFS_HD inline bool has_entry(const DentryView& view, const SoughtName& sought) {
  const uint32_t length = sought.length;
  for (uint32_t first = 0; first < view.area.slot_count; first += 32) {
    const uint32_t rest = view.area.slot_count - first;
    uint32_t used = used_slots(view, first / 32) & (rest < 32 ? (1u << rest) - 1 : ~0u);
    for (; used != 0; used &= used - 1) {
      const uint32_t slot = first + simt::lowest_bit(used);
      const format::Dentry& dentry = view.dentry(slot);
      if (dentry.hash_code != sought.hash || dentry.name_len != length ||
          !view.area.name_fits(slot, length)) {
        continue;
      }
      const char* const theirs = view.name(slot);
      uint32_t same = 0;
      while (same < length && theirs[same] == sought.name[same]) ++same;
      if (same == length) return true;
    }
  }
  return false;
}

/// Searches one area for a name with the whole warp. All lanes get the answer.
GOFS_NOINLINE GOFS_HD inline bool search_area(simt::AnyWarp auto warp, const DentryView& view,
                                              const char* name, uint32_t length, uint32_t hash,
                                              EntryPlace& found) {
  const uint32_t width = warp.size();
  for (uint32_t first = 0; first < view.area.slot_count; first += width) {
    const uint32_t slot = first + warp.thread_rank();
    bool matches = false;
    DirectoryEntry entry{};
    if (slot < view.area.slot_count && view.used(slot)) {
      const format::Dentry& dentry = view.dentry(slot);
      if (dentry.name_len == length && dentry.hash_code == hash &&
          view.area.name_fits(slot, length)) {
        const char* theirs = view.name(slot);
        matches = true;
        for (uint32_t i = 0; i < length && matches; ++i) matches = theirs[i] == name[i];
        entry = DirectoryEntry{dentry.ino, dentry.file_type};
      }
    }
    const uint32_t hits = warp.ballot(matches);
    if (hits != 0) {
      const uint32_t winner = simt::lowest_bit(hits);
      found.entry.ino = warp.shfl(entry.ino, winner);
      found.entry.type = static_cast<uint8_t>(warp.shfl(uint32_t{entry.type}, winner));
      found.slot = first + winner;
      return true;
    }
  }
  return false;
}

GOFS_HD inline DentryView inline_view(const format::NodeBlock& node, const Inode& inode) {
  return {reinterpret_cast<const uint8_t*>(&node) + inode.inline_offset,
          format::inline_dentry_area(inode.inline_bytes)};
}

GOFS_HD inline DentryView block_view(const uint8_t* page) {
  return {page, format::dentry_block_area()};
}

/// Whether the entries still are in the inode of a directory where they were when it was loaded.
GOFS_HD inline bool is_still_inline(const format::NodeBlock& node) {
  return (node.inode.i_inline & format::kInlineDentry) != 0;
}

/// What is wrong with an entry, whatever its name; kNone if nothing is.
GOFS_HD inline Structure fault_of_entry(const Volume& volume, const DirectoryEntry& entry) {
  if (entry.ino < format::kRootIno || entry.ino >= volume.geometry.nid_count()) {
    return Structure::kDentry;
  }
  const bool typed = entry.type != format::kTypeUnknown && entry.type <= format::kTypeSymlink;
  return typed ? Structure::kNone : Structure::kDentryType;
}

/// The value of a report about an entry with such a fault.
GOFS_HD inline uint32_t faulty_value(Structure fault, const DirectoryEntry& entry) {
  return fault == Structure::kDentryType ? entry.type : entry.ino;
}

/// Where block `index` of a directory lies, or its inode, for a report of damage; 0 if that cannot
/// be said. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t block_of_entries(simt::AnyWarp auto warp, Volume& volume,
                                                       const Inode& directory, uint64_t index) {
  if (directory.has_inline_dentries()) return block_of_node(warp, volume, directory.ino);
  BlockPlace place{};
  const int error =
      simt::first_error(warp, map_blocks(warp, volume, warp.ballot(true), directory, index, place));
  return error == 0 && volume.is_main_block(place.block) ? place.block : 0;
}

/// A directory whose entries have moved from its inode to blocks since `directory` was loaded, as
/// it is now. They never move back. -ENOENT if it was removed. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int reload_moved(simt::AnyWarp auto warp, Volume& volume,
                                              const Inode& directory, Inode& now) {
  const int error =
      simt::first_error(warp, load_inodes(warp, volume, warp.ballot(true), directory.ino, now));
  if (error < 0) return error;
  if (!now.is_directory() || now.generation != directory.generation) return -ENOENT;
  if (!now.has_inline_dentries()) return 0;
  return report_once(warp, *volume.corruptions, {Structure::kDirectory, 0, directory.ino, 0});
}

/// The blocks where an entry of some hash may stand: those of one bucket in each level, in order of
/// level.
struct Candidates {
  uint32_t hash;
  uint32_t dir_level;
  uint32_t levels;
  uint32_t level = 0;
  uint32_t in_bucket = 0;

  GOFS_HD bool more() const { return level < levels; }
  /// Gives the warp its next ones: lane k the k-th from here, its `index` and `its_level`, if there
  /// are so many. Not collective, but the same on all lanes.
  GOFS_HD bool next(simt::AnyWarp auto warp, uint64_t& index, uint32_t& its_level) {
    bool given = false;
    for (uint32_t k = 0; k < warp.size() && more(); ++k) {
      if (k == warp.thread_rank()) {
        index = format::dir_bucket_start(level, dir_level, hash) + in_bucket;
        its_level = level;
        given = true;
      }
      if (++in_bucket == format::dir_bucket_blocks(level)) {
        in_bucket = 0;
        ++level;
      }
    }
    return given;
  }
};

/// Searches the blocks of a directory. As find_place.
GOFS_NOINLINE GOFS_HD inline int find_in_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                const Inode& directory, const SoughtName& sought,
                                                EntryPlace& found) {
  const uint32_t all = warp.ballot(true);
  const uint64_t blocks = directory_blocks(directory);
  Candidates candidates{sought.hash, directory.dir_level,
                        simt::min(directory.dir_depth, format::kDirDepthMax)};
  bool hit = false;
  int error = 0;
  while (candidates.more() && !hit && error == 0) {
    uint64_t index = 0;
    uint32_t level = 0;
    const bool candidate = candidates.next(warp, index, level) && index < blocks;
    uint32_t present = warp.ballot(candidate);
    uint64_t span = 1;
    if ((present & (present - 1)) != 0) {
      // Each lane looks through its own, then all of them at the one that has the name.
      bool has_name = false;
      const int fetched = with_directory_blocks(
          warp, volume, present, directory, index, span,
          [&](const uint8_t* page) { has_name = has_entry(block_view(page), sought); });
      present = warp.ballot(has_name);
      error = simt::first_error(warp, candidate && fetched != -ENOENT ? fetched : 0);
    }
    for (uint32_t left = present; left != 0 && !hit; left &= left - 1) {
      const uint64_t one = warp.shfl(index, simt::lowest_bit(left));
      int read =
          with_directory_blocks(warp, volume, all, directory, one, span, [&](const uint8_t* page) {
            hit =
                search_area(warp, block_view(page), sought.name, sought.length, sought.hash, found);
          });
      read = simt::first_error(warp, read);
      if (error == 0 && read != -ENOENT) error = read;
      if (hit) found.index = one;
    }
  }
  found.in_inode = false;
  if (hit) return 0;
  if (error == 0 && !has_possible_size(directory)) {
    // What lies there is not known.
    error = report_once(warp, *volume.corruptions,
                        {Structure::kDirectory, 0, directory.ino, directory.size_bytes});
  }
  return error < 0 ? error : -ENOENT;
}

/// Finds `name` (1 to 255 bytes, no slash) in `directory`. Collective, all arguments uniform,
/// answer uniform: 0, -ENOENT, -EUCLEAN or a device's errno.
GOFS_NOINLINE GOFS_HD inline int find_place(simt::AnyWarp auto warp, Volume& volume,
                                            const Inode& directory, const char* name,
                                            uint32_t length, EntryPlace& found) {
  const SoughtName sought{name, length, format::name_hash(name, length)};
  int error = 0;
  if (directory.has_inline_dentries()) {
    bool hit = false;
    bool moved = false;
    error = with_nodes(warp, volume, warp.ballot(true), directory.ino, directory.ino,
                       [&](const format::NodeBlock& node) {
                         moved = !is_still_inline(node);
                         hit = !moved && search_area(warp, inline_view(node, directory), name,
                                                     length, sought.hash, found);
                       });
    error = simt::first_error(warp, error);
    found.index = 0;
    found.in_inode = true;
    if (moved) {
      Inode now{};
      error = reload_moved(warp, volume, directory, now);
      if (error == 0) error = find_in_blocks(warp, volume, now, sought, found);
    } else if (error == 0 && !hit) {
      error = -ENOENT;
    }
  } else {
    error = find_in_blocks(warp, volume, directory, sought, found);
  }
  if (error < 0) return error;
  const Structure fault = fault_of_entry(volume, found.entry);
  if (fault == Structure::kNone) return 0;
  const uint32_t block = found.in_inode == directory.has_inline_dentries()
                             ? block_of_entries(warp, volume, directory, found.index)
                             : 0;
  return report_once(
      warp, *volume.corruptions,
      {fault, block, directory.ino, slot_value(found.slot, faulty_value(fault, found.entry))});
}

}  // namespace detail

/// Finds `name` (1 to 255 bytes, no slash) in `directory`, which may be changed meanwhile: what was
/// there when it was loaded, and stays, is found. Collective, all arguments uniform, answer
/// uniform: 0, -ENOENT, -EUCLEAN or a device's errno.
GOFS_HD inline int find_entry(simt::AnyWarp auto warp, Volume& volume, const Inode& directory,
                              const char* name, uint32_t length, DirectoryEntry& found) {
  EntryPlace place{};
  const int error = detail::find_place(warp, volume, directory, name, length, place);
  found = place.entry;
  return error;
}

}  // namespace gofs::f2fs
