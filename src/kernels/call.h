// SPDX-License-Identifier: Apache-2.0
//
// One file system call on behalf of a host program: arguments and result in memory that both sides
// see. By one warp; others help where it makes a checkpoint.
#pragma once

#include "kernels/help.h"
#include "vfs/async.h"
#include "vfs/fallocate.h"
#include "vfs/memory_use.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"

namespace gofs::kernels {

enum class CallKind : uint32_t {
  kOpen,       // path, flags, mode -> descriptor
  kClose,      // descriptor
  kPread,      // descriptor, buffer, bytes, offset -> bytes read
  kStat,       // path, keep_link -> stat
  kFstat,      // descriptor -> stat
  kAccess,     // path, flags (AccessBits)
  kReadlink,   // path, buffer, bytes -> bytes of the target
  kReaddir,    // descriptor, buffer of f2fs::NamedEntry, bytes -> number of entries
  kLseek,      // descriptor, offset, flags (Whence) -> position
  kAdvance,    // descriptor, offset (how far) -> the position, which moves on from there
  kStatfs,     // -> statfs
  kMemory,     // buffer of a vfs::MemoryUse, bytes -> its size
  kOpenInode,  // offset (an ino), flags -> descriptor
  // Extended attributes: -> bytes of the value or of the list; with 0 `bytes` how many there are.
  kGetxattr,    // path, keep_link, name, buffer, bytes
  kFgetxattr,   // descriptor, name, buffer, bytes
  kListxattr,   // path, keep_link, buffer, bytes
  kFlistxattr,  // descriptor, buffer, bytes
  // Changes: -> 0. Those of which it is said may be given an inode instead of a path, by `number`.
  kChmod,         // path (or number), mode
  kFchmod,        // descriptor, mode
  kChown,         // path (or number), keep_link, uid, gid
  kFchown,        // descriptor, uid, gid
  kUtimens,       // path (or number), keep_link, accessed, modified
  kFutimens,      // descriptor, accessed, modified
  kSetxattr,      // path, keep_link, name, buffer, bytes, flags
  kFsetxattr,     // descriptor, name, buffer, bytes, flags
  kRemovexattr,   // path, keep_link, name
  kFremovexattr,  // descriptor, name
  kMkdir,         // path, mode
  kMknod,         // path, mode, major, minor
  kSymlink,       // other (the target), path
  kLink,          // other (what exists), path
  kUnlink,        // path; with `number`, a name in that directory
  kRmdir,         // the same
  kRename,        // other (the old name), path, flags
  kTruncate,      // path, bytes (the size)
  kFtruncate,     // descriptor, bytes (the size)
  kFallocate,     // descriptor, flags (the mode), offset, bytes
  kSync,
  kFsync,      // descriptor
  kFdatasync,  // descriptor
  // -> bytes written
  kPwrite,  // descriptor, buffer, bytes, offset
  kWrite,   // descriptor, buffer, bytes
};

struct CallParams {
  vfs::Filesystem* fs;
  CallKind kind;
  uint32_t flags;
  int descriptor;
  const char* path;   // NUL-terminated, in shared memory
  const char* other;  // another path, or a link's target, as `path`
  const char* name;   // of an extended attribute, as `path`
  uint32_t number;    // of an inode; 0: none is given so
  uint32_t mode;
  format::DeviceNumber device;
  bool keep_link;  // of a symbolic link itself
  uint32_t uid;
  uint32_t gid;
  f2fs::TimeStamp accessed;
  f2fs::TimeStamp modified;
  void* buffer;  // in memory that the backend's warps reach
  uint64_t bytes;
  int64_t offset;
  int64_t result;  // as each kind says, or a negative errno
  uint32_t ended;  // 0 before; not 0: no checkpoint is made any more
  vfs::Stat stat;
  vfs::FilesystemStat statfs;
};

GOFS_HD inline vfs::LastLink last_link(const CallParams& call) {
  return call.keep_link ? vfs::LastLink::kKeep : vfs::LastLink::kFollow;
}

/// Calls that change the volume.
GOFS_HD inline int64_t perform_change(simt::AnyWarp auto warp, CallParams& call) {
  vfs::Filesystem& fs = *call.fs;
  const vfs::LastLink last = last_link(call);
  switch (call.kind) {
    case CallKind::kChmod:
      if (call.number != 0) return vfs::chmod_inode(warp, fs, call.number, call.mode);
      return vfs::chmod(warp, fs, call.path, call.mode);
    case CallKind::kFchmod:
      return vfs::fchmod(warp, fs, call.descriptor, call.mode);
    case CallKind::kChown:
      if (call.number != 0) return vfs::chown_inode(warp, fs, call.number, call.uid, call.gid);
      return vfs::chown(warp, fs, call.path, last, call.uid, call.gid);
    case CallKind::kFchown:
      return vfs::fchown(warp, fs, call.descriptor, call.uid, call.gid);
    case CallKind::kUtimens:
      if (call.number != 0) {
        return vfs::utimens_inode(warp, fs, call.number, call.accessed, call.modified);
      }
      return vfs::utimens(warp, fs, call.path, last, call.accessed, call.modified);
    case CallKind::kFutimens:
      return vfs::futimens(warp, fs, call.descriptor, call.accessed, call.modified);
    case CallKind::kSetxattr:
      return vfs::setxattr(warp, fs, call.path, last, call.name, call.buffer, call.bytes,
                           call.flags);
    case CallKind::kFsetxattr:
      return vfs::fsetxattr(warp, fs, call.descriptor, call.name, call.buffer, call.bytes,
                            call.flags);
    case CallKind::kRemovexattr:
      return vfs::removexattr(warp, fs, call.path, last, call.name);
    case CallKind::kFremovexattr:
      return vfs::fremovexattr(warp, fs, call.descriptor, call.name);
    case CallKind::kMkdir:
      return vfs::mkdir(warp, fs, call.path, call.mode);
    case CallKind::kMknod:
      return vfs::mknod(warp, fs, call.path, call.mode, call.device);
    case CallKind::kSymlink:
      return vfs::symlink(warp, fs, call.other, call.path);
    case CallKind::kLink:
      return vfs::link(warp, fs, call.other, call.path);
    case CallKind::kUnlink:
      if (call.number != 0) return vfs::unlink_in(warp, fs, call.number, call.path);
      return vfs::unlink(warp, fs, call.path);
    case CallKind::kRmdir:
      if (call.number != 0) return vfs::rmdir_in(warp, fs, call.number, call.path);
      return vfs::rmdir(warp, fs, call.path);
    case CallKind::kRename:
      return vfs::rename(warp, fs, call.other, call.path, call.flags);
    case CallKind::kTruncate:
      return vfs::truncate(warp, fs, call.path, call.bytes);
    case CallKind::kFtruncate:
      return vfs::ftruncate(warp, fs, call.descriptor, call.bytes);
    case CallKind::kFallocate:
      return vfs::fallocate(warp, fs, call.descriptor, call.flags,
                            static_cast<uint64_t>(call.offset), call.bytes);
    case CallKind::kSync:
      return vfs::sync(warp, fs);
    case CallKind::kFsync:
      return vfs::fsync(warp, fs, call.descriptor);
    case CallKind::kFdatasync:
      return vfs::fdatasync(warp, fs, call.descriptor);
    case CallKind::kPwrite:
      return vfs::pwrite(warp, fs, call.descriptor, call.buffer, call.bytes,
                         static_cast<uint64_t>(call.offset));
    case CallKind::kWrite:
      return vfs::write(warp, fs, call.descriptor, call.buffer, call.bytes);
    default:
      return -ENOSYS;
  }
}

/// kMemory. Not inlined: its tables would be part of every call's frame.
GOFS_NOINLINE GOFS_HD inline int64_t tell_memory(simt::AnyWarp auto warp, CallParams& call) {
  vfs::MemoryUse use;
  if (call.bytes < sizeof(use)) return -EINVAL;
  vfs::count_memory(warp, *call.fs, use);
  if (warp.thread_rank() == 0) *static_cast<vfs::MemoryUse*>(call.buffer) = use;
  return sizeof(use);
}

GOFS_HD inline int64_t perform(simt::AnyWarp auto warp, CallParams& call, vfs::Stat& stat,
                               vfs::FilesystemStat& statfs) {
  vfs::Filesystem& fs = *call.fs;
  auto* text = static_cast<char*>(call.buffer);
  const vfs::LastLink last = last_link(call);
  switch (call.kind) {
    case CallKind::kOpen:
      return vfs::open(warp, fs, call.path, call.flags, call.mode);
    case CallKind::kClose:
      return vfs::close(warp, fs, call.descriptor);
    case CallKind::kPread:
      return vfs::pread(warp, fs, call.descriptor, call.buffer, call.bytes,
                        static_cast<uint64_t>(call.offset));
    case CallKind::kStat:
      return vfs::stat(warp, fs, call.path, last, stat);
    case CallKind::kFstat:
      return vfs::fstat(warp, fs, call.descriptor, stat);
    case CallKind::kAccess:
      return vfs::access(warp, fs, call.path, call.flags);
    case CallKind::kReadlink:
      return vfs::readlink(warp, fs, call.path, text, call.bytes);
    case CallKind::kReaddir:
      return vfs::readdir(warp, fs, call.descriptor, static_cast<f2fs::NamedEntry*>(call.buffer),
                          static_cast<uint32_t>(call.bytes / sizeof(f2fs::NamedEntry)));
    case CallKind::kLseek:
      return vfs::lseek(warp, fs, call.descriptor, call.offset, static_cast<int>(call.flags));
    case CallKind::kAdvance:
      return vfs::advance_position(warp, fs, call.descriptor, static_cast<uint64_t>(call.offset));
    case CallKind::kStatfs:
      statfs = vfs::statfs(fs);
      return 0;
    case CallKind::kMemory:
      return tell_memory(warp, call);
    case CallKind::kOpenInode:
      if (call.offset < 0 || call.offset > UINT32_MAX) return -EINVAL;
      return vfs::open_inode(warp, fs, static_cast<uint32_t>(call.offset), call.flags);
    case CallKind::kGetxattr:
      return vfs::getxattr(warp, fs, call.path, last, call.name, call.buffer, call.bytes);
    case CallKind::kFgetxattr:
      return vfs::fgetxattr(warp, fs, call.descriptor, call.name, call.buffer, call.bytes);
    case CallKind::kListxattr:
      return vfs::listxattr(warp, fs, call.path, last, text, call.bytes);
    case CallKind::kFlistxattr:
      return vfs::flistxattr(warp, fs, call.descriptor, text, call.bytes);
    default:
      return perform_change(warp, call);
  }
}

GOFS_HD inline void call_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              CallParams& call) {
  if (warp_index != 0) return help_until(warp, *call.fs, call.ended);
  vfs::Stat stat{};
  vfs::FilesystemStat statfs{};
  const int64_t result = perform(warp, call, stat, statfs);
  warp.sync();
  if (warp.thread_rank() == 0) {
    call.stat = stat;
    call.statfs = statfs;
    call.result = result;
    simt::store_relaxed(call.ended, 1u);
  }
}

}  // namespace gofs::kernels
