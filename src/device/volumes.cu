// SPDX-License-Identifier: Apache-2.0
//
// What concerns the volume: durability, cleaning, its numbers.
#include "device/attached.cuh"
#include "vfs/change.h"
#include "vfs/clean.h"
#include "vfs/fsync.h"
#include "vfs/metadata.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int sync(Scope scope, VolumeHandle vol) {
  GOFS_IF_ATTACHED(sync(scope, *channel));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kSync, scope, fs,
              [&](simt::AnyWarp auto warp) -> int64_t { return vfs::sync(warp, fs); }));
}

template <typename Scope>
__device__ int fsync(Scope scope, VolumeHandle vol, int fd) {
  GOFS_IF_ATTACHED(fsync(scope, *channel, fd));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kSync, scope, fs,
              [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fsync(warp, fs, fd); }));
}

template <typename Scope>
__device__ int fdatasync(Scope scope, VolumeHandle vol, int fd) {
  GOFS_IF_ATTACHED(fdatasync(scope, *channel, fd));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(
      counted(CallKind::kSync, scope, fs,
              [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fdatasync(warp, fs, fd); }));
}

template <typename Scope>
__device__ int64_t collect_garbage(Scope scope, VolumeHandle vol, uint32_t segments_max) {
  GOFS_IF_ATTACHED(collect_garbage(scope, *channel, segments_max));
  vfs::Filesystem& fs = *vol;
  return in(scope).once(
      fs, [&](simt::AnyWarp auto warp) { return vfs::collect_garbage(warp, fs, segments_max); });
}

__device__ FilesystemStat statfs(VolumeHandle vol) {
  GOFS_IF_ATTACHED(statfs(*channel));
  return vfs::statfs(*vol);
}

GOFS_IN_EVERY_SCOPE(int, sync);
GOFS_IN_EVERY_SCOPE(int, fsync, int);
GOFS_IN_EVERY_SCOPE(int, fdatasync, int);
GOFS_IN_EVERY_SCOPE(int64_t, collect_garbage, uint32_t);

}  // namespace gofs::device_library
