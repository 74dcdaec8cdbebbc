// SPDX-License-Identifier: Apache-2.0
//
// Writing access lists, as Linux does (acl(5)): those that programs set, and those that new files
// have from the default list of their directory. What a list says of the owner, the group or the
// mask, and all others, is what the permissions of the mode say; a list that says no more is not
// kept.
#pragma once

#include "f2fs/set_xattr.h"
#include "vfs/access_list.h"

namespace gofs::vfs::detail {

/// A list as programs give it: a version, then entries of 8 bytes, at any address.
struct GivenAcl {
  static constexpr uint32_t kVersion = 2;
  static constexpr uint32_t kVersionBytes = 4;

  const uint8_t* bytes;
  uint32_t count;  // of entries

  GOFS_HD static uint32_t number(const uint8_t* at, uint32_t bytes) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < bytes; ++i) value |= uint32_t{at[i]} << 8 * i;
    return value;
  }
  GOFS_HD AclEntry entry(uint32_t i) const {
    const uint8_t* const at = bytes + kVersionBytes + uint64_t{i} * sizeof(format::AclEntry);
    return {number(at, 2), number(at + 2, 2), number(at + 4, 4)};
  }
};

/// What the entries of a list come to.
struct AclSummary {
  uint32_t mode;        // permissions that say the same of owner, group and others
  bool extended;        // it says more than these
  uint32_t disk_bytes;  // of its value on disk
};

GOFS_HD constexpr bool has_id(uint32_t tag) {
  return tag == format::kAclUser || tag == format::kAclGroup;
}
GOFS_HD constexpr uint32_t disk_bytes_of(uint32_t tag) {
  return has_id(tag) ? sizeof(format::AclEntry) : sizeof(format::AclEntryShort);
}

GOFS_HD inline void add_to_summary(const AclEntry& entry, AclSummary& summary) {
  summary.disk_bytes += disk_bytes_of(entry.tag);
  switch (entry.tag) {
    case format::kAclOwner:
      summary.mode |= entry.permissions << 6;
      break;
    case format::kAclGroupOwner:
      summary.mode |= entry.permissions << 3;
      break;
    case format::kAclOther:
      summary.mode |= entry.permissions;
      break;
    case format::kAclMask:  // stands behind the groups
      summary.mode = (summary.mode & ~070u) | entry.permissions << 3;
      summary.extended = true;
      break;
    default:
      summary.extended = true;
  }
}

/// Whether entry `tag` may come after one of `before` (0: the first): owner, users, owning group,
/// groups, mask, others; only the named ones more than once, and none of the others left out but
/// the mask, which lists with named ones have.
GOFS_HD inline bool follows(uint32_t before, uint32_t tag, bool named) {
  switch (tag) {
    case format::kAclOwner:
      return before == 0;
    case format::kAclUser:
    case format::kAclGroupOwner:
      return before == format::kAclOwner || before == format::kAclUser;
    case format::kAclGroup:
    case format::kAclMask:
      return before == format::kAclGroupOwner || before == format::kAclGroup;
    case format::kAclOther:
      return before == format::kAclMask ||
             (!named && (before == format::kAclGroupOwner || before == format::kAclGroup));
    default:
      return false;
  }
}

GOFS_HD constexpr bool is_known_tag(uint32_t tag) {
  return has_id(tag) || tag == format::kAclOwner || tag == format::kAclGroupOwner ||
         tag == format::kAclMask || tag == format::kAclOther;
}

/// Takes apart the value that a program has given. 0; -EINVAL, or -EOPNOTSUPP for another version.
/// A list without entries is none; another one still has to be checked (check_given_acl()).
GOFS_HD inline int parse_given_acl(const void* value, uint64_t bytes, GivenAcl& acl,
                                   AclSummary& summary) {
  acl = {static_cast<const uint8_t*>(value), 0};
  summary = {0, false, sizeof(uint32_t)};
  if (bytes == 0) return 0;
  if (bytes < GivenAcl::kVersionBytes) return -EINVAL;
  if (GivenAcl::number(acl.bytes, 4) != GivenAcl::kVersion) return -EOPNOTSUPP;
  const uint64_t rest = bytes - GivenAcl::kVersionBytes;
  if (rest % sizeof(format::AclEntry) != 0) return -EINVAL;
  acl.count = static_cast<uint32_t>(rest / sizeof(format::AclEntry));
  for (uint32_t i = 0; i < acl.count; ++i) {
    const AclEntry entry = acl.entry(i);
    if (!is_known_tag(entry.tag)) return -EINVAL;
    if (has_id(entry.tag) && entry.id == AclEntry::kNoId) return -EINVAL;
    add_to_summary(entry, summary);
  }
  return 0;
}

