// SPDX-License-Identifier: Apache-2.0
//
// What libgofs_device has, for gofs.cuh to call: each call once for every scope (ThisThread,
// ThisWarp, ThisBlock, ThisGrid; what is started and waited for, of the first two). gofs.cuh says
// what they do.
#pragma once

#include "gofs/types.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int open(Scope scope, VolumeHandle vol, const char* path, uint32_t flags, uint32_t mode);
template <typename Scope>
__device__ int close(Scope scope, VolumeHandle vol, int fd);
template <typename Scope>
__device__ int64_t pread(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                         uint64_t offset);
template <typename Scope>
__device__ int64_t read(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes);
template <typename Scope>
__device__ int64_t preadv(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count,
                          uint64_t offset);
template <typename Scope>
__device__ int64_t readv(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count);
template <typename Scope>
__device__ Ticket pread_async(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                              uint64_t offset);
template <typename Scope>
__device__ Ticket pwrite_async(Scope scope, VolumeHandle vol, int fd, const void* buffer,
                               uint64_t bytes, uint64_t offset);
template <typename Scope>
__device__ bool poll(Scope scope, VolumeHandle vol, const Ticket& ticket);
template <typename Scope>
__device__ int64_t wait(Scope scope, VolumeHandle vol, const Ticket& ticket);
template <typename Scope>
__device__ int64_t lseek(Scope scope, VolumeHandle vol, int fd, int64_t offset, int whence);
template <typename Scope>
__device__ int stat(Scope scope, VolumeHandle vol, const char* path, Stat* out);
template <typename Scope>
__device__ int lstat(Scope scope, VolumeHandle vol, const char* path, Stat* out);
template <typename Scope>
__device__ int fstat(Scope scope, VolumeHandle vol, int fd, Stat* out);
/// Bytes of a file; for gofs_device.h.
template <typename Scope>
__device__ int64_t size(Scope scope, VolumeHandle vol, const char* path);
template <typename Scope>
__device__ int64_t fsize(Scope scope, VolumeHandle vol, int fd);
template <typename Scope>
__device__ int access(Scope scope, VolumeHandle vol, const char* path, uint32_t mode);
template <typename Scope>
__device__ int64_t readlink(Scope scope, VolumeHandle vol, const char* path, char* buffer,
                            uint64_t bytes);
template <typename Scope>
__device__ int64_t getxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                            void* value, uint64_t bytes);
template <typename Scope>
__device__ int64_t lgetxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                             void* value, uint64_t bytes);
template <typename Scope>
__device__ int64_t fgetxattr(Scope scope, VolumeHandle vol, int fd, const char* name, void* value,
                             uint64_t bytes);
template <typename Scope>
__device__ int64_t listxattr(Scope scope, VolumeHandle vol, const char* path, char* list,
                             uint64_t bytes);
template <typename Scope>
__device__ int64_t llistxattr(Scope scope, VolumeHandle vol, const char* path, char* list,
                              uint64_t bytes);
template <typename Scope>
__device__ int64_t flistxattr(Scope scope, VolumeHandle vol, int fd, char* list, uint64_t bytes);
template <typename Scope>
__device__ int64_t pwritev(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count,
                           uint64_t offset);
template <typename Scope>
__device__ int64_t pwrite(Scope scope, VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                          uint64_t offset);
template <typename Scope>
__device__ int64_t writev(Scope scope, VolumeHandle vol, int fd, const IoVector* parts, int count);
template <typename Scope>
__device__ int64_t write(Scope scope, VolumeHandle vol, int fd, const void* buffer, uint64_t bytes);
template <typename Scope>
__device__ int mkdir(Scope scope, VolumeHandle vol, const char* path, uint32_t mode);
template <typename Scope>
__device__ int mknod(Scope scope, VolumeHandle vol, const char* path, uint32_t mode, uint32_t major,
                     uint32_t minor);
template <typename Scope>
__device__ int symlink(Scope scope, VolumeHandle vol, const char* target, const char* path);
template <typename Scope>
__device__ int link(Scope scope, VolumeHandle vol, const char* existing, const char* path);
template <typename Scope>
__device__ int unlink(Scope scope, VolumeHandle vol, const char* path);
template <typename Scope>
__device__ int rmdir(Scope scope, VolumeHandle vol, const char* path);
template <typename Scope>
__device__ int rename(Scope scope, VolumeHandle vol, const char* from, const char* to,
                      uint32_t flags);
