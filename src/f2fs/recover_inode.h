// SPDX-License-Identifier: Apache-2.0
//
// Taking over from nodes of the fsync log what an inode says of itself, its attributes and its
// name. By one warp, before any other uses the volume; what goes wrong leaves all on the disk as it
// was.
#pragma once

#include "f2fs/change_directory.h"
#include "f2fs/empty_directory.h"
#include "f2fs/links.h"
#include "f2fs/recover_addresses.h"
#include "f2fs/truncate.h"
#include "f2fs/xattr.h"

namespace gofs::f2fs::detail {

/// Makes of `to`, what there is of an inode, what the fsync log's `from` says, but for its names
/// and the places and number of its blocks. One lane. False where that cannot be the same inode.
GOFS_HD inline bool take_inode(const Volume& volume, const format::NodeBlock& from,
                               format::NodeBlock& to) {
  const format::InodeLayout layout = format::inode_layout(from.inode, volume.geometry.feature);
  const format::InodeLayout old = format::inode_layout(to.inode, volume.geometry.feature);
  const uint32_t type = format::kModeTypeMask;
  const bool same = layout.sane && layout.slot_count == old.slot_count &&
                    layout.extra_words == old.extra_words &&
                    (from.inode.i_mode & type) == (to.inode.i_mode & type);
  if (!same) return false;
  const bool was_inline = (to.inode.i_inline & format::kInlineData) != 0;
  const bool is_inline = (from.inode.i_inline & format::kInlineData) != 0;
  auto* const words = reinterpret_cast<format::le32*>(&to.inode.i_addr[layout.word_of_slot(0)]);
  if (is_inline && !was_inline) {
    bool empty = true;
    for (uint32_t i = 0; i < layout.slot_count; ++i) empty = empty && words[i] == 0u;
    for (const format::le32& nid : to.inode.i_nid) empty = empty && nid == 0u;
    if (!empty) return false;
  }
  const auto* const source = reinterpret_cast<const uint8_t*>(&from);
  auto* const target = reinterpret_cast<uint8_t*>(&to);
  const auto copy = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) target[i] = source[i];
  };
  copy(0, offsetof(format::Inode, i_links));
  copy(offsetof(format::Inode, i_size), offsetof(format::Inode, i_blocks));
  copy(offsetof(format::Inode, i_atime), offsetof(format::Inode, i_xattr_nid));
  copy(offsetof(format::Inode, i_flags), offsetof(format::Inode, i_pino));
  copy(format::kInodeAddrOffset, format::kInodeAddrOffset + 4 * layout.extra_words);
  if ((from.inode.i_inline & format::kInlineXattr) != 0) {
    copy(layout.xattr_offset, layout.xattr_offset + layout.xattr_bytes);
  }
  if (is_inline) {
    words[0] = format::kNullAddr;
    copy(layout.inline_offset, layout.inline_offset + layout.inline_bytes);
  } else if (was_inline) {
    for (uint32_t i = 0; i < layout.slot_count; ++i) words[i] = format::kNullAddr;
  }
  to.inode.i_ext.len = 0;
  return true;
}

/// Makes the words of an inode with inline data addresses, of no blocks. Collective, uniform.
GOFS_HD inline int drop_inline_data(simt::AnyWarp auto warp, Operation& op, Inode& inode) {
  const int error = change_inode(warp, op, inode.ino, [&](format::Inode& raw) {
    const uint32_t in_inode = format::kInlineData | format::kInlineDataExist;
    raw.i_inline = static_cast<uint8_t>(raw.i_inline & ~in_inode);
    for (uint32_t i = 0; i < inode.slot_count; ++i) {
      raw.i_addr[inode.extra_words + i] = format::kNullAddr;
    }
  });
  if (error < 0) return error;
  return simt::first_error(warp, load_inodes(warp, op.volume, warp.ballot(true), inode.ino, inode));
}

