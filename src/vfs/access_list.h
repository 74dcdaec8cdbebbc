// SPDX-License-Identifier: Apache-2.0
//
// POSIX access control lists (acl(5)): their entries as they lie among the attributes of an inode,
// and what they let a caller do, as Linux decides it. check_permission() is asked for all access to
// an inode; for one without attributes it costs what check_access() does.
#pragma once

#include "f2fs/xattr.h"
#include "vfs/caller.h"

namespace gofs::vfs {

namespace detail {

struct AclEntry {
  static constexpr uint32_t kNoId = 0xFFFFFFFF;

  uint32_t tag;  // a format::AclTag
  uint32_t permissions;
  uint32_t id;  // of a user or group that is named
};

/// The entry of `acl` at `cursor`, which is 0 at first and moves on. 1, 0 at the end, or -EUCLEAN,
/// which is still to be reported.
GOFS_HD inline int next_acl_entry(const f2fs::XattrBytes& xattrs, const f2fs::Xattr& acl,
                                  uint32_t& cursor, AclEntry& entry) {
  constexpr uint32_t kVersionBytes = 4;
  if (cursor == 0) {
    if (acl.value_bytes < kVersionBytes || xattrs.word_at(acl.value_at) != format::kAclVersion) {
      return -EUCLEAN;
    }
    cursor = kVersionBytes;
  }
  const uint32_t left = acl.value_bytes - cursor;
  if (left == 0) return 0;
  if (left < sizeof(format::AclEntryShort)) return -EUCLEAN;
  const uint32_t head = xattrs.word_at(acl.value_at + cursor);
  const uint32_t tag = head & 0xffff;
  const bool named = tag == format::kAclUser || tag == format::kAclGroup;
  const bool known = named || tag == format::kAclOwner || tag == format::kAclGroupOwner ||
                     tag == format::kAclMask || tag == format::kAclOther;
  const uint32_t bytes = named ? sizeof(format::AclEntry) : sizeof(format::AclEntryShort);
  if (!known || left < bytes) return -EUCLEAN;
  entry.tag = tag;
  entry.permissions = head >> 16;
  entry.id = named ? xattrs.word_at(acl.value_at + cursor + 4) : AclEntry::kNoId;
  cursor += bytes;
  return 1;
}

/// What an access list says to a caller that is not the owner: the entry that names it, else those
/// of its groups, of which one has to grant all of `wanted`, else the one for all others. The first
/// two go no further than the mask. 0, -EACCES, -ENODATA for an empty list, or -EUCLEAN, which is
/// still to be reported.
GOFS_HD inline int judge_acl(const Credentials& who, const f2fs::Inode& inode,
                             const f2fs::XattrBytes& xattrs, const f2fs::Xattr& acl,
                             uint32_t wanted) {
  bool any = false;
  bool is_named = false;
  bool in_group = false;
  bool has_other = false;
  uint32_t named = 0;
  uint32_t group = 0;
  uint32_t mask = 7;
  uint32_t other = 0;
  uint32_t cursor = 0;
  AclEntry entry{};
  int more = 0;
  while ((more = next_acl_entry(xattrs, acl, cursor, entry)) > 0) {
    any = true;
    switch (entry.tag) {
      case format::kAclUser:
        if (!is_named && entry.id == who.uid) {
          is_named = true;
          named = entry.permissions;
        }
        break;
      case format::kAclGroupOwner:
      case format::kAclGroup:
        if (who.in_group(entry.tag == format::kAclGroup ? entry.id : inode.gid)) {
          in_group = true;
          if ((wanted & ~entry.permissions) == 0) group = entry.permissions;
        }
        break;
      case format::kAclMask:
        mask = entry.permissions;
        break;
      case format::kAclOther:
        has_other = true;
        other = entry.permissions;
        break;
      default:
        break;  // the owner
    }
  }
  if (more < 0) return more;
  if (!any) return -ENODATA;
  if (!has_other) return -EUCLEAN;
  const uint32_t granted = is_named ? named & mask : in_group ? group & mask : other;
  return (wanted & ~granted) != 0 ? -EACCES : 0;
}

/// Whether an access list of `inode`, if it has one, is to be asked.
GOFS_HD inline bool asks_acl(const Credentials& who, const f2fs::Inode& inode) {
  return f2fs::may_have_xattrs(inode) && (inode.mode & 070) != 0 && who.uid != 0 &&
         who.uid != inode.uid;
}

/// check_permission() where the attributes are loaded. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int check_loaded_permission(simt::AnyWarp auto warp, Filesystem& fs,
                                                         const f2fs::Inode& inode,
                                                         const f2fs::XattrBytes& xattrs,
                                                         uint32_t wanted) {
  const Credentials& who = credentials_of(warp, fs);
  if (!asks_acl(who, inode)) return check_access(who, inode, wanted);
  f2fs::Xattr acl{};
  const int found = f2fs::find_xattr(warp, fs.volume, xattrs, format::kXattrAclAccess, "", 0, acl);
  if (found < 0) return found;
  const int verdict = found == 0 ? -ENODATA : judge_acl(who, inode, xattrs, acl, wanted);
  if (verdict == -EUCLEAN) {
    return f2fs::report_xattr(warp, fs.volume, inode.ino, acl.value_at);
  }
  return verdict == -ENODATA ? check_access(who, inode, wanted) : verdict;
}

/// check_permission() of an inode that asks_acl(), with spare blocks of the caller's.
GOFS_NOINLINE GOFS_HD inline int check_acl(simt::AnyWarp auto warp, Filesystem& fs,
                                           const f2fs::Inode& inode, uint32_t wanted,
                                           const f2fs::SpareBlocks<2>& spare) {
  f2fs::XattrBytes xattrs{};
  const int error = f2fs::load_xattrs_into(warp, fs.volume, inode, spare, xattrs);
  return error < 0 ? error : check_loaded_permission(warp, fs, inode, xattrs, wanted);
}

/// The same for who holds no spare block.
GOFS_NOINLINE GOFS_HD inline int check_acl(simt::AnyWarp auto warp, Filesystem& fs,
                                           const f2fs::Inode& inode, uint32_t wanted) {
  f2fs::SpareBlocks<2> spare{};
  if (!f2fs::take_spares(warp, fs.pool, f2fs::kFrameTimeoutNs, spare)) return -EBUSY;
  const int verdict = check_acl(warp, fs, inode, wanted, spare);
  f2fs::release_spares(warp, fs.pool, spare);
  return verdict;
}

/// The same for the inode of each lane in `lanes`, which are some. Collective. Per lane.
GOFS_NOINLINE GOFS_HD inline int check_acls(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes,
                                            uint32_t ino, uint32_t wanted) {
  int verdict = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t owner = simt::lowest_bit(lanes);
    f2fs::Inode inode{};
    int theirs = simt::first_error(
        warp, f2fs::load_inodes(warp, fs.volume, warp.ballot(true), warp.shfl(ino, owner), inode));
    if (theirs == 0) theirs = check_acl(warp, fs, inode, wanted);
    if (warp.thread_rank() == owner) verdict = theirs;
  }
  return verdict;
}

}  // namespace detail

