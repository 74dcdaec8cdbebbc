// SPDX-License-Identifier: Apache-2.0
//
// Appending blocks to a file whose nodes are at hand: what store_blocks.h does step by step,
// for the case that nothing stands in the way. The nodes with its last addresses and its inode are
// in memory and newer than the disk, so no room is taken for them; its times have the seconds of
// now, so only words change; and the processor's open segment has the blocks. It waits for the
// device alone, and where it finds something else it leaves all as it was.
//
// A GPU waits as long for one word of memory as for many that are asked for together, so what can
// be known beforehand is looked at before anything is locked, and once more after that:
//
//   probe_end, probe_append   the file's end, and the frames of its nodes
//   revalidate                whether they are what they were, under the lock of the end
//   append_blocks             blocks, their contents, and what says where they are
//   release_nodes             beside all else that the caller releases
//
// append_blocks is for whole blocks. Where the file ends within a block, append_over writes that
// one over where it lies, and others behind it.
#pragma once

#include "f2fs/capability_looks.h"
#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

/// Words of an open inode, and of the writer, that say whether the file can be appended to like
/// this.
struct EndProbe {
  uint32_t ino;
  uint32_t slot_count;
  format::Log log;
  int failed;
  uint32_t capability_looks;
  int64_t modified_seconds;
  int64_t changed_seconds;
  uint64_t size_bytes;
  uint64_t last_dnode;
  uint32_t dnode_homes[FileMaps::kDnodeSegments];  // where the node's entry lies is yet to be seen
};

/// Blocks behind the end of a file, and the nodes that change with them. The nodes are numbered: 0
/// has the addresses, 1 is the inode, where that is another.
struct AppendProbe {
  uint64_t size_bytes;         // of the file: more than fit in an inode
  CachedDnode dnode;           // with their addresses
  const uint64_t* dnode_word;  // which says so
  uint32_t slot;               // of the first one there, that in which the file ends, if it does
  uint32_t nodes;              // 1 or 2
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
  bool times_lock;  // that of the inode
};

/// The first look. Any lane, without a lock.
GOFS_HD inline EndProbe probe_end(const Writer& writer, const Inode& inode, const FileMaps& maps) {
  EndProbe end_probe{inode.ino,
                     inode.slot_count,
                     log_of_data(inode),
                     simt::load_here(writer.failed),
                     simt::load_here(inode.capability_looks),
                     simt::load_here(inode.modified.seconds),
                     simt::load_here(inode.changed.seconds),
                     simt::load_here(inode.size_bytes),
                     simt::load_here(inode.last_dnode),
                     {}};
  for (uint32_t i = 0; i < FileMaps::kDnodeSegments; ++i) {
    end_probe.dnode_homes[i] = simt::load_before_look(maps.dnodes[i]);  // [F3]
  }
  return end_probe;
}

namespace detail {

/// The entry of node `number` in the maps, as seen; null: they have no place for it.
GOFS_HD inline const uint64_t* probe_dnode_word(const Volume& volume, const Inode& inode,
                                                const EndProbe& end_probe, uint64_t number) {
  if (inode.maps == nullptr) return nullptr;
  if (number == 0) return &inode.maps->first_dnode;
  const uint32_t segment = dnode_segment(number);
  uint32_t home = 0;
  for (uint32_t i = 0; i < FileMaps::kDnodeSegments; ++i) {
    home = i == segment ? end_probe.dnode_homes[i] : home;  // stays in registers
  }
  if (!MapArena::is_home(home)) return nullptr;
  return reinterpret_cast<const uint64_t*>(volume.maps.at_home(home)) +
         (number - first_of_dnode_segment(segment));
}

}  // namespace detail