template <typename Scope>
__device__ int truncate(Scope scope, VolumeHandle vol, const char* path, uint64_t size);
template <typename Scope>
__device__ int ftruncate(Scope scope, VolumeHandle vol, int fd, uint64_t size);
template <typename Scope>
__device__ int fallocate(Scope scope, VolumeHandle vol, int fd, uint32_t mode, uint64_t offset,
                         uint64_t bytes);
template <typename Scope>
__device__ int chmod(Scope scope, VolumeHandle vol, const char* path, uint32_t mode);
template <typename Scope>
__device__ int fchmod(Scope scope, VolumeHandle vol, int fd, uint32_t mode);
template <typename Scope>
__device__ int chown(Scope scope, VolumeHandle vol, const char* path, uint32_t uid, uint32_t gid);
template <typename Scope>
__device__ int lchown(Scope scope, VolumeHandle vol, const char* path, uint32_t uid, uint32_t gid);
template <typename Scope>
__device__ int fchown(Scope scope, VolumeHandle vol, int fd, uint32_t uid, uint32_t gid);
template <typename Scope>
__device__ int utimens(Scope scope, VolumeHandle vol, const char* path, const TimeStamp& accessed,
                       const TimeStamp& modified);
template <typename Scope>
__device__ int lutimens(Scope scope, VolumeHandle vol, const char* path, const TimeStamp& accessed,
                        const TimeStamp& modified);
template <typename Scope>
__device__ int futimens(Scope scope, VolumeHandle vol, int fd, const TimeStamp& accessed,
                        const TimeStamp& modified);
template <typename Scope>
__device__ int setxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags);
template <typename Scope>
__device__ int lsetxattr(Scope scope, VolumeHandle vol, const char* path, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags);
template <typename Scope>
__device__ int fsetxattr(Scope scope, VolumeHandle vol, int fd, const char* name, const void* value,
                         uint64_t bytes, uint32_t flags);
template <typename Scope>
__device__ int removexattr(Scope scope, VolumeHandle vol, const char* path, const char* name);
template <typename Scope>
__device__ int lremovexattr(Scope scope, VolumeHandle vol, const char* path, const char* name);
template <typename Scope>
__device__ int fremovexattr(Scope scope, VolumeHandle vol, int fd, const char* name);
template <typename Scope>
__device__ int sync(Scope scope, VolumeHandle vol);
template <typename Scope>
__device__ int fsync(Scope scope, VolumeHandle vol, int fd);
template <typename Scope>
__device__ int fdatasync(Scope scope, VolumeHandle vol, int fd);
template <typename Scope>
__device__ int64_t collect_garbage(Scope scope, VolumeHandle vol, uint32_t segments_max);
template <typename Scope>
__device__ int64_t readdir(Scope scope, VolumeHandle vol, int fd, NamedEntry* entries,
                           uint32_t capacity);
template <typename Scope>
__device__ int batch_open(Scope scope, VolumeHandle vol, const char* path, const char* const* names,
                          uint32_t count);
template <typename Scope>
__device__ int64_t batch_read(Scope scope, VolumeHandle vol, int bd, void* buffer,
                              const uint64_t* offsets);
template <typename Scope>
__device__ int batch_create(Scope scope, VolumeHandle vol, const char* path,
                            const char* const* names, uint32_t count, uint32_t mode,
                            const void* buffer, const uint64_t* offsets, const uint64_t* bytes);
template <typename Scope>
__device__ int64_t batch_write(Scope scope, VolumeHandle vol, int bd, const void* buffer,
                               const uint64_t* offsets, const uint64_t* bytes);
template <typename Scope>
__device__ int batch_close(Scope scope, VolumeHandle vol, int bd);

__device__ int64_t batch_count(VolumeHandle vol, int bd);
__device__ BatchFile batch_file(VolumeHandle vol, int bd, uint32_t index);
__device__ FilesystemStat statfs(VolumeHandle vol);

}  // namespace gofs::device_library
