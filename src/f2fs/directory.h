// SPDX-License-Identifier: Apache-2.0
//
// Directories: their entries, and finding one by its name. The lanes of a warp look at the
// candidate blocks of many hash levels at once, then search each block together, slot by slot.
// Listing is in listing.h.
#pragma once

#include "f2fs/map.h"

namespace gofs::f2fs {

struct DirectoryEntry {
  uint32_t ino;
  uint8_t type;  // format::FileType
};

namespace detail {

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

/// Searches one area for a name with the whole warp. All lanes get the answer.
GOFS_NOINLINE GOFS_HD inline bool search_area(simt::AnyWarp auto warp, const DentryView& view,
                                              const char* name, uint32_t length, uint32_t hash,
                                              DirectoryEntry& found) {
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
      found.ino = warp.shfl(entry.ino, winner);
      found.type = static_cast<uint8_t>(warp.shfl(uint32_t{entry.type}, winner));
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

GOFS_HD inline int check_entry(Volume& volume, const Inode& directory,
                               const DirectoryEntry& entry) {
  if (entry.ino == 0 || entry.ino >= volume.geometry.nid_count() ||
      entry.type == format::kTypeUnknown || entry.type > format::kTypeSymlink) {
    return report(*volume.corruptions, {Structure::kDentry, 0, directory.ino, entry.ino});
  }
  return 0;
}

}  // namespace detail

/// Finds `name` (1 to 255 bytes, no slash) in `directory`. Collective, all arguments uniform,
/// answer uniform: 0, -ENOENT, -EUCLEAN or a device's errno.
GOFS_NOINLINE GOFS_HD inline int find_entry(simt::AnyWarp auto warp, Volume& volume,
                                            const Inode& directory, const char* name,
                                            uint32_t length, DirectoryEntry& found) {
  const uint32_t hash = format::name_hash(name, length);
  const uint32_t all = warp.ballot(true);
  bool hit = false;
  int error = 0;
  if (directory.has_inline_dentries()) {
    error = with_nodes(warp, volume, all, directory.ino, directory.ino,
                       [&](const format::NodeBlock& node) {
                         hit = detail::search_area(warp, detail::inline_view(node, directory), name,
                                                   length, hash, found);
                       });
  } else {
    // Candidates: the blocks of one bucket in each level, in order of level.
    const uint32_t depth = simt::min(directory.dir_depth, format::kDirDepthMax);
    const uint32_t width = warp.size();
    uint32_t level = 0;
    uint32_t in_bucket = 0;
    const uint64_t size_blocks = directory.size_blocks();
    while (level < depth && !hit && error == 0) {
      // The warp's next candidates: lane k takes the k-th from here.
      uint64_t index = 0;
      bool candidate = false;
      for (uint32_t k = 0; k < width && level < depth; ++k) {
        if (k == warp.thread_rank()) {
          index = format::dir_bucket_start(level, directory.dir_level, hash) + in_bucket;
          candidate = index < size_blocks;
        }
        if (++in_bucket == format::dir_bucket_blocks(level)) {
          in_bucket = 0;
          ++level;
        }
      }
      const uint32_t lanes = warp.ballot(candidate);
      BlockPlace place{};
      const int mapped = map_blocks(warp, volume, lanes, directory, index, place);
      const uint32_t block = place.block;
      error = simt::first_error(warp, mapped);
      // Fetch them side by side, then search one after another.
      const uint32_t present = warp.ballot(mapped == 0 && block != format::kNullAddr);
      if (present == 0) continue;
      if ((present & (present - 1)) != 0) {
        const int fetched = with_blocks(warp, volume, present, block, [](const uint8_t*) {});
        if (error == 0) error = simt::first_error(warp, fetched);
      }
      for (uint32_t left = present; left != 0 && !hit; left &= left - 1) {
        const uint32_t one = warp.shfl(block, simt::lowest_bit(left));
        const int read = with_blocks(warp, volume, all, one, [&](const uint8_t* page) {
          hit = detail::search_area(warp, detail::block_view(page), name, length, hash, found);
        });
        if (error == 0) error = simt::first_error(warp, read);
      }
    }
  }
  if (hit) {
    const bool leader = warp.thread_rank() == 0;
    return warp.shfl(leader ? detail::check_entry(volume, directory, found) : 0, 0);
  }
  error = simt::first_error(warp, error);
  return error < 0 ? error : -ENOENT;
}

}  // namespace gofs::f2fs