/// Finds the place of `count` blocks from that of the end on, which is to be checked by
/// revalidate(). Collective; per lane whether it has.
GOFS_HD inline bool probe_blocks(simt::AnyWarp auto warp, const Volume& volume, const Inode& inode,
                                 const EndProbe& end_probe, uint32_t count, const TimeStamp& now,
                                 AppendProbe& probe) {
  probe.size_bytes = end_probe.size_bytes;
  const uint64_t index = probe.first_block();
  const uint64_t number = dnode_number(index, end_probe.slot_count);
  const uint64_t* const kept = detail::probe_dnode_word(volume, inode, end_probe, number);
  probe.dnode_word = kept != nullptr ? kept : &inode.last_dnode;
  probe.dnode =
      CachedDnode::unpacked(kept != nullptr ? simt::load_here(*kept) : end_probe.last_dnode);
  probe.slot = static_cast<uint32_t>(index - first_of_dnode(number, end_probe.slot_count));
  probe.nodes = number == 0 ? 1 : 2;
  probe.nids[0] = probe.dnode.nid;
  probe.nids[1] = end_probe.ino;
  // Two lanes look for two frames.
  const uint32_t frame = find_frame(volume.cache, probe.key(warp.thread_rank() & 1));
  probe.frames[0] = warp.shfl(frame, 0);
  probe.frames[1] = warp.size() == 1 ? find_frame(volume.cache, probe.key(1)) : warp.shfl(frame, 1);
  const uint32_t slots = number == 0 ? end_probe.slot_count : uint32_t{format::kNodeSlots};
  const bool fits = (index + count) << kBlockShift <= kFileBytesMax;
  return end_probe.failed == 0 && is_without_capability(end_probe.capability_looks) && fits &&
         end_probe.modified_seconds == now.seconds && end_probe.changed_seconds == now.seconds &&
         end_probe.log == format::kWarmData && end_probe.size_bytes != 0 && probe.dnode.nid != 0 &&
         probe.dnode.number == number && slots - probe.slot >= count &&
         probe.frames[0] != kNoFrame && probe.frames[1] != kNoFrame;
}

/// The same of a file that ends with a block.
GOFS_HD inline bool probe_append(simt::AnyWarp auto warp, const Volume& volume, const Inode& inode,
                                 const EndProbe& end_probe, uint32_t count, const TimeStamp& now,
                                 AppendProbe& probe) {
  return probe_blocks(warp, volume, inode, end_probe, count, now, probe) &&
         end_probe.size_bytes % kBlockBytes == 0;
}

/// The word of its node that has the address of the block of each lane, from the first probed one
/// on. The frame may hold another page meanwhile: before revalidate() it is a guess.
GOFS_HD inline uint32_t& probed_word(const PageCache& cache, const Inode& inode,
                                     const AppendProbe& probe, uint32_t number) {
  const uint32_t word = word_of_slot(inode, probe.dnode.number, probe.slot + number);
  return reinterpret_cast<uint32_t*>(cache.page(probe.frames[0]))[word];
}

/// What append_over() does.
struct AppendEnd {
  uint64_t size_bytes;  // of the file, afterwards
  uint32_t over;        // lanes whose blocks are there, each with its address, and written over
};

namespace detail {

/// States of the frames that both nodes have.
GOFS_HD inline uint32_t shared_state(const PageCache& cache, const AppendProbe& probe) {
  const uint32_t state0 = simt::load_here(cache.state(probe.frames[0]));
  const uint32_t state1 = simt::load_here(cache.state(probe.frames[1]));
  return state0 & state1;
}
/// Whether both are newer than the disk with more than times.
GOFS_HD constexpr bool are_newer(uint32_t shared_state) {
  constexpr uint32_t kNewer = kFrameDirty | kFrameDataDirty;
  return (shared_state & kNewer) == kNewer;
}

}  // namespace detail

/// Whether all is as probe_append() has found it, and the nodes are newer than the disk, as they
/// are after no checkpoint, one that failed included. Any lane, within an operation, by a caller
/// that holds the file's end exclusively; no other thread changes any of it then but fsync, which
/// append_blocks() meets.
GOFS_HD inline bool revalidate(const Volume& volume, const Inode& inode, const AppendProbe& probe) {
  const PageCache& cache = volume.cache;
  const uint64_t size = simt::load_here(inode.size_bytes);
  const uint64_t dnode = simt::load_here(*probe.dnode_word);
  const uint64_t key0 = simt::load_here(cache.key(probe.frames[0]));
  const uint64_t key1 = simt::load_here(cache.key(probe.frames[1]));
  const uint32_t state = detail::shared_state(cache, probe);
  return size == probe.size_bytes && dnode == probe.dnode.packed() && key0 == probe.key(0) &&
         key1 == probe.key(1) && detail::are_newer(state);
}

