// SPDX-License-Identifier: Apache-2.0
//
// Regular files, and symbolic links, that are made with all that they hold, a file a lane: their
// data is written before anything refers to it, and a name that is entered afterwards leads to the
// whole file or, after a crash, is not there. No other thread can have such a file open, so nothing
// is locked for it.
#pragma once

#include "f2fs/make_inode.h"
#include "f2fs/store_blocks.h"

namespace gofs::f2fs {

struct NewContents {
  const uint8_t* source;
  uint64_t bytes;
};

namespace detail {

/// Blocks of a new file with so many bytes; 0: they stay in its inode.
GOFS_HD inline uint32_t new_file_blocks(const Volume& volume, uint64_t bytes) {
  if (bytes <= new_inode_layout(volume).inline_bytes) return 0;
  return static_cast<uint32_t>(simt::divide_up(bytes, kBlockBytes));
}

/// What the inode of a new file says of its contents. One lane.
GOFS_HD inline void fill_contents(const Volume& volume, const NewContents& contents,
                                  format::NodeBlock& node) {
  format::Inode& inode = node.inode;
  const uint32_t blocks = new_file_blocks(volume, contents.bytes);
  inode.i_size = contents.bytes;
  if (blocks != 0) {
    inode.i_inline = static_cast<uint8_t>(
        inode.i_inline & ~(uint32_t{format::kInlineData} | format::kInlineDataExist));
    inode.i_blocks = inode.i_blocks + blocks;
  } else if (contents.bytes != 0) {
    inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineDataExist);
    auto* const area = reinterpret_cast<uint8_t*>(&node) + new_inode_layout(volume).inline_offset;
    const auto bytes = static_cast<uint32_t>(contents.bytes);
    uint32_t done = 0;
    if (reinterpret_cast<uintptr_t>(contents.source) % 4 == 0) {
      for (; done + 4 <= bytes; done += 4) {
        *reinterpret_cast<uint32_t*>(area + done) =
            *reinterpret_cast<const uint32_t*>(contents.source + done);
      }
    }
    for (; done < bytes; ++done) area[done] = contents.source[done];
  }
}

/// A block of one of the files, which another lane may have.
struct NewFileBlock {
  uint32_t ino;
  uint8_t version;  // of its node
  uint32_t index;
  WritePiece piece;
};

/// Writes a block for each lane in `lanes` and enters its address. Collective. Per lane 0 or a
/// negative errno; then it has none.
GOFS_NOINLINE GOFS_HD inline int write_new_file_blocks(simt::AnyWarp auto warp, Operation& op,
                                                       uint32_t lanes, const NewFileBlock& mine) {
  const uint32_t rank = warp.thread_rank();
  format::SummaryEntry summary{};
  summary.nid = mine.ino;
  summary.version = mine.version;
  summary.ofs_in_node = static_cast<uint16_t>(mine.index);
  uint32_t block = 0;
  int error = allocate_blocks(warp, op, lanes, format::kWarmData, summary, block);
  if (error < 0) return error;
  error = write_new_blocks(warp, op.volume, op.pool(), lanes,
                           {mine.ino, &block, format::kNullAddr, 0}, mine.piece);
  const uint32_t written = warp.ballot((lanes >> rank & 1u) != 0 && error == 0);
  const uint32_t word = new_inode_layout(op.volume).word_of_slot(0) + mine.index;
  const int entered =
      change_nodes_together(warp, op, written, mine.ino, mine.ino,
                            [&](format::NodeBlock& node) { node.inode.i_addr[word] = block; });
  if ((written >> rank & 1u) != 0) error = entered;
  free_blocks(warp, op, warp.ballot((lanes >> rank & 1u) != 0 && error < 0), block);
  return (lanes >> rank & 1u) != 0 ? error : 0;
}

/// Writes the contents of the files of `lanes`, whose blocks are dealt to all lanes in one row.
/// Collective. Per lane 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_new_files(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, uint32_t ino,
                                                 const NewContents& contents) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t blocks = mine ? new_file_blocks(op.volume, contents.bytes) : 0;
  NatRecord node{};
  int error = look_up_nat(warp, op.volume, warp.ballot(blocks != 0), ino, node);
  uint32_t before = 0;  // blocks of the lanes before this one
  uint32_t total = 0;
  for (uint32_t lane = 0; lane < warp.size(); ++lane) {
    const uint32_t theirs = warp.shfl(blocks, lane);
    if (lane < rank) before += theirs;
    total += theirs;
  }
  for (uint32_t round = 0; round < total; round += warp.size()) {
    const uint32_t item = round + rank;
    // The last lane whose row begins at or before the item, and is not empty.
    uint32_t owner = 0;
    for (uint32_t lane = 0; lane < warp.size(); ++lane) {
      const uint32_t begin = warp.shfl(before, lane);
      if (warp.shfl(blocks, lane) != 0 && begin <= item) owner = lane;
    }
    NewFileBlock block{};
    block.index = item - warp.shfl(before, owner);
    block.ino = warp.shfl(ino, owner);
    block.version = static_cast<uint8_t>(warp.shfl(uint32_t{node.version}, owner));
    const uint64_t offset = uint64_t{block.index} << kBlockShift;
    const uint64_t bytes = warp.shfl(contents.bytes, owner);
    const uint64_t source = warp.shfl(reinterpret_cast<uint64_t>(contents.source), owner);
    const bool sound = warp.shfl(error, owner) == 0;
    const bool active = item < total && sound;
    block.piece = {
        offset,
        active ? static_cast<uint32_t>(simt::min<uint64_t>(kBlockBytes, bytes - offset)) : 0,
        reinterpret_cast<const uint8_t*>(source + offset)};
    const uint32_t writing = warp.ballot(active);
    if (writing == 0) continue;
    const int written = write_new_file_blocks(warp, op, writing, block);
    for (uint32_t failed = warp.ballot(active && written < 0); failed != 0; failed &= failed - 1) {
      const uint32_t lane = simt::lowest_bit(failed);
      const int what = warp.shfl(written, lane);
      if (warp.shfl(owner, lane) == rank) error = what;
    }
  }
  return error;
}

}  // namespace detail

