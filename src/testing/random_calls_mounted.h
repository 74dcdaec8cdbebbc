// SPDX-License-Identifier: Apache-2.0
//
// For tests only: random calls (random_calls.h) on a file system that their program has mounted.
#pragma once

#include "testing/random_calls.h"
#include "vfs/fsync.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/write.h"

namespace gofs::testing {

/// All of them collective and uniform.
struct MountedVolume {
  vfs::Filesystem& fs;

  GOFS_HD int open(simt::AnyWarp auto warp, const char* path, uint32_t flags, uint32_t mode) const {
    return vfs::open(warp, fs, path, flags, mode);
  }
  GOFS_HD int close(simt::AnyWarp auto warp, int fd) const { return vfs::close(warp, fs, fd); }
  GOFS_HD int64_t pread(simt::AnyWarp auto warp, int fd, void* buffer, uint64_t bytes,
                        uint64_t offset) const {
    return vfs::pread(warp, fs, fd, buffer, bytes, offset);
  }
  GOFS_HD int64_t pwrite(simt::AnyWarp auto warp, int fd, const void* buffer, uint64_t bytes,
                         uint64_t offset) const {
    return vfs::pwrite(warp, fs, fd, buffer, bytes, offset);
  }
  GOFS_HD int fsync(simt::AnyWarp auto warp, int fd) const { return vfs::fsync(warp, fs, fd); }
  GOFS_HD int truncate(simt::AnyWarp auto warp, const char* path, uint64_t size) const {
    return vfs::truncate(warp, fs, path, size);
  }
  GOFS_HD int chmod(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return vfs::chmod(warp, fs, path, mode);
  }
  GOFS_HD int lstat(simt::AnyWarp auto warp, const char* path, Stat& out) const {
    Stat mine{};
    const int error = vfs::stat(warp, fs, path, vfs::LastLink::kKeep, mine);
    if (warp.thread_rank() == 0) out = mine;
    warp.sync();
    return error;
  }
  GOFS_HD int lsetxattr(simt::AnyWarp auto warp, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags) const {
    return vfs::setxattr(warp, fs, path, vfs::LastLink::kKeep, name, value, bytes, flags);
  }
  GOFS_HD int lremovexattr(simt::AnyWarp auto warp, const char* path, const char* name) const {
    return vfs::removexattr(warp, fs, path, vfs::LastLink::kKeep, name);
  }
  GOFS_HD int mkdir(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return vfs::mkdir(warp, fs, path, mode);
  }
  GOFS_HD int rmdir(simt::AnyWarp auto warp, const char* path) const {
    return vfs::rmdir(warp, fs, path);
  }
  GOFS_HD int unlink(simt::AnyWarp auto warp, const char* path) const {
    return vfs::unlink(warp, fs, path);
  }
  GOFS_HD int rename(simt::AnyWarp auto warp, const char* from, const char* to,
                     uint32_t flags) const {
    return vfs::rename(warp, fs, from, to, flags);
  }
  GOFS_HD int link(simt::AnyWarp auto warp, const char* existing, const char* path) const {
    return vfs::link(warp, fs, existing, path);
  }
  GOFS_HD int symlink(simt::AnyWarp auto warp, const char* target, const char* path) const {
    return vfs::symlink(warp, fs, target, path);
  }
  GOFS_HD int mknod(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return vfs::mknod(warp, fs, path, mode, {});
  }
  GOFS_HD int sync(simt::AnyWarp auto warp) const { return vfs::sync(warp, fs); }
};

}  // namespace gofs::testing
