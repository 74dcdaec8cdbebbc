// SPDX-License-Identifier: Apache-2.0
//
// Appending whole blocks to a file whose nodes are at hand: what store_blocks.h does step by step,
// for the case that nothing stands in the way. The nodes with its last addresses and its inode are
// in memory and newer than the disk, so no room is taken for them; its times have the seconds of
// now, so only words change; and the processor's open segment has the blocks. It waits for the
// device alone, and where it finds something else it leaves all as it was.
//
// A GPU waits as long for one word of memory as for many that are asked for together, so what can
// be known beforehand is looked at before anything is locked, and once more after that:
//
//   look_at_end, sight_append   the file's end, and the frames of its nodes
//   still_stands                whether they are what they were, by who has the end for himself
//   append_blocks               blocks, their contents, and what says where they are
//   let_nodes_go                beside all else that the caller gives back
#pragma once

#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

/// Words of an open inode, and of the writer, that say whether the file can be appended to like
/// this.
struct EndLook {
  uint32_t ino;
  uint32_t slot_count;
  format::Log log;
  int failed;
  uint32_t no_capability;
  int64_t modified_seconds;
  int64_t changed_seconds;
  uint64_t size_bytes;
  uint64_t last_leaf;
  uint64_t mapped_blocks;
  const uint64_t* leaf_map;
};

/// Blocks behind the end of a file, and the nodes that change with them. The nodes are numbered: 0
/// has the addresses, 1 is the inode, where that is another.
struct AppendSight {
  uint64_t size_bytes;        // of the file: whole blocks, and more than fit in an inode
  Leaf leaf;                  // with their addresses
  const uint64_t* leaf_word;  // which says so
  uint32_t slot;              // of the first one there
  uint32_t nodes;             // 1 or 2
  uint32_t nids[2];
  uint32_t frames[2];

  GOFS_HD uint64_t first_block() const { return size_bytes >> kBlockShift; }
  GOFS_HD uint64_t key(uint32_t node) const {
    return page_key(PageKind::kNode, node == 0 ? nids[0] : nids[1]);
  }
  GOFS_HD uint32_t frame(uint32_t node) const { return node == 0 ? frames[0] : frames[1]; }
};

/// What an append has of its nodes when it is done.
struct NodesHold {
  uint32_t pinned;  // a bit for each
  bool updating;    // the inode's lock of its times
};

/// The first look. Any lane, without a lock.
GOFS_HD inline EndLook look_at_end(const Writer& writer, const Inode& inode) {
  return {inode.ino,
          inode.slot_count,
          log_of_data(inode),
          simt::load_here(writer.failed),
          simt::load_here(inode.no_capability),
          simt::load_here(inode.modified.seconds),
          simt::load_here(inode.changed.seconds),
          simt::load_here(inode.size_bytes),
          simt::load_here(inode.last_leaf),
          simt::load_here(inode.block_map_blocks),
          simt::load_here(inode.leaf_map)};
}

/// Finds the place of `count` blocks behind the end, which is to be checked by still_stands().
/// Collective; per lane whether it has.
GOFS_HD inline bool sight_append(simt::AnyWarp auto warp, const Volume& volume, const Inode& inode,
                                 const EndLook& look, uint32_t count, const TimeStamp& now,
                                 AppendSight& sight) {
  sight.size_bytes = look.size_bytes;
  const uint64_t index = sight.first_block();
  const uint64_t number = leaf_number(index, look.slot_count);
  const bool mapped = look.leaf_map != nullptr && index < look.mapped_blocks;
  sight.leaf_word = mapped ? look.leaf_map + number : &inode.last_leaf;
  sight.leaf = Leaf::unpacked(mapped ? simt::load_here(*sight.leaf_word) : look.last_leaf);
  sight.slot = static_cast<uint32_t>(index - first_of_leaf(number, look.slot_count));
  sight.nodes = number == 0 ? 1 : 2;
  sight.nids[0] = sight.leaf.nid;
  sight.nids[1] = look.ino;
  // Two lanes look for two frames.
  const uint32_t frame = find_frame(volume.cache, sight.key(warp.thread_rank() & 1));
  sight.frames[0] = warp.shfl(frame, 0);
  sight.frames[1] = warp.size() == 1 ? find_frame(volume.cache, sight.key(1)) : warp.shfl(frame, 1);
  const uint32_t slots = number == 0 ? look.slot_count : uint32_t{format::kNodeSlots};
  const bool fits = look.size_bytes + uint64_t{count} * kBlockBytes <= kFileBytesMax;
  return look.failed == 0 && look.no_capability != 0 && fits &&
         look.modified_seconds == now.seconds && look.changed_seconds == now.seconds &&
         look.log == format::kWarmData && index != 0 && look.size_bytes % kBlockBytes == 0 &&
         sight.leaf.nid != 0 && sight.leaf.number == number && slots - sight.slot >= count &&
         sight.frames[0] != kNoFrame && sight.frames[1] != kNoFrame;
}

