// SPDX-License-Identifier: Apache-2.0
//
// chmod, chown and utimens, with the answers that Linux gives on F2FS. All functions are collective
// with uniform arguments and answers, by one warp. Seen by others at once, durable after sync().
#pragma once

#include "f2fs/change_attributes.h"
#include "f2fs/set_xattr.h"
#include "vfs/change.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

using gofs::kKeepId;
using gofs::kTimeNow;
using gofs::kTimeOmit;

namespace detail {

GOFS_HD inline bool is_frozen(const f2fs::Inode& inode) {
  return (inode.flags & (format::kFlagImmutable | format::kFlagAppend)) != 0;
}

/// The permissions of an access list's entry under a new mode, or `now`, which it has: the owner's,
/// the others', and the mask's or, where there is none, the owning group's.
GOFS_HD inline uint32_t acl_permissions(uint32_t tag, uint32_t mode, bool has_mask, uint32_t now) {
  switch (tag) {
    case format::kAclOwner:
      return mode >> 6 & 7u;
    case format::kAclGroupOwner:
      return has_mask ? now : mode >> 3 & 7u;
    case format::kAclMask:
      return mode >> 3 & 7u;
    case format::kAclOther:
      return mode & 7u;
    default:
      return now;
  }
}

/// Brings the access list in line with a new mode. One lane. 0 or -EUCLEAN, which is still to be
/// reported.
GOFS_HD inline int edit_acl(const f2fs::detail::XattrDraft& draft, const f2fs::Xattr& acl,
                            uint32_t mode) {
  bool has_mask = false;
  uint32_t cursor = 0;
  AclEntry entry{};
  int more = 0;
  while ((more = next_acl_entry(draft.xattrs, acl, cursor, entry)) > 0) {
    has_mask = has_mask || entry.tag == format::kAclMask;
  }
  if (more < 0) return more;
  cursor = 0;
  for (;;) {
    if (next_acl_entry(draft.xattrs, acl, cursor, entry) <= 0) return 0;
    const bool named = entry.tag == format::kAclUser || entry.tag == format::kAclGroup;
    const uint32_t bytes = named ? sizeof(format::AclEntry) : sizeof(format::AclEntryShort);
    const uint32_t at = acl.value_at + cursor - bytes +
                        static_cast<uint32_t>(offsetof(format::AclEntryShort, e_perm));
    draft.put(at,
              static_cast<uint8_t>(acl_permissions(entry.tag, mode, has_mask, entry.permissions)));
  }
}

/// The same within an operation. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int change_acl(simt::AnyWarp auto warp, f2fs::Operation& op,
                                            Filesystem& fs, f2fs::Inode& inode, uint32_t mode) {
  if (!f2fs::may_have_xattrs(inode)) return 0;
  const int error =
      f2fs::edit_xattrs(warp, op, inode, op.now, [&](f2fs::detail::XattrDraft& draft) {
        f2fs::Xattr acl{};
        const int found =
            f2fs::find_xattr(warp, fs.volume, draft.xattrs, format::kXattrAclAccess, "", 0, acl);
        if (found <= 0) return found < 0 ? found : -ENODATA;
        warp.sync();
        int edited = 0;
        if (warp.thread_rank() == 0) edited = edit_acl(draft, acl, mode);
        edited = warp.shfl(edited, 0);
        warp.sync();
        return edited < 0 ? f2fs::report_xattr(warp, fs.volume, inode.ino, acl.value_at) : 0;
      });
  return error == -ENODATA ? 0 : error;
}

/// Removes "security.capability", which is no longer true of a file that has changed hands, or has
/// other contents. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int drop_capability(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                 f2fs::Inode& inode) {
  if (!f2fs::may_have_xattrs(inode)) return 0;
  const char* const name = "capability";
  const f2fs::XattrChange change{format::kXattrSecurity,   name,  10, nullptr, 0,
                                 f2fs::XattrMode::kEither, op.now};
  const int error = f2fs::set_xattr(warp, op, inode, change);
  return error == -ENODATA ? 0 : error;
}

/// Collective, uniform.
GOFS_HD inline int apply_change(simt::AnyWarp auto warp, f2fs::Operation& op, uint32_t ino,
                                const f2fs::AttributeChange& change) {
  const int error = f2fs::change_attributes(warp, op, 1u, ino, change);
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// chmod(2) of an inode.
GOFS_NOINLINE GOFS_HD inline int change_mode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                             uint32_t mode) {
  const int error = change_inode(
      warp, fs, ino, f2fs::kXattrPages,
      [&](const f2fs::Inode& inode) -> int {
        if (inode.is_symlink()) return -EOPNOTSUPP;
        return is_frozen(inode) || !owns(credentials_of(warp, fs), inode) ? -EPERM : 0;
      },
      [&](f2fs::Operation& op, f2fs::Inode& inode) {
        f2fs::AttributeChange change{};
        change.mask = f2fs::kSetPermissions;
        change.changed = op.now;
        change.permissions = static_cast<uint16_t>(mode & format::kModePermissionMask);
        if (op.caller().uid != 0 && !op.caller().in_group(inode.gid)) {
          change.permissions &= static_cast<uint16_t>(~uint32_t{format::kModeSetGroupId});
        }
        const int listed = change_acl(warp, op, fs, inode, change.permissions);
        if (listed < 0) return listed;
        const int changed = apply_change(warp, op, ino, change);
        // The next write looks again whether it has set-ID bits.
        if (warp.thread_rank() == 0) invalidate_times_set(fs, ino);
        return changed;
      });
  if (error == 0 && warp.thread_rank() == 0) invalidate_paths(fs);
  warp.sync();
  return error;
}

