// SPDX-License-Identifier: Apache-2.0
//
// Setting and removing extended attributes by name, with the answers that Linux gives on F2FS. All
// functions are collective with uniform arguments and answers, by one warp. Seen by others at once,
// durable after sync(). Access lists cannot be set yet (-EOPNOTSUPP).
#pragma once

#include "vfs/change_attributes.h"
#include "vfs/xattr.h"

namespace gofs::vfs {

/// Flags of setxattr(), with Linux's numbers.
inline constexpr uint32_t kXattrCreate = 1;
inline constexpr uint32_t kXattrReplace = 2;
/// As XATTR_SIZE_MAX: what Linux takes in any file system.
inline constexpr uint64_t kXattrValueBytesMax = 65536;

namespace detail {

/// Whether the caller may change such attributes of `inode`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int may_change_xattr(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const f2fs::Inode& inode, uint32_t index) {
  constexpr uint32_t kSticky = 01000;
  const Credentials& who = fs.credentials;
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

GOFS_NOINLINE GOFS_HD inline int change_xattr(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                              const char* name, const XattrValue& value) {
  XattrName whole{};
  XattrName rest{};
  uint32_t index = 0;
  if ((value.flags & ~(kXattrCreate | kXattrReplace)) != 0) return -EINVAL;
  int error = measure_name(warp, name, whole);
  if (error == 0 && value.count > kXattrValueBytesMax) error = -E2BIG;
  if (error == 0) error = parse_name(whole, index, rest);
  if (error < 0) return error;
  f2fs::XattrChange change{};
  change.index = static_cast<uint8_t>(index);
  change.name = rest.text;
  change.name_bytes = rest.bytes;
  change.value = value.bytes;
  change.value_bytes = static_cast<uint32_t>(value.count);
  if ((value.flags & kXattrCreate) != 0) change.mode = f2fs::XattrMode::kCreate;
  if ((value.flags & kXattrReplace) != 0) change.mode = f2fs::XattrMode::kReplace;
  return change_inode(
      warp, fs, ino, f2fs::kXattrPages,
      [&](const f2fs::Inode& inode) { return may_change_xattr(warp, fs, inode, index); },
      [&](f2fs::Inode& inode) {
        change.changed = time_now(fs);
        return f2fs::set_xattr(warp, fs.volume, *fs.writer, fs.pool, inode, change);
      });
}

/// What stands for an empty value, which is not the same as none.
GOFS_HD inline XattrValue given(const void* value, uint64_t bytes, uint32_t flags) {
  return {value != nullptr ? value : "", value != nullptr ? bytes : 0, flags};
}

}  // namespace detail

/// setxattr(2), with LastLink::kKeep lsetxattr(2): `bytes` bytes of `value`, in memory that the
/// calling warp reaches, under `name` (NUL-terminated). -EEXIST, -ENODATA, -ENOSPC (also of the
/// inode's room), -E2BIG, -ERANGE, -EINVAL, -EOPNOTSUPP, -EPERM, -EACCES, -EROFS.
GOFS_HD inline int setxattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                            LastLink last_link, const char* name, const void* value, uint64_t bytes,
                            uint32_t flags) {
  return detail::change_path(warp, fs, path, last_link, [&](uint32_t ino) {
    return detail::change_xattr(warp, fs, ino, name, detail::given(value, bytes, flags));
  });
}

/// fsetxattr(2).
GOFS_HD inline int fsetxattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, const char* name,
                             const void* value, uint64_t bytes, uint32_t flags) {
  return detail::change_open(fs, fd, [&](uint32_t ino) {
    return detail::change_xattr(warp, fs, ino, name, detail::given(value, bytes, flags));
  });
}

/// removexattr(2), with LastLink::kKeep lremovexattr(2). As setxattr().
GOFS_HD inline int removexattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                               LastLink last_link, const char* name) {
  return detail::change_path(warp, fs, path, last_link, [&](uint32_t ino) {
    return detail::change_xattr(warp, fs, ino, name, {nullptr, 0, 0});
  });
}

/// fremovexattr(2).
GOFS_HD inline int fremovexattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, const char* name) {
  return detail::change_open(fs, fd, [&](uint32_t ino) {
    return detail::change_xattr(warp, fs, ino, name, {nullptr, 0, 0});
  });
}

}  // namespace gofs::vfs
