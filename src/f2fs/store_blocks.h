// SPDX-License-Identifier: Apache-2.0
//
// New contents for file blocks, one a lane. Nothing is written over: the contents go to new blocks
// of a log, then their addresses are entered in the nodes, then the former blocks are given back.
// What fails on the way gives the new blocks back, and the file is as it was.
#pragma once

#include "f2fs/grow_nodes.h"
#include "f2fs/in_place.h"
#include "f2fs/leaf_map.h"
#include "f2fs/page_pool.h"
#include "f2fs/update_inode.h"
#include "simt/copy.h"

namespace gofs::f2fs {

/// Part of one file block, or of a file's inline data, and what shall be there.
struct WritePiece {
  uint64_t offset;        // in the file, bytes
  uint32_t bytes;         // does not cross a block boundary
  const uint8_t* source;  // null: zeros
};

/// The log that the contents of a file belong to: those of directories change most often.
GOFS_HD inline format::Log log_of_data(const Inode& inode) {
  if (inode.is_directory() || (inode.advise & format::kAdviseHot) != 0) return format::kHotData;
  return (inode.advise & format::kAdviseCold) != 0 ? format::kColdData : format::kWarmData;
}

namespace detail {

/// A block that is to be written: where it goes, and what is kept of the block before it.
struct NewBlock {
  uint32_t block;
  uint32_t old_block;
  uint32_t old_bytes;  // from its beginning; the rest becomes zeros
};

/// Makes in `page` what is to be written, on which a lane's old block lies already. Collective, for
/// one lane after the other.
GOFS_HD inline void compose_pages(simt::AnyWarp auto warp, uint32_t lanes, uint8_t* page,
                                  uint32_t kept, const WritePiece& piece) {
  const auto in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t owner = simt::lowest_bit(lanes);
    auto* const to = reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(page), owner));
    const auto* const from = reinterpret_cast<const uint8_t*>(
        warp.shfl(reinterpret_cast<uint64_t>(piece.source), owner));
    const uint32_t zeros_from = warp.shfl(kept, owner);
    const uint32_t at = warp.shfl(in_block, owner);
    const uint32_t bytes = warp.shfl(piece.bytes, owner);
    simt::zero_bytes(warp, to + zeros_from, kBlockBytes - zeros_from);
    warp.sync();
    if (from != nullptr) {
      simt::copy_bytes(warp, to + at, from, bytes);
    } else {
      simt::zero_bytes(warp, to + at, bytes);
    }
  }
  warp.sync();
}

/// Writes blocks through spare ones. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_bounced(simt::AnyWarp auto warp, Volume& volume,
                                               const PagePool& pool, uint32_t lanes,
                                               const NewBlock& where, const WritePiece& piece) {
  const auto in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  const bool covered = in_block == 0 && piece.bytes >= where.old_bytes;
  const uint32_t kept = covered ? 0 : where.old_bytes;
  bool todo = (lanes >> warp.thread_rank() & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  while (warp.any(todo)) {
    uint8_t* const page = todo ? pool.try_take(warp) : nullptr;
    const uint32_t holders = warp.ballot(page != nullptr);
    if (holders == 0) {
      if (warp.any(deadline.passed())) return todo ? -EBUSY : result;
      backoff.pause();
      continue;
    }
    const bool holds = page != nullptr;
    int error = 0;
    const uint32_t reading = warp.ballot(holds && kept != 0);
    if (reading != 0) {
      const int read = read_blocks(warp, volume, reading, where.old_block, page);
      if (holds && kept != 0) error = read;
    }
    warp.sync();
    const uint32_t writing = warp.ballot(holds && error == 0);
    compose_pages(warp, writing, page, kept, piece);
    if (writing != 0) {
      const int written = write_blocks(warp, volume, writing, where.block, page);
      if (holds && error == 0) error = written;
    }
    if (holds) {
      result = error;
      pool.give_back(page);
      todo = false;
    }
  }
  return result;
}

/// Writes the new block of each lane: from where its contents are, if the device can take them from
/// there. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_new_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                  const PagePool& pool, uint32_t lanes,
                                                  const NewBlock& where, const WritePiece& piece) {
  const uint32_t rank = warp.thread_rank();
  const bool whole = goes_in_place(piece.source, 0, piece.bytes, kBlockBytes - 1);
  const uint32_t direct = warp.ballot((lanes >> rank & 1u) != 0 && whole);
  const uint32_t bounced = lanes & ~direct;
  int result = 0;
  warp.sync();  // each lane has filled its own buffer
  if (direct != 0) {
    const int written =
        move_in_place(warp, nvme::pick_route(volume.array), direct, format::nvme::IoOpcode::kWrite,
                      {where.block, 0, piece.bytes, const_cast<uint8_t*>(piece.source)}, nullptr);
    if ((direct >> rank & 1u) != 0) result = written;
  }
  if (bounced != 0) {
    const int written = write_bounced(warp, volume, pool, bounced, where, piece);
    if ((bounced >> rank & 1u) != 0) result = written;
  }
  return result;
}

