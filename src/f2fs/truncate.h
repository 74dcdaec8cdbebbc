// SPDX-License-Identifier: Apache-2.0
//
// Setting a file's size. A file that grows gets a hole. One that shrinks loses its last node, then
// the one before it, and so on, each with all of its blocks, and its size goes down with them: it
// is a sound file of some size after every portion of that work, so a crash between two of them, or
// a disk that fails, leaves no old data behind the end.
#pragma once

#include "f2fs/free_addresses.h"
#include "f2fs/write.h"

namespace gofs::f2fs {

/// Nodes that one portion removes at most.
inline constexpr uint32_t kNodesPerPortion = 8;
/// Pages that one portion changes at most: the inode; for each node its parent and a block of the
/// NAT; the last node that stays, and that of the last block.
inline constexpr uint32_t kPagesToTruncate = 1 + 2 * kNodesPerPortion + 2;

namespace detail {

/// Whether the inode's words are the addresses of blocks, and not inline contents or the number of
/// a device.
GOFS_HD inline bool has_addresses(const Inode& inode) {
  const bool typed = inode.is_regular() || inode.is_directory() || inode.is_symlink();
  return typed && !inode.has_inline_data() && !inode.has_inline_dentries();
}

/// The last node of a tree: one with addresses, or an indirect one without children.
struct LastOfTree {
  AddressRun run;
  NidWord parent;  // parent_nid 0: the node is the inode
};

/// The last word of [first, first + count) of a node that is not 0: its place from `first` on, plus
/// 1, or 0; and the word. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int find_last_nid(simt::AnyWarp auto warp, Volume& volume,
                                               const Inode& inode, const AddressRun& words,
                                               uint32_t& place, uint32_t& nid) {
  uint32_t last = 0;
  bool in_place = true;
  nid = 0;
  const int read = with_nodes(
      warp, volume, warp.ballot(true), words.nid, inode.ino, [&](const format::NodeBlock& node) {
        in_place = node.footer.node_offset() == words.node_offset;
        const auto* const from = reinterpret_cast<const uint8_t*>(&node);
        for (uint32_t i = warp.thread_rank(); i < words.count; i += warp.size()) {
          const uint32_t word = words.address(from, i);
          if (word == 0) continue;
          last = i + 1;
          nid = word;
        }
      });
  const int error = simt::first_error(warp, read);
  if (error < 0) return error;
  if (!warp.all(in_place)) {
    return report_once(warp, *volume.corruptions,
                       {Structure::kNodeFooter, 0, words.nid, words.node_offset});
  }
  place = simt::reduce_max(warp, last);
  const uint32_t owner = warp.ballot(place != 0 && last == place);
  nid = owner == 0 ? 0 : warp.shfl(nid, simt::lowest_bit(owner));
  return 0;
}

/// Finds the last node under an inode. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int find_last_of_tree(simt::AnyWarp auto warp, Volume& volume,
                                                   const Inode& inode, LastOfTree& last) {
  constexpr uint32_t kFirstNidWord = offsetof(format::Inode, i_nid) / 4;
  constexpr uint32_t kFirstAddressWord = offsetof(format::Inode, i_addr) / 4;
  uint32_t place = 0;
  uint32_t nid = 0;
  int error = find_last_nid(warp, volume, inode,
                            {inode.ino, 0, kFirstNidWord, format::kInodeNids, 0}, place, nid);
  if (error < 0) return error;
  last.parent = {0, 0};
  last.run = {inode.ino, 0, kFirstAddressWord + inode.extra_words, inode.slot_count, 0};
  if (place == 0) return 0;

  // The five trees of an inode: how high each is, its first node's offset, its first block.
  const uint32_t tree = place - 1;
  uint32_t height = tree < 2 ? 0 : tree < 4 ? 1 : 2;
  const uint32_t offsets[] = {1, 2, format::kIndirect1Offset, format::kIndirect2Offset,
                              format::kDoubleIndirectOffset};
  const uint64_t before[] = {0, format::kDirectBlocks, 2 * format::kDirectBlocks,
                             2 * format::kDirectBlocks + format::kIndirectBlocks,
                             2 * format::kDirectBlocks + 2 * format::kIndirectBlocks};
  last.parent = {inode.ino, kFirstNidWord + tree};
  last.run = {nid, offsets[tree], 0, format::kNodeSlots, inode.slot_count + before[tree]};
  for (; height != 0; --height) {
    error = find_last_nid(warp, volume, inode, last.run, place, nid);
    if (error < 0) return error;
    if (place == 0) {
      last.run.count = 0;  // its words would be nids
      return 0;
    }
    const uint32_t child = place - 1;
    const uint64_t child_blocks = height == 1 ? format::kDirectBlocks : format::kIndirectBlocks;
    const uint32_t child_nodes = height == 1 ? 1 : format::kNodeSlots + 1;
    last.parent = {last.run.nid, child};
    last.run = {nid, last.run.node_offset + 1 + child * child_nodes, 0, format::kNodeSlots,
                last.run.first_index + child * child_blocks};
  }
  return 0;
}

/// Removes the last nodes of a file, each with all of its blocks, down to the one that has its
/// first `kept` blocks or some of them, as many as a portion has. `end` becomes the number of
/// blocks that the file may still have, if nodes have gone. Collective, uniform. 0 or a negative
/// errno; `more`: there are others; else `last` is the one that stays.
GOFS_NOINLINE GOFS_HD inline int cut_nodes(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                           uint64_t kept, uint8_t* page, LastOfTree& last,
                                           uint64_t& end, bool& more) {
  more = false;
  for (uint32_t node = 0;; ++node) {
    int error = find_last_of_tree(warp, op.volume, inode, last);
    if (error < 0 || last.parent.parent_nid == 0 || last.run.first_index < kept) return error;
    more = node == kNodesPerPortion;
    if (more) return 0;
    error = remove_run(warp, op, inode, last.run, last.parent, page);
    if (error < 0) return error;
    end = last.run.first_index;
  }
}

