// SPDX-License-Identifier: Apache-2.0
//
// New blocks for rows of a file's blocks, one row a lane, and their addresses in the file's nodes.
#pragma once

#include "f2fs/dnode_cache.h"
#include "f2fs/grow_nodes.h"

namespace gofs::f2fs {

/// The most file blocks of a row: so many that the only lane of a CPU's warp has commands as large
/// as the SSD takes, and that a lane of 32 has as many as an operation costs it.
inline constexpr uint32_t kLaneRowBlocksMax = 8;
inline constexpr uint32_t kRowBlocksMax = simt::kUsualLanes == 1 ? 128 : kLaneRowBlocksMax;

GOFS_HD inline uint32_t row_blocks_max(simt::AnyWarp auto warp) {
  return warp.size() == 1 ? kRowBlocksMax : kLaneRowBlocksMax;
}

/// File blocks that follow each other and whose addresses stand in one node.
struct AddressRow {
  uint64_t index;  // of the first one
  uint32_t count;
  AddressPlace place;              // of its address
  uint32_t former[kRowBlocksMax];  // addresses that stand there: blocks, kNullAddr or kNewAddr
  uint32_t blocks[kRowBlocksMax];  // and that shall stand there
};

/// A row of one block.
GOFS_HD inline AddressRow row_of_one(uint64_t index, const AddressPlace& place, uint32_t block) {
  AddressRow row;
  row.index = index;
  row.count = 1;
  row.place = place;
  row.former[0] = place.address;
  row.blocks[0] = block;
  return row;
}

/// The log that the contents of a file belong to: those of directories change most often.
GOFS_HD inline format::Log log_of_data(const Inode& inode) {
  if (inode.is_directory() || (inode.advise & format::kAdviseHot) != 0) return format::kHotData;
  return (inode.advise & format::kAdviseCold) != 0 ? format::kColdData : format::kWarmData;
}

namespace detail {

/// Enters addresses of each lane in the places of its row, and in the file's block map. Collective.
/// Per lane 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int put_addresses(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t lanes, const Inode& inode,
                                               const AddressRow& row, const uint32_t* addresses) {
  const int changed = store_addresses(warp, op, lanes, row.place.nid, inode.ino, row.place.word,
                                      row.count, addresses);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  // After they stand in the node: see fill_block_maps().
  uint32_t here = 0;
  for (uint32_t done = 0;; done += here) {
    const bool going = mine && changed == 0 && done < row.count;
    const uint32_t those = warp.ballot(going);
    if (those == 0) return changed;
    const MapRow map = settled_map_row(warp, op.volume, those, inode, row.index + done);
    here = going ? static_cast<uint32_t>(simt::min<uint64_t>(row.count - done, map.count)) : 0;
    if (map.words == nullptr) continue;
    for (uint32_t i = 0; i < here; ++i) {
      const uint32_t address = addresses[done + i];
      const bool hole = address == format::kNullAddr || address == format::kNewAddr;
      simt::store_after_command(map.words[i], hole ? kMappedHole : address);  // [C5]
    }
  }
}

/// Enters the blocks of the lanes' rows in their places, then calls `also()`, collectively.
/// Returns, identical in all lanes: 0, or a negative errno, that of `also` too, and the addresses
/// are those that were there before.
template <typename Also>
GOFS_HD int enter_addresses(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                            const Inode& inode, const AddressRow& row, Also also) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int entered = put_addresses(warp, op, lanes, inode, row, row.blocks);
  const uint32_t done = warp.ballot(mine && entered == 0);
  int error = simt::first_error(warp, mine ? entered : 0);
  if (error == 0) error = also();
  // Those pages are newer than the disk, so this does not need it.
  if (error < 0 && done != 0) (void)put_addresses(warp, op, done, inode, row, row.former);
  return error;
}

/// Takes what the block map says for what stands in the places of a row. One lane: false, and it
/// does not say it of all of them.
GOFS_HD inline bool load_mapped(const Volume& volume, const Inode& inode, AddressRow& row) {
  bool known = true;
  uint32_t here = 0;
  for (uint32_t done = 0; done < row.count; done += here) {
    const MapRow map = find_map_row(volume, inode, row.index + done);
    if (map.words == nullptr) return false;
    here = static_cast<uint32_t>(simt::min<uint64_t>(row.count - done, map.count));
    for (uint32_t i = 0; i < here; ++i) {
      const uint32_t address = simt::load_relaxed(map.words[i]);
      // A hole may be reserved, or not.
      known = known && address != 0 && address != kMappedHole;
      row.former[done + i] = address;
    }
  }
  return known;
}