/// Enters an address of each lane in its place, and in the file's block map. Collective. Per lane 0
/// or a negative errno.
GOFS_NOINLINE GOFS_HD inline int put_addresses(simt::AnyWarp auto warp, Volume& volume,
                                               uint32_t lanes, const Inode& inode, uint64_t index,
                                               const AddressPlace& place, uint32_t address) {
  const int changed =
      store_addresses(warp, volume, lanes, place.nid, inode.ino, place.word, address);
  // After it stands in the node: see fill_block_maps().
  if ((lanes >> warp.thread_rank() & 1u) != 0 && changed == 0 && index < inode.block_map_blocks &&
      inode.block_map != nullptr) {
    const bool hole = address == format::kNullAddr || address == format::kNewAddr;
    simt::store_relaxed(inode.block_map[index], hole ? kMappedHole : address);
  }
  return changed;
}

/// Enters the addresses `block` in their places, then calls `also()`, collectively. Uniform answer:
/// 0, or a negative errno, that of `also` too, and the addresses are those that were there before.
template <typename Also>
GOFS_HD int enter_addresses(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                            const Inode& inode, uint64_t index, const AddressPlace& place,
                            uint32_t block, Also also) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int entered = put_addresses(warp, volume, lanes, inode, index, place, block);
  const uint32_t done = warp.ballot(mine && entered == 0);
  int error = simt::first_error(warp, mine ? entered : 0);
  if (error == 0) error = also();
  // Those pages are newer than the disk, so this does not need it.
  if (error < 0 && done != 0) {
    (void)put_addresses(warp, volume, done, inode, index, place, place.address);
  }
  return error;
}

/// Finds where the address of file block `index` of each lane stands, and which it is, where the
/// nodes of all of them are known. Collective, inside the gate. Uniform answer: false, they are to
/// be looked for.
GOFS_NOINLINE GOFS_HD inline bool find_known_places(simt::AnyWarp auto warp, Volume& volume,
                                                    uint32_t lanes, const Inode& inode,
                                                    uint64_t index, AddressPlace& place,
                                                    uint8_t& version) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool mapped = mine && inode.block_map != nullptr && index < inode.block_map_blocks;
  const Leaf leaf = find_leaf(inode, index);
  uint32_t address = mapped ? simt::load_relaxed(inode.block_map[index]) : 0;
  if (!warp.all(!mine || leaf.nid != 0)) return false;
  const auto slot = static_cast<uint32_t>(index - first_of_leaf(leaf.number, inode.slot_count));
  place = {leaf.nid, word_of_slot(inode, leaf.number, slot), slot, address};
  version = leaf.version;
  // A hole may be reserved, or not.
  const uint32_t asking = warp.ballot(mine && (address == 0 || address == kMappedHole));
  if (asking == 0) return true;
  const int read =
      with_nodes(warp, volume, asking, leaf.nid, inode.ino, [&](const format::NodeBlock& node) {
        address = load_address(reinterpret_cast<const uint32_t*>(&node) + place.word);
      });
  place.address = address;
  const bool sound =
      address == format::kNullAddr || address == format::kNewAddr || volume.is_main_block(address);
  return warp.all(!mine || (read == 0 && sound));
}

/// Finds where the address of file block `index` of each lane stands, and the `version` of that
/// node, making the nodes that are missing. Collective, inside the gate. Uniform answer: 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int find_places(simt::AnyWarp auto warp, Volume& volume,
                                             Writer& writer, uint32_t lanes, Inode& inode,
                                             uint64_t index, AddressPlace& place,
                                             uint8_t& version) {
  if (find_known_places(warp, volume, lanes, inode, index, place, version)) return 0;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const int grown = grow_nodes(warp, volume, writer, lanes, inode, index, place);
  int error = simt::first_error(warp, mine ? grown : 0);
  if (error < 0) return error;
  NatRecord node{};
  const int known = look_up_nat(warp, volume, lanes, place.nid, node);
  error = simt::first_error(warp, mine ? known : 0);
  if (error < 0) return error;
  version = node.version;
  const auto number = static_cast<uint32_t>(leaf_number(index, inode.slot_count));
  keep_leaves(warp, volume, lanes, inode, index, {place.nid, version, number}, place.slot,
              place.word - place.slot);
  return 0;
}