/// Bits of the mode that let others act as the file's owner or his group, and that go with a change
/// of what it holds or of whose it is.
GOFS_HD inline uint32_t setid_of(const Credentials& who, const f2fs::Inode& inode) {
  if (inode.is_directory()) return 0;
  const bool stranger = who.uid != 0 && !who.in_group(inode.gid);
  const bool group = (inode.mode & format::kModeGroupExecutes) != 0 || stranger;
  return inode.mode & (format::kModeSetUserId | (group ? uint32_t{format::kModeSetGroupId} : 0));
}

/// Whether the caller may give the file to `uid` and `gid`. Any caller may give it to neither, as
/// long as the mode stays.
GOFS_HD inline int may_give(const Credentials& who, const f2fs::Inode& inode, uint32_t uid,
                            uint32_t gid) {
  if (is_frozen(inode)) return -EPERM;
  if (who.uid == 0) return 0;
  const bool owner = who.uid == inode.uid;
  const bool keeps_user = uid == kKeepId || (uid == inode.uid && owner);
  const bool own_group = owner && (gid == inode.gid || who.in_group(gid));
  const bool keeps_mode = owner || setid_of(who, inode) == 0;
  return keeps_user && (gid == kKeepId || own_group) && keeps_mode ? 0 : -EPERM;
}

/// chown(2) of an inode.
GOFS_NOINLINE GOFS_HD inline int change_owner(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                              uint32_t uid, uint32_t gid) {
  const int error = change_inode(
      warp, fs, ino, f2fs::kXattrPages,
      [&](const f2fs::Inode& inode) { return may_give(credentials_of(warp, fs), inode, uid, gid); },
      [&](f2fs::Operation& op, f2fs::Inode& inode) {
        f2fs::AttributeChange change{};
        change.changed = op.now;
        change.uid = uid;
        change.gid = gid;
        if (uid != kKeepId) change.mask |= f2fs::kSetUid;
        if (gid != kKeepId) change.mask |= f2fs::kSetGid;
        // Whoever runs it from now on shall not become the new owner.
        if (!inode.is_directory()) {
          const uint32_t setid = setid_of(op.caller(), inode);
          uint32_t mode = inode.mode & format::kModePermissionMask & ~setid;
          const uint32_t group = gid != kKeepId ? gid : inode.gid;
          if (setid != 0 && op.caller().uid != 0 && !op.caller().in_group(group)) {
            mode &= ~uint32_t{format::kModeSetGroupId};
          }
          change.permissions = static_cast<uint16_t>(mode);
          change.mask |= f2fs::kSetPermissions;
          const int dropped = drop_capability(warp, op, inode);
          if (dropped < 0) return dropped;
        }
        return apply_change(warp, op, ino, change);
      });
  if (error == 0 && warp.thread_rank() == 0) invalidate_paths(fs);
  warp.sync();
  return error;
}

GOFS_HD inline bool is_time(const f2fs::TimeStamp& time) {
  return time.nanoseconds < 1'000'000'000 || time.nanoseconds == kTimeNow ||
         time.nanoseconds == kTimeOmit;
}

/// Where nothing is to change, Linux does not even look at the path or the descriptor.
GOFS_HD inline bool keeps_times(const f2fs::TimeStamp& accessed, const f2fs::TimeStamp& modified) {
  return accessed.nanoseconds == kTimeOmit && modified.nanoseconds == kTimeOmit;
}

/// Whether the caller may set these times: the present time, any caller that may write.
GOFS_HD inline int may_set_times(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                                 bool present) {
  if ((inode.flags & format::kFlagImmutable) != 0) return -EPERM;
  if (present) {
    return owns(credentials_of(warp, fs), inode) ? 0 : check_permission(warp, fs, inode, kMayWrite);
  }
  return (inode.flags & format::kFlagAppend) != 0 || !owns(credentials_of(warp, fs), inode) ? -EPERM
                                                                                            : 0;
}

