// SPDX-License-Identifier: Apache-2.0
//
// Where new entries go in a directory with hash levels: level by level, block by block of its
// bucket, to the first place with enough contiguous unused slots. A block that does not exist yet
// is all room. Of many entries that come at once, only some begin at the first level: those who add
// them side by side would fill one block together, and then look for the next. The blocks where the
// names of a whole group may stand are dealt to all lanes, each of which looks through its own, for
// the name and for room at once.
#pragma once

#include "f2fs/dentry_space.h"

namespace gofs::f2fs {

/// An entry that is to be made, one a lane.
struct NewEntry {
  EntryName name;
  uint32_t hash;  // format::name_hash() of it
  DirectoryEntry entry;
};

/// Where in a directory entries look for room, and for their names.
struct RoomLevels {
  uint32_t end;        // below this level
  uint32_t spread;     // levels over which they are spread; 0: all begin at the first
  uint64_t named_end;  // from this block on, none holds one of the names
};
/// Those of a single entry.
GOFS_HD constexpr RoomLevels room_in_levels(uint32_t end, uint32_t spread = 0) {
  return {end, spread, ~uint64_t{0}};
}

/// Room for an entry.
struct DentrySlots {
  bool found;      // or it is still to be looked for
  uint64_t index;  // block of the directory
  uint32_t level;
  bool is_hole;  // the block is to be made
};

namespace detail {

/// The `number`-th of the blocks where an entry of `hash` may stand, and its level.
GOFS_HD inline uint64_t candidate_block(uint32_t hash, uint32_t dir_level, uint32_t number,
                                        uint32_t& level) {
  constexpr uint32_t kNarrow = 31;  // levels with buckets of two blocks
  const bool narrow = number < 2 * kNarrow;
  level = narrow ? number / 2 : kNarrow + (number - 2 * kNarrow) / 4;
  const uint32_t in_bucket = narrow ? number % 2 : (number - 2 * kNarrow) % 4;
  return format::dir_bucket_start(level, dir_level, hash) + in_bucket;
}

/// Blocks where an entry may stand in the first `levels` levels.
GOFS_HD inline uint32_t candidate_count(uint32_t levels) {
  constexpr uint32_t kNarrow = 31;
  return levels <= kNarrow ? 2 * levels : 2 * kNarrow + 4 * (levels - kNarrow);
}

GOFS_HD inline SoughtName sought_name(const NewEntry& entry) {
  return {entry.name.bytes, entry.name.length, entry.hash};
}

/// Entries that fit in the first `levels` levels, if each takes one slot.
GOFS_HD inline uint64_t slots_in_levels(uint32_t levels, uint32_t dir_level) {
  return format::dir_level_start(levels, dir_level) * format::kDentrySlotsPerBlock;
}

/// What a lane finds in one block.
struct Candidate {
  uint64_t index;
  uint32_t level;
  bool has_name;
  bool has_room;
  bool is_hole;
  int error;
};

/// Where an entry of `hash` begins to look for room, if entries are spread over so many levels: in
/// the last one for half of the hashes, in the one before for a quarter, and so on, as the levels
/// have blocks.
GOFS_HD inline uint32_t spread_level(uint32_t hash, uint32_t levels) {
  if (levels == 0) return 0;
  constexpr uint32_t kBucketBits = 16;  // buckets go by the lowest
  const uint32_t before_last = simt::lowest_bit(hash >> kBucketBits | 1u << kBucketBits);
  return levels - 1 - simt::min(before_last, levels - 1);
}

/// Looks at candidate `number` of each lane in `lanes`, for the entry `sought`; room counts in
/// `levels` only. Collective.
GOFS_NOINLINE GOFS_HD inline Candidate look_at_candidates(simt::AnyWarp auto warp, Volume& volume,
                                                          const Inode& directory, uint32_t lanes,
                                                          uint32_t number, const NewEntry& sought,
                                                          const RoomLevels& levels) {
  const uint64_t blocks_max =
      simt::min(kDirectoryBlocksMax, format::file_blocks_max(directory.slot_count));
  Candidate found{};
  found.index = candidate_block(sought.hash, directory.dir_level, number, found.level);
  const bool may_be_named = found.index < levels.named_end;
  const bool has_level =
      found.level < levels.end && found.level >= spread_level(sought.hash, levels.spread);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0 && found.index < blocks_max &&
                    (may_be_named || has_level);
  const bool exists = mine && found.index < directory.size_blocks();
  uint64_t span = 1;
  const int read = with_directory_blocks(
      warp, volume, warp.ballot(exists), directory, found.index, span, [&](const uint8_t* page) {
        const DentryView view = block_view(page);
        found.has_name = may_be_named && has_entry(view, sought_name(sought));
        found.has_room = !found.has_name && has_level &&
                         find_free_slots(view, format::name_slots(sought.name.length)) != kNoSlot;
      });
  found.is_hole = mine && (!exists || read == -ENOENT);
  found.has_room = found.has_room || (found.is_hole && has_level);
  found.error = exists && !found.is_hole ? read : 0;
  return found;
}

}  // namespace detail

/// Levels that a directory may have once an entry was added: one more than there are.
GOFS_HD inline uint32_t levels_to_add(const Inode& directory) {
  return simt::min(directory.dir_depth, uint32_t{format::kDirDepthMax - 1}) + 1;
}

/// Levels, at least `levels`, that so many slots fill by four fifths at most.
GOFS_HD inline uint32_t levels_for_slots(const Inode& directory, uint64_t slots, uint32_t levels) {
  while (levels < format::kDirDepthMax &&
         4 * detail::slots_in_levels(levels, directory.dir_level) < 5 * slots) {
    ++levels;
  }
  return levels;
}

/// Levels over which `count` entries that come at once are spread: as many as they fill, or those
/// that there are.
GOFS_HD inline uint32_t levels_to_spread(const Inode& directory, uint64_t count) {
  return levels_for_slots(directory, count, simt::max(directory.dir_depth, 1u));
}

/// Levels over which the entries of `makers` are spread that come one by one, each when his last
/// one is there: few, so that they fill blocks, but not all of them the same few blocks, which each
/// changes alone.
GOFS_HD inline uint32_t levels_for_makers(const Inode& directory, uint32_t makers) {
  constexpr uint32_t kSlotsOfEach = 8;
  return levels_for_slots(directory, uint64_t{makers} * kSlotsOfEach, 1);
}

/// Finds room for the new entry of each lane in `lanes` in `levels` of a directory with entries in
/// blocks, behind the last of them only where they are spread so far; no other thread adds an entry
/// of one of the names meanwhile. Collective. Per lane 0 and `room`, or a negative errno: -EEXIST
/// (the name is there), -EAGAIN (it takes more levels), -ENOSPC (no level is left), those of
/// with_directory_blocks where a block cannot be read.
GOFS_NOINLINE GOFS_HD inline int find_dentry_slots(simt::AnyWarp auto warp, Volume& volume,
                                                   const Inode& directory, uint32_t lanes,
                                                   const NewEntry& mine, const RoomLevels& levels,
                                                   DentrySlots& room) {
  const uint32_t rank = warp.thread_rank();
  const bool wanted = (lanes >> rank & 1u) != 0;
  const uint32_t each = detail::candidate_count(simt::max(levels_to_add(directory), levels.spread));
  const uint32_t begin = simt::popcount(lanes & simt::ranks_below(rank)) * each;
  const uint32_t total = simt::popcount(lanes) * each;
  int result = levels.end < format::kDirDepthMax ? -EAGAIN : -ENOSPC;
  bool settled = false;  // found the name, or what could not be read
  for (uint32_t first = 0; first < total; first += warp.size()) {
    const uint32_t item = first + rank;
    const uint32_t owner = item < total ? simt::nth_bit(lanes, item / each) : rank;
    NewEntry sought{};
    sought.name.bytes = reinterpret_cast<const char*>(
        warp.shfl(reinterpret_cast<uint64_t>(mine.name.bytes), owner));
    sought.name.length = warp.shfl(mine.name.length, owner);
    sought.hash = warp.shfl(mine.hash, owner);
    const detail::Candidate found = detail::look_at_candidates(
        warp, volume, directory, warp.ballot(item < total), item % each, sought, levels);
    // The lanes that have looked for this one.
    const uint32_t from = simt::min(simt::max(begin, first) - first, warp.size());
    const uint32_t to =
        begin + each > first ? simt::min(begin + each - first, warp.size()) : uint32_t{0};
    const uint32_t helpers =
        wanted && from < to ? (to < 32 ? simt::ranks_below(to) : ~0u) & ~simt::ranks_below(from)
                            : 0u;
    const uint32_t named = warp.ballot(found.has_name) & helpers;
    const uint32_t failed = warp.ballot(found.error < 0) & helpers;
    const uint32_t roomy = warp.ballot(found.has_room) & helpers;
    const uint32_t holes = warp.ballot(found.is_hole);
    const int error = warp.shfl(found.error, failed != 0 ? simt::lowest_bit(failed) : rank);
    const uint32_t helper = roomy != 0 ? simt::lowest_bit(roomy) : rank;
    const uint64_t index = warp.shfl(found.index, helper);
    const uint32_t level = warp.shfl(found.level, helper);
    if (named != 0) {
      result = -EEXIST;
      settled = true;
    } else if (failed != 0 && !settled) {
      result = error;
      settled = true;
    } else if (roomy != 0 && !settled && result != 0) {
      room = {true, index, level, (holes >> helper & 1u) != 0};
      result = 0;
    }
  }
  return wanted ? result : 0;
}

/// Room where an entry whose name is known not to be there is likely to have some: in the level
/// where it begins to look, if that block is in memory, of which the caller makes sure no further.
/// One lane.
GOFS_HD inline DentrySlots guess_dentry_slots(const Volume& volume, const Inode& directory,
                                              const NewEntry& entry, const RoomLevels& levels) {
  DentrySlots room{};
  room.level = detail::spread_level(entry.hash, levels.spread);
  // Bits that do not say which bucket, so that its blocks fill alike.
  const uint32_t in_bucket = (entry.hash >> 30) % format::dir_bucket_blocks(room.level);
  room.index = format::dir_bucket_start(room.level, directory.dir_level, entry.hash) + in_bucket;
  room.found = room.level < levels.end && room.index < kDirectoryBlocksMax &&
               find_frame(volume.cache, directory_key(directory.ino, room.index)) != kNoFrame;
  return room;
}

/// Whether a name can be made in `directory`, where no other thread makes it, and where, if it
/// needs to be looked for, with entries spread over so many levels. Collective, uniform. 0,
/// -EEXIST, or another negative errno as find_dentry_slots() without regard to room.
GOFS_NOINLINE GOFS_HD inline int find_free_name(simt::AnyWarp auto warp, Volume& volume,
                                                const Inode& directory, const EntryName& name,
                                                uint32_t spread, DentrySlots& room) {
  room = {};
  if (directory.has_inline_dentries()) {
    DirectoryEntry entry{};
    const int error = find_entry(warp, volume, directory, name.bytes, name.length, entry);
    return error == 0 ? -EEXIST : error == -ENOENT ? 0 : error;
  }
  const NewEntry mine{name, format::name_hash(name.bytes, name.length), {}};
  const RoomLevels levels = room_in_levels(format::kDirDepthMax, spread);
  int error = find_dentry_slots(warp, volume, directory, 1u, mine, levels, room);
  error = simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
  room.found = warp.shfl(room.found ? 1u : 0u, 0) != 0 && error == 0;
  return error == -ENOSPC ? 0 : error;
}

}  // namespace gofs::f2fs
