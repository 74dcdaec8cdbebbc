// SPDX-License-Identifier: Apache-2.0
//
// Sizes, permissions, owners and times.
#include "device/attached.cuh"
#include "vfs/change_attributes.h"
#include "vfs/fallocate.h"
#include "vfs/resize.h"
#include "vfs/write.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int truncate(Scope scope, VolumeHandle vol, const char* path, uint64_t size) {
  GOFS_IF_ATTACHED(truncate(scope, *channel, path, size));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kResize, may_read(path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::truncate(warp, fs, path, size); }));
}

template <typename Scope>
__device__ int ftruncate(Scope scope, VolumeHandle vol, int fd, uint64_t size) {
  GOFS_IF_ATTACHED(ftruncate(scope, *channel, fd, size));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted(
      CallKind::kResize, scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::ftruncate(warp, fs, fd, size); }));
}

template <typename Scope>
__device__ int fallocate(Scope scope, VolumeHandle vol, int fd, uint32_t mode, uint64_t offset,
                         uint64_t bytes) {
  GOFS_IF_ATTACHED(fallocate(scope, *channel, fd, mode, offset, bytes));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kResize, scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::fallocate(warp, fs, fd, mode, offset, bytes);
      }));
}

template <typename Scope>
__device__ int chmod(Scope scope, VolumeHandle vol, const char* path, uint32_t mode) {
  GOFS_IF_ATTACHED(chmod(scope, *channel, path, mode));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path), scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::chmod(warp, fs, path, mode); }));
}

template <typename Scope>
__device__ int fchmod(Scope scope, VolumeHandle vol, int fd, uint32_t mode) {
  GOFS_IF_ATTACHED(fchmod(scope, *channel, fd, mode));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kAttribute, scope, fs,
              [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fchmod(warp, fs, fd, mode); }));
}

template <typename Scope>
__device__ int chown(Scope scope, VolumeHandle vol, const char* path, uint32_t uid, uint32_t gid) {
  GOFS_IF_ATTACHED(chown(scope, *channel, path, uid, gid));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path), scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::chown(warp, fs, path, vfs::LastLink::kFollow, uid, gid);
      }));
}

template <typename Scope>
__device__ int lchown(Scope scope, VolumeHandle vol, const char* path, uint32_t uid, uint32_t gid) {
  GOFS_IF_ATTACHED(lchown(scope, *channel, path, uid, gid));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path), scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::chown(warp, fs, path, vfs::LastLink::kKeep, uid, gid);
      }));
}

template <typename Scope>
__device__ int fchown(Scope scope, VolumeHandle vol, int fd, uint32_t uid, uint32_t gid) {
  GOFS_IF_ATTACHED(fchown(scope, *channel, fd, uid, gid));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted(
      CallKind::kAttribute, scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fchown(warp, fs, fd, uid, gid); }));
}

template <typename Scope>
__device__ int utimens(Scope scope, VolumeHandle vol, const char* path, const TimeStamp& accessed,
                       const TimeStamp& modified) {
  GOFS_IF_ATTACHED(utimens(scope, *channel, path, accessed, modified));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path), scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::utimens(warp, fs, path, vfs::LastLink::kFollow, accessed, modified);
      }));
}

template <typename Scope>
__device__ int lutimens(Scope scope, VolumeHandle vol, const char* path, const TimeStamp& accessed,
                        const TimeStamp& modified) {
  GOFS_IF_ATTACHED(lutimens(scope, *channel, path, accessed, modified));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted_if(
      CallKind::kAttribute, may_read(path), scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::utimens(warp, fs, path, vfs::LastLink::kKeep, accessed, modified);
      }));
}

template <typename Scope>
__device__ int futimens(Scope scope, VolumeHandle vol, int fd, const TimeStamp& accessed,
                        const TimeStamp& modified) {
  GOFS_IF_ATTACHED(futimens(scope, *channel, fd, accessed, modified));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kAttribute, scope, fs, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::futimens(warp, fs, fd, accessed, modified);
      }));
}

GOFS_IN_EVERY_SCOPE(int, truncate, const char*, uint64_t);
GOFS_IN_EVERY_SCOPE(int, ftruncate, int, uint64_t);
GOFS_IN_EVERY_SCOPE(int, fallocate, int, uint32_t, uint64_t, uint64_t);
GOFS_IN_EVERY_SCOPE(int, chmod, const char*, uint32_t);
GOFS_IN_EVERY_SCOPE(int, fchmod, int, uint32_t);
GOFS_IN_EVERY_SCOPE(int, chown, const char*, uint32_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, lchown, const char*, uint32_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, fchown, int, uint32_t, uint32_t);
GOFS_IN_EVERY_SCOPE(int, utimens, const char*, const TimeStamp&, const TimeStamp&);
GOFS_IN_EVERY_SCOPE(int, lutimens, const char*, const TimeStamp&, const TimeStamp&);
GOFS_IN_EVERY_SCOPE(int, futimens, int, const TimeStamp&, const TimeStamp&);

}  // namespace gofs::device_library
