// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing files.
#include "device/attached.cuh"
#include "vfs/metadata.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int64_t pread(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                         uint64_t offset) {
  GOFS_IF_ATTACHED(pread(scope, *channel, fd, buffer, bytes, offset));
  vfs::Filesystem& fs = *vol;
  const int64_t result = in(scope).pread(fs, fd, buffer, bytes, offset);
  in(scope).count(fs, CallKind::kRead, result);
  return result;
}

template <typename Scope>
__device__ int64_t read(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes) {
  GOFS_IF_ATTACHED(read(scope, *channel, fd, buffer, bytes));
  vfs::Filesystem& fs = *vol;
  if (!may_fill(scope, buffer, bytes)) return -EFAULT;
  const int64_t offset = in(scope).once(
      fs, [&](simt::AnyWarp auto warp) { return vfs::advance_position(warp, fs, fd, bytes); });
  return offset < 0
             ? offset
             : device_library::pread(scope, vol, fd, buffer, bytes, static_cast<uint64_t>(offset));
}

/// The parts of one read, which is counted.
template <typename Scope>
__device__ int64_t read_parts(Scope scope, vfs::Filesystem& fs, int fd, const IoVector* parts,
                              int count, uint64_t offset) {
  const auto caller = in(scope);
  const int64_t total = vfs::move_parts(parts, count, [&](const IoVector& part, uint64_t done) {
    return caller.pread(fs, fd, part.base, part.bytes, offset + done);
  });
  caller.count(fs, CallKind::kRead, total);
  return total;
}

template <typename Scope>
__device__ int64_t preadv(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count,
                          uint64_t offset) {
  GOFS_IF_ATTACHED(preadv(scope, *channel, fd, parts, count, offset));
  vfs::Filesystem& fs = *vol;
  in(scope).gather();
  if (!may_fill_parts(scope, parts, count)) return -EFAULT;
  if (vfs::total_bytes(parts, count) < 0) return -EINVAL;
  return device_library::read_parts(scope, fs, fd, parts, count, offset);
}

template <typename Scope>
__device__ int64_t readv(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count) {
  GOFS_IF_ATTACHED(readv(scope, *channel, fd, parts, count));
  vfs::Filesystem& fs = *vol;
  in(scope).gather();  // as in preadv()
  if (!may_fill_parts(scope, parts, count)) return -EFAULT;
  const int64_t bytes = vfs::total_bytes(parts, count);
  if (bytes < 0) return bytes;
  const int64_t offset = in(scope).once(fs, [&](simt::AnyWarp auto warp) {
    return vfs::advance_position(warp, fs, fd, static_cast<uint64_t>(bytes));
  });
  if (offset < 0) return offset;
  return device_library::read_parts(scope, fs, fd, parts, count, static_cast<uint64_t>(offset));
}

template <typename Scope>
__device__ int64_t pwritev(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count,
                           uint64_t offset) {
  GOFS_IF_ATTACHED(pwritev(scope, *channel, fd, parts, count, offset));
  vfs::Filesystem& fs = *vol;
  const int64_t result = in(scope).pwritev(fs, fd, parts, count, offset);
  in(scope).count(fs, CallKind::kWrite, result);
  return result;
}

template <typename Scope>
__device__ int64_t pwrite(Scope scope, VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                          uint64_t offset) {
  GOFS_IF_ATTACHED(pwrite(scope, *channel, fd, buffer, bytes, offset));
  vfs::Filesystem& fs = *vol;
  const int64_t result = in(scope).pwrite(fs, fd, buffer, bytes, offset);
  in(scope).count(fs, CallKind::kWrite, result);
  return result;
}

template <typename Scope>
__device__ int64_t writev(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count) {
  GOFS_IF_ATTACHED(writev(scope, *channel, fd, parts, count));
  vfs::Filesystem& fs = *vol;
  const int64_t result = in(scope).writev(fs, fd, parts, count);
  in(scope).count(fs, CallKind::kWrite, result);
  return result;
}

template <typename Scope>
__device__ int64_t write(Scope scope, VolumeHandle vol, int fd, const void* buffer,
                         uint64_t bytes) {
  GOFS_IF_ATTACHED(write(scope, *channel, fd, buffer, bytes));
  vfs::Filesystem& fs = *vol;
  const int64_t result = in(scope).write(fs, fd, buffer, bytes);
  in(scope).count(fs, CallKind::kWrite, result);
  return result;
}

GOFS_IN_EVERY_SCOPE(int64_t, pread, int, void*, uint64_t, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, read, int, void*, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, preadv, int, const IoVector*, int, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, readv, int, const IoVector*, int);
GOFS_IN_EVERY_SCOPE(int64_t, pwritev, int, const IoVector*, int, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, pwrite, int, const void*, uint64_t, uint64_t);
GOFS_IN_EVERY_SCOPE(int64_t, writev, int, const IoVector*, int);
GOFS_IN_EVERY_SCOPE(int64_t, write, int, const void*, uint64_t);

}  // namespace gofs::device_library
