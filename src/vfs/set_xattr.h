// SPDX-License-Identifier: Apache-2.0
//
// Setting and removing extended attributes by name, with the answers that Linux gives on F2FS. All
// functions are collective with uniform arguments and answers, by one warp. Seen by others at once,
// durable after sync().
#pragma once

#include "vfs/change_attributes.h"
#include "vfs/edit_access_list.h"
#include "vfs/xattr.h"

namespace gofs::vfs {

using gofs::kXattrCreate;
using gofs::kXattrReplace;
using gofs::kXattrValueBytesMax;
static_assert(kXattrCreate == static_cast<uint32_t>(f2fs::XattrMode::kCreate) &&
              kXattrReplace == static_cast<uint32_t>(f2fs::XattrMode::kReplace));

namespace detail {

/// Whether the caller may change such attributes of `inode`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int may_change_xattr(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const f2fs::Inode& inode, uint32_t index) {
  constexpr uint32_t kSticky = 01000;
  const Credentials& who = credentials_of(warp, fs);
  if (is_frozen(inode)) return -EPERM;
  switch (index) {
    case format::kXattrUser:
      if (!inode.is_regular() && !inode.is_directory()) return -EPERM;
      if (inode.is_directory() && (inode.mode & kSticky) != 0 && !owns(who, inode)) return -EPERM;
      return check_permission(warp, fs, inode, kMayWrite);
    case format::kXattrTrusted:
    case format::kXattrSecurity:
      return who.uid == 0 ? 0 : -EPERM;
    default:
      return -EOPNOTSUPP;
  }
}

/// A value as a program gives it; null: the attribute is removed.
struct XattrValue {
  const void* bytes;
  uint64_t count;
  uint32_t flags;
};

/// Puts the list `acl` into a draft, instead of what is there of that index. Collective, uniform.
GOFS_HD inline int replace_acl(simt::AnyWarp auto warp, f2fs::Volume& volume, uint32_t index,
                               const GivenAcl& acl, const AclSummary& summary,
                               f2fs::detail::XattrDraft& draft) {
  const int erased = erase_acl(warp, volume, index, draft);
  if (erased < 0 || acl.count == 0) return erased;
  return append_acl(warp, index, summary.disk_bytes, acl.count, draft,
                    [&](uint32_t i) { return acl.entry(i); });
}

/// Sets the list `index` of `inode`; an access list, also the permissions that it says. Collective,
/// uniform.
GOFS_NOINLINE GOFS_HD inline int set_acl(simt::AnyWarp auto warp, f2fs::Operation& op,
                                         Filesystem& fs, f2fs::Inode& inode, uint32_t index,
                                         const GivenAcl& acl, const AclSummary& summary) {
  const bool access = index == format::kXattrAclAccess;
  if (!access && !inode.is_directory()) return 0;  // there is none that could go
  GivenAcl kept = acl;
  if (access && !summary.extended) kept.count = 0;
  // One that was not there may go.
  if (kept.count != 0 || f2fs::may_have_xattrs(inode)) {
    const int error =
        f2fs::edit_xattrs(warp, op, inode, op.now, [&](f2fs::detail::XattrDraft& draft) {
          return replace_acl(warp, fs.volume, index, kept, summary, draft);
        });
    if (error < 0) return error;
  }
  f2fs::AttributeChange change{};
  change.changed = op.now;
  if (access && acl.count != 0) {
    change.mask = f2fs::kSetPermissions;
    uint32_t mode = (inode.mode & uint32_t{format::kModePermissionMask} & ~0777u) | summary.mode;
    if (op.caller().uid != 0 && !op.caller().in_group(inode.gid)) mode &= ~format::kModeSetGroupId;
    change.permissions = static_cast<uint16_t>(mode);
  }
  return apply_change(warp, op, inode.ino, change);
}

/// setxattr(2) and removexattr(2) of access lists, as Linux answers.
GOFS_NOINLINE GOFS_HD inline int change_acl_xattr(simt::AnyWarp auto warp, Filesystem& fs,
                                                  uint32_t ino, uint32_t index,
                                                  const XattrValue& value) {
  if (fs.writer == nullptr) return -EROFS;
  GivenAcl acl{};
  AclSummary summary{};
  int error = value.bytes == nullptr ? 0 : parse_given_acl(value.bytes, value.count, acl, summary);
  if (error < 0) return error;
  error = change_inode(
      warp, fs, ino, f2fs::kXattrPages,
      [&](const f2fs::Inode& inode) -> int {
        if (is_frozen(inode)) return -EPERM;
        if (inode.is_symlink()) return -EOPNOTSUPP;
        if (index == format::kXattrAclDefault && !inode.is_directory()) {
          return acl.count != 0 ? -EACCES : 0;
        }
        return owns(credentials_of(warp, fs), inode) ? check_given_acl(acl) : -EPERM;
      },
      [&](f2fs::Operation& op, f2fs::Inode& inode) {
        return set_acl(warp, op, fs, inode, index, acl, summary);
      });
  if (error == 0 && warp.thread_rank() == 0) invalidate_paths(fs);
  warp.sync();
  return error;
}

GOFS_NOINLINE GOFS_HD inline int change_xattr(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                              const char* name, const XattrValue& value) {
  XattrName whole{};
  XattrName rest{};
  uint32_t index = 0;
  int error = measure_name(warp, name, whole);
  if (error == 0) error = parse_name(whole, index, rest);
  if (error < 0) return error;
  if (index == format::kXattrAclAccess || index == format::kXattrAclDefault) {
    return change_acl_xattr(warp, fs, ino, index, value);
  }
  f2fs::XattrChange change{};
  change.index = static_cast<uint8_t>(index);
  change.name = rest.text;
  change.name_bytes = rest.bytes;
  change.value = value.bytes;
  change.value_bytes = static_cast<uint32_t>(value.count);
  change.mode = static_cast<f2fs::XattrMode>(value.flags);  // check_xattr_call() has seen them
  const int changed = change_inode(
      warp, fs, ino, f2fs::kXattrPages,
      [&](const f2fs::Inode& inode) { return may_change_xattr(warp, fs, inode, index); },
      [&](f2fs::Operation& op, f2fs::Inode& inode) {
        change.changed = op.now;
        return f2fs::set_xattr(warp, op, inode, change);
      });
  // Who writes to it looks again whether it has capabilities.
  if (index == format::kXattrSecurity && warp.thread_rank() == 0) invalidate_times_set(fs, ino);
  warp.sync();
  return changed;
}

/// What stands for an empty value, which is not the same as none.
GOFS_HD inline XattrValue given(simt::AnyWarp auto warp, const void* value, uint64_t bytes,
                                uint32_t flags) {
  const auto* const begin = simt::reach(warp.thread_rank(), static_cast<const uint8_t*>(value));
  return {begin != nullptr ? static_cast<const void*>(begin) : "", begin != nullptr ? bytes : 0,
          flags};
}

/// What is wrong with a call, whatever it is about. Collective, uniform.
GOFS_HD inline int check_xattr_call(simt::AnyWarp auto warp, const char* name,
                                    const XattrValue& value) {
  XattrName whole{};
  if ((value.flags & ~(kXattrCreate | kXattrReplace)) != 0) return -EINVAL;
  const int error = measure_name(warp, name, whole);
  return error == 0 && value.count > kXattrValueBytesMax ? -E2BIG : error;
}

/// Of an inode that `path` names.
GOFS_NOINLINE GOFS_HD inline int change_xattr_at(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const char* path, LastLink last_link,
                                                 const char* name, const XattrValue& value) {
  const int error = check_xattr_call(warp, name, value);
  if (error < 0) return error;
  return change_path(warp, fs, path, last_link,
                     [&](uint32_t ino) { return change_xattr(warp, fs, ino, name, value); });
}

/// Of an inode that is open.
GOFS_NOINLINE GOFS_HD inline int change_open_xattr(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                   const char* name, const XattrValue& value) {
  const int error = check_xattr_call(warp, name, value);
  if (error < 0) return error;
  return change_open(warp, fs, fd,
                     [&](uint32_t ino) { return change_xattr(warp, fs, ino, name, value); });
}

}  // namespace detail