/// utimensat(2) of an inode.
GOFS_NOINLINE GOFS_HD inline int change_times(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                              const f2fs::TimeStamp& accessed,
                                              const f2fs::TimeStamp& modified) {
  if (!is_time(accessed) || !is_time(modified)) return -EINVAL;
  const bool present = accessed.nanoseconds == kTimeNow && modified.nanoseconds == kTimeNow;
  return change_inode(
      warp, fs, ino, 1,
      [&](const f2fs::Inode& inode) { return may_set_times(warp, fs, inode, present); },
      [&](f2fs::Operation& op, f2fs::Inode&) {
        f2fs::AttributeChange change{};
        change.changed = op.now;
        change.accessed = accessed.nanoseconds == kTimeNow ? change.changed : accessed;
        change.modified = modified.nanoseconds == kTimeNow ? change.changed : modified;
        if (accessed.nanoseconds != kTimeOmit) change.mask |= f2fs::kSetAccessed;
        if (modified.nanoseconds != kTimeOmit) change.mask |= f2fs::kSetModified;
        const int error = apply_change(warp, op, ino, change);
        if (warp.thread_rank() == 0) invalidate_times_set(fs, ino);
        return error;
      });
}

/// Calls `change(ino)` with the inode that `path` names. Collective, uniform.
template <typename Change>
GOFS_HD int change_path(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                        LastLink last_link, Change change) {
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, last_link, inode);
    return error < 0 ? error : change(inode.ino);
  });
}

/// The same with the inode of number `ino`, for those who walk a whole volume: permissions of the
/// directories above are not asked. -ESTALE where it has been removed.
template <typename Change>
GOFS_HD int change_numbered(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino, Change change) {
  const int refused = may_use_numbers(warp);
  if (refused < 0) return refused;
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int loaded = load_numbered(warp, fs, warp.ballot(true), ino, inode);
    const int error = simt::first_error(warp, loaded);
    return error < 0 ? error : change(ino);
  });
}

/// The same with the inode that `fd` has open.
template <typename Change>
GOFS_HD int change_open(const simt::AnyWarp auto& warp, const Filesystem& fs, int fd,
                        Change change) {
  const Descriptor* const descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  return change(fs.open_inodes[descriptor->open_inode].inode.ino);
}

}  // namespace detail

/// chmod(2): the permissions of `mode`; an access list follows them. -EPERM, -EROFS, and what
/// resolve() and f2fs::begin_operation() say.
GOFS_HD inline int chmod(simt::AnyWarp auto warp, Filesystem& fs, const char* path, uint32_t mode) {
  return detail::change_path(warp, fs, path, LastLink::kFollow, [&](uint32_t ino) {
    return detail::change_mode(warp, fs, ino, mode);
  });
}

/// The same of the inode with number `ino`.
GOFS_HD inline int chmod_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                               uint32_t mode) {
  return detail::change_numbered(
      warp, fs, ino, [&](uint32_t) { return detail::change_mode(warp, fs, ino, mode); });
}

/// fchmod(2).
GOFS_HD inline int fchmod(simt::AnyWarp auto warp, Filesystem& fs, int fd, uint32_t mode) {
  return detail::change_open(
      warp, fs, fd, [&](uint32_t ino) { return detail::change_mode(warp, fs, ino, mode); });
}

/// chown(2), with LastLink::kKeep lchown(2): to `uid` and `gid`, of which kKeepId changes nothing.
GOFS_HD inline int chown(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                         LastLink last_link, uint32_t uid, uint32_t gid) {
  return detail::change_path(warp, fs, path, last_link, [&](uint32_t ino) {
    return detail::change_owner(warp, fs, ino, uid, gid);
  });
}

/// lchown(2) of the inode with number `ino`.
GOFS_HD inline int chown_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino, uint32_t uid,
                               uint32_t gid) {
  return detail::change_numbered(
      warp, fs, ino, [&](uint32_t) { return detail::change_owner(warp, fs, ino, uid, gid); });
}

/// fchown(2).
GOFS_HD inline int fchown(simt::AnyWarp auto warp, Filesystem& fs, int fd, uint32_t uid,
                          uint32_t gid) {
  return detail::change_open(
      warp, fs, fd, [&](uint32_t ino) { return detail::change_owner(warp, fs, ino, uid, gid); });
}

/// utimensat(2), with LastLink::kKeep of a symbolic link itself. Nanoseconds may be kTimeNow or
/// kTimeOmit.
GOFS_HD inline int utimens(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                           LastLink last_link, const f2fs::TimeStamp& accessed,
                           const f2fs::TimeStamp& modified) {
  if (detail::keeps_times(accessed, modified)) return 0;
  return detail::change_path(warp, fs, path, last_link, [&](uint32_t ino) {
    return detail::change_times(warp, fs, ino, accessed, modified);
  });
}

/// The same of the inode with number `ino` itself.
GOFS_HD inline int utimens_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                 const f2fs::TimeStamp& accessed, const f2fs::TimeStamp& modified) {
  if (detail::keeps_times(accessed, modified)) return 0;
  return detail::change_numbered(warp, fs, ino, [&](uint32_t) {
    return detail::change_times(warp, fs, ino, accessed, modified);
  });
}

/// futimens(3).
GOFS_HD inline int futimens(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                            const f2fs::TimeStamp& accessed, const f2fs::TimeStamp& modified) {
  if (detail::keeps_times(accessed, modified)) return 0;
  return detail::change_open(warp, fs, fd, [&](uint32_t ino) {
    return detail::change_times(warp, fs, ino, accessed, modified);
  });
}

}  // namespace gofs::vfs