/// Releases what append_blocks() has left in the caller's hands. One lane; what the warp has
/// written before `release` is seen by the next thread that holds them.
GOFS_HD inline void release_nodes(const simt::Release& release, const Volume& volume, Inode& inode,
                                  const AppendProbe& probe, const NodesHold& hold) {
  if (hold.times_lock) release.store(inode.times_lock, 0u);
  for (uint32_t node = 0; node < 2; ++node) {
    if ((hold.pinned >> node & 1u) != 0) release.add(volume.cache.state(probe.frame(node)), ~0u);
  }
}

namespace detail {

/// Pins the nodes, a lane each, as far as they are what they were and no thread wants them
/// exclusively: a bit for each. Collective, uniform.
GOFS_HD inline uint32_t pin_nodes(simt::AnyWarp auto warp, const PageCache& cache,
                                  const AppendProbe& probe) {
  uint32_t pinned = 0;
  for (uint32_t first = 0; first < probe.nodes; first += warp.size()) {
    const uint32_t node = first + warp.thread_rank();
    const bool has_it = node < probe.nodes && pin_frame(cache, probe.frame(node), probe.key(node));
    pinned |= warp.ballot(has_it) << first;
  }
  warp.sync();  // what one lane acquired, all may look at
  return pinned;
}

/// Says that the nodes, which are pinned, have changed. Collective.
GOFS_HD inline void mark_nodes_dirty(simt::AnyWarp auto warp, PageCache& cache,
                                     const AppendProbe& probe) {
  for (uint32_t node = warp.thread_rank(); node < probe.nodes; node += warp.size()) {
    mark_dirty(cache, probe.frame(node));
  }
}

/// What the pinned nodes say, loaded together.
struct NodesSeen {
  uint32_t state;  // shared_state()
  uint32_t owners[2];
  uint32_t hint_length;  // of i_ext, which would be out of date
  TimeStamp modified;
  TimeStamp changed;

