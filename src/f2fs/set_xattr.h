// SPDX-License-Identifier: Apache-2.0
//
// Changing the extended attributes of an inode: they are loaded as one string of bytes (xattr.h),
// the string is changed, and its two parts go back to the inode and, where they do not fit there,
// to the xattr node, which comes and goes with the need for it. Who may do so, and what a name's
// prefix is, is in vfs/xattr.h.
#pragma once

#include "f2fs/node_space.h"
#include "f2fs/xattr.h"

namespace gofs::f2fs {

/// The flags of setxattr(2), with Linux's numbers; with both, which is kNeither, nothing ever
/// changes.
enum class XattrMode : uint32_t { kEither = 0, kCreate = 1, kReplace = 2, kNeither = 3 };

/// Whether it asks for an attribute that is there, and for one that is not.
GOFS_HD constexpr bool wants_old(XattrMode mode) {
  return (static_cast<uint32_t>(mode) & static_cast<uint32_t>(XattrMode::kReplace)) != 0;
}
GOFS_HD constexpr bool wants_new(XattrMode mode) {
  return (static_cast<uint32_t>(mode) & static_cast<uint32_t>(XattrMode::kCreate)) != 0;
}

/// Pages that a change of attributes changes: the inode, the xattr node, and its place in the NAT.
inline constexpr uint32_t kXattrPages = 3;

struct XattrChange {
  uint8_t index;  // format::XattrIndex
  const char* name;
  uint32_t name_bytes;  // 1 to 255
  const void* value;    // null: the attribute is removed
  uint32_t value_bytes;
  XattrMode mode;
  TimeStamp changed;  // the inode's ctime: now
};

namespace detail {

/// The attributes of an inode while they are changed: all that there is room for.
struct XattrDraft {
  XattrBytes xattrs;
  uint32_t used;  // bytes up to the end of the last entry

