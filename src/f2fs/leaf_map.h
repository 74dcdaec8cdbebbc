// SPDX-License-Identifier: Apache-2.0
//
// What is kept of the nodes that hold an open file's addresses, beside where its blocks lie
// (map.h): who writes over a block that the file has need not walk down to its node again, nor ask
// the NAT for the version that summaries carry. A node keeps both for as long as it is there, and
// goes only with a part of the file that somebody has for himself (free_addresses.h).
#pragma once

#include "f2fs/map.h"

namespace gofs::f2fs {

/// A node with addresses: the inode, or a direct node.
struct Leaf {
  uint32_t nid;  // 0: not known
  uint8_t version;
  uint32_t number;  // leaf_number(): that of a file of any size takes 24 bits

  GOFS_HD constexpr uint64_t packed() const {
    return uint64_t{number} << 40 | uint64_t{version} << 32 | nid;
  }
  GOFS_HD static constexpr Leaf unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint8_t>(word >> 32),
            static_cast<uint32_t>(word >> 40)};
  }
};

/// Which of the nodes with addresses, in the order of the file, has that of block `index`, where
/// the inode has `slot_count`.
GOFS_HD constexpr uint64_t leaf_number(uint64_t index, uint32_t slot_count) {
  return index < slot_count ? 0 : 1 + (index - slot_count) / format::kNodeSlots;
}

/// Words of a block map for `blocks` file blocks together with its leaves, which lie behind it.
GOFS_HD constexpr uint64_t map_words(uint64_t blocks, uint32_t slot_count) {
  if (blocks == 0) return 0;
  return simt::align_up(blocks, uint64_t{2}) + 2 * (leaf_number(blocks - 1, slot_count) + 1);
}

/// Has `inode`, which has kept nothing, keep what becomes known of `blocks` file blocks in `words`,
/// map_words() of zeros on a multiple of 8; null: nothing is kept. By one lane; who reads the file
/// without a lock meanwhile (pread_async) finds the block map, or does not.
GOFS_HD inline void set_maps(Inode& inode, uint32_t* words, uint64_t blocks) {
  if (words == nullptr) return;
  auto* const leaves = reinterpret_cast<uint64_t*>(words + simt::align_up(blocks, uint64_t{2}));
  simt::store_relaxed(inode.block_map_blocks, blocks);
  simt::store_relaxed(inode.leaf_map, leaves);
  simt::store_release(inode.block_map, words);  // [F3]
}

/// The words that set_maps() gave to it.
GOFS_HD inline uint64_t words_of_maps(const Inode& inode) {
  return inode.block_map == nullptr ? 0 : map_words(inode.block_map_blocks, inode.slot_count);
}

/// The file block whose address is the first in leaf `number`.
GOFS_HD constexpr uint64_t first_of_leaf(uint64_t number, uint32_t slot_count) {
  return number == 0 ? 0 : slot_count + (number - 1) * format::kNodeSlots;
}

/// Which word of its node block, which is an array of words, the `slot`-th address of leaf `number`
/// is.
GOFS_HD inline uint32_t word_of_slot(const Inode& inode, uint64_t number, uint32_t slot) {
  constexpr uint32_t kFirstAddressWord = offsetof(format::Inode, i_addr) / 4;
  return (number == 0 ? kFirstAddressWord + inode.extra_words : 0) + slot;
}

namespace detail {

/// What is known of the node that has the address of file block `index`.
GOFS_HD inline Leaf find_leaf(const Inode& inode, uint64_t index) {
  const uint64_t number = leaf_number(index, inode.slot_count);
  const Leaf last = Leaf::unpacked(simt::load_relaxed(inode.last_leaf));
  if (inode.leaf_map != nullptr && index < inode.block_map_blocks) {
    return Leaf::unpacked(simt::load_relaxed(inode.leaf_map[number]));
  }
  return last.number == number ? last : Leaf{};
}

/// Keeps what each lane in `lanes` has found: block `index` of its file has its address in `leaf`,
/// in place `slot`, from word `first_word` on. The first who finds one keeps all of its addresses
/// in the block map. Collective.
GOFS_NOINLINE GOFS_HD inline void keep_leaves(simt::AnyWarp auto warp, Volume& volume,
                                              uint32_t lanes, Inode& inode, uint64_t index,
                                              const Leaf& leaf, uint32_t slot,
                                              uint32_t first_word) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool mapped = mine && inode.leaf_map != nullptr && index < inode.block_map_blocks;
  uint64_t* const word = mapped ? &inode.leaf_map[leaf.number] : nullptr;
  const bool unknown = mapped && simt::load_relaxed(*word) == 0;
  const uint32_t filling = warp.ballot(unknown);
  if (filling != 0) {
    const uint32_t count = leaf.number == 0 ? uint32_t{inode.slot_count} : format::kNodeSlots;
    fill_block_maps(warp, volume, filling, inode,
                    {leaf.nid, first_word, count, index - slot, format::kNullAddr});
  }
  if (unknown) simt::store_relaxed(*word, leaf.packed());
  if (mine && !mapped) simt::store_relaxed(inode.last_leaf, leaf.packed());
}

/// Nothing is known any more of the node with the address of file block `index`, which goes. By one
/// lane.
GOFS_HD inline void forget_leaf(Inode& inode, uint64_t index) {
  simt::store_relaxed(inode.last_leaf, uint64_t{0});
  if (inode.leaf_map == nullptr || index >= inode.block_map_blocks) return;
  simt::store_relaxed(inode.leaf_map[leaf_number(index, inode.slot_count)], uint64_t{0});
}

}  // namespace detail

}  // namespace gofs::f2fs
