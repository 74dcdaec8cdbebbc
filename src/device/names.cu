// SPDX-License-Identifier: Apache-2.0
//
// What changes directories.
#include "device/attached.cuh"
#include "vfs/make_file.h"
#include "vfs/remove_file.h"
#include "vfs/rename.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int mkdir(Scope scope, VolumeHandle vol, const char* path, uint32_t mode) {
  GOFS_IF_ATTACHED(mkdir(scope, *channel, path, mode));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kName, may_read(path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::mkdir(warp, fs, path, mode); }));
}

template <typename Scope>
__device__ int mknod(Scope scope, VolumeHandle vol, const char* path, uint32_t mode, uint32_t major,
                     uint32_t minor) {
  GOFS_IF_ATTACHED(mknod(scope, *channel, path, mode, major, minor));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(CallKind::kName, may_read(path), scope, fs,
                                     [&](simt::AnyWarp auto warp) -> int64_t {
                                       return vfs::mknod(warp, fs, path, mode, {major, minor});
                                     }));
}

template <typename Scope>
__device__ int symlink(Scope scope, VolumeHandle vol, const char* target, const char* path) {
  GOFS_IF_ATTACHED(symlink(scope, *channel, target, path));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kName, may_read(target, path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::symlink(warp, fs, target, path); }));
}

template <typename Scope>
__device__ int link(Scope scope, VolumeHandle vol, const char* existing, const char* path) {
  GOFS_IF_ATTACHED(link(scope, *channel, existing, path));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kName, may_read(existing, path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::link(warp, fs, existing, path); }));
}

template <typename Scope>
__device__ int unlink(Scope scope, VolumeHandle vol, const char* path) {
  GOFS_IF_ATTACHED(unlink(scope, *channel, path));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted_if(CallKind::kName, may_read(path), scope, fs,
                 [&](simt::AnyWarp auto warp) -> int64_t { return vfs::unlink(warp, fs, path); }));
}

template <typename Scope>
__device__ int rmdir(Scope scope, VolumeHandle vol, const char* path) {
  GOFS_IF_ATTACHED(rmdir(scope, *channel, path));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted_if(CallKind::kName, may_read(path), scope, fs,
                 [&](simt::AnyWarp auto warp) -> int64_t { return vfs::rmdir(warp, fs, path); }));
}

template <typename Scope>
__device__ int rename(Scope scope, VolumeHandle vol, const char* from, const char* to,
                      uint32_t flags) {
  GOFS_IF_ATTACHED(rename(scope, *channel, from, to, flags));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kName, may_read(from, to), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::rename(warp, fs, from, to, flags); }));
}

GOFS_IN_EVERY_SCOPE(int, mkdir, const char*, uint32_t);
GOFS_IN_EVERY_SCOPE(int, mknod, const char*, uint32_t, uint32_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, symlink, const char*, const char*);
GOFS_IN_EVERY_SCOPE(int, link, const char*, const char*);
GOFS_IN_EVERY_SCOPE(int, unlink, const char*);
GOFS_IN_EVERY_SCOPE(int, rmdir, const char*);
GOFS_IN_EVERY_SCOPE(int, rename, const char*, const char*, uint32_t);

}  // namespace gofs::device_library
