// SPDX-License-Identifier: Apache-2.0
//
// gofs_device.h: the calls of gofs.cuh under C's names.
#include "gofs/gofs.cuh"
#include "gofs/gofs_device.h"

// `gofs_CALL` for the four kinds of groups: `call`, which names its `group` and `vol`, where there
// is a volume. The parameters behind `result` and `name` are those of the declaration.
#define GOFS_C_CALL_BY(kind, result, name, call, ...)       \
  extern "C" __device__ result name##_##kind(__VA_ARGS__) { \
    if (volume == nullptr) return -EINVAL;                  \
    const auto group = gofs::this_##kind();                 \
    const gofs::VolumeHandle vol{volume};                   \
    return static_cast<result>(call);                       \
  }
#define GOFS_C_CALL(result, name, call, ...)              \
  GOFS_C_CALL_BY(thread, result, name, call, __VA_ARGS__) \
  GOFS_C_CALL_BY(warp, result, name, call, __VA_ARGS__)   \
  GOFS_C_CALL_BY(block, result, name, call, __VA_ARGS__)  \
  GOFS_C_CALL_BY(grid, result, name, call, __VA_ARGS__)

namespace {

using Word = unsigned int;
using Wide = unsigned long long;

__device__ const uint64_t* words(const Wide* values) {
  static_assert(sizeof(Wide) == sizeof(uint64_t));
  return reinterpret_cast<const uint64_t*>(values);
}

__device__ gofs::Stat* stat_at(void* memory) { return static_cast<gofs::Stat*>(memory); }

__device__ int64_t batch_size(gofs::VolumeHandle vol, int batch, Word index) {
  const int64_t count = gofs::batch_count(vol, batch);
  if (count < 0) return count;
  if (index >= count) return -EINVAL;
  const gofs::BatchFile file = gofs::batch_file(vol, batch, index);
  return file.error != 0 ? file.error : static_cast<int64_t>(file.size_bytes);
}

}  // namespace

GOFS_C_CALL(int, gofs_open, gofs::open(group, vol, path, flags, mode), const void* volume,
            const char* path, Word flags, Word mode)
GOFS_C_CALL(int, gofs_close, gofs::close(group, vol, fd), const void* volume, int fd)
GOFS_C_CALL(long long, gofs_pread, gofs::pread(group, vol, fd, buffer, bytes, offset),
            const void* volume, int fd, void* buffer, Wide bytes, Wide offset)
GOFS_C_CALL(long long, gofs_pwrite, gofs::pwrite(group, vol, fd, buffer, bytes, offset),
            const void* volume, int fd, const void* buffer, Wide bytes, Wide offset)
GOFS_C_CALL(long long, gofs_read, gofs::read(group, vol, fd, buffer, bytes), const void* volume,
            int fd, void* buffer, Wide bytes)
GOFS_C_CALL(long long, gofs_write, gofs::write(group, vol, fd, buffer, bytes), const void* volume,
            int fd, const void* buffer, Wide bytes)
GOFS_C_CALL(long long, gofs_lseek, gofs::lseek(group, vol, fd, offset, whence), const void* volume,
            int fd, long long offset, int whence)

GOFS_C_CALL(long long, gofs_size,
            gofs::device_library::size(gofs::device_detail::scope_of(group), vol, path),
            const void* volume, const char* path)
GOFS_C_CALL(long long, gofs_fsize,
            gofs::device_library::fsize(gofs::device_detail::scope_of(group), vol, fd),
            const void* volume, int fd)
GOFS_C_CALL(int, gofs_stat, gofs::stat(group, vol, path, stat_at(stat)), const void* volume,
            const char* path, void* stat)
GOFS_C_CALL(int, gofs_lstat, gofs::lstat(group, vol, path, stat_at(stat)), const void* volume,
            const char* path, void* stat)
GOFS_C_CALL(int, gofs_fstat, gofs::fstat(group, vol, fd, stat_at(stat)), const void* volume, int fd,
            void* stat)

GOFS_C_CALL(int, gofs_ftruncate, gofs::ftruncate(group, vol, fd, bytes), const void* volume, int fd,
            Wide bytes)
GOFS_C_CALL(int, gofs_mkdir, gofs::mkdir(group, vol, path, mode), const void* volume,
            const char* path, Word mode)
GOFS_C_CALL(int, gofs_rmdir, gofs::rmdir(group, vol, path), const void* volume, const char* path)
GOFS_C_CALL(int, gofs_unlink, gofs::unlink(group, vol, path), const void* volume, const char* path)
GOFS_C_CALL(int, gofs_rename, gofs::rename(group, vol, from, to, flags), const void* volume,
            const char* from, const char* to, Word flags)

GOFS_C_CALL(int, gofs_fsync, gofs::fsync(group, vol, fd), const void* volume, int fd)
GOFS_C_CALL(int, gofs_fdatasync, gofs::fdatasync(group, vol, fd), const void* volume, int fd)
GOFS_C_CALL(int, gofs_sync, gofs::sync(group, vol), const void* volume)

GOFS_C_CALL(int, gofs_batch_open, gofs::batch_open(group, vol, path, names, count),
            const void* volume, const char* path, const char* const* names, Word count)
GOFS_C_CALL(int, gofs_batch_create,
            gofs::batch_create(group, vol, path, names, count, mode, buffer, words(offsets),
                               words(bytes)),
            const void* volume, const char* path, const char* const* names, Word count, Word mode,
            const void* buffer, const Wide* offsets, const Wide* bytes)
GOFS_C_CALL(long long, gofs_batch_read, gofs::batch_read(group, vol, batch, buffer, words(offsets)),
            const void* volume, int batch, void* buffer, const Wide* offsets)
GOFS_C_CALL(long long, gofs_batch_write,
            gofs::batch_write(group, vol, batch, buffer, words(offsets), words(bytes)),
            const void* volume, int batch, const void* buffer, const Wide* offsets,
            const Wide* bytes)
GOFS_C_CALL(int, gofs_batch_close, gofs::batch_close(group, vol, batch), const void* volume,
            int batch)
GOFS_C_CALL(long long, gofs_batch_count, (static_cast<void>(group), gofs::batch_count(vol, batch)),
            const void* volume, int batch)
GOFS_C_CALL(long long, gofs_batch_size, (static_cast<void>(group), batch_size(vol, batch, index)),
            const void* volume, int batch, Word index)