/// Frees the blocks of the last node that stays from the file's block `kept` on. Collective,
/// uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int cut_last_node(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                               uint64_t kept, AddressRun run, uint8_t* page) {
  const auto first = static_cast<uint32_t>(
      simt::min<uint64_t>(kept - simt::min(kept, run.first_index), run.count));
  run.first_word += first;
  run.first_index += first;
  run.count -= first;
  return run.count == 0 ? 0 : clear_run(warp, op, inode, run, page);
}

/// Sets the size of a file with inline data to one that fits there, or moves the data out.
/// Collective, uniform. 0 or a negative errno; where it is 0 and the data is still there, all is
/// done.
GOFS_HD inline int resize_inline(simt::AnyWarp auto warp, Operation& op, const FileHold& file,
                                 uint64_t size, InodeUpdate update) {
  Inode& inode = file.inode;
  const uint64_t before = inode.size_bytes;
  const bool fits = size <= inode.inline_bytes;
  warp.sync();  // all lanes have looked
  if (!fits) return move_out_inline(warp, op, file);
  const int error = clear_inline(warp, op, file, simt::min(size, before), simt::max(size, before));
  if (error < 0) return error;
  update.size_least = update.size_most = size;
  return update_inode(warp, op, inode, update);
}

/// Sets the size of a file that grows. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int grow_size(simt::AnyWarp auto warp, Operation& op, const FileHold& file,
                             uint64_t before, uint64_t size, InodeUpdate update) {
  const uint64_t tail = before & (kBlockBytes - 1);
  if (tail != 0) {
    const int error = clear_in_block(warp, op, file,
                                     {before, static_cast<uint32_t>(kBlockBytes - tail), nullptr});
    if (error < 0) return error;
  }
  update.size_least = size;
  return update_inode(warp, op, file.inode, update);
}

}  // namespace detail

/// Sets the size of a file, or does a portion of that where many blocks are to be freed: `more`
/// says so, and the caller ends the operation, begins another and calls again. What lies behind the
/// new end is freed, also what had been reserved there. Collective, uniform; `file` holds all from
/// the end that is nearer to its beginning on, from the first portion to the last, and the caller
/// has no spare blocks. Pages: kPagesToTruncate.  0 or a negative errno: -EFBIG, -EOPNOTSUPP (but
/// an encrypted file may be emptied), -EROFS, -ENOSPC (of a block for the part of the last one that
/// stays; see store_pieces()), -EBUSY, -EUCLEAN, what the device says. The file may have become
/// shorter then, not below `size`; where there is no room, not by this portion. With size 0 it
/// frees all that any file has but its inode and its xattr node.
GOFS_NOINLINE GOFS_HD inline int truncate_file(simt::AnyWarp auto warp, Operation& op,
                                               const FileHold& file, uint64_t size, bool& more) {
  Inode& inode = file.inode;
  file.check_from(simt::min(size, simt::load_relaxed(inode.size_bytes)));
  more = false;
  int error = detail::check_change(op.writer, inode, size);
  const bool encrypted = (inode.advise & format::kAdviseEncrypted) != 0;
  const bool compressed = (inode.flags & format::kFlagCompressed) != 0;
  if (error == -EOPNOTSUPP && size == 0 && encrypted && !compressed) error = 0;
  if (error < 0) return error;
  const InodeUpdate update = update_of_times(op.now);
  if (inode.has_inline_data()) {
    error = detail::resize_inline(warp, op, file, size, update);
    if (error < 0 || inode.has_inline_data()) return error;
  }
  if (!detail::has_addresses(inode)) return 0;
  const uint64_t before = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
  if (size > before) {
    return detail::grow_size(warp, op, file, before, size, update);
  }

  const auto tail = static_cast<uint32_t>(size & (kBlockBytes - 1));
  const bool clears = size < before && tail != 0;
  const uint64_t kept = simt::divide_up(size, kBlockBytes);
  constexpr uint64_t kAsBefore = ~uint64_t{0} >> kBlockShift;
  uint64_t end = kAsBefore;
  detail::LastOfTree last{};
  const auto with_spare = [&](auto cut) {
    SpareBlocks<1> spare{};
    if (!take_spares(warp, op.pool(), kFrameTimeoutNs, spare)) return -EBUSY;
    const int result = cut(spare.blocks[0]);
    release_spares(warp, op.pool(), spare);
    return result;
  };
  error = with_spare([&](uint8_t* page) {
    return detail::cut_nodes(warp, op, inode, kept, page, last, end, more);
  });
  // What may find no room comes first in a portion, which then leaves the file as it was.
  if (error == 0 && clears && end != kAsBefore) more = true;
  bool finished = error == 0 && !more;
  if (finished && clears) {
    error = detail::clear_in_block(warp, op, file, {size, kBlockBytes - tail, nullptr});
    if (error < 0) return error;
  }
  if (finished) {
    error = with_spare([&](uint8_t* page) {
      return detail::cut_last_node(warp, op, inode, kept, last.run, page);
    });
    finished = error == 0;
  }
  InodeUpdate cut = update;
  cut.size_most = finished ? size : simt::max(size, end << kBlockShift);
  const int updated = update_inode(warp, op, inode, cut);
  return error < 0 ? error : updated;
}

}  // namespace gofs::f2fs