/// Makes the inode `ino`, which the last checkpoint does not have, of the node `from` of the fsync
/// log, without blocks and names. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int make_recovered_inode(simt::AnyWarp auto warp, Operation& op,
                                                      uint32_t ino, const format::NodeBlock& from) {
  if (!warp.any(warp.thread_rank() == 0 && count_blocks(op, 1))) return -ENOSPC;
  const int entered = change_nat(warp, op, 1u, ino, [&](format::NatEntry& entry) {
    entry.ino = ino;
    entry.block_addr = format::kNewAddr;
  });
  int error = simt::first_error(warp, warp.thread_rank() == 0 ? entered : 0);
  if (error < 0) return error;
  if (warp.thread_rank() == 0) {
    simt::add_relaxed(op.volume.valid_node_count, 1u);
    simt::add_relaxed(op.volume.valid_inode_count, 1u);
  }
  const format::InodeLayout layout = format::inode_layout(from.inode, op.volume.geometry.feature);
  const int made =
      make_nodes(warp, op, 1u, ino, ino, format::kNodeCold, [&](format::NodeBlock& node) {
        node.inode = from.inode;
        node.inode.i_links = 1;
        node.inode.i_blocks = 1;
        node.inode.i_xattr_nid = 0;
        node.inode.i_ext.len = 0;
        for (format::le32& nid : node.inode.i_nid) nid = 0;
        if ((from.inode.i_inline & format::kInlineData) != 0) return;
        for (uint32_t i = 0; i < layout.slot_count; ++i) {
          node.inode.i_addr[layout.word_of_slot(i)] = format::kNullAddr;
        }
      });
  return simt::first_error(warp, warp.thread_rank() == 0 ? made : 0);
}

/// Takes over the attributes that the fsync log's `node` holds. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int recover_xattr_node(simt::AnyWarp auto warp, Operation& op,
                                                    const Inode& inode,
                                                    const format::NodeBlock& node) {
  const auto fill = [&](format::NodeBlock& to) {
    for (uint32_t i = 0; i < format::kXattrNodeBytes; ++i) to.xattrs[i] = node.xattrs[i];
  };
  const bool leader = warp.thread_rank() == 0;
  if (inode.xattr_nid != 0) {
    return simt::first_error(warp, change_nodes(warp, op, 1u, inode.xattr_nid, inode.ino, fill));
  }
  uint32_t nid = 0;
  int error = take_nids(warp, op, 1u, inode.ino, nid);
  if (error < 0) return error;
  const uint32_t flag = format::kXattrNodeOffset << format::kNodeOffsetShift | format::kNodeCold;
  error = make_nodes(warp, op, 1u, nid, inode.ino, flag, fill);
  error = simt::first_error(warp, leader ? error : 0);
  if (error < 0) return error;
  return change_inode(warp, op, inode.ino, [&](format::Inode& raw) {
    raw.i_xattr_nid = nid;
    raw.i_blocks = raw.i_blocks + 1;
  });
}

/// Takes the name away from the inode that has it: the file that comes was given it later. A
/// directory that has gone by then was empty. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int unlink_former(simt::AnyWarp auto warp, Operation& op,
                                               Inode& directory, const EntryName& name,
                                               uint32_t ino) {
  Inode former{};
  int error = simt::first_error(warp, load_inodes(warp, op.volume, warp.ballot(true), ino, former));
  if (error < 0) return error;
  if (former.links == 0) return -EUCLEAN;
  const bool is_directory = former.is_directory();
  const int empty = is_directory ? is_empty_directory(warp, op.volume, former) : 1;
  if (empty <= 0) return empty < 0 ? empty : -EUCLEAN;
  error = remove_entry(warp, op, directory, name);
  if (error == 0 && is_directory) error = count_subdirectory(warp, op, directory.ino, -1);
  if (error < 0) return error;
  const auto all = static_cast<int32_t>(simt::min<uint32_t>(former.links, INT32_MAX));
  uint32_t links = 0;
  const int counted = change_links(warp, op, 1u, ino, is_directory ? -all : -1, links);
  error = simt::first_error(warp, warp.thread_rank() == 0 ? counted : 0);
  if (error == 0 && warp.thread_rank() == 0 && links == 0) {
    error = add_orphan(op.writer.orphans, ino);
  }
  return simt::first_error(warp, error);
}