/// Whether the places of a row may have what they have: 0 or a negative errno. One lane.
GOFS_HD inline int check_former(Volume& volume, const Inode& inode, const AddressRow& row) {
  for (uint32_t i = 0; i < row.count; ++i) {
    const uint32_t address = row.former[i];
    const bool hole = address == format::kNullAddr || address == format::kNewAddr;
    if (hole || volume.is_main_block(address)) continue;
    if (address == format::kCompressAddr) return -EOPNOTSUPP;
    return report(*volume.corruptions,
                  {Structure::kBlockAddress, address, inode.ino, row.index + i});
  }
  return 0;
}

/// Finds what stands in the places of each lane's row. Collective. Returns, identical in all lanes:
/// 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int load_former(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, const Inode& inode, AddressRow& row) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool known = !mine || load_mapped(volume, inode, row);
  const uint32_t asking = warp.ballot(!known);
  int error = 0;
  if (asking != 0) {
    const int read = with_nodes(
        warp, volume, asking, row.place.nid, inode.ino, [&](const format::NodeBlock& node) {
          const auto* const words = reinterpret_cast<const uint32_t*>(&node) + row.place.word;
          for (uint32_t i = 0; i < row.count; ++i) row.former[i] = load_address(words + i);
        });
    if (!known) error = read;
  }
  if (mine && error == 0) error = check_former(volume, inode, row);
  return simt::first_error(warp, error);
}

/// Finds the place of each lane's row and the `version` of its node, by a walk down to it, making
/// the nodes that are missing. Collective. Returns, identical in all lanes: 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int look_for_places(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, Inode& inode, AddressRow& row,
                                                 uint8_t& version) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  AddressPlace& place = row.place;
  const int grown = grow_nodes(warp, op, lanes, inode, row.index, place);
  int error = simt::first_error(warp, mine ? grown : 0);
  if (error < 0) return error;
  NatRecord node{};
  const int known = look_up_nat(warp, op.volume, lanes, place.nid, node);
  error = simt::first_error(warp, mine ? known : 0);
  if (error < 0) return error;
  version = node.version;
  const auto number = static_cast<uint32_t>(dnode_number(row.index, inode.slot_count));
  cache_dnodes(warp, op.volume, lanes, inode, row.index, {place.nid, version, number}, place.slot,
               place.word - place.slot);
  return 0;
}

/// Finds where the addresses of each lane's row stand, and which they are, and the `version` of
/// that node, making the nodes that are missing. Collective. Returns, identical in all lanes: 0 or
/// a negative errno.
GOFS_NOINLINE GOFS_HD inline int find_places(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                             Inode& inode, AddressRow& row, uint8_t& version) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const CachedDnode dnode = find_cached_dnode(op.volume, inode, row.index);
  if (warp.all(!mine || dnode.nid != 0)) {
    const uint64_t first = first_of_dnode(dnode.number, inode.slot_count);
    const auto slot = static_cast<uint32_t>(row.index - first);
    row.place = {dnode.nid, word_of_slot(inode, dnode.number, slot), slot, format::kNullAddr};
    version = dnode.version;
  } else {
    const int error = look_for_places(warp, op, lanes, inode, row, version);
    if (error < 0) return error;
  }
  return load_former(warp, op.volume, lanes, inode, row);
}

/// Takes new blocks for each lane's row, of which the file blocks are known, with the nodes that
/// are missing. `holes` of all of them have no block there yet; those are counted. Collective.
/// Returns, identical in all lanes: 0, or a negative errno, and no block is taken.
GOFS_NOINLINE GOFS_HD inline int take_new_blocks(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, Inode& inode, AddressRow& row,
                                                 uint32_t& holes) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool leader = warp.thread_rank() == 0;
  const uint32_t count = mine ? row.count : 0;
  uint8_t version = 0;
  int error = find_places(warp, op, lanes, inode, row, version);
  if (error < 0) return error;
  uint32_t mine_holes = 0;
  for (uint32_t i = 0; i < count; ++i) mine_holes += row.former[i] == format::kNullAddr ? 1 : 0;
  holes = simt::reduce_add(warp, mine_holes);
  if (holes != 0 && !warp.any(leader && count_blocks(op, holes))) return -ENOSPC;
  format::SummaryEntry summary{};
  summary.nid = row.place.nid;
  summary.version = version;
  summary.ofs_in_node = static_cast<uint16_t>(row.place.slot);
  error = allocate_rows(warp, op, log_of_data(inode), summary, count, row.blocks);
  if (error < 0 && leader) {
    uncount_blocks(op.volume, holes);
  }
  return error;
}

}  // namespace detail

}  // namespace gofs::f2fs