  GOFS_HD NodesSeen(const PageCache& cache, const AppendProbe& probe,
                    const format::NodeBlock& holder, const format::NodeBlock& node)
      : state(shared_state(cache, probe)),
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

/// Enters the blocks of `lanes` but those of `end.over`, in order of rank, from that of the end of
/// the file on, and makes it that much longer. Collective, uniform: false, and nothing is changed,
/// where others have one of the nodes or the times, or more than words would change. `former` is
/// what stood in the place of a lane's address.
GOFS_HD inline bool enter_appended(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                   Inode& inode, const AppendProbe& probe, const TimeStamp& now,
                                   const AppendEnd& end, bool keeps_setid, uint32_t block,
                                   uint32_t& former, NodesHold& hold) {
  PageCache& cache = volume.cache;
  const uint32_t rank = warp.thread_rank();
  const bool leader = rank == 0;
  hold.times_lock = leader && simt::try_lock_at_once(inode.times_lock);
  hold.pinned = pin_nodes(warp, cache, probe);
  if (hold.pinned != (1u << probe.nodes) - 1) return false;
  const auto& holder = *reinterpret_cast<format::NodeBlock*>(cache.page(probe.frames[0]));
  auto& node = *reinterpret_cast<format::NodeBlock*>(cache.page(probe.frames[1]));
  const bool mine = ((lanes & ~end.over) >> rank & 1u) != 0;
  const uint32_t number = simt::popcount(lanes & simt::ranks_below(rank));
  uint32_t& word = probed_word(cache, inode, probe, mine ? number : 0);
  former = simt::load_here(word);
  const NodesSeen seen(cache, probe, holder, node);
  const bool enters = seen.grow_in_words(inode.ino, now) && (hold.times_lock || !leader) &&
                      (keeps_setid || !has_setid(node.inode));
  if (!warp.all(enters)) return false;
  const uint32_t holes = simt::popcount(warp.ballot(mine && former == format::kNullAddr));
  if (mine) simt::store_after_command(word, block);  // [C5]
  uint32_t* const map =
      settled_block_word(warp, volume, lanes, inode, probe.first_block() + number);
  if (map != nullptr) simt::store_after_command(*map, block);        // [C5]
  if (!are_newer(seen.state)) mark_nodes_dirty(warp, cache, probe);  // fsync has written one
  if (leader) {
    simt::store_relaxed(size_word(node.inode), end.size_bytes);
    simt::store_relaxed(inode.size_bytes, end.size_bytes);
    settle(inode, end.size_bytes);
    if (!is_modified_since(seen.modified, seen.changed, now)) {
      store_nanoseconds(node.inode, inode, now);
    }
    if (holes != 0) count_in_words(node.inode, inode, holes);
  }
  return true;
}

}  // namespace detail

/// Writes the block at `source` of each lane in `lanes`, in order of rank, from that of the file's
/// end on: those of `end.over` over `block`, where they lie, which the caller holds exclusively and
/// may write over (write_over.h), the others to new blocks. `source` is one that a device can take
/// a block from (is_directly_addressable()). Collective, by a caller that holds the file's end
/// exclusively, after revalidate(); `inode` is one object for all lanes, whose set-ID bits, if it
/// has some (has_setid()), stay only if it `keeps_setid`. Uniform: whether it is done; if not, the
/// file is as it was up to its end. In any case lane 0 then releases what is in `hold`
/// (release_nodes). Durable after the next checkpoint.
GOFS_HD inline bool append_over(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                Inode& inode, const AppendProbe& probe, const AppendEnd& end,
                                const uint8_t* source, bool keeps_setid, uint32_t block,
                                NodesHold& hold) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t fresh = lanes & ~end.over;
  const uint32_t count = simt::popcount(fresh);
  if (count != 0 && !warp.any(rank == 0 && detail::count_blocks(op, count))) return false;
  format::SummaryEntry summary{};
  summary.nid = probe.dnode.nid;
  summary.version = probe.dnode.version;
  summary.ofs_in_node =
      static_cast<uint16_t>(probe.slot + simt::popcount(lanes & simt::ranks_below(rank)));
  uint32_t taken = 0;
  if (count != 0) {
    taken = detail::take_own_blocks(warp, op, fresh, summary, block);
  }
  bool done = taken == fresh;
  if (done) {
    const nvme::Route route = nvme::pick_route(op.volume.array);
    const uint32_t before = simt::popcount(lanes & simt::ranks_below(rank));
    const int written = write_data(warp, route, lanes,
                                   {inode.ino, (probe.first_block() + before) << kBlockShift, block,
                                    kBlockBytes, const_cast<uint8_t*>(source)},
                                   Merge::kNeighbours);
    done = warp.all((lanes >> rank & 1u) == 0 || written == 0);
  }
  uint32_t former = format::kNullAddr;
  done = done && detail::enter_appended(warp, op.volume, lanes, inode, probe, op.now, end,
                                        keeps_setid, block, former, hold);
  if (count == 0) return done;
  if (!done) {
    free_blocks(warp, op, taken, block);
    if (rank == 0) detail::uncount_blocks(op.volume, count);
    return false;
  }
  // Places that were reserved, or had a block behind the end, were counted already.
  const bool mine = (fresh >> rank & 1u) != 0;
  const uint32_t counted = warp.ballot(mine && former != format::kNullAddr);
  if (counted == 0) return true;
  if (rank == 0) detail::uncount_blocks(op.volume, simt::popcount(counted));
  free_blocks(warp, op, warp.ballot(mine && op.volume.is_main_block(former)), former);
  return true;
}

/// Appends the block at `source` of each lane in `lanes` to a file that ends with one. As
/// append_over().
GOFS_HD inline bool append_blocks(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                  Inode& inode, const AppendProbe& probe, const uint8_t* source,
                                  bool keeps_setid, NodesHold& hold) {
  const AppendEnd end{probe.size_bytes + uint64_t{simt::popcount(lanes)} * kBlockBytes, 0};
  return append_over(warp, op, lanes, inode, probe, end, source, keeps_setid, 0, hold);
}

}  // namespace gofs::f2fs