/// Whether the entries, if there are any, make a list. 0 or -EINVAL.
GOFS_HD inline int check_given_acl(const GivenAcl& acl) {
  uint32_t before = 0;
  bool named = false;
  for (uint32_t i = 0; i < acl.count; ++i) {
    const AclEntry entry = acl.entry(i);
    if (entry.permissions > 7 || !follows(before, entry.tag, named)) return -EINVAL;
    named = named || has_id(entry.tag);
    before = entry.tag;
  }
  return acl.count == 0 || before == format::kAclOther ? 0 : -EINVAL;
}

/// Takes the list `index` out of a draft, if it is there. Collective, uniform. 0 or a negative
/// errno.
GOFS_HD inline int erase_acl(simt::AnyWarp auto warp, f2fs::Volume& volume, uint32_t index,
                             f2fs::detail::XattrDraft& draft) {
  f2fs::Xattr old{};
  const int found = f2fs::find_xattr(warp, volume, draft.xattrs, index, "", 0, old);
  if (found <= 0) return found;
  warp.sync();
  if (warp.thread_rank() == 0) f2fs::detail::erase_entry(draft, old);
  draft.used = warp.shfl(draft.used, 0);
  warp.sync();
  return 0;
}

/// Puts a list of `disk_bytes` bytes into a draft that has none of that index; `entry(i)` are its
/// `count` entries. Collective, uniform. 0 or -ENOSPC; -EINVAL where the entries are not those that
/// were measured.
template <typename Entries>
GOFS_HD int append_acl(simt::AnyWarp auto warp, uint32_t index, uint32_t disk_bytes, uint32_t count,
                       f2fs::detail::XattrDraft& draft, Entries entry) {
  const uint64_t header = draft.used == 0 ? sizeof(format::XattrHeader) : draft.used;
  const uint64_t needed = header + format::XattrEntry::padded_bytes(0, 0) + disk_bytes;
  // Linux wants an end mark.
  if (needed + sizeof(uint32_t) > draft.xattrs.bytes) return -ENOSPC;
  warp.sync();
  bool as_measured = true;
  if (warp.thread_rank() == 0) {
    f2fs::detail::begin_entry(draft, {static_cast<uint8_t>(index), 0, disk_bytes});
    const uint32_t end = draft.used + disk_bytes;
    draft.put_word(draft.used, format::kAclVersion);
    draft.used += 4;
    for (uint32_t i = 0; i < count; ++i) {
      const AclEntry one = entry(i);
      if (draft.used + (has_id(one.tag) ? 8 : 4) > end) {
        as_measured = false;
        break;
      }
      draft.put_word(draft.used, one.tag | one.permissions << 16);
      draft.used += 4;
      if (!has_id(one.tag)) continue;
      draft.put_word(draft.used, one.id);
      draft.used += 4;
    }
    as_measured = as_measured && draft.used == end;
  }
  draft.used = warp.shfl(draft.used, 0);
  warp.sync();
  return warp.shfl(as_measured ? 1u : 0u, 0) != 0 ? 0 : -EINVAL;
}

/// The default list of a directory, while a new file takes it over. The blocks hold the directory's
/// attributes and the new file's.
struct InheritedAcl {
  f2fs::SpareBlocks<4> spare;
  f2fs::XattrBytes xattrs;  // of the directory
  f2fs::Xattr acl;
  uint32_t count;        // of entries; 0: there is no list, and no blocks are held
  AclSummary summary;    // of the list that the new file gets
  uint32_t permissions;  // that were asked for

  /// Entry `i` as the directory has it, which is sound.
  GOFS_HD AclEntry entry(uint32_t i) const {
    AclEntry one{};
    uint32_t cursor = 0;
    for (uint32_t k = 0; k <= i; ++k) (void)next_acl_entry(xattrs, acl, cursor, one);
    return one;
  }
  /// As the new file has it: what was not asked for is not granted.
  GOFS_HD AclEntry granted(uint32_t i, bool has_mask) const {
    AclEntry one = entry(i);
    if (one.tag == format::kAclOwner) one.permissions &= permissions >> 6;
    if (one.tag == format::kAclOther) one.permissions &= permissions;
    if (one.tag == (has_mask ? format::kAclMask : format::kAclGroupOwner)) {
      one.permissions &= permissions >> 3;
    }
    return one;
  }
  GOFS_HD bool has_mask() const {
    bool found = false;
    for (uint32_t i = 0; i < count; ++i) found = found || entry(i).tag == format::kAclMask;
    return found;
  }
};

