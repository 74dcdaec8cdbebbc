// SPDX-License-Identifier: Apache-2.0
//
// Entries that come to a directory, those of a whole group of names at once. Readers look names up
// meanwhile: they see an entry wholly or not at all, and what stays they find.
//
// Callers hold the directory exclusively but for readers; or several warps have it, all of which
// add entries or remove some (change_directory.h), and no other one of the same name meanwhile.
// They find room side by side, and each block is changed by one at a time; who finds it full then
// looks for room once more. Locks that they share are for making blocks and for setting times. How
// far the others have come, the warps of a batch tell each other in a DirectoryGrowth; those that
// have nothing else in common see it in the directory's inode. What is changed is seen at once and
// durable after the next checkpoint.
#pragma once

#include "f2fs/directory_locks.h"
#include "f2fs/inline_entries.h"
#include "simt/warp_lock.h"

namespace gofs::f2fs {

/// What the warps of a batch share that add entries to one directory.
struct DirectoryGrowth {
  DirectoryLocks locks;  // Adding::locks
  uint32_t depth;        // hash levels that hold entries; 0 while they are in the inode
  uint32_t spread;       // levels over which the new entries are spread
  /// Blocks that were there before: no other holds one of the new names, unless these warps have
  /// entered it.
  uint64_t old_blocks;
};

/// How entries are added.
struct Adding {
  RoomLevels levels;        // hash levels that there is room for in the operation
  DirectoryLocks* locks;    // null: the directory is the warp's alone
  DirectoryGrowth* growth;  // where there are locks; null: others are no batch
};

/// Nodes that hold the addresses of a directory's blocks in so many levels, at most; the inode is
/// not counted.
GOFS_HD inline uint64_t directory_nodes(const Inode& directory, uint32_t levels) {
  const uint64_t blocks =
      simt::min(format::dir_level_start(levels, directory.dir_level), kDirectoryBlocksMax);
  if (blocks <= directory.slot_count) return 0;
  const uint64_t direct = simt::divide_up(blocks - directory.slot_count, format::kNodeSlots);
  if (direct <= 2) return direct;
  // And the nodes above them.
  return direct + simt::divide_up(direct, format::kNodeSlots) + 2;
}

/// Pages that add_entries() changes at most for `count` entries in `levels` levels: the inode, a
/// block for each, one that entries move to out of the inode, and nodes, which may be new and in
/// the NAT.
GOFS_HD inline uint32_t pages_to_add_entries(const Inode& directory, uint32_t count,
                                             uint32_t levels) {
  const auto nodes = static_cast<uint32_t>(
      simt::min<uint64_t>(directory_nodes(directory, levels), 3 * uint64_t{count}));
  return 1 + count + (directory.has_inline_dentries() ? 1 : 0) + 2 * nodes;
}

/// The same for any number of entries, as long as they stand in so many levels.
GOFS_HD inline uint64_t pages_of_levels(const Inode& directory, uint32_t levels) {
  const uint64_t blocks =
      simt::min(format::dir_level_start(levels, directory.dir_level), kDirectoryBlocksMax);
  return 1 + blocks + 2 * directory_nodes(directory, levels);
}

/// The same for add_entry(), where entries are spread over so many levels; kPagesToAddEntryMax,
/// whatever the directory.
inline constexpr uint32_t kPagesToAddEntryMax = 1 + 1 + 1 + 2 * 3;
GOFS_HD inline uint32_t pages_to_add_entry(const Inode& directory, uint32_t spread = 0) {
  return pages_to_add_entries(directory, 1, simt::max(levels_to_add(directory), spread));
}

/// Hash levels that an entry may come to without more pages than these.
GOFS_HD inline uint32_t levels_to_reach(const Inode& directory, uint32_t spread = 0) {
  const uint32_t pages = pages_to_add_entry(directory, spread);
  uint32_t levels = simt::max(levels_to_add(directory), spread);
  while (levels < format::kDirDepthMax && pages_to_add_entries(directory, 1, levels + 1) == pages) {
    ++levels;
  }
  return levels;
}

/// The growth of a directory that was loaded by a caller that holds it, and that gets `count`
/// entries; whether it `is_empty`.
GOFS_HD inline DirectoryGrowth growth_of(const Inode& directory, uint32_t count, bool is_empty) {
  return {{},
          directory.has_inline_dentries() ? 0 : simt::max(directory.dir_depth, 1u),
          levels_to_spread(directory, count),
          is_empty ? 0 : simt::max<uint64_t>(directory.size_blocks(), 1)};
}

/// Loads a directory as it is now. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int load_again(simt::AnyWarp auto warp, Volume& volume, Inode& directory) {
  return simt::first_error(warp,
                           load_inodes(warp, volume, warp.ballot(true), directory.ino, directory));
}

