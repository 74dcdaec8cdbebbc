// SPDX-License-Identifier: Apache-2.0
//
// The inodes behind the open files: each is there once, however often it is open, so that all who
// have it open share its range lock and its block map.
//
// A table of sets of eight. An inode belongs to the set that its number says, its home, and lies
// there, or behind it when the home is full. The home's lock guards all inodes that belong there; a
// free place anywhere is taken by a compare-and-swap of its `ino` from 0. There are more places
// than descriptors, so one is always found. A home knows how far away the ones are that found it
// full, so that a search looks no further for what is not there.
#pragma once

#include "f2fs/capability_looks.h"
#include "f2fs/dnode_cache.h"
#include "f2fs/write_over.h"
#include "vfs/filesystem.h"

namespace gofs::vfs::detail {

GOFS_HD inline uint32_t home_of(const Filesystem& fs, uint32_t ino) {
  return static_cast<uint32_t>(uint64_t{ino * 0x9E3779B1u} * fs.open_inode_set_count >> 32);
}

/// The `k`-th place from home `home` on, which is not behind the last one by more than there are.
GOFS_HD inline uint32_t place_from(const Filesystem& fs, uint32_t home, uint32_t k) {
  const uint32_t places = fs.open_inode_set_count * kOpenInodeWays;
  const uint32_t index = home * kOpenInodeWays + k;
  return index < places ? index : index - places;
}

/// The place of an inode that belongs to `home`, or -1. Under the home's lock, or where nobody has
/// it.
GOFS_HD inline int find_open_inode(Filesystem& fs, uint32_t home, uint32_t ino) {
  const OpenInodeSet& set = fs.open_inode_sets[home];
  const uint32_t looks =
      simt::load_relaxed(set.elsewhere) == 0 ? kOpenInodeWays : simt::load_relaxed(set.reach);
  for (uint32_t k = 0; k < looks; ++k) {
    const uint32_t index = place_from(fs, home, k);
    if (simt::load_relaxed(fs.open_inodes[index].ino) == ino) return static_cast<int>(index);
  }
  return -1;
}

/// Takes a free place for an inode that belongs to `home`. Under the home's lock. -1 when there is
/// none.
GOFS_HD inline int take_open_inode(Filesystem& fs, uint32_t home, uint32_t ino) {
  const uint32_t places = fs.open_inode_set_count * kOpenInodeWays;
  for (uint32_t k = 0; k < places; ++k) {
    const uint32_t index = place_from(fs, home, k);
    simt::AtomicRef<uint32_t> place(fs.open_inodes[index].ino);
    uint32_t free = 0;
    if (place.load(simt::memory_order_relaxed) != 0) continue;
    if (!place.compare_exchange_strong(free, ino, simt::memory_order_acquire,
                                       simt::memory_order_relaxed)) {  // [V4]
      continue;
    }
    if (k >= kOpenInodeWays) {
      OpenInodeSet& set = fs.open_inode_sets[home];
      simt::store_relaxed(set.reach, set.elsewhere == 0 ? k + 1 : simt::max(set.reach, k + 1));
      simt::store_relaxed(set.elsewhere, set.elsewhere + 1);
    }
    return static_cast<int>(index);
  }
  return -1;
}

/// What a set's `closings` were before an inode of it was loaded.
struct SeenClosings {
  bool known;
  uint32_t count;
};

/// The word of block `index` in a file's map, or null, at the first sight of a file that is not
/// locked yet: it stays where it is as long as the file is open.
GOFS_HD inline const uint32_t* probe_block_word(const Filesystem& fs, const OpenInode& open,
                                                uint64_t index) {
  const bool within = index < f2fs::detail::kMapBlocksMax;
  const uint32_t segment = f2fs::detail::block_segment(within ? index : 0);
  const uint32_t* const words = simt::load_here(fs.volume.maps.words);
  const uint32_t home = simt::load_before_look(open.maps.blocks[segment]);  // [F3]
  if (!within || !f2fs::MapArena::is_home(home)) return nullptr;
  return words + uint64_t{home - 1} * f2fs::MapArena::kUnitWords +
         (index - f2fs::detail::first_of_block_segment(segment));
}

/// Whether a file may keep maps of blocks that it has now.
GOFS_HD inline bool has_block_map(const f2fs::Inode& inode) {
  return inode.is_regular() && !inode.has_inline_data();
}

/// Finds or makes the open inode of `inode.ino` and counts a reference. By one lane. Index,
/// -ENFILE, or -EAGAIN, and then `seen` is known: the inode is not open, and who had it open last
/// may have changed it since `inode` was loaded, which is to be done again. Without `seen` it is as
/// it was.
GOFS_HD inline int acquire_open_inode(Filesystem& fs, const f2fs::Inode& inode,
                                      SeenClosings* seen = nullptr) {
  const uint32_t home = home_of(fs, inode.ino);
  OpenInodeSet& set = fs.open_inode_sets[home];
  lock_table(set.lock);
  int index = find_open_inode(fs, home, inode.ino);
  if (index >= 0) {
    ++fs.open_inodes[index].references;
  } else if (seen != nullptr && !(seen->known && seen->count == set.closings)) {
    *seen = {true, set.closings};
    index = -EAGAIN;
  } else if ((index = take_open_inode(fs, home, inode.ino)) >= 0) {
    OpenInode& open = fs.open_inodes[index];
    open.references = 1;
    open.removed = 0;
    open.records = 0;
    open.inode = inode;
    open.lock.rings = fs.range_rings;
    open.maps = f2fs::FileMaps{};
    open.inode.maps = inode.is_regular() ? &open.maps : nullptr;
    if (has_block_map(inode)) {
      f2fs::open_block_map(fs.volume, open.maps, inode.size_blocks());
    }
  }
  simt::unlock(set.lock);
  return index >= 0 || index == -EAGAIN ? index : -ENFILE;
}

/// Counts one more reference to an inode that the caller knows to be open. By one lane.
GOFS_HD inline void share_open_inode(Filesystem& fs, uint32_t index) {
  OpenInode& open = fs.open_inodes[index];
  OpenInodeSet& set = fs.open_inode_sets[home_of(fs, simt::load_relaxed(open.ino))];
  lock_table(set.lock);
  ++open.references;
  simt::unlock(set.lock);
}

/// Counts one more reference to the inode `ino` of this generation, if it is open. By one lane.
/// Index, or -ESTALE.
GOFS_HD inline int acquire_if_open(Filesystem& fs, uint32_t ino, uint32_t generation) {
  const uint32_t home = home_of(fs, ino);
  uint32_t& lock = fs.open_inode_sets[home].lock;
  lock_table(lock);
  int index = find_open_inode(fs, home, ino);
  if (index >= 0 && fs.open_inodes[index].inode.generation != generation) index = -1;
  if (index >= 0) ++fs.open_inodes[index].references;
  simt::unlock(lock);
  return index >= 0 ? index : -ESTALE;
}

/// The times of `ino`, which may be open, have been set to something, or it has been given set-ID
/// bits: the next write sets the times again, even if one did so in the same moment before, and
/// looks again for bits to clear. By one lane.
GOFS_HD inline void invalidate_times_set(Filesystem& fs, uint32_t ino) {
  const uint32_t home = home_of(fs, ino);
  uint32_t& lock = fs.open_inode_sets[home].lock;
  lock_table(lock);
  const int index = find_open_inode(fs, home, ino);
  if (index >= 0) {
    f2fs::Inode& inode = fs.open_inodes[index].inode;
    f2fs::capability_may_be_there(inode);
    simt::store_relaxed(inode.times_set_ns, int64_t{0});
  }
  simt::unlock(lock);
}

/// Whether the file `ino`, which need not be open, has block writers. Who opens it afterwards sees
/// what the caller has done before. One lane.
GOFS_HD inline bool has_block_writers(Filesystem& fs, uint32_t ino) {
  const uint32_t home = home_of(fs, ino);
  // Changed, though by nothing, so that it is one after the other with who opens files. [V15]
  const uint32_t changing = simt::AtomicRef<uint32_t>(fs.open_inode_sets[home].lock)
                                .fetch_add(0, simt::memory_order_acq_rel);
  if (changing != 0) return true;  // perhaps
  const int index = find_open_inode(fs, home, ino);
  return index >= 0 && vfs::has_block_writers(fs.open_inodes[index].lock);
}

/// Waits until no thread writes over blocks of the file `ino` of a lane in `lanes` that does not
/// know of the address readers: those that have read addresses before, and read without a lock,
/// find no block half written. Collective; uniform answer: 0, or -ETIMEDOUT after the time for
/// locks.
GOFS_NOINLINE GOFS_HD inline int wait_for_overwriters(simt::AnyWarp auto warp, Filesystem& fs,
                                                      uint32_t lanes, uint32_t ino) {
  if (fs.writer == nullptr || fs.writer->writes_over == 0) return 0;
  const bool leader = warp.thread_rank() == 0;
  uint32_t& awaited = fs.writer->cleaning.overwriters_awaited;
  if (leader) simt::add_relaxed(awaited, 1u);
  warp.sync();
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  int error = 0;
  for (bool waiting = (lanes >> warp.thread_rank() & 1u) != 0; error == 0;) {
    waiting = waiting && has_block_writers(fs, ino);
    if (!warp.any(waiting)) break;
    if (warp.any(deadline.passed())) error = -ETIMEDOUT;
    backoff.pause();
  }
  if (leader) simt::add_relaxed(awaited, ~0u);
  return error;
}

/// Has a file that has become longer keep a map of all its blocks from now on, if there is room for
/// it: who writes would only have one of what he writes. By one lane.
GOFS_HD inline void extend_map(Filesystem& fs, f2fs::Inode& inode) {
  if (has_block_map(inode)) f2fs::extend_block_map(fs.volume, *inode.maps, inode.size_blocks());
}

/// What the last reference to an inode leaves behind.
struct Released {
  f2fs::MapMemory maps;
  uint32_t removed_ino;  // to be freed; 0: it has names
};

/// Gives a reference back; what the last one leaves is the caller's. By one lane.
GOFS_HD inline Released release_open_inode(Filesystem& fs, uint32_t index) {
  Released released{};
  OpenInode& open = fs.open_inodes[index];
  // The reference keeps the place from being given to another.
  const uint32_t home = home_of(fs, simt::load_relaxed(open.ino));
  OpenInodeSet& set = fs.open_inode_sets[home];
  lock_table(set.lock);
  if (--open.references == 0) {
    ++set.closings;
    released.maps = f2fs::memory_of_maps(open.maps);
    if (open.removed != 0) released.removed_ino = open.inode.ino;
    release_records(fs.records, index, open.records);
    if (index / kOpenInodeWays != home) simt::store_relaxed(set.elsewhere, set.elsewhere - 1);
    simt::store_release(open.ino, 0u);  // [V4]
  }
  simt::unlock(set.lock);
  return released;
}

}  // namespace gofs::vfs::detail
