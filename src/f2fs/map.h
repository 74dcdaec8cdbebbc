// SPDX-License-Identifier: Apache-2.0
//
// From file blocks to block addresses, one a lane, level by level: all lanes read their nodes of
// one level before any goes on to the next, so that lanes of different depth stay together and the
// misses of a level are fetched at once (GoFS, SOSP'25, section 3.3, figure 6).
#pragma once

#include "f2fs/file_maps.h"

namespace gofs::f2fs {

namespace detail {

/// File blocks from the one that `offsets` leads to up to the end of the subtree that its node of
/// `level` points to; level -1 is the inode itself, of which only the one block counts.
GOFS_HD inline uint64_t rest_of_subtree(const uint32_t (&offsets)[4], int level, int depth) {
  if (level < 0) return 1;
  uint64_t blocks = 1;
  uint64_t before = 0;
  for (int k = level + 1; k <= depth; ++k) {
    blocks *= format::kNodeSlots;
    before = before * format::kNodeSlots + offsets[k];
  }
  return blocks - before;
}

}  // namespace detail

/// Where a file block lies.
struct BlockPlace {
  uint32_t block;  // its address, or kNullAddr for a hole; reserved blocks read as holes too
  uint64_t span;   // file blocks from the one asked for that share the answer (or the error): more
                   // than 1 only where a whole subtree is missing, so that a walk can skip it
};

namespace detail {

/// Words of an inode's block map: 0 for not known yet, a block address, or this for a hole.
inline constexpr uint32_t kMappedHole = format::kNewAddr;

/// The node that holds a block's address.
struct LastNode {
  uint32_t nid;         // 0: there is none, the block lies in a missing subtree
  uint32_t first_word;  // its words [first_word, first_word + count) are the addresses
  uint32_t count;
  uint64_t first_index;  // of the file block of the first
  uint32_t address;      // the block's, as it stands there
};

/// A node that a walk did not find: its nid would stand in a word of its parent.
struct MissingNode {
  uint32_t parent_nid;
  uint32_t parent_word;
  uint32_t node_offset;
};

/// For walks that take missing nodes for holes.
struct SupplyNothing {
  GOFS_HD int operator()(uint32_t, const MissingNode&, uint32_t&) const { return 0; }
};

/// What a walk has found instead of a node that a word of its parent names; of the inode,
/// parent_nid is 0.
struct WrongNode {
  uint32_t parent_nid;
  uint32_t parent_word;
  uint32_t nid;
  uint32_t node_offset;
  Corruption found;  // kNone: another lane that looked for the same node has it
};

/// Whether the volume is damaged there, or the node has been removed since its parent was read, as
/// address readers may see it (address_readers.h): its number goes first from its parent, then from
/// the NAT. Collective; per lane in `lanes` 0: it has gone, and a hole begins; -ENOENT: the inode
/// has gone; -EUCLEAN (reported), and others from the device.
GOFS_NOINLINE GOFS_HD inline int judge_wrong_node(simt::AnyWarp auto warp, Volume& volume,
                                                  uint32_t lanes, uint32_t ino,
                                                  const WrongNode& wrong) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool has_parent = wrong.parent_nid != 0;
  uint32_t named = 0;
  const int read = find_nodes(
      warp, volume, warp.ballot(mine && has_parent), wrong.parent_nid, ino,
      [&](const format::NodeBlock& node) {
        named = load_address(reinterpret_cast<const uint32_t*>(&node) + wrong.parent_word);
      });
  // Its number may be there again, for the same place.
  bool is_back = false;
  const int seen =
      find_nodes(warp, volume, warp.ballot(mine && has_parent && read == 0 && named == wrong.nid),
                 wrong.nid, ino, [&](const format::NodeBlock& node) {
                   is_back = node.footer.node_offset() == wrong.node_offset;
                 });
  if (!mine) return 0;
  if (!has_parent) return -ENOENT;  // the caller has read it
  if (read < 0) return read == -ENOENT ? 0 : read;
  if (named != wrong.nid || is_back) return 0;
  if (seen < 0 && seen != -ENOENT) return seen;
  return wrong.found.structure != Structure::kNone ? report(*volume.corruptions, wrong.found)
                                                   : -EUCLEAN;
}

/// walk_nodes() of all lanes, level by level.
template <typename Supply>
GOFS_NOINLINE GOFS_HD int walk_together(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                        const Inode& inode, uint64_t index, BlockPlace& place,
                                        LastNode& last, Supply supply) {
  const uint32_t rank = warp.thread_rank();
  bool active = (lanes >> rank & 1u) != 0;
  int result = 0;
  uint32_t offsets[4] = {};
  uint32_t node_offsets[4] = {};
  int depth = 0;
  if (active) {
    depth = format::node_path(index, inode.slot_count, offsets, node_offsets);
    if (depth < 0) {
      result = -EFBIG;
      active = false;
    }
  }
  uint32_t block = format::kNullAddr;
  place = BlockPlace{format::kNullAddr, 1};
  last = LastNode{};
  constexpr uint32_t kFirstNidWord = offsetof(format::Inode, i_nid) / 4;
  uint32_t nid = inode.ino;
  uint32_t parent_nid = 0;
  uint32_t parent_word = 0;
  for (int level = 0; level <= static_cast<int>(format::kNodeDepthMax); ++level) {
    const uint32_t going = warp.ballot(active && level <= depth);
    if (going == 0) break;
    const bool mine = (going >> rank & 1u) != 0;
    uint32_t next = 0;
    Corruption found{};
    int read = with_nodes_or(
        warp, volume, going, nid, inode.ino,
        [&](const Corruption& mismatch) {
          found = mismatch;
          return -ENOENT;
        },
        [&](const format::NodeBlock& node) {
          if (level == 0 && format::load_u32(&node.inode.i_generation) != inode.generation) {
            found = {Structure::kInode, 0, nid, index};  // another file has its number now
          } else if (level == 0) {
            next = depth == 0 ? load_address(&node.inode.i_addr[inode.extra_words + offsets[0]])
                              : load_address(&node.inode.i_nid[offsets[0]]);
          } else if (node.footer.node_offset() == node_offsets[level]) {
            // Direct and indirect nodes are both arrays of words.
            next = load_address(&node.direct.addr[offsets[level]]);
          } else {
            found = {Structure::kNodeFooter, 0, nid, index};
          }
        });
    // Of lanes with the same node one has looked it up in the NAT.
    const bool is_wrong = mine && (read == -ENOENT || found.structure != Structure::kNone);
    const uint32_t wrong = warp.ballot(is_wrong);
    if (wrong != 0) {
      const int judged =
          judge_wrong_node(warp, volume, wrong, inode.ino,
                           {parent_nid, parent_word, nid, node_offsets[level], found});
      if (is_wrong) read = judged;
    }
    int supplied = 0;
    const uint32_t word = (level == 0 ? kFirstNidWord : 0) + offsets[level];
    const uint32_t absent = warp.ballot(mine && read == 0 && !is_wrong && level < depth && !next);
    if (absent != 0) {
      const MissingNode missing{nid, word, node_offsets[simt::min(level, depth - 1) + 1]};
      supplied = supply(absent, missing, next);
    }
    if (!mine) continue;
    if ((absent >> rank & 1u) != 0 && supplied < 0) {
      result = supplied;
      active = false;
    } else if (read < 0 || is_wrong) {
      result = read;
      place.span = rest_of_subtree(offsets, level - 1, depth);
      active = false;
    } else if (level == depth) {
      block = next;
      const uint32_t header_words = offsetof(format::Inode, i_addr) / 4 + inode.extra_words;
      last = level == 0 ? LastNode{nid, header_words, inode.slot_count, index - offsets[0], next}
                        : LastNode{nid, 0, format::kNodeSlots, index - offsets[level], next};
    } else if (next == 0) {
      place.span = rest_of_subtree(offsets, level, depth);
      active = false;  // a whole subtree of holes
    } else {
      parent_nid = nid;
      parent_word = word;
      nid = next;
    }
  }
  if (result == 0 && block != format::kNullAddr) {
    if (block == format::kNewAddr) {
      block = format::kNullAddr;
    } else if (block == format::kCompressAddr) {
      result = -EOPNOTSUPP;
    } else if (!volume.is_main_block(block)) {
      result = report(*volume.corruptions, {Structure::kBlockAddress, block, inode.ino, index});
    }
  }
  place.block = block;
  return result;
}

/// walk_nodes() of one lane after the other.
template <typename Supply>
GOFS_NOINLINE GOFS_HD int walk_singly(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                      const Inode& inode, uint64_t index, BlockPlace& place,
                                      LastNode& last, Supply supply) {
  int result = 0;
  place = BlockPlace{format::kNullAddr, 1};
  last = LastNode{};
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t lane = simt::lowest_bit(left);
    BlockPlace found{};
    LastNode holder{};
    const int error = walk_together(warp, volume, 1u << lane, inode, index, found, holder, supply);
    if (warp.thread_rank() == lane) {
      place = found;
      last = holder;
      result = error;
    }
  }
  warp.sync();
  return result;
}

