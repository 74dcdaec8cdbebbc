// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes by name, with the answers that Linux gives on F2FS (xattr(7), acl(5),
// capabilities(7)): which names there are, who may see them, and values that the disk holds in
// another form than programs get. All functions are collective with uniform arguments and answers,
// by one warp. What lies on the disk is gone through by f2fs/xattr.h.
//
//   user.*      of files and directories only; whoever may read the file
//   trusted.*   user 0 only, who alone sees that they exist
//   security.*  all users
//   system.posix_acl_access, system.posix_acl_default     all users, not of symbolic links
//   system.advise      i_advise as one byte, of every file; never listed
#pragma once

#include "f2fs/xattr.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

using gofs::kXattrListBytesMax;
using gofs::kXattrNameBytesMax;
// All attributes of a file as dump_xattrs() writes them fit in it too: an ACL of 12 bytes on disk
// becomes 41.
static_assert((4 * format::kInodeSlots + format::kXattrNodeBytes) / 12 * 41 <= kXattrListBytesMax);

namespace detail {

struct XattrPrefix {
  const char* text;
  uint32_t bytes;  // 0: programs cannot name such attributes
  bool whole;      // nothing follows it
};

/// What a format::XattrIndex stands for.
GOFS_HD inline XattrPrefix xattr_prefix(uint32_t index) {
  switch (index) {
    case format::kXattrUser:
      return {"user.", 5, false};
    case format::kXattrAclAccess:
      return {"system.posix_acl_access", 23, true};
    case format::kXattrAclDefault:
      return {"system.posix_acl_default", 24, true};
    case format::kXattrTrusted:
      return {"trusted.", 8, false};
    case format::kXattrSecurity:
      return {"security.", 9, false};
    case format::kXattrAdvise:
      return {"system.advise", 13, true};
    default:
      return {"", 0, true};
  }
}

/// A name that a program gave.
struct XattrName {
  const char* text;
  uint32_t bytes;

  GOFS_HD bool starts_with(const char* prefix, uint32_t prefix_bytes) const {
    if (bytes < prefix_bytes) return false;
    for (uint32_t i = 0; i < prefix_bytes; ++i) {
      if (text[i] != prefix[i]) return false;
    }
    return true;
  }
};

/// Measures the NUL-terminated `text`. Collective, uniform. 0, -ERANGE, or -EFAULT: the caller's
/// memory ends before it does.
GOFS_HD inline int measure_name(simt::AnyWarp auto warp, const char* text, XattrName& name) {
  const uint64_t room = simt::room_at(text);
  text = simt::reach(warp.thread_rank(), text);
  uint32_t bytes = 0;
  if (warp.thread_rank() == 0) {
    while (bytes < room && bytes <= kXattrNameBytesMax && text[bytes] != '\0') ++bytes;
  }
  name = XattrName{text, warp.shfl(bytes, 0)};
  if (name.bytes == room) return -EFAULT;
  return name.bytes == 0 || name.bytes > kXattrNameBytesMax ? -ERANGE : 0;
}

/// The index of `name` and what follows its prefix: 0, -EINVAL (only a prefix) or -EOPNOTSUPP (none
/// that F2FS has).
GOFS_HD inline int parse_name(const XattrName& name, uint32_t& index, XattrName& rest) {
  for (index = format::kXattrUser; index <= format::kXattrAdvise; ++index) {
    const XattrPrefix prefix = xattr_prefix(index);
    if (prefix.bytes == 0 || !name.starts_with(prefix.text, prefix.bytes)) continue;
    rest = XattrName{name.text + prefix.bytes, name.bytes - prefix.bytes};
    if (!prefix.whole) return rest.bytes == 0 ? -EINVAL : 0;
    if (rest.bytes == 0) return 0;
  }
  return -EOPNOTSUPP;
}

/// Who may read attributes of this name: 0 any user, 1 any that may read the file, or -ENODATA: not
/// the caller.
GOFS_HD inline int xattr_readers(const Credentials& who, const f2fs::Inode& inode,
                                 const XattrName& name) {
  if (name.starts_with("security.", 9) || name.starts_with("system.", 7)) return 0;
  if (name.starts_with("trusted.", 8)) return who.uid == 0 ? 0 : -ENODATA;
  if (name.starts_with("user.", 5) && !inode.is_regular() && !inode.is_directory()) {
    return -ENODATA;
  }
  return 1;
}

/// Stores little-endian numbers a byte at a time: what programs give us has any alignment.
GOFS_HD inline void put_bytes(uint8_t* to, uint32_t value, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) to[i] = static_cast<uint8_t>(value >> 8 * i);
}