/// setxattr(2), with LastLink::kKeep lsetxattr(2): `bytes` bytes of `value`, in memory that the
/// calling warp reaches, under `name` (NUL-terminated). -EEXIST, -ENODATA, -ENOSPC (also of the
/// inode's room), -E2BIG, -ERANGE, -EINVAL, -EOPNOTSUPP, -EPERM, -EACCES, -EROFS.
GOFS_HD inline int setxattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                            LastLink last_link, const char* name, const void* value, uint64_t bytes,
                            uint32_t flags) {
  return detail::change_xattr_at(warp, fs, path, last_link, name,
                                 detail::given(warp, value, bytes, flags));
}

/// fsetxattr(2).
GOFS_HD inline int fsetxattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, const char* name,
                             const void* value, uint64_t bytes, uint32_t flags) {
  return detail::change_open_xattr(warp, fs, fd, name, detail::given(warp, value, bytes, flags));
}

/// removexattr(2), with LastLink::kKeep lremovexattr(2). As setxattr().
GOFS_HD inline int removexattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                               LastLink last_link, const char* name) {
  return detail::change_xattr_at(warp, fs, path, last_link, name, {nullptr, 0, 0});
}

/// fremovexattr(2).
GOFS_HD inline int fremovexattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, const char* name) {
  return detail::change_open_xattr(warp, fs, fd, name, {nullptr, 0, 0});
}

}  // namespace gofs::vfs
