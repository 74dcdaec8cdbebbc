// SPDX-License-Identifier: Apache-2.0
//
// Taking addresses of file blocks out of a node, or the whole node out of the tree, and releasing
// the blocks. A spare block holds a copy of the node meanwhile, so that all lanes work on its
// addresses after they are gone from where others look.
#pragma once

#include "f2fs/dnode_cache.h"
#include "f2fs/node_space.h"
#include "f2fs/page_pool.h"
#include "f2fs/update_inode.h"
#include "simt/copy.h"

namespace gofs::f2fs::detail {

/// Words of a node that are the addresses of contiguous file blocks.
struct AddressRun {
  uint32_t nid;
  uint32_t node_offset;
  uint32_t first_word;
  uint32_t count;
  uint64_t first_index;  // file block of the first word

  /// The `i`-th address in a copy of the node.
  GOFS_HD uint32_t address(const uint8_t* page, uint32_t i) const {
    return format::load_u32(page + 4 * (first_word + i));
  }
};

/// Copies the addresses of a run, which are the caller's, to where they stand in `page`.
/// Collective, uniform. 0 or a negative errno.
GOFS_HD inline int copy_addresses(simt::AnyWarp auto warp, Volume& volume, const Inode& inode,
                                  const AddressRun& run, uint8_t* page) {
  bool in_place = true;
  const int read = with_nodes(
      warp, volume, warp.ballot(true), run.nid, inode.ino, [&](const format::NodeBlock& node) {
        in_place = node.footer.node_offset() == run.node_offset;
        auto* const to = reinterpret_cast<uint32_t*>(page);
        const auto* const from = reinterpret_cast<const uint32_t*>(&node);
        const uint32_t end = run.first_word + run.count;
        for (uint32_t i = run.first_word + warp.thread_rank(); i < end; i += warp.size()) {
          to[i] = from[i];
        }
      });
  const int error = simt::first_error(warp, read);
  warp.sync();
  if (error < 0 || warp.all(in_place)) return error;
  return report_once(warp, *volume.corruptions,
                     {Structure::kNodeFooter, 0, run.nid, run.node_offset});
}

/// Whether a block is in use, as far as the segment table knows.
GOFS_HD inline bool is_in_use(const Volume& volume, const Writer& writer, uint32_t block) {
  const uint32_t offset = volume.geometry.offset_in_segment(block);
  const SegmentInfo& segment = writer.segments.segments[volume.geometry.segno_of(block)];
  return (simt::load_relaxed(segment.valid[offset / 32]) >> offset % 32 & 1u) != 0;
}

/// Counts the addresses of a run that are no holes. Collective, uniform. 0, or a negative errno if
/// one cannot be.
GOFS_NOINLINE GOFS_HD inline int count_addresses(simt::AnyWarp auto warp, Volume& volume,
                                                 const Writer& writer, const uint8_t* page,
                                                 const AddressRun& run, uint32_t& used) {
  int error = 0;
  uint32_t mine = 0;
  for (uint32_t i = warp.thread_rank(); i < run.count; i += warp.size()) {
    const uint32_t address = run.address(page, i);
    if (address == format::kNullAddr) continue;
    ++mine;
    if (address == format::kNewAddr) continue;
    if (address == format::kCompressAddr) {
      error = -EOPNOTSUPP;
    } else if (!volume.is_main_block(address) || !is_in_use(volume, writer, address)) {
      error = report(*volume.corruptions,
                     {Structure::kBlockAddress, address, run.nid, run.first_index + i});
    }
  }
  used = simt::reduce_add(warp, mine);
  return simt::first_error(warp, error);
}

/// Releases the blocks of a run, of which `used` are counted; nothing refers to them any more.
/// Collective.
GOFS_NOINLINE GOFS_HD inline void release_addresses(simt::AnyWarp auto warp, Operation& op,
                                                    const Inode& inode, const uint8_t* page,
                                                    const AddressRun& run, uint32_t used) {
  for (uint32_t first = 0; first < run.count; first += warp.size()) {
    const uint32_t i = first + warp.thread_rank();
    const uint32_t address = i < run.count ? run.address(page, i) : format::kNullAddr;
    const uint64_t index = run.first_index + i;
    const uint32_t changed = warp.ballot(address != format::kNullAddr);
    uint32_t* const word = settled_block_word(warp, op.volume, changed, inode, index);
    if (word != nullptr) simt::store_relaxed(*word, kMappedHole);
    const uint32_t stored = warp.ballot(op.volume.is_main_block(address));
    if (stored != 0) free_blocks(warp, op, stored, address);
  }
  if (warp.thread_rank() == 0) {
    detail::uncount_blocks(op.volume, used);
  }
}

/// Adds to what the inode counts. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int count_blocks_of(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                   int64_t blocks) {
  InodeUpdate update = update_of_times(op.now);
  update.blocks = blocks;
  return update_inode(warp, op, inode, update);
}