/// An ACL in the form of the system call: version 2, and an id in each entry. `value` null: only
/// its size. Collective, uniform. The size, -ENODATA if it has no entries, -EUCLEAN (reported).
GOFS_NOINLINE GOFS_HD inline int64_t convert_acl(simt::AnyWarp auto warp, f2fs::Volume& volume,
                                                 const f2fs::XattrBytes& xattrs,
                                                 const f2fs::Xattr& acl, uint8_t* value) {
  constexpr uint32_t kSyscallVersion = 2;
  constexpr uint32_t kVersionBytes = 4;
  const bool writes = value != nullptr && warp.thread_rank() == 0;  // an ACL is short
  uint32_t size = kVersionBytes;
  uint32_t cursor = 0;
  AclEntry entry{};
  int more = 0;
  while ((more = next_acl_entry(xattrs, acl, cursor, entry)) > 0) {
    if (writes) {
      put_bytes(value + size, entry.tag, 2);
      put_bytes(value + size + 2, entry.permissions, 2);
      put_bytes(value + size + 4, entry.id, 4);
    }
    size += sizeof(format::AclEntry);
  }
  if (more < 0) return f2fs::report_xattr(warp, volume, xattrs.ino, acl.value_at);
  if (writes) put_bytes(value, kSyscallVersion, kVersionBytes);
  return size == kVersionBytes ? -ENODATA : int64_t{size};
}

/// security.capability as Linux shows it: of the form with a root user (version 3) those of user 0
/// lose it. `value` null: only its size. Collective, uniform. The size, or -EINVAL.
GOFS_HD inline int64_t convert_capability(simt::AnyWarp auto warp, const f2fs::XattrBytes& xattrs,
                                          const f2fs::Xattr& capability, uint8_t* value) {
  constexpr uint32_t kVersion2 = 0x02000000;
  constexpr uint32_t kVersion3 = 0x03000000;
  constexpr uint32_t kEffective = 1;
  constexpr uint32_t kBytes2 = 20;
  constexpr uint32_t kBytes3 = 24;
  const uint32_t at = capability.value_at;
  const uint32_t bytes = capability.value_bytes;
  const uint32_t head = bytes >= 4 ? xattrs.word_at(at) : 0;
  const uint32_t version = head & ~kEffective;
  const bool second = bytes == kBytes2 && version == kVersion2;
  const bool third = bytes == kBytes3 && version == kVersion3;
  if (!second && !third) return -EINVAL;
  const uint32_t size = third && xattrs.word_at(at + kBytes2) != 0 ? kBytes3 : kBytes2;
  if (value != nullptr) {
    f2fs::copy_xattr(warp, xattrs, at, size, value);
    warp.sync();
    if (third && size == kBytes2 && warp.thread_rank() == 0) {
      put_bytes(value, kVersion2 | (head & kEffective), 4);
    }
  }
  return size;
}

/// The value of `xattr` as programs get it. `value` null: only its size. Collective, uniform.
GOFS_HD inline int64_t convert_value(simt::AnyWarp auto warp, f2fs::Volume& volume,
                                     const f2fs::XattrBytes& xattrs, const f2fs::Xattr& xattr,
                                     bool is_capability, uint8_t* value) {
  if (xattr.index == format::kXattrAclAccess || xattr.index == format::kXattrAclDefault) {
    return convert_acl(warp, volume, xattrs, xattr, value);
  }
  if (is_capability) return convert_capability(warp, xattrs, xattr, value);
  if (value != nullptr) {
    f2fs::copy_xattr(warp, xattrs, xattr.value_at, xattr.value_bytes, value);
  }
  return xattr.value_bytes;
}

/// A name in a buffer: prefix, rest, NUL. Collective, uniform.
GOFS_HD inline void put_name(simt::AnyWarp auto warp, const f2fs::XattrBytes& xattrs,
                             const f2fs::Xattr& xattr, const XattrPrefix& prefix, char* to) {
  for (uint32_t i = warp.thread_rank(); i < prefix.bytes; i += warp.size()) to[i] = prefix.text[i];
  f2fs::copy_xattr(warp, xattrs, xattr.name_at, xattr.name_bytes, to + prefix.bytes);
  if (warp.thread_rank() == 0) to[prefix.bytes + xattr.name_bytes] = '\0';
}

/// Whether this is "security.capability".
GOFS_HD inline bool is_capability(const f2fs::XattrBytes& xattrs, const f2fs::Xattr& xattr) {
  const char* const name = "capability";
  if (xattr.index != format::kXattrSecurity || xattr.name_bytes != 10) return false;
  for (uint32_t i = 0; i < xattr.name_bytes; ++i) {
    if (xattrs.at(xattr.name_at + i) != static_cast<uint8_t>(name[i])) return false;
  }
  return true;
}

/// Whether listings name such attributes to the caller.
GOFS_HD inline bool is_listed(const Credentials& who, uint32_t index) {
  return xattr_prefix(index).bytes != 0 && (index != format::kXattrTrusted || who.uid == 0);
}