/// Walks down the tree of nodes. As map_blocks, for lanes whose block map does not have the answer.
/// `supply(lanes, missing, nid)` is called collectively for lanes that miss a node and may give its
/// nid, or a negative errno; where it leaves 0, a subtree of holes begins.
template <typename Supply>
GOFS_HD int walk_nodes(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, const Inode& inode,
                       uint64_t index, BlockPlace& place, LastNode& last, Supply supply) {
  if (volume.cache.single_walks != 0) {
    return walk_singly(warp, volume, lanes, inode, index, place, last, supply);
  }
  return walk_together(warp, volume, lanes, inode, index, place, last, supply);
}

/// Enters `count` addresses, which stand in a node, in a map, as far as the map lacks them. By all
/// lanes, which need not be together.
GOFS_HD inline void fill_map_row(simt::AnyWarp auto warp, const Volume& volume, uint32_t* map,
                                 const uint32_t* addresses, uint32_t count) {
  for (uint32_t i = warp.thread_rank(); i < count; i += warp.size()) {
    if (simt::load_relaxed(map[i]) != 0) continue;
    const uint32_t word = load_address(addresses + i);
    // What makes no sense stays unknown: whoever asks for it learns of it.
    const bool hole = word == format::kNullAddr || word == format::kNewAddr;
    if (!hole && !volume.is_main_block(word)) continue;
    uint32_t unknown = 0;
    simt::AtomicRef<uint32_t>(map[i]).compare_exchange_strong(unknown, hole ? kMappedHole : word,
                                                              simt::kAfterCommand,
                                                              simt::memory_order_relaxed);  // [C5]
  }
}

