// SPDX-License-Identifier: Apache-2.0
//
// From file blocks to block addresses, one a lane, level by level: all lanes read their nodes of one
// level before any goes on to the next, so that lanes of different depth stay together and the misses
// of a level are fetched at once (GoFS, SOSP'25, section 3.3, figure 6).
#pragma once

#include "f2fs/inode.h"

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

/// Finds where file block `index` of `inode` lies. Collective; per lane 0 or a negative errno. Nothing
/// is said about the file's size: blocks past it may be mapped.
GOFS_NOINLINE GOFS_HD inline int map_blocks(const simt::Warp& warp, Volume& volume, uint32_t lanes,
                              const Inode& inode, uint64_t index, BlockPlace& place) {
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
  place = BlockPlace{format::kNullAddr, 1};
  uint32_t& block = place.block;
  uint32_t nid = inode.ino;
  for (int level = 0; level <= static_cast<int>(format::kNodeDepthMax); ++level) {
    const uint32_t going = warp.ballot(active && level <= depth);
    if (going == 0) break;
    const bool mine = (going >> rank & 1u) != 0;
    uint32_t next = 0;
    bool in_place = true;
    const int read =
        with_nodes(warp, volume, going, nid, inode.ino, [&](const format::NodeBlock& node) {
          if (level == 0) {
            next = depth == 0
                       ? format::load_u32(&node.inode.i_addr[inode.extra_words + offsets[0]])
                       : format::load_u32(&node.inode.i_nid[offsets[0]]);
          } else {
            // Direct and indirect nodes are both arrays of words.
            next = format::load_u32(&node.direct.addr[offsets[level]]);
            in_place = node.footer.node_offset() == node_offsets[level];
          }
        });
    if (!mine) continue;
    if (read < 0 || !in_place) {
      result = read < 0 ? read
                        : report(*volume.corruptions, {Structure::kNodeFooter, 0, nid, index});
      place.span = detail::rest_of_subtree(offsets, level - 1, depth);
      active = false;
    } else if (level == depth) {
      block = next;
    } else if (next == 0) {
      place.span = detail::rest_of_subtree(offsets, level, depth);
      active = false;  // a whole subtree of holes
    } else {
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
  return result;
}

}  // namespace gofs::f2fs