/// Learns how far others of a batch have grown the directory. Blocks that they may have made count
/// as being there. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int catch_up(simt::AnyWarp auto warp, Volume& volume, Inode& directory,
                                          const DirectoryGrowth& growth) {
  const uint32_t depth = warp.shfl(simt::load_acquire(growth.depth), 0);  // [D1]
  warp.sync();
  if (depth == 0) return 0;
  if (directory.has_inline_dentries()) {
    const int error = load_again(warp, volume, directory);
    if (error < 0) return error;
  }
  directory.dir_depth = simt::max(directory.dir_depth, depth);
  directory.size_bytes =
      simt::max(directory.size_bytes,
                format::dir_level_start(directory.dir_depth, directory.dir_level) * kBlockBytes);
  return 0;
}
/// The same for whoever others are.
GOFS_HD inline int catch_up(simt::AnyWarp auto warp, Volume& volume, Inode& directory,
                            const Adding& how) {
  if (how.growth != nullptr) return catch_up(warp, volume, directory, *how.growth);
  return how.locks == nullptr ? 0 : load_again(warp, volume, directory);
}

/// Has the growth of the directory (Adding::locks) for the warp, unless `is_needless()`, which is
/// asked collectively and answers uniformly. Collective, uniform. 0, -EAGAIN (it is needless), or
/// -EBUSY.
template <typename IsNeedless>
GOFS_HD int lock_growth(simt::AnyWarp auto warp, DirectoryLocks* locks, IsNeedless is_needless) {
  if (locks == nullptr) return 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  while (!is_needless()) {
    if (simt::try_lock_for_warp(warp, locks->growth)) return 0;
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
  return -EAGAIN;
}
GOFS_HD inline int lock_growth(simt::AnyWarp auto warp, DirectoryLocks* locks) {
  return lock_growth(warp, locks, [] { return false; });
}
GOFS_HD inline void unlock_growth(simt::AnyWarp auto warp, DirectoryLocks* locks) {
  if (locks != nullptr) simt::release_lock(warp, locks->growth);
}

namespace detail {

GOFS_HD inline void note_modified(Inode& directory, const TimeStamp& now) {
  directory.modified = directory.changed = now;
}

/// Lets others of a batch know how deep the directory is now. Collective.
GOFS_HD inline void tell_depth(simt::AnyWarp auto warp, const Inode& directory,
                               DirectoryGrowth* growth) {
  warp.sync();
  if (growth == nullptr || warp.thread_rank() != 0) return;
  simt::AtomicRef<uint32_t>(growth->depth)
      .fetch_max(directory.dir_depth, simt::memory_order_acq_rel);  // [D1]
}

/// Adds entries to the inode while they are there. As add_entries(), and -EAGAIN for lanes whose
/// entries go to blocks.
GOFS_NOINLINE GOFS_HD inline int add_while_inline(simt::AnyWarp auto warp, Operation& op,
                                                  Inode& directory, uint32_t lanes,
                                                  const NewEntry& mine, const Adding& how) {
  const bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = lock_growth(warp, how.locks);
  if (error < 0) return error;
  int result = wanted ? -EAGAIN : 0;
  error = catch_up(warp, op.volume, directory, how);
  if (error == 0 && directory.has_inline_dentries()) {
    result = add_inline_entries(warp, op, lanes, directory, mine);
    if (warp.any(wanted && result == 0)) note_modified(directory, op.now);
    if (warp.any(wanted && result == -EAGAIN)) {
      error = convert_inline_directory(warp, op, directory);
      if (error == 0) tell_depth(warp, directory, how.growth);
    }
  }
  unlock_growth(warp, how.locks);
  return wanted && result == -EAGAIN && error < 0 ? error : result;
}

/// The levels that a directory needs to have the rooms of `lanes`. Collective, uniform.
GOFS_HD inline uint32_t levels_of(simt::AnyWarp auto warp, uint32_t lanes,
                                  const DentrySlots& room) {
  uint32_t levels = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    levels = simt::max(levels, warp.shfl(room.level, simt::lowest_bit(lanes)) + 1);
  }
  return levels;
}

/// Whether the directory, as it was just loaded, has the times of who adds an entry now, and is
/// going to be written with them.
GOFS_HD inline bool has_times(const PageCache& cache, const Inode& directory,
                              const TimeStamp& now) {
  return is_modified_since(directory.modified, directory.changed, now) &&
         is_kept(cache, page_key(PageKind::kNode, directory.ino));
}

/// Loads the times of a directory as they are now. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int load_times(simt::AnyWarp auto warp, Volume& volume, Inode& directory) {
  const int error = with_nodes(warp, volume, warp.ballot(true), directory.ino, directory.ino,
                               [&](const format::NodeBlock& node) {
                                 directory.modified = modified_of(node.inode);
                                 directory.changed = changed_of(node.inode);
                               });
  return simt::first_error(warp, error);
}

