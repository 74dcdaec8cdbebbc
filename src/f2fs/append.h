// SPDX-License-Identifier: Apache-2.0
//
// Appending whole blocks to a file whose nodes are at hand: what store_blocks.h does step by step,
// for the case that nothing stands in the way. The nodes with its last addresses and its inode are
// in memory and newer than the disk, so no room is taken for them; its times have the seconds of
// now, so only words change; and the processor's open segment has the blocks. It waits for the
// device alone, and where it finds something else it leaves all as it was.
//
// A GPU waits as long for one word of memory as for many that are asked for together, so what can
// be known beforehand is looked at before anything is locked, and once more after that.
#pragma once

#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

/// Blocks behind the end of a file, and the nodes that change with them.
struct AppendSight {
  uint64_t size_bytes;  // of the file: whole blocks, and more than fit in an inode
  Leaf leaf;            // with their addresses
  uint32_t slot;        // of the first one there
  uint32_t leaf_frame;
  uint32_t inode_frame;

  GOFS_HD uint64_t first_block() const { return size_bytes >> kBlockShift; }
};

namespace detail {

/// The leaf as it is known now, without a lock.
GOFS_HD inline Leaf look_at_leaf(const Inode& inode, uint64_t index) {
  const uint32_t* const map = simt::load_acquire(inode.block_map);  // [F3]
  return leaf_at(inode, map != nullptr && index < inode.block_map_blocks, index);
}

/// Pins both nodes of `sight`, where they are what they were and nobody wants them for himself. One
/// lane.
GOFS_HD inline bool pin_nodes(const PageCache& cache, const Inode& inode,
                              const AppendSight& sight) {
  if (!pin_frame(cache, sight.leaf_frame, page_key(PageKind::kNode, sight.leaf.nid))) return false;
  if (sight.inode_frame == sight.leaf_frame ||
      pin_frame(cache, sight.inode_frame, page_key(PageKind::kNode, inode.ino))) {
    return true;
  }
  unpin(cache, sight.leaf_frame);
  return false;
}

/// What pin_nodes() has pinned. One lane.
GOFS_HD inline void unpin_nodes(const simt::Release& release, const PageCache& cache,
                                const AppendSight& sight) {
  release.add(cache.state(sight.leaf_frame), ~0u);
  if (sight.inode_frame != sight.leaf_frame) release.add(cache.state(sight.inode_frame), ~0u);
}

/// Whether only words of an inode change when its file grows by whole blocks. By who has it pinned.
GOFS_HD inline bool grows_in_words(const format::Inode& raw, const TimeStamp& now,
                                   bool keeps_powers) {
  return raw.i_ext.len == 0 && has_seconds_of(raw, now) && (keeps_powers || !gives_powers(raw));
}

}  // namespace detail

/// Looks whether a file can be appended to like this, by `count` blocks. Any lane; without a lock,
/// what it finds is to be checked by still_stands().
GOFS_HD inline bool sight_append(const Volume& volume, const Writer& writer, const Inode& inode,
                                 uint32_t count, const TimeStamp& now, AppendSight& sight) {
  const int failed = simt::load_here(writer.failed);
  const int64_t modified = simt::load_here(inode.modified.seconds);
  const int64_t changed = simt::load_here(inode.changed.seconds);
  sight.size_bytes = simt::load_here(inode.size_bytes);
  const uint64_t index = sight.first_block();
  sight.leaf = detail::look_at_leaf(inode, index);
  if (failed < 0 || modified != now.seconds || changed != now.seconds || index == 0 ||
      sight.size_bytes % kBlockBytes != 0 || sight.leaf.nid == 0 ||
      log_of_data(inode) != format::kWarmData) {
    return false;
  }
  const uint32_t slots =
      sight.leaf.number == 0 ? uint32_t{inode.slot_count} : uint32_t{format::kNodeSlots};
  sight.slot = static_cast<uint32_t>(index - first_of_leaf(sight.leaf.number, inode.slot_count));
  sight.leaf_frame = find_frame(volume.cache, page_key(PageKind::kNode, sight.leaf.nid));
  sight.inode_frame = sight.leaf.number == 0
                          ? sight.leaf_frame
                          : find_frame(volume.cache, page_key(PageKind::kNode, inode.ino));
  return slots - sight.slot >= count && sight.leaf_frame != kNoFrame &&
         sight.inode_frame != kNoFrame;
}

/// Whether all is as sight_append() has found it. Any lane, inside the gate, by who has the file's
/// end for himself; nobody else changes any of it then but fsync, which enter_appended() meets.
GOFS_HD inline bool still_stands(const Volume& volume, const Inode& inode,
                                 const AppendSight& sight) {
  const uint64_t size = simt::load_here(inode.size_bytes);
  const Leaf leaf = detail::look_at_leaf(inode, sight.first_block());
  return size == sight.size_bytes && leaf.packed() == sight.leaf.packed() &&
         is_kept_in(volume.cache, sight.leaf_frame, page_key(PageKind::kNode, leaf.nid)) &&
         is_kept_in(volume.cache, sight.inode_frame, page_key(PageKind::kNode, inode.ino));
}