/// Collective.
GOFS_HD inline void release_inherited(simt::AnyWarp auto warp, Filesystem& fs,
                                      InheritedAcl& inherited) {
  if (inherited.count != 0) f2fs::release_spares(warp, fs.pool, inherited.spare);
  inherited.count = 0;
}

/// Loads the default list of `directory`, if it has one, for a file with `permissions`; they become
/// what the list leaves of them. Collective, uniform; the caller holds no spare blocks. 0 or a
/// negative errno: -EBUSY, -EUCLEAN, what the device says.
GOFS_NOINLINE GOFS_HD inline int load_inherited(simt::AnyWarp auto warp, Filesystem& fs,
                                                const f2fs::Inode& directory, uint16_t& mode,
                                                InheritedAcl& inherited) {
  inherited.count = 0;
  if (!f2fs::may_have_xattrs(directory)) return 0;
  if (!f2fs::take_spares(warp, fs.pool, f2fs::kFrameTimeoutNs, inherited.spare)) return -EBUSY;
  const f2fs::SpareBlocks<2> spare{{inherited.spare.blocks[0], inherited.spare.blocks[1]}};
  int error = f2fs::load_xattrs_into(warp, fs.volume, directory, spare, inherited.xattrs);
  int found = 0;
  if (error == 0 && inherited.xattrs.bytes != 0) {
    found = f2fs::find_xattr(warp, fs.volume, inherited.xattrs, format::kXattrAclDefault, "", 0,
                             inherited.acl);
    error = found < 0 ? found : 0;
  }
  uint32_t count = 0;
  if (found > 0) {
    uint32_t cursor = 0;
    AclEntry entry{};
    int more = 0;
    while ((more = next_acl_entry(inherited.xattrs, inherited.acl, cursor, entry)) > 0) ++count;
    if (more < 0) {
      error = f2fs::report_xattr(warp, fs.volume, directory.ino, inherited.acl.value_at);
    }
  }
  if (error < 0 || count == 0) {
    f2fs::release_spares(warp, fs.pool, inherited.spare);
    return error;
  }
  inherited.count = count;
  inherited.permissions = mode & 0777u;
  inherited.summary = {0, false, sizeof(uint32_t)};
  const bool has_mask = inherited.has_mask();
  for (uint32_t i = 0; i < count; ++i) {
    add_to_summary(inherited.granted(i, has_mask), inherited.summary);
  }
  mode = static_cast<uint16_t>((mode & ~0777u) | (inherited.summary.mode & 0777u));
  return 0;
}

/// Gives the new inode `ino`, which nothing refers to yet, the lists that it inherits. Collective,
/// uniform. 0 or a negative errno. Changes at most f2fs::kXattrPages pages.
GOFS_NOINLINE GOFS_HD inline int store_inherited(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                 Filesystem& fs, uint32_t ino,
                                                 const InheritedAcl& inherited) {
  if (inherited.count == 0) return 0;
  f2fs::Inode inode{};
  const int loaded =
      simt::first_error(warp, f2fs::load_inodes(warp, fs.volume, warp.ballot(true), ino, inode));
  if (loaded < 0) return loaded;
  if (!inode.is_directory() && !inherited.summary.extended) return 0;
  const f2fs::SpareBlocks<2> spare{{inherited.spare.blocks[2], inherited.spare.blocks[3]}};
  const bool has_mask = inherited.has_mask();
  return f2fs::edit_xattrs_in(warp, op, spare, inode, op.now, [&](f2fs::detail::XattrDraft& draft) {
    int error = 0;
    if (inode.is_directory()) {
      error = append_acl(warp, format::kXattrAclDefault, inherited.summary.disk_bytes,
                         inherited.count, draft, [&](uint32_t i) { return inherited.entry(i); });
    }
    if (error == 0 && inherited.summary.extended) {
      error =
          append_acl(warp, format::kXattrAclAccess, inherited.summary.disk_bytes, inherited.count,
                     draft, [&](uint32_t i) { return inherited.granted(i, has_mask); });
    }
    return error;
  });
}

}  // namespace gofs::vfs::detail