/// Whether the directory has the times of who changes entries of it now, since one of many who do
/// so has set them for all; if not, some thread is to set them. Collective, uniform. 1, 0, or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int is_noted(simt::AnyWarp auto warp, Volume& volume, Inode& directory,
                                          const TimeStamp& now) {
  const auto has = [&] {
    const bool seen = warp.thread_rank() == 0 && has_times(volume.cache, directory, now);
    return warp.shfl(seen ? 1u : 0u, 0) != 0;
  };
  if (has()) return 1;
  const int error = load_times(warp, volume, directory);
  return error < 0 ? error : static_cast<int>(has());
}

/// Sets the directory's times, and its depth where that is less than `depth`. Collective, uniform.
/// 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int set_times_and_depth(simt::AnyWarp auto warp, Operation& op,
                                                     Inode& directory, uint32_t depth) {
  const int error = change_inode(warp, op, directory.ino, [&](format::Inode& inode) {
    if (inode.i_current_depth < depth) inode.i_current_depth = depth;
    renew_times(inode, op.now);
  });
  if (error < 0) return error;
  directory.dir_depth = depth;
  note_modified(directory, op.now);
  return 0;
}

/// Sets the directory's times, by a caller that holds the lock for that. Where they have the
/// seconds of `now` already, others may look at its page meanwhile. Collective, uniform. 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int set_shared_times(simt::AnyWarp auto warp, Operation& op,
                                                  Inode& directory) {
  bool done = false;
  const int error =
      change_words(warp, op, 1u, directory.ino, directory.ino, [&](format::NodeBlock& node) {
        if (!has_seconds_of(node.inode, op.now)) return PageChange::kNothing;
        done = true;
        (void)set_nanoseconds(node.inode, directory, op.now);
        return PageChange::kTimes;  // it is to be written, whoever set them
      });
  const int set = done_by_leader(warp, error, done);
  if (set == 0) return set_times_and_depth(warp, op, directory, directory.dir_depth);
  return simt::min(set, 0);
}

/// Sets the directory's times, and its depth where entries go to a level behind it, of the first
/// `depth` ones. Of many who change entries in one moment, one sets the times, and the others find
/// them set. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int note_entry_change(simt::AnyWarp auto warp, Operation& op,
                                                   Inode& directory, uint32_t depth,
                                                   const Adding& how) {
  if (depth > directory.dir_depth) {
    const int error = set_times_and_depth(warp, op, directory, depth);
    if (error == 0) tell_depth(warp, directory, how.growth);
    return error;
  }
  if (how.locks == nullptr) {
    return set_times_and_depth(warp, op, directory, directory.dir_depth);
  }
  uint32_t& lock = how.locks->times;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  for (simt::Backoff backoff;;) {
    // Who looks has the page pinned, and keeps the one waiting who sets them.
    if (!warp.any(simt::load_relaxed(lock) != 0)) {
      const int noted = is_noted(warp, op.volume, directory, op.now);
      if (noted != 0) return simt::min(noted, 0);
      if (simt::try_lock_for_warp(warp, lock)) {
        const int error = set_shared_times(warp, op, directory);
        simt::release_lock(warp, lock);
        return error;
      }
    }
    if (warp.any(deadline.passed())) return -EBUSY;
    backoff.pause();
  }
}

