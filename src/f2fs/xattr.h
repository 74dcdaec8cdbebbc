// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes of an inode as the disk has them: load_xattrs() puts their bytes together,
// next_xattr() goes through them. Their names and permissions are in vfs/xattr.h, their layout on
// the disk in format/xattr.h.
//
// Nothing on disk is believed: every place lies within the bytes that were loaded, each step goes
// forward, and what cannot be is reported as Structure::kXattr, with the place (in bytes from the
// start of the attributes) as its value.
#pragma once

#include "f2fs/load_inode.h"
#include "f2fs/page_pool.h"
#include "f2fs/xattr_lock.h"
#include "format/xattr.h"
#include "simt/copy.h"

namespace gofs::f2fs {

/// An inode's attributes: `inline_bytes` (a multiple of 4) of the inode, then those of the xattr
/// node, each in a spare block. Entries may straddle the border.
struct XattrBytes {
  SpareBlocks<2> parts;
  uint32_t ino;
  uint32_t inline_bytes;
  uint32_t bytes;  // of both together; 0: nothing was loaded, no block is held

  /// The byte at `place` < bytes.
  GOFS_HD uint8_t at(uint32_t place) const {
    return place < inline_bytes ? parts.blocks[0][place] : parts.blocks[1][place - inline_bytes];
  }
  /// The word at `place` <= bytes - 4, of which nothing is known.
  GOFS_HD uint32_t word_at(uint32_t place) const {
    return at(place) | static_cast<uint32_t>(at(place + 1)) << 8 |
           static_cast<uint32_t>(at(place + 2)) << 16 | static_cast<uint32_t>(at(place + 3)) << 24;
  }
};

/// One attribute; places are in XattrBytes.
struct Xattr {
  uint8_t index;  // format::XattrIndex
  uint32_t name_at;
  uint32_t name_bytes;  // without the prefix that the index stands for
  uint32_t value_at;
  uint32_t value_bytes;
};

/// Reports damage at `place`. Collective, uniform. -EUCLEAN.
GOFS_HD inline int report_xattr(simt::AnyWarp auto warp, Volume& volume, uint32_t ino,
                                uint32_t place) {
  return report_once(warp, *volume.corruptions, {Structure::kXattr, 0, ino, place});
}

/// Whether the inode may have attributes.
GOFS_HD inline bool may_have_xattrs(const Inode& inode) {
  return inode.inline_xattr_bytes != 0 || inode.xattr_nid != 0;
}

namespace detail {

/// load_xattrs_into() where they are not changed meanwhile; `inode` is up to date.
GOFS_NOINLINE GOFS_HD inline int copy_xattrs(simt::AnyWarp auto warp, Volume& volume,
                                             const Inode& inode, const SpareBlocks<2>& spare,
                                             XattrBytes& out) {
  out = XattrBytes{};
  out.parts = spare;
  out.ino = inode.ino;
  int error = 0;
  if (inode.inline_xattr_bytes != 0) {
    out.inline_bytes = inode.inline_xattr_bytes;
    error = with_nodes(
        warp, volume, warp.ballot(true), inode.ino, inode.ino, [&](const format::NodeBlock& node) {
          simt::copy_bytes(warp, out.parts.blocks[0],
                           reinterpret_cast<const uint8_t*>(&node) + inode.inline_xattr_offset,
                           out.inline_bytes);
        });
  }
  out.bytes = out.inline_bytes;
  error = simt::first_error(warp, error);
  if (error == 0 && inode.xattr_nid != 0) {
    uint32_t offset = format::kXattrNodeOffset;
    error = with_nodes(warp, volume, warp.ballot(true), inode.xattr_nid, inode.ino,
                       [&](const format::NodeBlock& node) {
                         offset = format::load_u32(&node.footer.flag) >> format::kNodeOffsetShift;
                         simt::copy_bytes(warp, out.parts.blocks[1], node.xattrs,
                                          format::kXattrNodeBytes);
                       });
    error = simt::first_error(warp, error);
    // A node of another kind, or the inode itself.
    const bool other = offset != format::kXattrNodeOffset || inode.xattr_nid == inode.ino;
    if (error == 0 && warp.any(other)) {
      error = report_xattr(warp, volume, inode.ino, out.bytes);
    }
    out.bytes += format::kXattrNodeBytes;
  }
  warp.sync();
  return error;
}

}  // namespace detail

/// Loads all attributes of `inode` into spare blocks of the caller's. Collective, uniform. 0, with
/// `out.bytes` 0 where there are none; or a negative errno.
GOFS_NOINLINE GOFS_HD inline int load_xattrs_into(simt::AnyWarp auto warp, Volume& volume,
                                                  const Inode& inode, const SpareBlocks<2>& spare,
                                                  XattrBytes& out) {
  if (volume.xattr_locks == nullptr) return detail::copy_xattrs(warp, volume, inode, spare, out);
  int error = lock_xattrs_shared(warp, volume, inode.ino);
  if (error < 0) return error;
  Inode now{};
  error = simt::first_error(warp, load_inodes(warp, volume, warp.ballot(true), inode.ino, now));
  if (error == 0) error = detail::copy_xattrs(warp, volume, now, spare, out);
  unlock_xattrs_shared(warp, volume, inode.ino);
  return error;
}

/// Loads all attributes of `inode` into two spare blocks, which unload_xattrs() releases: the
/// caller waits for nothing else in between. Collective, uniform. As load_xattrs_into(), or -EBUSY;
/// after an error, or where there are none, there is nothing to release.
GOFS_HD inline int load_xattrs(simt::AnyWarp auto warp, Volume& volume, const PagePool& pool,
                               const Inode& inode, XattrBytes& out) {
  out = XattrBytes{};
  if (!may_have_xattrs(inode)) return 0;
  SpareBlocks<2> spare{};
  if (!take_spares(warp, pool, kFrameTimeoutNs, spare)) return -EBUSY;
  const int error = load_xattrs_into(warp, volume, inode, spare, out);
  if (error < 0 || out.bytes == 0) {  // the last one may have been removed since
    release_spares(warp, pool, spare);
    out = XattrBytes{};
  }
  return error;
}

/// Collective.
GOFS_HD inline void unload_xattrs(simt::AnyWarp auto warp, const PagePool& pool,
                                  XattrBytes& xattrs) {
  if (xattrs.bytes != 0) release_spares(warp, pool, xattrs.parts);
  xattrs.bytes = 0;
}

namespace detail {

/// Whether all of the header and the first entry's word are zero: an area that was never used.
GOFS_HD inline bool xattrs_unused(const XattrBytes& xattrs) {
  const uint32_t end =
      simt::min<uint32_t>(xattrs.bytes, sizeof(format::XattrHeader) + sizeof(format::XattrEntry));
  bool zero = true;
  for (uint32_t place = 0; place < end; place += 4) zero = zero && xattrs.word_at(place) == 0;
  return zero;
}

/// Whether F2FS knows the index, and such an attribute may have this name and so few bytes.
GOFS_HD inline bool xattr_sane(const XattrBytes& xattrs, const Xattr& xattr) {
  switch (xattr.index) {
    case format::kXattrAclAccess:
    case format::kXattrAclDefault:
      return xattr.name_bytes == 0 && xattr.value_bytes >= sizeof(uint32_t);  // its version
    case format::kXattrAdvise:
      return xattr.name_bytes == 0;
    default:
      break;
  }
  if (xattr.index == 0 || xattr.index > format::kXattrVerity || xattr.name_bytes == 0) return false;
  for (uint32_t i = 0; i < xattr.name_bytes; ++i) {
    if (xattrs.at(xattr.name_at + i) == 0) return false;
  }
  return true;
}

}  // namespace detail

/// The attribute at `cursor`, which is 0 at first and moves on. Collective, uniform. 1, 0 at the
/// end, or -EUCLEAN (reported).
GOFS_NOINLINE GOFS_HD inline int next_xattr(simt::AnyWarp auto warp, Volume& volume,
                                            const XattrBytes& xattrs, uint32_t& cursor,
                                            Xattr& xattr) {
  constexpr uint32_t kEntryBytes = sizeof(format::XattrEntry);
  if (cursor == 0) {
    if (detail::xattrs_unused(xattrs)) return 0;
    if (xattrs.bytes < sizeof(format::XattrHeader) || xattrs.word_at(0) != format::kXattrMagic) {
      return report_xattr(warp, volume, xattrs.ino, 0);
    }
    cursor = sizeof(format::XattrHeader);
  }
  if (cursor == xattrs.bytes) return 0;  // full: there is no end mark
  bool sane = xattrs.bytes - cursor >= kEntryBytes;
  const uint32_t head = sane ? xattrs.word_at(cursor) : 0;
  if (sane && head == 0) return 0;
  format::XattrEntry entry{};
  entry.e_name_index = static_cast<uint8_t>(head);
  entry.e_name_len = static_cast<uint8_t>(head >> 8);
  entry.e_value_size = static_cast<uint16_t>(head >> 16);
  sane = sane && entry.padded_bytes() <= xattrs.bytes - cursor;
  if (sane) {
    xattr.index = entry.e_name_index;
    xattr.name_at = cursor + kEntryBytes;
    xattr.name_bytes = entry.e_name_len;
    xattr.value_at = xattr.name_at + xattr.name_bytes;
    xattr.value_bytes = head >> 16;
    sane = detail::xattr_sane(xattrs, xattr);
  }
  if (!sane) return report_xattr(warp, volume, xattrs.ino, cursor);
  cursor += entry.padded_bytes();
  return 1;
}

/// Looks for one attribute. Collective, uniform. 1 if it is there, 0 if not, or -EUCLEAN.
GOFS_NOINLINE GOFS_HD inline int find_xattr(simt::AnyWarp auto warp, Volume& volume,
                                            const XattrBytes& xattrs, uint32_t index,
                                            const char* name, uint32_t name_bytes, Xattr& xattr) {
  uint32_t cursor = 0;
  for (;;) {  // the cursor goes forward, and ends with the bytes
    const int more = next_xattr(warp, volume, xattrs, cursor, xattr);
    if (more <= 0) return more;
    if (xattr.index != index || xattr.name_bytes != name_bytes) continue;
    bool differs = false;
    for (uint32_t i = warp.thread_rank(); i < name_bytes; i += warp.size()) {
      differs = differs || xattrs.at(xattr.name_at + i) != static_cast<uint8_t>(name[i]);
    }
    if (!warp.any(differs)) return 1;
  }
}

/// Copies `bytes` from `place` on. Collective; each lane's part is visible to that lane only.
GOFS_HD inline void copy_xattr(simt::AnyWarp auto warp, const XattrBytes& xattrs, uint32_t place,
                               uint32_t bytes, void* target) {
  auto* const to = static_cast<uint8_t*>(target);
  for (uint32_t i = warp.thread_rank(); i < bytes; i += warp.size()) to[i] = xattrs.at(place + i);
}

}  // namespace gofs::f2fs