namespace detail {

/// Enters the blocks of `lanes`, in order of rank, behind the end of the file, and makes it that
/// much longer. Collective, uniform: false, and nothing is changed, where others have one of the
/// nodes or the times, or more than words would change. `former` is what stood in the place of a
/// lane's address.
GOFS_NOINLINE GOFS_HD inline bool enter_appended(simt::AnyWarp auto warp, Volume& volume,
                                                 uint32_t lanes, Inode& inode,
                                                 const AppendSight& sight, const TimeStamp& now,
                                                 bool keeps_powers, uint32_t block,
                                                 uint32_t& former) {
  PageCache& cache = volume.cache;
  const uint32_t rank = warp.thread_rank();
  const bool leader = rank == 0;
  if (!warp.any(leader && pin_nodes(cache, inode, sight))) return false;
  warp.sync();  // what the leader acquired, all may look at
  auto& holder = *reinterpret_cast<format::NodeBlock*>(cache.page(sight.leaf_frame));
  auto& node = *reinterpret_cast<format::NodeBlock*>(cache.page(sight.inode_frame));
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t number = simt::popcount(lanes & simt::ranks_below(rank));
  const uint32_t slot = sight.slot + (mine ? number : 0);
  uint32_t& word =
      reinterpret_cast<uint32_t*>(&holder)[word_of_slot(inode, sight.leaf.number, slot)];
  former = simt::load_relaxed(word);
  const bool locked = leader && simt::try_lock(inode.updating);
  const bool enters =
      warp.all(belongs_to(holder, inode.ino) && belongs_to(node, inode.ino) &&
               grows_in_words(node.inode, now, keeps_powers) && (locked || !leader));
  if (enters) {
    const uint32_t holes = simt::popcount(warp.ballot(mine && former == format::kNullAddr));
    const uint64_t index = sight.first_block() + number;
    if (mine) simt::store_relaxed(word, block);
    if (mine && inode.block_map != nullptr && index < inode.block_map_blocks) {
      simt::store_relaxed(inode.block_map[index], block);
    }
    if (leader) {
      const uint64_t size = sight.size_bytes + uint64_t{simt::popcount(lanes)} * kBlockBytes;
      count_in_words(node.inode, inode, holes);
      simt::store_relaxed(size_word(node.inode), size);
      (void)set_nanoseconds(node.inode, inode, now);
      mark_dirty(cache, sight.leaf_frame);
      mark_dirty(cache, sight.inode_frame);
      simt::store_relaxed(inode.size_bytes, size);
    }
  }
  warp.sync();
  if (leader) {
    const simt::Release release;
    if (locked) release.store(inode.updating, 0u);
    unpin_nodes(release, cache, sight);
  }
  return enters;
}

/// `count` blocks were counted that are not used after all. Collective.
GOFS_HD inline void uncount_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t count) {
  if (warp.thread_rank() == 0) {
    simt::add_relaxed(volume.valid_block_count, ~uint64_t{count} + 1);
  }
}

}  // namespace detail

/// Appends the block at `source` of each lane in `lanes`, in order of rank; `source` is one that a
/// device can take it from (goes_in_place()). Collective, inside the gate, by who has the file's
/// end for himself, after still_stands(); `inode` is one object for all lanes, whose powers, if it
/// has some (gives_powers()), stay only if it `keeps_powers`. Uniform: whether it is done; if not,
/// the file is as it was. Durable after the next checkpoint.
GOFS_NOINLINE GOFS_HD inline bool append_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                Writer& writer, uint32_t lanes, Inode& inode,
                                                const AppendSight& sight, const uint8_t* source,
                                                const TimeStamp& now, bool keeps_powers) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t count = simt::popcount(lanes);
  if (!warp.any(rank == 0 && detail::count_blocks(volume, count))) return false;
  format::SummaryEntry summary{};
  summary.nid = sight.leaf.nid;
  summary.version = sight.leaf.version;
  summary.ofs_in_node =
      static_cast<uint16_t>(sight.slot + simt::popcount(lanes & simt::ranks_below(rank)));
  uint32_t block = 0;
  const uint32_t taken = detail::take_own_blocks(warp, volume, writer, lanes, summary, block);
  bool done = taken == lanes;
  if (done) {
    const nvme::Route route = nvme::pick_route(volume.array);
    const int written = detail::move_in_place(warp, route, lanes, format::nvme::IoOpcode::kWrite,
                                              {block, 0, kBlockBytes, const_cast<uint8_t*>(source)},
                                              nullptr);  // which is only read
    done = warp.all((lanes >> rank & 1u) == 0 || written == 0);
  }
  uint32_t former = format::kNullAddr;
  done = done && detail::enter_appended(warp, volume, lanes, inode, sight, now, keeps_powers, block,
                                        former);
  if (!done) {
    free_blocks(warp, volume, writer, taken, block);
    detail::uncount_blocks(warp, volume, count);
    return false;
  }
  // Places that were reserved, or had a block behind the end, were counted already.
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t counted = warp.ballot(mine && former != format::kNullAddr);
  if (counted == 0) return true;
  detail::uncount_blocks(warp, volume, simt::popcount(counted));
  free_blocks(warp, volume, writer, warp.ballot(mine && volume.is_main_block(former)), former);
  return true;
}

}  // namespace gofs::f2fs