/// The value of one attribute out of those loaded; see get_xattr_of().
GOFS_NOINLINE GOFS_HD inline int64_t get_loaded(simt::AnyWarp auto warp, Filesystem& fs,
                                                const f2fs::XattrBytes& xattrs, uint32_t index,
                                                const XattrName& rest, void* value,
                                                uint64_t capacity) {
  f2fs::Xattr xattr{};
  const int found = f2fs::find_xattr(warp, fs.volume, xattrs, index, rest.text, rest.bytes, xattr);
  if (found <= 0) return found < 0 ? found : -ENODATA;
  const bool capability = is_capability(xattrs, xattr);
  const int64_t size = convert_value(warp, fs.volume, xattrs, xattr, capability, nullptr);
  if (size < 0 || capacity == 0) return size;
  if (static_cast<uint64_t>(size) > capacity) return -ERANGE;
  return convert_value(warp, fs.volume, xattrs, xattr, capability, static_cast<uint8_t*>(value));
}

/// See list_xattrs_of().
GOFS_NOINLINE GOFS_HD inline int64_t list_loaded(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const f2fs::XattrBytes& xattrs, char* list,
                                                 uint64_t capacity) {
  uint64_t bytes = 0;
  uint32_t cursor = 0;
  f2fs::Xattr xattr{};
  int more = 0;
  while ((more = f2fs::next_xattr(warp, fs.volume, xattrs, cursor, xattr)) > 0) {
    if (!is_listed(credentials_of(warp, fs), xattr.index)) continue;
    const XattrPrefix prefix = xattr_prefix(xattr.index);
    const uint32_t name_bytes = prefix.bytes + xattr.name_bytes + 1;
    if (capacity != 0) {
      if (name_bytes > capacity - bytes) return -ERANGE;
      put_name(warp, xattrs, xattr, prefix, list + bytes);
    }
    bytes += name_bytes;
  }
  return more < 0 ? more : static_cast<int64_t>(bytes);
}

/// See dump_xattrs_of().
GOFS_NOINLINE GOFS_HD inline int64_t dump_loaded(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const f2fs::Inode& inode,
                                                 const f2fs::XattrBytes& xattrs, uint8_t* out,
                                                 uint64_t capacity) {
  const bool may_read = check_loaded_permission(warp, fs, inode, xattrs, kMayRead) == 0;
  uint64_t bytes = 0;
  uint32_t cursor = 0;
  f2fs::Xattr xattr{};
  int more = 0;
  while ((more = f2fs::next_xattr(warp, fs.volume, xattrs, cursor, xattr)) > 0) {
    if (!is_listed(credentials_of(warp, fs), xattr.index) || xattr.index == format::kXattrAdvise)
      continue;
    const XattrPrefix prefix = xattr_prefix(xattr.index);
    const int readers = xattr_readers(credentials_of(warp, fs), inode, {prefix.text, prefix.bytes});
    if (readers < 0 || (readers > 0 && !may_read)) continue;
    const bool capability = is_capability(xattrs, xattr);
    const int64_t size = convert_value(warp, fs.volume, xattrs, xattr, capability, nullptr);
    if (size == -EUCLEAN) return size;
    if (size < 0) continue;
    const uint32_t name_bytes = prefix.bytes + xattr.name_bytes + 1;
    const uint64_t record_bytes = name_bytes + 4 + static_cast<uint64_t>(size);
    if (record_bytes > capacity - bytes) return -ERANGE;
    uint8_t* const to = out + bytes;
    put_name(warp, xattrs, xattr, prefix, reinterpret_cast<char*>(to));
    if (warp.thread_rank() == 0) put_bytes(to + name_bytes, static_cast<uint32_t>(size), 4);
    convert_value(warp, fs.volume, xattrs, xattr, capability, to + name_bytes + 4);
    bytes += record_bytes;
  }
  return more < 0 ? more : static_cast<int64_t>(bytes);
}

/// Calls `use(const XattrBytes&)`, collectively, with all attributes of `inode`, and passes on what
/// it returns; `none` where there are no attributes. Collective, uniform.
template <typename Use>
GOFS_HD int64_t with_xattrs(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                            int64_t none, Use use) {
  f2fs::XattrBytes xattrs{};
  const int error = f2fs::load_xattrs(warp, fs.volume, fs.pool, inode, xattrs);
  if (error < 0) return error;
  if (xattrs.bytes == 0) return none;
  const int64_t answer = use(xattrs);
  f2fs::unload_xattrs(warp, fs.pool, xattrs);
  return answer;
}

/// The inode behind `fd`, as it is now. Collective, uniform. 0, -EBADF (not open, or opened only as
/// a path), or what load_inodes() says.
GOFS_HD inline int inode_of(simt::AnyWarp auto warp, Filesystem& fs, int fd, f2fs::Inode& inode) {
  const Descriptor* descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  return load_uniform(warp, fs, fs.open_inodes[descriptor->open_inode].inode.ino, inode);
}

}  // namespace detail