/// Removes again what make_files() has made, of `bytes` bytes, or make_inodes() (0), and nothing
/// refers to. Collective.
GOFS_NOINLINE GOFS_HD inline void unmake_files(simt::AnyWarp auto warp, Operation& op,
                                               uint32_t lanes, uint32_t ino, uint64_t bytes) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t blocks = mine ? detail::new_file_blocks(op.volume, bytes) : 0;
  const uint32_t word = detail::new_inode_layout(op.volume).word_of_slot(0);
  for (uint32_t i = 0;; ++i) {
    const uint32_t looking = warp.ballot(i < blocks);
    if (looking == 0) break;
    uint32_t block = format::kNullAddr;
    // Their pages are newer than the disk, so this does not need it.
    (void)with_nodes(warp, op.volume, looking, ino, ino, [&](const format::NodeBlock& node) {
      block = format::load_u32(&node.inode.i_addr[word + i]);
    });
    const uint32_t stored =
        warp.ballot((looking >> rank & 1u) != 0 && op.volume.is_main_block(block));
    free_blocks(warp, op, stored, block);
  }
  if (mine) detail::uncount_blocks(op.volume, blocks);
  (void)remove_nodes(warp, op, lanes, ino);
}

/// Makes a regular file with `contents` for each lane in `lanes`, or a symbolic link to the target
/// that they are, to be entered in `parent`; no more than its inode has addresses for. Collective;
/// the caller holds no spare blocks. Per lane 0 and `ino`, or a negative errno, with nothing made:
/// -EFBIG (the contents), -ENOSPC, -EBUSY, what the device says. Pages: kPagesToMakeInode for each
/// lane.
GOFS_NOINLINE GOFS_HD inline int make_files(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            const Inode& parent, const NewInode& wanted,
                                            const NewContents& contents, uint32_t& ino) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint64_t most = uint64_t{detail::new_inode_layout(op.volume).slot_count} << kBlockShift;
  int error = mine && contents.bytes > most ? -EFBIG : 0;
  const bool making = mine && error == 0;
  const uint32_t blocks = making ? detail::new_file_blocks(op.volume, contents.bytes) : 0;
  const uint32_t total = simt::reduce_add(warp, blocks);
  if (!warp.any(rank == 0 && detail::count_blocks(op, total))) return -ENOSPC;
  const int made = make_inodes(
      warp, op, warp.ballot(making), parent, wanted, ino,
      [&](format::NodeBlock& node) { detail::fill_contents(op.volume, contents, node); });
  if (making) error = made;
  if (making && error < 0) detail::uncount_blocks(op.volume, blocks);
  const uint32_t writing = warp.ballot(making && error == 0);
  if (writing == 0) return error;
  const int written = detail::write_new_files(warp, op, writing, ino, contents);
  const uint32_t failed = warp.ballot((writing >> rank & 1u) != 0 && written < 0);
  if (failed != 0) unmake_files(warp, op, failed, ino, contents.bytes);
  return (writing >> rank & 1u) != 0 ? written : error;
}

}  // namespace gofs::f2fs