/// Puts entries into blocks that exist. Collective. Per lane 0, -EAGAIN (the block is full by now),
/// or another negative errno.
GOFS_NOINLINE GOFS_HD inline int add_to_blocks(simt::AnyWarp auto warp, Operation& op,
                                               const Inode& directory, uint32_t lanes,
                                               const NewEntry& mine, const DentrySlots& room) {
  const uint32_t rank = warp.thread_rank();
  const bool filling = (lanes >> rank & 1u) != 0;
  // What has changed since the last checkpoint is kept, with the node that holds its address.
  const bool kept = filling && is_kept(op.volume.cache, directory_key(directory.ino, room.index));
  const uint32_t marking = warp.ballot(filling && !kept);
  int error = marking == 0 ? 0 : mark_holders(warp, op, marking, directory, room.index);
  const uint32_t ready = warp.ballot(filling && error == 0);
  bool full = false;
  const int changed =
      change_directory_blocks(warp, op, ready, directory, room.index, [&](uint8_t* page) {
        const uint32_t slot =
            find_free_slots(block_view(page), format::name_slots(mine.name.length));
        full = slot == kNoSlot;
        if (!full) put_entry(block_space(page), slot, mine.name, mine.entry);
        return !full;
      });
  if (error == 0) error = changed;
  return error == 0 && full ? -EAGAIN : error;
}

/// Finds where the addresses of new blocks stand. Collective, by a caller that holds the growth.
/// Per lane of `lanes` 0, -EAGAIN (the block is there by now) or another negative errno.
GOFS_NOINLINE GOFS_HD inline int place_new_blocks(simt::AnyWarp auto warp, Operation& op,
                                                  const Inode& directory, uint32_t lanes,
                                                  uint64_t index, AddressPlace& at) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool there =
      mine && find_frame(op.volume.cache, directory_key(directory.ino, index)) != kNoFrame;
  const int error = grow_nodes(warp, op, warp.ballot(mine && !there), directory, index, at);
  if (!mine || there) return mine ? -EAGAIN : 0;
  if (error < 0 || at.address == format::kNullAddr || at.address == format::kNewAddr) return error;
  if (index < directory.size_blocks()) return -EAGAIN;
  return report(*op.volume.corruptions, {Structure::kDirectory, at.address, directory.ino, index});
}

/// Counts a block for each lane in `lanes`, or as many as there are. Collective. Per lane whether
/// it has one.
GOFS_HD inline bool count_directory_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes) {
  const uint32_t count = simt::popcount(lanes);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  if (count == 0) return false;
  if (warp.any(warp.thread_rank() == 0 && count_blocks(op, count))) return mine;
  return mine && count > 1 && count_blocks(op, 1);
}

/// Adds to the inode of a directory what its new blocks change there, and to `directory`.
/// Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int enlarge_directory(simt::AnyWarp auto warp, Operation& op,
                                                   Inode& directory, int64_t blocks,
                                                   uint64_t size_bytes, uint32_t depth) {
  uint64_t block_count = 0;
  uint64_t size = 0;
  uint32_t levels = 0;
  const int error = change_inode(warp, op, directory.ino, [&](format::Inode& inode) {
    inode.i_blocks = inode.i_blocks + static_cast<uint64_t>(blocks);
    if (inode.i_size < size_bytes) inode.i_size = size_bytes;
    if (inode.i_current_depth < depth) inode.i_current_depth = depth;
    renew_times(inode, op.now);
    block_count = inode.i_blocks;
    size = inode.i_size;
    levels = inode.i_current_depth;
  });
  if (error < 0) return error;
  directory.block_count = warp.shfl(block_count, 0);
  directory.size_bytes = warp.shfl(size, 0);
  directory.dir_depth = warp.shfl(levels, 0);
  note_modified(directory, op.now);
  return 0;
}