/// Enters the name that the fsync log's `node`, an inode, gives. Collective, uniform. 0 or a
/// negative errno; -EUCLEAN: its directory is none.
GOFS_NOINLINE GOFS_HD inline int recover_name(simt::AnyWarp auto warp, Operation& op,
                                              const format::NodeBlock& node) {
  const format::Inode& raw = node.inode;
  const uint32_t ino = node.footer.ino;
  const uint32_t parent = raw.i_pino;
  const EntryName name{reinterpret_cast<const char*>(raw.i_name), raw.i_namelen};
  bool sound = name.length != 0 && name.length <= format::kNameBytesMax;
  for (uint32_t i = 0; sound && i < name.length; ++i) {
    sound = name.bytes[i] != 0 && name.bytes[i] != '/';
  }
  if (!sound || parent >= op.volume.geometry.nid_count() || parent == ino) return -EUCLEAN;
  Operation dated = op.as_of(modified_of(raw));
  Inode directory{};
  int error =
      simt::first_error(warp, load_inodes(warp, op.volume, warp.ballot(true), parent, directory));
  if (error < 0) return error;
  if (!directory.is_directory() || check_supported(directory) < 0) return -EUCLEAN;
  DirectoryEntry entry{};
  error = find_entry(warp, op.volume, directory, name.bytes, name.length, entry);
  if (error == 0 && entry.ino == ino) return 0;
  if (error < 0 && error != -ENOENT) return error;
  if (error == 0) {
    error = unlink_former(warp, dated, directory, name, entry.ino);
    if (error < 0) return error;
  }
  const DirectoryEntry own{ino, format::file_type_of_mode(raw.i_mode)};
  return add_entry(warp, dated, directory, name, own);
}

/// Frees what a recovered file has behind its end: the nodes that went when it was cut are not in
/// the fsync log. Collective, uniform. 0 or a negative errno. `page` is a spare block;
/// `make_room()`, called before each portion, answers 0 or a negative errno.
template <typename MakeRoom>
GOFS_HD int cut_recovered(simt::AnyWarp auto warp, Operation& op, uint32_t ino, uint8_t* page,
                          MakeRoom make_room) {
  bool more = true;
  const uint32_t all = warp.ballot(true);
  const uint64_t portions = 2 + simt::load_relaxed(op.volume.valid_block_count);
  for (uint64_t portion = 0; more; ++portion) {
    int error = portion == portions ? -EUCLEAN : make_room();
    if (error < 0) return error;
    Inode inode{};
    error = simt::first_error(warp, load_inodes(warp, op.volume, all, ino, inode));
    if (error < 0) return error;
    // Behind the end a file may have what is reserved, or its hash tree.
    const uint32_t keeps = format::kAdviseKeepSize | format::kAdviseVerity;
    if (!has_addresses(inode) || (inode.advise & keeps) != 0) return 0;
    uint64_t end = 0;
    const TimeStamp changed = inode.changed;
    const uint64_t kept = inode.size_blocks();
    LastOfTree last{};
    Operation dated = op.as_of(inode.modified);
    error = cut_nodes(warp, dated, inode, kept, page, last, end, more);
    if (error == 0 && !more) {
      error = cut_last_node(warp, dated, inode, kept, last.run, page);
    }
    if (error < 0) return error;
    error = change_inode(warp, op, ino, [&](format::Inode& raw) {
      raw.i_ctime = changed.seconds;
      raw.i_ctime_nsec = changed.nanoseconds;
    });
    if (error < 0) return error;
  }
  return 0;
}

}  // namespace gofs::f2fs::detail