/// Whether the caller may do with `inode` what `wanted` says (AccessBits): by its access list if it
/// has one, else by its mode. What is immutable is not written to: -EPERM. Collective, uniform. 0,
/// -EACCES, or why the list cannot be read: -EUCLEAN, -EBUSY, or a device's. The caller holds no
/// spare block.
GOFS_HD inline int check_permission(simt::AnyWarp auto warp, Filesystem& fs,
                                    const f2fs::Inode& inode, uint32_t wanted) {
  if ((wanted & kMayWrite) != 0 && (inode.flags & format::kFlagImmutable) != 0) return -EPERM;
  const Credentials& who = credentials_of(warp, fs);
  return detail::asks_acl(who, inode) ? detail::check_acl(warp, fs, inode, wanted)
                                      : check_access(who, inode, wanted);
}

/// check_permission() for the inode of each lane in `lanes`. Collective. Per lane.
GOFS_HD inline int check_permissions(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes,
                                     const f2fs::Inode& inode, uint32_t wanted) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const Credentials& who = credentials_of(warp, fs);
  const bool asks = mine && detail::asks_acl(who, inode);
  const uint32_t asking = warp.ballot(asks);
  const int listed = asking != 0 ? detail::check_acls(warp, fs, asking, inode.ino, wanted) : 0;
  return asks ? listed : check_access(who, inode, wanted);
}

}  // namespace gofs::vfs