namespace detail {

/// States of the frames that both nodes have.
GOFS_HD inline uint32_t shared_state(const PageCache& cache, const AppendSight& sight) {
  const uint32_t state0 = simt::load_here(cache.state(sight.frames[0]));
  const uint32_t state1 = simt::load_here(cache.state(sight.frames[1]));
  return state0 & state1;
}
/// Whether both are newer than the disk with more than times.
GOFS_HD constexpr bool are_newer(uint32_t shared_state) {
  constexpr uint32_t kNewer = kFrameDirty | kFrameUrgent;
  return (shared_state & kNewer) == kNewer;
}

}  // namespace detail

/// Whether all is as sight_append() has found it, and the nodes are newer than the disk, as they
/// are after no checkpoint, one that failed included. Any lane, inside the gate, by who has the
/// file's end for himself; nobody else changes any of it then but fsync, which append_blocks()
/// meets.
GOFS_HD inline bool still_stands(const Volume& volume, const Inode& inode,
                                 const AppendSight& sight) {
  const PageCache& cache = volume.cache;
  const uint64_t size = simt::load_here(inode.size_bytes);
  const uint64_t leaf = simt::load_here(*sight.leaf_word);
  const uint64_t key0 = simt::load_here(cache.key(sight.frames[0]));
  const uint64_t key1 = simt::load_here(cache.key(sight.frames[1]));
  const uint32_t state = detail::shared_state(cache, sight);
  return size == sight.size_bytes && leaf == sight.leaf.packed() && key0 == sight.key(0) &&
         key1 == sight.key(1) && detail::are_newer(state);
}

/// Gives back what append_blocks() has left in the caller's hands. One lane; what the warp has
/// written before `release` is seen by who has them next.
GOFS_HD inline void let_nodes_go(const simt::Release& release, const Volume& volume, Inode& inode,
                                 const AppendSight& sight, const NodesHold& hold) {
  if (hold.updating) release.store(inode.updating, 0u);
  for (uint32_t node = 0; node < 2; ++node) {
    if ((hold.pinned >> node & 1u) != 0) release.add(volume.cache.state(sight.frame(node)), ~0u);
  }
}

namespace detail {

/// Pins the nodes, a lane each, as far as they are what they were and nobody wants them for
/// himself: a bit for each. Collective, uniform.
GOFS_HD inline uint32_t pin_nodes(simt::AnyWarp auto warp, const PageCache& cache,
                                  const AppendSight& sight) {
  uint32_t pinned = 0;
  for (uint32_t first = 0; first < sight.nodes; first += warp.size()) {
    const uint32_t node = first + warp.thread_rank();
    const bool has_it = node < sight.nodes && pin_frame(cache, sight.frame(node), sight.key(node));
    pinned |= warp.ballot(has_it) << first;
  }
  warp.sync();  // what one lane acquired, all may look at
  return pinned;
}

/// Says that the nodes, which are pinned, have changed. Collective.
GOFS_HD inline void mark_nodes_dirty(simt::AnyWarp auto warp, PageCache& cache,
                                     const AppendSight& sight) {
  for (uint32_t node = warp.thread_rank(); node < sight.nodes; node += warp.size()) {
    mark_dirty(cache, sight.frame(node));
  }
}

/// What the pinned nodes say, loaded together.
struct NodesSeen {
  uint32_t state;  // shared_state()
  uint32_t owners[2];
  uint32_t hint_length;  // of i_ext, which would be out of date
  TimeStamp modified;
  TimeStamp changed;

