// SPDX-License-Identifier: Apache-2.0
//
// The direct node cache: of the nodes that hold an open file's addresses, the nid and the version,
// beside where its blocks lie (map.h). A write over a block that the file has need not walk down to
// its node again, nor ask the NAT for the version that summaries carry. A node keeps both for as
// long as it is there, and goes only with a part of the file that is held exclusively
// (free_addresses.h).
#pragma once

#include "f2fs/map.h"

namespace gofs::f2fs {

/// A node with addresses: the inode, or a direct node.
struct CachedDnode {
  uint32_t nid;  // 0: not known
  uint8_t version;
  uint32_t number;  // dnode_number(): that of a file of any size takes 24 bits

  GOFS_HD constexpr uint64_t packed() const {
    return uint64_t{number} << 40 | uint64_t{version} << 32 | nid;
  }
  GOFS_HD static constexpr CachedDnode unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint8_t>(word >> 32),
            static_cast<uint32_t>(word >> 40)};
  }
};

/// Which of the nodes with addresses, in the order of the file, has that of block `index`, where
/// the inode has `slot_count`.
GOFS_HD constexpr uint64_t dnode_number(uint64_t index, uint32_t slot_count) {
  return index < slot_count ? 0 : 1 + (index - slot_count) / format::kNodeSlots;
}

/// The file block whose address is the first in direct node `number`.
GOFS_HD constexpr uint64_t first_of_dnode(uint64_t number, uint32_t slot_count) {
  return number == 0 ? 0 : slot_count + (number - 1) * format::kNodeSlots;
}

/// Which word of its node block, which is an array of words, the `slot`-th address of direct node
/// `number` is.
GOFS_HD inline uint32_t word_of_slot(const Inode& inode, uint64_t number, uint32_t slot) {
  constexpr uint32_t kFirstAddressWord = offsetof(format::Inode, i_addr) / 4;
  return (number == 0 ? kFirstAddressWord + inode.extra_words : 0) + slot;
}

namespace detail {

/// What is known of the node that has the address of file block `index`.
GOFS_HD inline CachedDnode find_cached_dnode(const Volume& volume, const Inode& inode,
                                             uint64_t index) {
  const uint64_t number = dnode_number(index, inode.slot_count);
  const CachedDnode last = CachedDnode::unpacked(simt::load_relaxed(inode.last_dnode));
  const uint64_t* const word = find_dnode_word(volume, inode, number);
  if (word != nullptr) return CachedDnode::unpacked(simt::load_relaxed(*word));
  return last.number == number ? last : CachedDnode{};
}

/// Decides about the places where the maps have block `index` of each lane and its node.
/// Collective.
GOFS_HD inline void settle_places(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                  const Inode& inode, uint64_t index, uint32_t number) {
  if (inode.maps == nullptr) return;
  (void)settled_block_word(warp, volume, lanes, inode, index);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0 && number != 0;
  const uint32_t segment = mine ? dnode_segment(number) : 0;
  const bool open = mine && simt::load_relaxed(inode.maps->dnodes[segment]) == 0;
  const uint32_t asking = warp.ballot(open);
  if (asking == 0) return;
  settle_segments(warp, volume, *inode.maps, asking, FileMaps::kBlockSegments + segment);
}

/// Enters what each lane in `lanes` has found: block `index` of its file has its address in
/// `dnode`, in place `slot`, from word `first_word` on. The first lane that finds one enters all of
/// its addresses in the block map. Collective; `inode` is one object for all lanes.
GOFS_NOINLINE GOFS_HD inline void cache_dnodes(simt::AnyWarp auto warp, Volume& volume,
                                               uint32_t lanes, Inode& inode, uint64_t index,
                                               const CachedDnode& dnode, uint32_t slot,
                                               uint32_t first_word) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  settle_places(warp, volume, lanes, inode, index, dnode.number);
  uint64_t* const word = mine ? find_dnode_word(volume, inode, dnode.number) : nullptr;
  const bool unknown = word != nullptr && simt::load_relaxed(*word) == 0;
  const uint32_t filling = warp.ballot(unknown);
  if (filling != 0) {
    const uint32_t count = dnode.number == 0 ? uint32_t{inode.slot_count} : format::kNodeSlots;
    fill_block_maps(warp, volume, filling, inode,
                    {dnode.nid, first_word, count, index - slot, format::kNullAddr});
  }
  if (unknown) simt::store_relaxed(*word, dnode.packed());
  if (mine && word == nullptr) simt::store_relaxed(inode.last_dnode, dnode.packed());
}

/// Nothing is known any more of the node with the address of file block `index`, which goes. By one
/// lane.
GOFS_HD inline void uncache_dnode(const Volume& volume, Inode& inode, uint64_t index) {
  simt::store_relaxed(inode.last_dnode, uint64_t{0});
  uint64_t* const word = find_dnode_word(volume, inode, dnode_number(index, inode.slot_count));
  if (word != nullptr) simt::store_relaxed(*word, uint64_t{0});
}

}  // namespace detail

}  // namespace gofs::f2fs
