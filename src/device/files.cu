// SPDX-License-Identifier: Apache-2.0
//
// Opening and closing, what files and directories are, and their names.
#include "device/attached.cuh"
#include "vfs/metadata.h"
#include "vfs/open.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int open(Scope scope, VolumeHandle vol, const char* path, uint32_t flags,
                    uint32_t mode) {
  GOFS_IF_ATTACHED(open(scope, *channel, path, flags, mode));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kOpen, may_read(path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::open(warp, fs, path, flags, mode); }));
}

template <typename Scope>
__device__ int close(Scope scope, VolumeHandle vol, int fd) {
  GOFS_IF_ATTACHED(close(scope, *channel, fd));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kClose, scope, fs,
              [&](simt::AnyWarp auto warp) -> int64_t { return vfs::close(warp, fs, fd); }));
}

template <typename Scope>
__device__ int64_t readdir(Scope scope, VolumeHandle vol, int fd, NamedEntry* entries,
                           uint32_t capacity) {
  GOFS_IF_ATTACHED(readdir(scope, *channel, fd, entries, capacity));
  vfs::Filesystem& fs = *vol;
  return counted_if(
      CallKind::kReaddir, may_fill(scope, entries, uint64_t{capacity} * sizeof(NamedEntry)), scope,
      fs, [&](simt::AnyWarp auto warp) { return vfs::readdir(warp, fs, fd, entries, capacity); });
}

template <typename Scope>
__device__ int64_t lseek(Scope scope, VolumeHandle vol, int fd, int64_t offset, int whence) {
  GOFS_IF_ATTACHED(lseek(scope, *channel, fd, offset, whence));
  vfs::Filesystem& fs = *vol;
  return in(scope).once(
      fs, [&](simt::AnyWarp auto warp) { return vfs::lseek(warp, fs, fd, offset, whence); });
}

template <typename Scope>
__device__ int stat(Scope scope, VolumeHandle vol, const char* path, Stat* out) {
  GOFS_IF_ATTACHED(stat(scope, *channel, path, out));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted_if(CallKind::kStat, may_read(path) && may_fill(scope, out, sizeof(Stat)), scope, fs,
                 [&](simt::AnyWarp auto warp) -> int64_t {
                   Stat result{};
                   const int error = vfs::stat(warp, fs, path, vfs::LastLink::kFollow, result);
                   if (error == 0 && warp.thread_rank() == 0) *out = result;
                   warp.sync();
                   return error;
                 }));
}

template <typename Scope>
__device__ int lstat(Scope scope, VolumeHandle vol, const char* path, Stat* out) {
  GOFS_IF_ATTACHED(lstat(scope, *channel, path, out));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted_if(CallKind::kStat, may_read(path) && may_fill(scope, out, sizeof(Stat)), scope, fs,
                 [&](simt::AnyWarp auto warp) -> int64_t {
                   Stat result{};
                   const int error = vfs::stat(warp, fs, path, vfs::LastLink::kKeep, result);
                   if (error == 0 && warp.thread_rank() == 0) *out = result;
                   warp.sync();
                   return error;
                 }));
}

template <typename Scope>
__device__ int fstat(Scope scope, VolumeHandle vol, int fd, Stat* out) {
  GOFS_IF_ATTACHED(fstat(scope, *channel, fd, out));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(CallKind::kStat, may_fill(scope, out, sizeof(Stat)), scope, fs,
                                     [&](simt::AnyWarp auto warp) -> int64_t {
                                       Stat result{};
                                       const int error = vfs::fstat(warp, fs, fd, result);
                                       if (error == 0 && warp.thread_rank() == 0) *out = result;
                                       warp.sync();
                                       return error;
                                     }));
}

template <typename Scope>
__device__ int64_t size(Scope scope, VolumeHandle vol, const char* path) {
  GOFS_IF_ATTACHED(size(scope, *channel, path));
  vfs::Filesystem& fs = *vol;
  return counted_if(CallKind::kStat, may_read(path), scope, fs,
                    [&](simt::AnyWarp auto warp) -> int64_t {
                      Stat result{};
                      const int error = vfs::stat(warp, fs, path, vfs::LastLink::kFollow, result);
                      return error != 0 ? error : static_cast<int64_t>(result.size_bytes);
                    });
}

template <typename Scope>
__device__ int64_t fsize(Scope scope, VolumeHandle vol, int fd) {
  GOFS_IF_ATTACHED(fsize(scope, *channel, fd));
  vfs::Filesystem& fs = *vol;
  return counted(CallKind::kStat, scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
    Stat result{};
    const int error = vfs::fstat(warp, fs, fd, result);
    return error != 0 ? error : static_cast<int64_t>(result.size_bytes);
  });
}

template <typename Scope>
__device__ int access(Scope scope, VolumeHandle vol, const char* path, uint32_t mode) {
  GOFS_IF_ATTACHED(access(scope, *channel, path, mode));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kStat, may_read(path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::access(warp, fs, path, mode); }));
}

template <typename Scope>
__device__ int64_t readlink(Scope scope, VolumeHandle vol, const char* path, char* buffer,
                            uint64_t bytes) {
  GOFS_IF_ATTACHED(readlink(scope, *channel, path, buffer, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(
      CallKind::kStat, may_read(path) && may_fill(scope, buffer, bytes), scope, fs,
      [&](simt::AnyWarp auto warp) { return vfs::readlink(warp, fs, path, buffer, bytes); });
}

GOFS_IN_EVERY_SCOPE(int, open, const char*, uint32_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, close, int);
GOFS_IN_EVERY_SCOPE(int64_t, readdir, int, NamedEntry*, uint32_t);
GOFS_IN_EVERY_SCOPE(int64_t, lseek, int, int64_t, int);
GOFS_IN_EVERY_SCOPE(int, stat, const char*, Stat*);
GOFS_IN_EVERY_SCOPE(int, lstat, const char*, Stat*);
GOFS_IN_EVERY_SCOPE(int, fstat, int, Stat*);
GOFS_IN_EVERY_SCOPE(int64_t, size, const char*);
GOFS_IN_EVERY_SCOPE(int64_t, fsize, int);
GOFS_IN_EVERY_SCOPE(int, access, const char*, uint32_t);
GOFS_IN_EVERY_SCOPE(int64_t, readlink, const char*, char*, uint64_t);

}  // namespace gofs::device_library