/// Makes blocks whose places were found, each with an entry, if it has a name. Collective, by a
/// caller that holds the growth. Per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int make_blocks(simt::AnyWarp auto warp, Operation& op,
                                             Inode& directory, uint32_t lanes, const NewEntry& mine,
                                             const DentrySlots& room, const AddressPlace& at) {
  const uint32_t rank = warp.thread_rank();
  // A block may be reserved already, and is counted then.
  const uint32_t uncounted =
      warp.ballot((lanes >> rank & 1u) != 0 && at.address == format::kNullAddr);
  const uint32_t counted = warp.ballot(count_directory_blocks(warp, op, uncounted));
  int result = ((uncounted & ~counted) >> rank & 1u) != 0 ? -ENOSPC : 0;
  const uint32_t making = lanes & (~uncounted | counted);
  const uint32_t levels = levels_of(warp, making, room);
  uint64_t blocks = 0;  // the directory shall have at least
  for (uint32_t left = making; left != 0; left &= left - 1) {
    blocks = simt::max(blocks, warp.shfl(room.index, simt::lowest_bit(left)) + 1);
  }
  if (making == 0) return result;
  // The inode first: it stays in memory then, and to set it right again does not need the disk.
  const int enlarged =
      enlarge_directory(warp, op, directory, simt::popcount(counted), blocks * kBlockBytes, levels);
  const int made =
      enlarged < 0
          ? enlarged
          : make_directory_pages(warp, op, making, at.nid, directory.ino, room.index,
                                 [&](format::NodeBlock& holder, uint8_t* page) {
                                   if (mine.name.length != 0) {
                                     put_entry(block_space(page), 0, mine.name, mine.entry);
                                   }
                                   format::store_u32(reinterpret_cast<uint32_t*>(&holder) + at.word,
                                                     format::kNewAddr);
                                 });
  if ((making >> rank & 1u) != 0) result = made;
  const uint32_t unmade = simt::popcount(warp.ballot(made < 0) & counted);
  if (unmade != 0 && rank == 0) {
    uncount_blocks(op.volume, unmade);
  }
  if (unmade != 0 && enlarged == 0) {
    (void)enlarge_directory(warp, op, directory, -int64_t{unmade}, 0, 0);
  }
  return result;
}

/// Puts entries into blocks that are made for them. Collective. Per lane of `lanes` 0, -EAGAIN (the
/// block is there by now), or another negative errno.
GOFS_NOINLINE GOFS_HD inline int add_to_new_blocks(simt::AnyWarp auto warp, Operation& op,
                                                   Inode& directory, uint32_t lanes,
                                                   const NewEntry& mine, const DentrySlots& room,
                                                   const Adding& how) {
  const uint32_t rank = warp.thread_rank();
  const bool wanted = (lanes >> rank & 1u) != 0;
  // Where others have made them all meanwhile, nothing is to be waited for.
  const auto all_there = [&] {
    const bool there =
        wanted && find_frame(op.volume.cache, directory_key(directory.ino, room.index)) != kNoFrame;
    return warp.all(there == wanted);
  };
  int error = lock_growth(warp, how.locks, all_there);
  if (error < 0) return wanted ? error : 0;
  error = catch_up(warp, op.volume, directory, how);
  const uint64_t key = wanted ? directory_key(directory.ino, room.index) : uint64_t{rank};
  const uint32_t maker = simt::lowest_bit(warp.match_any(key));
  const bool makes = wanted && maker == rank && error == 0;
  int result = wanted && error == 0 ? -EAGAIN : error;
  AddressPlace at{};
  const int placed = place_new_blocks(warp, op, directory, warp.ballot(makes), room.index, at);
  if (makes) result = placed;
  const uint32_t making = warp.ballot(makes && placed == 0);
  if (making != 0) {
    const int made = make_blocks(warp, op, directory, making, mine, room, at);
    if ((making >> rank & 1u) != 0) result = made;
    tell_depth(warp, directory, how.growth);
  }
  unlock_growth(warp, how.locks);
  return wanted ? result : 0;
}

}  // namespace detail