/// What the footer of the node says that has the address of a file block.
GOFS_HD inline uint32_t node_offset_of(uint64_t index, uint32_t slot_count) {
  uint32_t offsets[4] = {};
  uint32_t node_offsets[4] = {};
  const int depth = format::node_path(index, slot_count, offsets, node_offsets);
  return depth < 0 ? 0 : node_offsets[depth];
}

/// Enters all addresses of the node `last` into the block map of `inode`, as far as there is one,
/// the whole warp working on one lane's node after the other: a lane that asked for one block of it
/// will ask for others. It may be changed by writers of other blocks of the file: they enter an
/// address in the map after the one in the node, and we only what the map lacks, so what they enter
/// stays.
GOFS_NOINLINE GOFS_HD inline void fill_block_maps(simt::AnyWarp auto warp, Volume& volume,
                                                  uint32_t lanes, const Inode& inode,
                                                  const LastNode& last) {
  const uint32_t all = warp.ballot(true);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t owner = simt::lowest_bit(left);
    const uint32_t nid = warp.shfl(last.nid, owner);
    const uint32_t ino = warp.shfl(inode.ino, owner);
    const uint32_t first_word = warp.shfl(last.first_word, owner);
    const uint64_t first_index = warp.shfl(last.first_index, owner);
    const uint64_t end = first_index + warp.shfl(last.count, owner);
    const uint32_t node_offset =
        node_offset_of(first_index, warp.shfl(uint32_t{inode.slot_count}, owner));
    const auto* const maps =
        reinterpret_cast<const FileMaps*>(warp.shfl(reinterpret_cast<uint64_t>(inode.maps), owner));
    (void)find_nodes(warp, volume, all, nid, ino, [&](const format::NodeBlock& node) {
      if (node.footer.node_offset() != node_offset) return;  // another one that has its number now
      const auto* const words = reinterpret_cast<const uint32_t*>(&node) + first_word;
      for (uint64_t at = first_index; at < end;) {
        const uint32_t segment = block_segment(at);
        const uint64_t stop = simt::min(end, end_of_block_segment(segment));
        const uint32_t home = simt::load_acquire(maps->blocks[segment]);  // [F3]
        const auto count = static_cast<uint32_t>(stop - at);
        const uint32_t* const from = words + (at - first_index);
        if (MapArena::is_home(home)) {
          fill_map_row(warp, volume, row_at_home(volume.maps, home, at).words, from, count);
        }
        at = stop;
      }
    });
    left &= ~warp.ballot(mine && last.nid == nid);
  }
}

}  // namespace detail

/// Finds where file block `index` of `inode` lies. Collective; per lane 0 or a negative errno.
/// Nothing is said about the file's size: blocks past it may be mapped.
GOFS_HD inline int map_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                              const Inode& inode, uint64_t index, BlockPlace& place) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t* const word = mine ? detail::find_block_word(volume, inode, index) : nullptr;
  const bool kept = word != nullptr;
  const uint32_t known = kept ? simt::load_before_command(*word) : 0;  // [C5]
  place = BlockPlace{known == detail::kMappedHole ? format::kNullAddr : known, 1};
  const uint32_t unknown = warp.ballot(mine && known == 0);
  if (unknown == 0) return 0;

  BlockPlace walked{};
  detail::LastNode last{};
  const int error = detail::walk_nodes(warp, volume, unknown, inode, index, walked, last,
                                       detail::SupplyNothing{});
  const bool asked = mine && known == 0;
  if (asked) place = walked;
  const uint32_t filling = warp.ballot(asked && kept && error == 0 && last.nid != 0);
  if (filling != 0) detail::fill_block_maps(warp, volume, filling, inode, last);
  return asked ? error : 0;
}

}  // namespace gofs::f2fs