  GOFS_HD NodesSeen(const PageCache& cache, const AppendSight& sight,
                    const format::NodeBlock& holder, const format::NodeBlock& node)
      : state(shared_state(cache, sight)),
        owners{format::load_u32(&holder.footer.ino), format::load_u32(&node.footer.ino)},
        hint_length(format::load_u32(&node.inode.i_ext.len)),
        modified(modified_of(node.inode)),
        changed(changed_of(node.inode)) {}

  /// Whether they are the file's, and only words of them change when it grows by whole blocks.
  GOFS_HD bool grow_in_words(uint32_t ino, const TimeStamp& now) const {
    return owners[0] == ino && owners[1] == ino && hint_length == 0 &&
           modified.seconds == now.seconds && changed.seconds == now.seconds;
  }
};

/// Enters the blocks of `lanes`, in order of rank, behind the end of the file, and makes it that
/// much longer. Collective, uniform: false, and nothing is changed, where others have one of the
/// nodes or the times, or more than words would change. `former` is what stood in the place of a
/// lane's address.
GOFS_HD inline bool enter_appended(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                   Inode& inode, const AppendSight& sight, const TimeStamp& now,
                                   bool keeps_powers, uint32_t block, uint32_t& former,
                                   NodesHold& hold) {
  PageCache& cache = volume.cache;
  const uint32_t rank = warp.thread_rank();
  const bool leader = rank == 0;
  hold.updating = leader && simt::try_lock_at_once(inode.updating);
  hold.pinned = pin_nodes(warp, cache, sight);
  if (hold.pinned != (1u << sight.nodes) - 1) return false;
  auto& holder = *reinterpret_cast<format::NodeBlock*>(cache.page(sight.frames[0]));
  auto& node = *reinterpret_cast<format::NodeBlock*>(cache.page(sight.frames[1]));
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t number = simt::popcount(lanes & simt::ranks_below(rank));
  const uint32_t slot = sight.slot + (mine ? number : 0);
  uint32_t& word =
      reinterpret_cast<uint32_t*>(&holder)[word_of_slot(inode, sight.leaf.number, slot)];
  former = simt::load_here(word);
  const NodesSeen seen(cache, sight, holder, node);
  const bool enters = seen.grow_in_words(inode.ino, now) && (hold.updating || !leader) &&
                      (keeps_powers || !gives_powers(node.inode));
  if (!warp.all(enters)) return false;
  const uint32_t holes = simt::popcount(warp.ballot(mine && former == format::kNullAddr));
  const uint64_t index = sight.first_block() + number;
  if (mine) simt::store_relaxed(word, block);
  if (mine && inode.block_map != nullptr && index < inode.block_map_blocks) {
    simt::store_relaxed(inode.block_map[index], block);
  }
  if (!are_newer(seen.state)) mark_nodes_dirty(warp, cache, sight);  // fsync has written one
  if (leader) {
    const uint64_t size = sight.size_bytes + uint64_t{simt::popcount(lanes)} * kBlockBytes;
    simt::store_relaxed(size_word(node.inode), size);
    simt::store_relaxed(inode.size_bytes, size);
    if (!is_modified_since(seen.modified, seen.changed, now)) {
      store_nanoseconds(node.inode, inode, now);
    }
    count_in_words(node.inode, inode, holes);
  }
  return true;
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
/// the file is as it was. In any case lane 0 then gives back what is in `hold` (let_nodes_go).
/// Durable after the next checkpoint.
GOFS_HD inline bool append_blocks(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                  uint32_t lanes, Inode& inode, const AppendSight& sight,
                                  const uint8_t* source, const TimeStamp& now, bool keeps_powers,
                                  NodesHold& hold) {
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
                                        former, hold);
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