/// Adds the entry of each lane in `lanes`, in up to pages_to_add_entries() pages. `directory` is
/// brought up to date. Room is looked for unless the lanes have found some, all of them.
/// Collective. Per lane 0 or a negative errno, without an entry: -EEXIST; -EAGAIN (it takes more
/// than how.levels); -ENOSPC (of the volume, or no hash level is left), -EFBIG, -EBUSY,
/// -EUCLEAN, what the device says.
GOFS_NOINLINE GOFS_HD inline int add_entries(simt::AnyWarp auto warp, Operation& op,
                                             Inode& directory, uint32_t lanes, const NewEntry& mine,
                                             Adding& how, DentrySlots room = {}) {
  const uint32_t rank = warp.thread_rank();
  int result = 0;
  bool wanted = (lanes >> rank & 1u) != 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  for (bool first = true;; first = false) {
    const uint32_t left = warp.ballot(wanted);
    if (left == 0) return result;
    if (!first && warp.any(deadline.passed())) return wanted ? -EBUSY : result;
    int error = catch_up(warp, op.volume, directory, how);
    if (error < 0) return wanted ? error : result;
    if (directory.has_inline_dentries()) {
      const int added = detail::add_while_inline(warp, op, directory, left, mine, how);
      if (wanted && added != -EAGAIN) {
        result = added;
        wanted = false;
      }
      continue;
    }
    if (first && !room.found && how.levels.named_end == 0) {
      room = guess_dentry_slots(op.volume, directory, mine, how.levels);
    }
    // The whole warp looks, if one of them has to.
    if (!first || warp.any(wanted && !room.found)) {
      const int found = find_dentry_slots(warp, op.volume, directory, left, mine, how.levels, room);
      if (wanted && found < 0) {
        result = found;
        wanted = false;
      }
      if (!warp.any(wanted)) return result;
    }
    how.levels.named_end = 0;  // their names were looked for, and no other thread enters them
    const bool filling = wanted && !room.is_hole;
    const uint32_t depth = detail::levels_of(warp, warp.ballot(filling), room);
    error = detail::note_entry_change(warp, op, directory, depth, how);
    if (error < 0) return wanted ? error : result;
    const uint32_t to_blocks = warp.ballot(filling);
    const uint32_t to_holes = warp.ballot(wanted && room.is_hole);
    int added = 0;
    if (to_blocks != 0) {
      added = detail::add_to_blocks(warp, op, directory, to_blocks, mine, room);
    }
    if (to_holes != 0) {
      const int made = detail::add_to_new_blocks(warp, op, directory, to_holes, mine, room, how);
      if (wanted && room.is_hole) added = made;
    }
    if (wanted && added != -EAGAIN) {
      result = added;
      wanted = false;
    }
  }
}

/// The way of one entry into its directory.
struct EntryWay {
  DentrySlots room;  // that find_free_name() has found
  uint32_t levels;   // that pages_to_add_entry() is for, or levels_to_reach(); 0: this directory's
  uint32_t spread;   // levels over which entries are spread, which those levels are for, too
  DirectoryLocks* locks;  // Adding::locks
};

/// Adds one entry. Changes up to pages_to_add_entry() pages. Collective, uniform. 0 or a negative
/// errno, with all names as they were: as add_entries(); a caller that holds the directory
/// exclusively never gets -EAGAIN.
GOFS_NOINLINE GOFS_HD inline int add_entry(simt::AnyWarp auto warp, Operation& op, Inode& directory,
                                           const EntryName& name, const DirectoryEntry& entry,
                                           const EntryWay& way = {}) {
  GOFS_ASSERT(name.length != 0 && name.length <= format::kNameBytesMax);
  const NewEntry mine{name, format::name_hash(name.bytes, name.length), entry};
  const uint32_t levels = way.levels != 0 ? way.levels : levels_to_add(directory);
  Adding how{room_in_levels(levels, way.spread), way.locks, nullptr};
  const int error = add_entries(warp, op, directory, 1u, mine, how, way.room);
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

}  // namespace gofs::f2fs