/// Makes holes of the blocks of a run, with a spare block `page`. Collective, uniform. 0, or a
/// negative errno and nothing has changed. Changes two pages.
GOFS_NOINLINE GOFS_HD inline int clear_run(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                           const AddressRun& run, uint8_t* page) {
  uint32_t used = 0;
  int error = copy_addresses(warp, op.volume, inode, run, page);
  if (error == 0) error = count_addresses(warp, op.volume, op.writer, page, run, used);
  if (error < 0 || used == 0) return error;
  error = count_blocks_of(warp, op, inode, -int64_t{used});
  if (error < 0) return error;
  const int changed = change_nodes(warp, op, 1u, run.nid, inode.ino, [&](format::NodeBlock& node) {
    auto* const words = reinterpret_cast<uint32_t*>(&node) + run.first_word;
    for (uint32_t i = 0; i < run.count; ++i) words[i] = format::kNullAddr;
  });
  error = simt::first_error(warp, warp.thread_rank() == 0 ? changed : 0);
  if (error < 0) {
    (void)count_blocks_of(warp, op, inode, used);
    return error;
  }
  release_addresses(warp, op, inode, page, run, used);
  return 0;
}

/// A word of a node that names another node.
struct NidWord {
  uint32_t parent_nid;
  uint32_t word;
};

GOFS_HD inline int set_nid(simt::AnyWarp auto warp, Operation& op, const Inode& inode,
                           const NidWord& where, uint32_t nid) {
  const int changed = change_nodes(
      warp, op, 1u, where.parent_nid, inode.ino,
      [&](format::NodeBlock& node) { reinterpret_cast<format::le32*>(&node)[where.word] = nid; });
  return simt::first_error(warp, warp.thread_rank() == 0 ? changed : 0);
}

/// Removes the node of a run, which has all of its addresses or, of an indirect node without
/// children, none, with a spare block `page`. Collective, uniform. 0, or a negative errno and
/// nothing has changed. Changes three pages: the parent's, the inode's, and a block of the NAT.
GOFS_NOINLINE GOFS_HD inline int remove_run(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                            const AddressRun& run, const NidWord& parent,
                                            uint8_t* page) {
  uint32_t used = 0;
  int error = copy_addresses(warp, op.volume, inode, run, page);
  if (error == 0) error = count_addresses(warp, op.volume, op.writer, page, run, used);
  if (error < 0) return error;
  const int64_t blocks = int64_t{used} + 1;
  if (run.count != 0 && warp.thread_rank() == 0) uncache_dnode(op.volume, inode, run.first_index);
  error = count_blocks_of(warp, op, inode, -blocks);
  if (error < 0) return error;
  error = set_nid(warp, op, inode, parent, 0);
  if (error == 0) {
    const int removed = remove_nodes(warp, op, 1u, run.nid);
    error = simt::first_error(warp, warp.thread_rank() == 0 ? removed : 0);
    // Its parent's page is newer than the disk by now, so this does not need it.
    if (error < 0) (void)set_nid(warp, op, inode, parent, run.nid);
  }
  if (error < 0) {
    (void)count_blocks_of(warp, op, inode, blocks);
    return error;
  }
  if (run.count != 0 && warp.thread_rank() == 0) note_freed(op, freed_dnode(inode.ino));
  release_addresses(warp, op, inode, page, run, used);
  return 0;
}

}  // namespace gofs::f2fs::detail