/// Takes a new block for file block `index` of each lane, with the nodes that are missing; `place`
/// is where its address goes. `holes` of the lanes have no block there yet; those are counted.
/// Collective, inside the gate. Uniform answer: 0, or a negative errno, and no block is taken.
GOFS_NOINLINE GOFS_HD inline int take_new_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, uint32_t lanes, Inode& inode,
                                                 uint64_t index, AddressPlace& place,
                                                 uint32_t& holes, uint32_t& block) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool leader = warp.thread_rank() == 0;
  uint8_t version = 0;
  int error = find_places(warp, volume, writer, lanes, inode, index, place, version);
  if (error < 0) return error;
  holes = simt::popcount(warp.ballot(mine && place.address == format::kNullAddr));
  if (holes != 0 && !warp.any(leader && count_blocks(volume, holes))) return -ENOSPC;
  format::SummaryEntry summary{};
  summary.nid = place.nid;
  summary.version = version;
  summary.ofs_in_node = static_cast<uint16_t>(place.slot);
  error = allocate_blocks(warp, volume, writer, lanes, log_of_data(inode), summary, block);
  if (error < 0 && leader) {
    simt::add_relaxed(volume.valid_block_count, ~uint64_t{holes} + 1);
  }
  return error;
}

/// Writes the new blocks, which were taken, and enters them; where `update` is null, the inode says
/// what it should. Collective, uniform answer; where it is an error, nobody refers to them.
GOFS_HD inline int fill_new_blocks(simt::AnyWarp auto warp, Volume& volume, const PagePool& pool,
                                   uint32_t lanes, Inode& inode, const WritePiece& piece,
                                   const AddressPlace& place, uint32_t block,
                                   const InodeUpdate* update) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint64_t index = piece.offset >> kBlockShift;
  // What lies behind the end of a file is not part of it.
  const uint64_t start = index << kBlockShift;
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  NewBlock where{block, place.address, 0};
  if (mine && volume.is_main_block(place.address) && size > start) {
    where.old_bytes = static_cast<uint32_t>(simt::min<uint64_t>(size - start, kBlockBytes));
  }
  const int written = write_new_blocks(warp, volume, pool, lanes, where, piece);
  const int error = simt::first_error(warp, mine ? written : 0);
  if (error < 0) return error;
  return enter_addresses(warp, volume, lanes, inode, index, place, block, [&] {
    return update == nullptr ? 0 : bring_up_to_date(warp, volume, inode, *update);
  });
}

}  // namespace detail

/// Stores one piece a lane, all of the same file and each of another block of it, and makes the
/// inode what `update` says. Collective, inside the gate; the caller has these blocks of the file
/// for himself, and no spare blocks. `inode` is one object for all lanes, without inline contents.
/// Bytes of the blocks that are not in a piece stay, those behind the end of the file become zeros.
/// Uniform answer: 0, or a negative errno, and the file is as it was but for its times and nodes
/// without addresses: those of grow_nodes(), -ENOSPC. Pages: pages_to_grow() or kPagesToGrowRun.
///
/// -ENOSPC may also mean that no block can be had before the next checkpoint, since the last one
/// refers to those that were given back; is_short_of_segments() tells.
GOFS_NOINLINE GOFS_HD inline int store_pieces(simt::AnyWarp auto warp, Volume& volume,
                                              Writer& writer, const PagePool& pool, uint32_t lanes,
                                              Inode& inode, const WritePiece& piece,
                                              InodeUpdate update) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int noted = note_times(warp, volume, inode, update);
  // Times go first where they are all, so that who writes beside us finds them set when he is done.
  const bool times_only = update.size_least <= simt::load_relaxed(inode.size_bytes);
  if (noted == 0 && !warp.any(!times_only)) {
    noted = try_to_update(warp, volume, inode, update_of_times(update.now));
  }
  int error = noted == 0 ? keep_inode(warp, volume, inode.ino) : simt::min(noted, 0);
  if (error < 0) return error;
  AddressPlace place{};
  uint32_t holes = 0;
  uint32_t block = 0;
  error = detail::take_new_blocks(warp, volume, writer, lanes, inode, piece.offset >> kBlockShift,
                                  place, holes, block);
  if (error < 0) return error;
  update.blocks += holes;
  const bool updates = noted == 0 || holes != 0;
  if (updates && noted != 0) error = keep_inode(warp, volume, inode.ino);
  if (error == 0) {
    error = detail::fill_new_blocks(warp, volume, pool, lanes, inode, piece, place, block,
                                    updates ? &update : nullptr);
  }
  if (error < 0) {
    free_blocks(warp, volume, writer, lanes, block);
    if (warp.thread_rank() == 0) {
      simt::add_relaxed(volume.valid_block_count, ~uint64_t{holes} + 1);
    }
    return error;
  }
  free_blocks(warp, volume, writer, warp.ballot(mine && volume.is_main_block(place.address)),
              place.address);
  return 0;
}

}  // namespace gofs::f2fs