/// The value of the attribute `name` (NUL-terminated) of `inode`. Bytes written to `value`; with
/// `capacity` 0 how many there are. -ENODATA, -ERANGE (a buffer that is too small; no name, or more
/// than kXattrNameBytesMax), -EOPNOTSUPP (a prefix that F2FS does not have), -EACCES, -EINVAL,
/// -EUCLEAN.
GOFS_NOINLINE GOFS_HD inline int64_t get_xattr_of(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const f2fs::Inode& inode, const char* name,
                                                  void* value, uint64_t capacity) {
  value = simt::reach(warp.thread_rank(), static_cast<uint8_t*>(value));
  detail::XattrName whole{};
  detail::XattrName rest{};
  uint32_t index = 0;
  int error = detail::measure_name(warp, name, whole);
  if (error == 0) error = detail::xattr_readers(credentials_of(warp, fs), inode, whole);
  if (error > 0) error = check_permission(warp, fs, inode, kMayRead);
  if (error == 0) error = detail::parse_name(whole, index, rest);
  if (error < 0) return error;
  if (index == format::kXattrAdvise) {
    if (capacity != 0 && warp.thread_rank() == 0) *static_cast<uint8_t*>(value) = inode.advise;
    warp.sync();
    return 1;
  }
  const bool acl = index == format::kXattrAclAccess || index == format::kXattrAclDefault;
  if (acl && inode.is_symlink()) return -EOPNOTSUPP;
  return detail::with_xattrs(warp, fs, inode, -ENODATA, [&](const f2fs::XattrBytes& xattrs) {
    return detail::get_loaded(warp, fs, xattrs, index, rest, value, capacity);
  });
}

/// The names of all attributes of `inode` that the caller may know of, each with a NUL, in the
/// order of the disk. Bytes written to `list`; with `capacity` 0 how many there are. -ERANGE,
/// -EUCLEAN.
GOFS_NOINLINE GOFS_HD inline int64_t list_xattrs_of(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const f2fs::Inode& inode, char* list,
                                                    uint64_t capacity) {
  list = simt::reach(warp.thread_rank(), list);
  return detail::with_xattrs(warp, fs, inode, 0, [&](const f2fs::XattrBytes& xattrs) {
    return detail::list_loaded(warp, fs, xattrs, list, capacity);
  });
}

/// All attributes of `inode` that the caller may read, for those who copy or show whole files: each
/// with its name, a NUL, the size of its value (4 bytes, little-endian) and its value, as
/// list_xattrs_of() and get_xattr_of() give them. Bytes written to `out`, for which
/// kXattrListBytesMax are enough; -ERANGE, -EUCLEAN.
GOFS_NOINLINE GOFS_HD inline int64_t dump_xattrs_of(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const f2fs::Inode& inode, void* out,
                                                    uint64_t capacity) {
  return detail::with_xattrs(warp, fs, inode, 0, [&](const f2fs::XattrBytes& xattrs) {
    return detail::dump_loaded(warp, fs, inode, xattrs, static_cast<uint8_t*>(out), capacity);
  });
}

/// getxattr(2), with LastLink::kKeep lgetxattr(2); see get_xattr_of().
GOFS_HD inline int64_t getxattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                LastLink last_link, const char* name, void* value,
                                uint64_t capacity) {
  return reading_paths(warp, fs, [&]() -> int64_t {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, last_link, inode);
    return error < 0 ? error : get_xattr_of(warp, fs, inode, name, value, capacity);
  });
}

/// fgetxattr(2).
GOFS_HD inline int64_t fgetxattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, const char* name,
                                 void* value, uint64_t capacity) {
  f2fs::Inode inode{};
  const int error = detail::inode_of(warp, fs, fd, inode);
  return error < 0 ? error : get_xattr_of(warp, fs, inode, name, value, capacity);
}

/// listxattr(2), with LastLink::kKeep llistxattr(2); see list_xattrs_of().
GOFS_HD inline int64_t listxattr(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                 LastLink last_link, char* list, uint64_t capacity) {
  return reading_paths(warp, fs, [&]() -> int64_t {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, last_link, inode);
    return error < 0 ? error : list_xattrs_of(warp, fs, inode, list, capacity);
  });
}

/// flistxattr(2).
GOFS_HD inline int64_t flistxattr(simt::AnyWarp auto warp, Filesystem& fs, int fd, char* list,
                                  uint64_t capacity) {
  f2fs::Inode inode{};
  const int error = detail::inode_of(warp, fs, fd, inode);
  return error < 0 ? error : list_xattrs_of(warp, fs, inode, list, capacity);
}

}  // namespace gofs::vfs
