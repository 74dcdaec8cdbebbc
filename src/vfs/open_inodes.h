// SPDX-License-Identifier: Apache-2.0
//
// The inodes behind the open files: each is there once, however often it is open, so that all who
// have it open share its range lock and its block map.
//
// A table of sets of eight. An inode belongs to the set that its number says, its home, and lies
// there, or behind it when the home is full. The home's lock guards all inodes that belong there; a
// free place anywhere is taken by a compare-and-swap of its `ino` from 0. There are more places
// than descriptors, so one is always found. A home knows how far away the ones are that found it
// full, so nobody looks further for what is not there.
#pragma once

#include "f2fs/leaf_map.h"
#include "f2fs/write_over.h"
#include "vfs/filesystem.h"

namespace gofs::vfs::detail {

GOFS_HD inline uint32_t home_of(const Filesystem& fs, uint32_t ino) {
  return (ino * 0x9E3779B1u >> 8) & fs.open_inode_set_mask;
}

/// The place of an inode that belongs to `home`, or -1. Under the home's lock.
GOFS_HD inline int find_open_inode(Filesystem& fs, uint32_t home, uint32_t ino) {
  const uint32_t places = (fs.open_inode_set_mask + 1) * kOpenInodeWays;
  const OpenInodeSet& set = fs.open_inode_sets[home];
  const uint32_t looks = set.elsewhere == 0 ? kOpenInodeWays : set.reach;
  for (uint32_t k = 0; k < looks; ++k) {
    const uint32_t index = (home * kOpenInodeWays + k) & (places - 1);
    if (simt::load_relaxed(fs.open_inodes[index].ino) == ino) return static_cast<int>(index);
  }
  return -1;
}

/// Takes a free place for an inode that belongs to `home`. Under the home's lock. -1 when there is
/// none.
GOFS_HD inline int take_open_inode(Filesystem& fs, uint32_t home, uint32_t ino) {
  const uint32_t places = (fs.open_inode_set_mask + 1) * kOpenInodeWays;
  for (uint32_t k = 0; k < places; ++k) {
    const uint32_t index = (home * kOpenInodeWays + k) & (places - 1);
    simt::AtomicRef<uint32_t> place(fs.open_inodes[index].ino);
    uint32_t free = 0;
    if (place.load(simt::memory_order_relaxed) != 0) continue;
    if (!place.compare_exchange_strong(free, ino, simt::memory_order_acquire,
                                       simt::memory_order_relaxed)) {  // [V4]
      continue;
    }
    if (k >= kOpenInodeWays) {
      OpenInodeSet& set = fs.open_inode_sets[home];
      set.reach = set.elsewhere++ == 0 ? k + 1 : simt::max(set.reach, k + 1);
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

/// Memory for the maps of a file of `blocks` blocks; null where it has no use for them, or there is
/// none. By one lane.
GOFS_HD inline uint32_t* allocate_maps(Filesystem& fs, const f2fs::Inode& inode, uint64_t blocks) {
  // A file that claims more blocks than the volume has is mostly holes: clearing a map of that size
  // would cost more than it gains.
  const format::Geometry& geometry = fs.volume.geometry;
  if (!inode.is_regular() || inode.has_inline_data() ||
      blocks > geometry.main_end() - geometry.main_blkaddr) {
    return nullptr;
  }
  return fs.maps.allocate(f2fs::map_words(blocks, inode.slot_count));
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
    open.inode = inode;
    open.lock.rings = fs.range_rings;
    const uint64_t blocks = inode.size_blocks();
    f2fs::set_maps(open.inode, allocate_maps(fs, inode, blocks), blocks);
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

/// The times of `ino`, which may be open, have been set to something, or it has been given powers:
/// who writes to it sets the times again, even if he did so in the same moment before, and looks
/// again what there is to be taken from it. By one lane.
GOFS_HD inline void forget_noted(Filesystem& fs, uint32_t ino) {
  const uint32_t home = home_of(fs, ino);
  uint32_t& lock = fs.open_inode_sets[home].lock;
  lock_table(lock);
  const int index = find_open_inode(fs, home, ino);
  if (index >= 0) {
    f2fs::Inode& inode = fs.open_inodes[index].inode;
    simt::store_release(inode.no_capability, 0u);  // [V18]
    simt::store_relaxed(inode.noted_ns, int64_t{0});
  }
  simt::unlock(lock);
}

/// Whether somebody writes blocks outside the ring of the file `ino`, which need not be open. Who
/// opens it afterwards sees what the caller has done before. One lane.
GOFS_HD inline bool has_block_writers(Filesystem& fs, uint32_t ino) {
  const uint32_t home = home_of(fs, ino);
  // Changed, though by nothing, so that it is one after the other with who opens files. [V15]
  const uint32_t changing = simt::AtomicRef<uint32_t>(fs.open_inode_sets[home].lock)
                                .fetch_add(0, simt::memory_order_acq_rel);
  if (changing != 0) return true;  // perhaps
  const int index = find_open_inode(fs, home, ino);
  return index >= 0 && vfs::has_block_writers(fs.open_inodes[index].lock);
}

/// Waits until nobody writes over blocks of the file `ino` of a lane in `lanes` who does not know
/// that places are held: who holds some since before, and reads without a lock, finds no block half
/// written. Collective; uniform answer: 0, or -ETIMEDOUT after the time for locks.
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

/// Gives memory of maps back. Collective, uniform; nobody looks at it any more.
GOFS_HD inline void release_maps(simt::AnyWarp auto warp, Filesystem& fs, uint32_t* words,
                                 uint64_t count) {
  warp.sync();
  simt::zero_bytes(warp, words, count * sizeof(uint32_t));
  warp.sync();
  if (warp.thread_rank() == 0) fs.maps.release(words, count);
}

/// Has a file that was empty when it was opened, or in its inode, and has become longer, keep maps
/// from now on, if there is room for them. By one lane of who has the whole file for himself. They
/// stay as long as the file is open: pread_async looks at them without a lock.
GOFS_HD inline void begin_maps(Filesystem& fs, f2fs::Inode& inode) {
  if (inode.block_map != nullptr) return;
  const uint64_t blocks = inode.size_blocks();
  f2fs::set_maps(inode, allocate_maps(fs, inode, blocks), blocks);
}

/// What the last reference to an inode leaves behind.
struct Released {
  uint64_t words;  // of its maps, address
  uint64_t count;
  uint32_t removed_ino;  // to be freed; 0: it has names
};

/// Gives a reference back; what the last one leaves is the caller's. By one lane.
GOFS_HD inline Released release_open_inode(Filesystem& fs, uint32_t index) {
  Released released{0, 0, 0};
  OpenInode& open = fs.open_inodes[index];
  // The reference keeps the place from being given to another.
  const uint32_t home = home_of(fs, simt::load_relaxed(open.ino));
  OpenInodeSet& set = fs.open_inode_sets[home];
  lock_table(set.lock);
  if (--open.references == 0) {
    ++set.closings;
    released.words = reinterpret_cast<uint64_t>(open.inode.block_map);
    released.count = f2fs::words_of_maps(open.inode);
    if (open.removed != 0) released.removed_ino = open.inode.ino;
    if (index / kOpenInodeWays != home) --set.elsewhere;
    simt::store_release(open.ino, 0u);  // [V4]
  }
  simt::unlock(set.lock);
  return released;
}

}  // namespace gofs::vfs::detail
