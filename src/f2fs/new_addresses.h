// SPDX-License-Identifier: Apache-2.0
//
// New blocks for places of a file, one a lane, and their addresses in the file's nodes.
#pragma once

#include "f2fs/dnode_cache.h"
#include "f2fs/grow_nodes.h"

namespace gofs::f2fs {

/// The log that the contents of a file belong to: those of directories change most often.
GOFS_HD inline format::Log log_of_data(const Inode& inode) {
  if (inode.is_directory() || (inode.advise & format::kAdviseHot) != 0) return format::kHotData;
  return (inode.advise & format::kAdviseCold) != 0 ? format::kColdData : format::kWarmData;
}

namespace detail {

/// Enters an address of each lane in its place, and in the file's block map. Collective. Per lane 0
/// or a negative errno.
GOFS_NOINLINE GOFS_HD inline int put_addresses(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t lanes, const Inode& inode, uint64_t index,
                                               const AddressPlace& place, uint32_t address) {
  const int changed = store_addresses(warp, op, lanes, place.nid, inode.ino, place.word, address);
  // After it stands in the node: see fill_block_maps().
  uint32_t* const word = settled_block_word(warp, op.volume, lanes, inode, index);
  if (word != nullptr && changed == 0) {
    const bool hole = address == format::kNullAddr || address == format::kNewAddr;
    simt::store_relaxed(*word, hole ? kMappedHole : address);
  }
  return changed;
}

/// Enters the addresses `block` in their places, then calls `also()`, collectively. Returns,
/// identical in all lanes: 0, or a negative errno, that of `also` too, and the addresses are those
/// that were there before.
template <typename Also>
GOFS_HD int enter_addresses(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                            const Inode& inode, uint64_t index, const AddressPlace& place,
                            uint32_t block, Also also) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int entered = put_addresses(warp, op, lanes, inode, index, place, block);
  const uint32_t done = warp.ballot(mine && entered == 0);
  int error = simt::first_error(warp, mine ? entered : 0);
  if (error == 0) error = also();
  // Those pages are newer than the disk, so this does not need it.
  if (error < 0 && done != 0) {
    (void)put_addresses(warp, op, done, inode, index, place, place.address);
  }
  return error;
}

/// Finds where the address of file block `index` of each lane stands, and which it is, where the
/// nodes of all of them are known. Collective, within an operation. Returns, identical in all
/// lanes: false, they are to be looked for.
GOFS_NOINLINE GOFS_HD inline bool find_known_places(simt::AnyWarp auto warp, Volume& volume,
                                                    uint32_t lanes, const Inode& inode,
                                                    uint64_t index, AddressPlace& place,
                                                    uint8_t& version) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t* const word = mine ? find_block_word(volume, inode, index) : nullptr;
  const CachedDnode dnode = find_cached_dnode(volume, inode, index);
  uint32_t address = word != nullptr ? simt::load_relaxed(*word) : 0;
  if (!warp.all(!mine || dnode.nid != 0)) return false;
  const auto slot = static_cast<uint32_t>(index - first_of_dnode(dnode.number, inode.slot_count));
  place = {dnode.nid, word_of_slot(inode, dnode.number, slot), slot, address};
  version = dnode.version;
  // A hole may be reserved, or not.
  const uint32_t asking = warp.ballot(mine && (address == 0 || address == kMappedHole));
  if (asking == 0) return true;
  const int read =
      with_nodes(warp, volume, asking, dnode.nid, inode.ino, [&](const format::NodeBlock& node) {
        address = load_address(reinterpret_cast<const uint32_t*>(&node) + place.word);
      });
  place.address = address;
  const bool sound =
      address == format::kNullAddr || address == format::kNewAddr || volume.is_main_block(address);
  return warp.all(!mine || (read == 0 && sound));
}

/// Finds where the address of file block `index` of each lane stands, and the `version` of that
/// node, making the nodes that are missing. Collective. Returns, identical in all lanes: 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int find_places(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                             Inode& inode, uint64_t index, AddressPlace& place,
                                             uint8_t& version) {
  if (find_known_places(warp, op.volume, lanes, inode, index, place, version)) return 0;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int grown = grow_nodes(warp, op, lanes, inode, index, place);
  int error = simt::first_error(warp, mine ? grown : 0);
  if (error < 0) return error;
  NatRecord node{};
  const int known = look_up_nat(warp, op.volume, lanes, place.nid, node);
  error = simt::first_error(warp, mine ? known : 0);
  if (error < 0) return error;
  version = node.version;
  const auto number = static_cast<uint32_t>(dnode_number(index, inode.slot_count));
  cache_dnodes(warp, op.volume, lanes, inode, index, {place.nid, version, number}, place.slot,
               place.word - place.slot);
  return 0;
}

/// Takes a new block for file block `index` of each lane, with the nodes that are missing; `place`
/// is where its address goes. `holes` of the lanes have no block there yet; those are counted.
/// Collective. Returns, identical in all lanes: 0, or a negative errno, and no block is taken.
GOFS_NOINLINE GOFS_HD inline int take_new_blocks(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, Inode& inode, uint64_t index,
                                                 AddressPlace& place, uint32_t& holes,
                                                 uint32_t& block) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool leader = warp.thread_rank() == 0;
  uint8_t version = 0;
  int error = find_places(warp, op, lanes, inode, index, place, version);
  if (error < 0) return error;
  holes = simt::popcount(warp.ballot(mine && place.address == format::kNullAddr));
  if (holes != 0 && !warp.any(leader && count_blocks(op, holes))) return -ENOSPC;
  format::SummaryEntry summary{};
  summary.nid = place.nid;
  summary.version = version;
  summary.ofs_in_node = static_cast<uint16_t>(place.slot);
  error = allocate_blocks(warp, op, lanes, log_of_data(inode), summary, block);
  if (error < 0 && leader) {
    uncount_blocks(op.volume, holes);
  }
  return error;
}

}  // namespace detail

}  // namespace gofs::f2fs