  GOFS_HD void put(uint32_t place, uint8_t byte) const {
    GOFS_DEBUG_ASSERT(place < xattrs.bytes);
    uint8_t* const part = xattrs.parts.blocks[place < xattrs.inline_bytes ? 0 : 1];
    part[place < xattrs.inline_bytes ? place : place - xattrs.inline_bytes] = byte;
  }
  GOFS_HD void put_word(uint32_t place, uint32_t word) const {
    for (uint32_t i = 0; i < 4; ++i) put(place + i, static_cast<uint8_t>(word >> 8 * i));
  }
};

/// Loads what there is, zeros what there is not. Collective, uniform.
GOFS_HD inline int load_draft(simt::AnyWarp auto warp, Volume& volume, const Inode& inode,
                              const SpareBlocks<2>& spare, XattrDraft& draft) {
  for (uint8_t* const block : spare.blocks) simt::zero_bytes(warp, block, kBlockBytes);
  warp.sync();
  const int error = copy_xattrs(warp, volume, inode, spare, draft.xattrs);
  if (error < 0) return error;
  const bool has_room = (inode.inline_flags & format::kInlineXattr) != 0;
  draft.xattrs.inline_bytes = has_room ? format::kInodeAddrEnd - inode.inline_xattr_offset : 0u;
  draft.xattrs.bytes = draft.xattrs.inline_bytes + format::kXattrNodeBytes;
  // The walk says where the entries end.
  uint32_t cursor = 0;
  Xattr xattr{};
  int more = 1;
  while (more > 0) more = next_xattr(warp, volume, draft.xattrs, cursor, xattr);
  draft.used = cursor;
  return more;
}

/// Takes an entry out and closes the gap. One lane.
GOFS_HD inline void erase_entry(XattrDraft& draft, const Xattr& xattr) {
  const uint32_t begin = xattr.name_at - static_cast<uint32_t>(sizeof(format::XattrEntry));
  const uint32_t end =
      begin + format::XattrEntry::padded_bytes(xattr.name_bytes, xattr.value_bytes);
  for (uint32_t place = end; place < draft.used; ++place) {
    draft.put(begin + place - end, draft.xattrs.at(place));
  }
  uint32_t used = draft.used - (end - begin);
  if (used == sizeof(format::XattrHeader)) used = 0;  // it was the last one
  for (uint32_t place = used; place < draft.used; ++place) draft.put(place, 0);
  draft.used = used;
}

/// What an entry begins with.
struct EntryHead {
  uint8_t index;
  uint32_t name_bytes;
  uint32_t value_bytes;
};

/// Begins an entry behind the others, whose name and value are to follow. One lane; there is room.
GOFS_HD inline void begin_entry(XattrDraft& draft, const EntryHead& head) {
  if (draft.used == 0) {
    draft.put_word(0, format::kXattrMagic);
    draft.put_word(offsetof(format::XattrHeader, h_refcount), 1);
    draft.used = sizeof(format::XattrHeader);
  }
  draft.put_word(draft.used, head.index | head.name_bytes << 8 | head.value_bytes << 16);
  draft.used += static_cast<uint32_t>(sizeof(format::XattrEntry));
}

/// Puts an entry behind the others. One lane; there is room.
GOFS_HD inline void append_entry(XattrDraft& draft, const XattrChange& change) {
  begin_entry(draft, {change.index, change.name_bytes, change.value_bytes});
  uint32_t place = draft.used;
  for (uint32_t i = 0; i < change.name_bytes; ++i) {
    draft.put(place++, static_cast<uint8_t>(change.name[i]));
  }
  for (uint32_t i = 0; i < change.value_bytes; ++i) {
    draft.put(place++, static_cast<const uint8_t*>(change.value)[i]);
  }
  for (; place % 4 != 0; ++place) draft.put(place, 0);
  draft.used = place;
}

/// Makes the change in the draft. Collective, uniform. 0 or a negative errno: the draft is then as
/// it was.
GOFS_HD inline int edit_draft(simt::AnyWarp auto warp, Volume& volume, const XattrChange& change,
                              XattrDraft& draft) {
  const bool removing = change.value == nullptr;
  constexpr uint32_t kHeads = sizeof(format::XattrHeader) + sizeof(format::XattrEntry);
  // As Linux counts: without its name.
  if (!removing && change.value_bytes > draft.xattrs.bytes - kHeads) return -E2BIG;
  Xattr old{};
  const int found =
      find_xattr(warp, volume, draft.xattrs, change.index, change.name, change.name_bytes, old);
  if (found < 0) return found;
  if (found == 0 && (removing || wants_old(change.mode))) return -ENODATA;
  if (found == 1 && !removing && wants_new(change.mode)) return -EEXIST;
  uint64_t needed = draft.used == 0 ? sizeof(format::XattrHeader) : draft.used;
  if (found == 1) needed -= format::XattrEntry::padded_bytes(old.name_bytes, old.value_bytes);
  if (!removing) {
    needed += format::XattrEntry::padded_bytes(change.name_bytes, change.value_bytes);
    // Linux wants an end mark.
    if (needed + sizeof(uint32_t) > draft.xattrs.bytes) return -ENOSPC;
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    if (found == 1) erase_entry(draft, old);
    if (!removing) append_entry(draft, change);
  }
  draft.used = warp.shfl(draft.used, 0);
  warp.sync();
  return 0;
}

/// Writes the draft back into the pages of the inode and of its xattr node. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int store_draft(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                             const XattrDraft& draft, const TimeStamp& changed) {
  const XattrBytes& xattrs = draft.xattrs;
  const bool leader = warp.thread_rank() == 0;
  const bool needs_node = draft.used > xattrs.inline_bytes;
  const bool had_node = inode.xattr_nid != 0;
  uint32_t nid = inode.xattr_nid;
  int error = 0;
  // Recovery after a crash would find it again.
  if (leader && had_node && !needs_node) note_freed(op, freed_xattrs(inode.ino));
  const auto fill = [&](format::NodeBlock& node) {
    for (uint32_t i = 0; i < format::kXattrNodeBytes; ++i) {
      node.xattrs[i] = xattrs.parts.blocks[1][i];
    }
  };
  // What may fail comes first, and nothing refers to it yet.
  if (needs_node && !had_node) {
    error = take_nids(warp, op, 1u, inode.ino, nid);
    if (error < 0) return error;
    const uint32_t flag = format::kXattrNodeOffset << format::kNodeOffsetShift |
                          (inode.is_directory() ? 0u : uint32_t{format::kNodeCold});
    error = make_nodes(warp, op, 1u, nid, inode.ino, flag, fill);
  } else if (needs_node) {
    error = change_nodes(warp, op, 1u, nid, inode.ino, fill);
  }
  error = simt::first_error(warp, leader ? error : 0);
  if (error == 0) {
    error = change_nodes(warp, op, 1u, inode.ino, inode.ino, [&](format::NodeBlock& node) {
      auto* const area = reinterpret_cast<uint8_t*>(&node) + inode.inline_xattr_offset;
      for (uint32_t i = 0; i < xattrs.inline_bytes; ++i) area[i] = xattrs.parts.blocks[0][i];
      node.inode.i_xattr_nid = needs_node ? nid : 0;
      node.inode.i_blocks = node.inode.i_blocks + needs_node - had_node;
      node.inode.i_ctime = changed.seconds;
      node.inode.i_ctime_nsec = changed.nanoseconds;
    });
    error = simt::first_error(warp, leader ? error : 0);
  }
  if (error < 0) {
    if (needs_node && !had_node) (void)remove_nodes(warp, op, 1u, nid);
    return error;
  }
  if (had_node && !needs_node) {
    error = simt::first_error(warp, remove_nodes(warp, op, 1u, nid));
  }
  inode.block_count += needs_node;
  inode.block_count -= had_node;
  inode.xattr_nid = needs_node ? warp.shfl(nid, 0) : 0;
  inode.inline_xattr_bytes = static_cast<uint16_t>(xattrs.inline_bytes);
  inode.changed = changed;
  return error;
}

}  // namespace detail

