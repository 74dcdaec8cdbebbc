// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes.
#include "device/attached.cuh"
#include "vfs/set_xattr.h"
#include "vfs/xattr.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int64_t getxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                            void* value, uint64_t bytes) {
  GOFS_IF_ATTACHED(getxattr(scope, *channel, path, name, value, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(CallKind::kStat, may_read(path, name) && may_fill(scope, value, bytes), scope,
                    fs, [&](simt::AnyWarp auto warp) {
                      return vfs::getxattr(warp, fs, path, vfs::LastLink::kFollow, name, value,
                                           bytes);
                    });
}

template <typename Scope>
__device__ int64_t lgetxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                             void* value, uint64_t bytes) {
  GOFS_IF_ATTACHED(lgetxattr(scope, *channel, path, name, value, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(CallKind::kStat, may_read(path, name) && may_fill(scope, value, bytes), scope,
                    fs, [&](simt::AnyWarp auto warp) {
                      return vfs::getxattr(warp, fs, path, vfs::LastLink::kKeep, name, value,
                                           bytes);
                    });
}

template <typename Scope>
__device__ int64_t fgetxattr(Scope scope, VolumeHandle vol, int fd, const char* name, void* value,
                             uint64_t bytes) {
  GOFS_IF_ATTACHED(fgetxattr(scope, *channel, fd, name, value, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(
      CallKind::kStat, may_read(name) && may_fill(scope, value, bytes), scope, fs,
      [&](simt::AnyWarp auto warp) { return vfs::fgetxattr(warp, fs, fd, name, value, bytes); });
}

template <typename Scope>
__device__ int64_t listxattr(Scope scope, VolumeHandle vol, const char* path, char* list,
                             uint64_t bytes) {
  GOFS_IF_ATTACHED(listxattr(scope, *channel, path, list, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(CallKind::kStat, may_read(path) && may_fill(scope, list, bytes), scope, fs,
                    [&](simt::AnyWarp auto warp) {
                      return vfs::listxattr(warp, fs, path, vfs::LastLink::kFollow, list, bytes);
                    });
}

template <typename Scope>
__device__ int64_t llistxattr(Scope scope, VolumeHandle vol, const char* path, char* list,
                              uint64_t bytes) {
  GOFS_IF_ATTACHED(llistxattr(scope, *channel, path, list, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(CallKind::kStat, may_read(path) && may_fill(scope, list, bytes), scope, fs,
                    [&](simt::AnyWarp auto warp) {
                      return vfs::listxattr(warp, fs, path, vfs::LastLink::kKeep, list, bytes);
                    });
}

template <typename Scope>
__device__ int64_t flistxattr(Scope scope, VolumeHandle vol, int fd, char* list, uint64_t bytes) {
  GOFS_IF_ATTACHED(flistxattr(scope, *channel, fd, list, bytes));
  vfs::Filesystem& fs = *vol;
  return counted_if(
      CallKind::kStat, may_fill(scope, list, bytes), scope, fs,
      [&](simt::AnyWarp auto warp) { return vfs::flistxattr(warp, fs, fd, list, bytes); });
}

template <typename Scope>
__device__ int setxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags) {
  GOFS_IF_ATTACHED(setxattr(scope, *channel, path, name, value, bytes, flags));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path, name) && may_read_value(value, bytes), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::setxattr(warp, fs, path, vfs::LastLink::kFollow, name, value, bytes, flags);
      }));
}

template <typename Scope>
__device__ int lsetxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags) {
  GOFS_IF_ATTACHED(lsetxattr(scope, *channel, path, name, value, bytes, flags));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path, name) && may_read_value(value, bytes), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::setxattr(warp, fs, path, vfs::LastLink::kKeep, name, value, bytes, flags);
      }));
}

template <typename Scope>
__device__ int fsetxattr(Scope scope, VolumeHandle vol, int fd, const char* name, const void* value,
                         uint64_t bytes, uint32_t flags) {
  GOFS_IF_ATTACHED(fsetxattr(scope, *channel, fd, name, value, bytes, flags));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted_if(CallKind::kAttribute, may_read(name) && may_read_value(value, bytes), scope, fs,
                 [&](simt::AnyWarp auto warp) -> int64_t {
                   return vfs::fsetxattr(warp, fs, fd, name, value, bytes, flags);
                 }));
}

template <typename Scope>
__device__ int removexattr(Scope scope, VolumeHandle vol, const char* path, const char* name) {
  GOFS_IF_ATTACHED(removexattr(scope, *channel, path, name));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(CallKind::kAttribute, may_read(path, name), scope, fs,
                                     [&](simt::AnyWarp auto warp) -> int64_t {
                                       return vfs::removexattr(warp, fs, path,
                                                               vfs::LastLink::kFollow, name);
                                     }));
}

template <typename Scope>
__device__ int lremovexattr(Scope scope, VolumeHandle vol, const char* path, const char* name) {
  GOFS_IF_ATTACHED(lremovexattr(scope, *channel, path, name));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(CallKind::kAttribute, may_read(path, name), scope, fs,
                                     [&](simt::AnyWarp auto warp) -> int64_t {
                                       return vfs::removexattr(warp, fs, path, vfs::LastLink::kKeep,
                                                               name);
                                     }));
}

template <typename Scope>
__device__ int fremovexattr(Scope scope, VolumeHandle vol, int fd, const char* name) {
  GOFS_IF_ATTACHED(fremovexattr(scope, *channel, fd, name));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(name), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fremovexattr(warp, fs, fd, name); }));
}

GOFS_IN_EVERY_SCOPE(int64_t, getxattr, const char*, const char*, void*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, lgetxattr, const char*, const char*, void*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, fgetxattr, int, const char*, void*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, listxattr, const char*, char*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, llistxattr, const char*, char*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, flistxattr, int, char*, uint64_t);
GOFS_IN_EVERY_SCOPE(int, setxattr, const char*, const char*, const void*, uint64_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, lsetxattr, const char*, const char*, const void*, uint64_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, fsetxattr, int, const char*, const void*, uint64_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, removexattr, const char*, const char*);
GOFS_IN_EVERY_SCOPE(int, lremovexattr, const char*, const char*);
GOFS_IN_EVERY_SCOPE(int, fremovexattr, int, const char*);

}  // namespace gofs::device_library
