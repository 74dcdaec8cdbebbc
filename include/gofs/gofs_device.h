// SPDX-License-Identifier: Apache-2.0
//
// The calls of gofs.cuh with C linkage and plain types, for kernels in other languages: whatever
// can declare and link a device function of libgofs_device can call them. CUDA C++ includes this,
// NVRTC too (it includes nothing); others declare what they use by the same types.
//
//   extern "C" __global__ void sum(const void* volume, float* buffer) {
//     const int fd = gofs_open_block(volume, "/data/weights.bin", 0, 0);
//     gofs_pread_block(volume, fd, buffer, 1 << 20, blockIdx.x * (1ull << 20));
//     ...
//     gofs_close_block(volume, fd);
//   }
//
// Every call exists four times, by the group that makes it together: NAME_thread, NAME_warp (all 32
// lanes), NAME_block and NAME_grid (a cooperative launch). All threads of the group pass the same
// arguments, and all get the result: what POSIX says, or a negative errno of Linux. All of them see
// what a call has read when it returns. gofs.cuh says more of each, of the memory that buffers may
// lie in, and of errors.
//
// `volume` is what gofs_volume_device_pointer() (gofs.h) or Volume::device().state gives, valid as
// long as the volume is mounted; null gives -EINVAL. Flags, modes and limits are those of
// gofs/types.h, which are those of Linux.
#pragma once

/// Declares a call for the four kinds of groups.
#define GOFS_DEVICE_CALL(result, name, ...)                \
  extern "C" __device__ result name##_thread(__VA_ARGS__); \
  extern "C" __device__ result name##_warp(__VA_ARGS__);   \
  extern "C" __device__ result name##_block(__VA_ARGS__);  \
  extern "C" __device__ result name##_grid(__VA_ARGS__)

/// Opens a file or directory; a descriptor. `mode`: the permissions of a file that is made.
GOFS_DEVICE_CALL(int, gofs_open, const void* volume, const char* path, unsigned int flags,
                 unsigned int mode);
/// 0 or -EBADF.
GOFS_DEVICE_CALL(int, gofs_close, const void* volume, int fd);

/// Bytes read: fewer than `bytes` at the end of the file.
GOFS_DEVICE_CALL(long long, gofs_pread, const void* volume, int fd, void* buffer,
                 unsigned long long bytes, unsigned long long offset);
/// Bytes written: fewer than `bytes` where the volume is full.
GOFS_DEVICE_CALL(long long, gofs_pwrite, const void* volume, int fd, const void* buffer,
                 unsigned long long bytes, unsigned long long offset);
/// Bytes read at the descriptor's position, which moves on.
GOFS_DEVICE_CALL(long long, gofs_read, const void* volume, int fd, void* buffer,
                 unsigned long long bytes);
/// Bytes written at the descriptor's position, which moves on.
GOFS_DEVICE_CALL(long long, gofs_write, const void* volume, int fd, const void* buffer,
                 unsigned long long bytes);
/// The new position. `whence` is SEEK_SET (0), SEEK_CUR, SEEK_END, SEEK_DATA or SEEK_HOLE.
GOFS_DEVICE_CALL(long long, gofs_lseek, const void* volume, int fd, long long offset, int whence);

/// Bytes of a file.
GOFS_DEVICE_CALL(long long, gofs_size, const void* volume, const char* path);
GOFS_DEVICE_CALL(long long, gofs_fsize, const void* volume, int fd);
/// 0; `stat` is a gofs::Stat (gofs/types.h), which one thread of the group fills.
GOFS_DEVICE_CALL(int, gofs_stat, const void* volume, const char* path, void* stat);
GOFS_DEVICE_CALL(int, gofs_lstat, const void* volume, const char* path, void* stat);
GOFS_DEVICE_CALL(int, gofs_fstat, const void* volume, int fd, void* stat);

/// 0; the file has `bytes` bytes then, zeros where it had none.
GOFS_DEVICE_CALL(int, gofs_ftruncate, const void* volume, int fd, unsigned long long bytes);
/// 0; makes a directory with the permissions `mode`.
GOFS_DEVICE_CALL(int, gofs_mkdir, const void* volume, const char* path, unsigned int mode);
/// 0; removes a directory that is empty.
GOFS_DEVICE_CALL(int, gofs_rmdir, const void* volume, const char* path);
/// 0; removes a name that is no directory's.
GOFS_DEVICE_CALL(int, gofs_unlink, const void* volume, const char* path);
/// 0; `flags`: 0, RENAME_NOREPLACE (1) or RENAME_EXCHANGE (2).
GOFS_DEVICE_CALL(int, gofs_rename, const void* volume, const char* from, const char* to,
                 unsigned int flags);

/// 0; makes a file durable: contents, attributes and, if it is new, the name.
GOFS_DEVICE_CALL(int, gofs_fsync, const void* volume, int fd);
/// 0; fsync, but for times where nothing else of the inode has changed.
GOFS_DEVICE_CALL(int, gofs_fdatasync, const void* volume, int fd);
/// 0; makes all of the volume durable.
GOFS_DEVICE_CALL(int, gofs_sync, const void* volume);

/// Opens `count` files of the directory `path` at once, those of `names`; all of its regular files,
/// `count` at most, where `names` is null. A batch descriptor.
GOFS_DEVICE_CALL(int, gofs_batch_open, const void* volume, const char* path,
                 const char* const* names, unsigned int count);
/// Makes `count` files in the directory `path`, those of `names`, and writes bytes[i] bytes from
/// `buffer + offsets[i]` to each file i where `buffer` is not null. A batch descriptor.
GOFS_DEVICE_CALL(int, gofs_batch_create, const void* volume, const char* path,
                 const char* const* names, unsigned int count, unsigned int mode,
                 const void* buffer, const unsigned long long* offsets,
                 const unsigned long long* bytes);
/// Bytes read: each file i to `buffer + offsets[i]`.
GOFS_DEVICE_CALL(long long, gofs_batch_read, const void* volume, int batch, void* buffer,
                 const unsigned long long* offsets);
/// Bytes written: bytes[i] of `buffer + offsets[i]` to each file i.
GOFS_DEVICE_CALL(long long, gofs_batch_write, const void* volume, int batch, const void* buffer,
                 const unsigned long long* offsets, const unsigned long long* bytes);
/// 0 or -EBADF.
GOFS_DEVICE_CALL(int, gofs_batch_close, const void* volume, int batch);

/// Files of an open batch.
GOFS_DEVICE_CALL(long long, gofs_batch_count, const void* volume, int batch);
/// Bytes of file `index`, or what kept this file alone from being opened, made, read or written.
GOFS_DEVICE_CALL(long long, gofs_batch_size, const void* volume, int batch, unsigned int index);

#undef GOFS_DEVICE_CALL