/// edit_xattrs() with spare blocks of the caller's.
template <typename Edit>
GOFS_HD int edit_xattrs_in(simt::AnyWarp auto warp, Operation& op, const SpareBlocks<2>& spare,
                           Inode& inode, const TimeStamp& changed, Edit edit) {
  int error = lock_xattrs(warp, op.volume, inode.ino);
  if (error < 0) return error;
  detail::XattrDraft draft{};
  error = detail::load_draft(warp, op.volume, inode, spare, draft);
  if (error == 0) error = edit(draft);
  if (error == 0) error = detail::store_draft(warp, op, inode, draft, changed);
  unlock_xattrs(warp, op.volume, inode.ino);
  return error;
}

/// Calls `edit(XattrDraft&)`, collectively, with the attributes of `inode`, and if it returns 0
/// writes back what it made of them. `inode` was loaded and is brought up to date; its ctime
/// becomes `changed`. Collective, uniform; the caller holds the file exclusively, and has no spare
/// blocks. What `edit` returns, or a negative errno: -ENOSPC, -EBUSY, -EUCLEAN, what the device
/// says. Changes at most kXattrPages pages.
template <typename Edit>
GOFS_HD int edit_xattrs(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                        const TimeStamp& changed, Edit edit) {
  SpareBlocks<2> spare{};
  if (!take_spares(warp, op.pool(), kFrameTimeoutNs, spare)) return -EBUSY;
  const int error = edit_xattrs_in(warp, op, spare, inode, changed, edit);
  release_spares(warp, op.pool(), spare);
  return error;
}

/// Sets or removes one attribute of `inode`. As edit_xattrs(); also -ENODATA, -EEXIST, -E2BIG, and
/// -ENOSPC of the inode's room. Durable after the next checkpoint.
GOFS_NOINLINE GOFS_HD inline int set_xattr(simt::AnyWarp auto warp, Operation& op, Inode& inode,
                                           const XattrChange& change) {
  return edit_xattrs(warp, op, inode, change.changed, [&](detail::XattrDraft& draft) {
    return detail::edit_draft(warp, op.volume, change, draft);
  });
}

}  // namespace gofs::f2fs
