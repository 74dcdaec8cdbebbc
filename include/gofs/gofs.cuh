// SPDX-License-Identifier: Apache-2.0
//
// GoFS inside CUDA kernels: POSIX names, the calling group first.
//
//   __global__ void sum(gofs::VolumeHandle vol, float* buffer) {
//     const auto block = gofs::this_block();
//     const int fd = gofs::open(block, vol, "/data/weights.bin", gofs::kOpenReadOnly);
//     const int64_t n = gofs::pread(block, vol, fd, buffer, 1 << 20, blockIdx.x * (1ull << 20));
//     ...
//     gofs::close(block, vol, fd);
//   }
//
// The group says who calls together and shares one result:
//   this_thread()  each thread for itself, in divergent code too
//   this_warp()    all 32 lanes, same arguments
//   this_block()   all threads of the block, same arguments; its warps share a read
//   this_grid()    all threads of a cooperative launch, same arguments; all warps share a read
// or a group of <cooperative_groups.h>: thread_block, a tile of 32, grid_group.
//
// Results are negative errnos or what POSIX says, the same for every thread of the group. When a
// call returns, what it read is visible to the whole group. Paths are NUL-terminated and absolute.
//
// Memory: buffers may lie in global memory (the GPU's own, managed, or pinned on the host), which
// is fastest, and for reads and writes that are waited for also
//   in __shared__ memory: of threads, warps and blocks;
//   in local memory, a thread's stack: of threads alone, since one address is other memory in each;
//   in __constant__ memory: what is written from.
// Such bytes are copied by the threads of the group through spare memory, up to 64 KiB
// (kBounceBytesMax) in one go: a request of so many is as whole as one of global memory, a longer
// one is several, one after the other, between which others may read, write and append. A buffer
// that is none of these, null among them, and any other but a global one given to asynchronous
// calls, batches and grids, gives -EFAULT before anything is read or written. What else a call
// writes (stat, links, entries, attributes) follows the same rules. What it only reads (paths,
// targets of links, names, values, an array of parts) may lie anywhere; each thread reads its own.
// Only the names of a batch are in global or constant memory. Parameters of a kernel that are
// __grid_constant__ are global memory that is read from, as long as the kernel runs. A buffer that
// is known to run over the end of a block's shared memory gives -EFAULT, and so does a text without
// an end.
//
// These are declarations and thin templates. What they call is compiled already, in
// libgofs_device.a: compile kernels with -rdc=true, and link that (README.md). Whatever a kernel
// calls, GoFS takes 64 registers a thread, so that blocks of up to 1,024 threads may call;
// libgofs_device_wide.a takes 140 to 204, for blocks of up to 256 threads, and is faster where few
// threads have requests under way. A kernel that uses more registers than 64 by itself is bound by
// its own number. GoFS has 16 KiB of each block's static shared memory for what is on its way, and
// some hundred bytes more for calls by whole blocks.
#pragma once

#include <cstdint>

#include "gofs/device_library.cuh"
#include "gofs/types.h"

namespace gofs {

/// The threads that make a call together. A group has no state: it may be made anywhere, any number
/// of times.
class ThisThread {};
class ThisWarp {};
class ThisBlock {};
/// All threads of a kernel launched with cudaLaunchCooperativeKernel, blocks of whole warps.
/// Several such kernels may call at the same time, on one volume too.
class ThisGrid {};

__device__ inline ThisThread this_thread() { return {}; }
__device__ inline ThisWarp this_warp() { return {}; }
__device__ inline ThisBlock this_block() { return {}; }
__device__ inline ThisGrid this_grid() { return {}; }

namespace device_detail {

__device__ inline ThisThread scope_of(ThisThread group) { return group; }
__device__ inline ThisWarp scope_of(ThisWarp group) { return group; }
__device__ inline ThisBlock scope_of(ThisBlock group) { return group; }
__device__ inline ThisGrid scope_of(ThisGrid group) { return group; }
// Groups of <cooperative_groups.h>, by what only they have: to include it takes the compiler longer
// than all the rest.
template <typename Block>
__device__ auto scope_of(const Block&)
    -> decltype(Block::thread_index(), Block::group_index(), ThisBlock()) {
  return {};
}
template <typename Grid>
__device__ auto scope_of(const Grid& grid)
    -> decltype(grid.is_valid(), grid.num_blocks(), ThisGrid()) {
  return {};
}
template <template <unsigned int, typename> class Tile, typename Parent>
__device__ ThisWarp scope_of(const Tile<32, Parent>&) {
  return {};
}
template <template <unsigned int, typename> class Tile, typename Parent>
__device__ ThisThread scope_of(const Tile<1, Parent>&) {
  return {};
}

template <typename Scope>
inline constexpr bool kIsOneWarp = false;
template <>
inline constexpr bool kIsOneWarp<ThisThread> = true;
template <>
inline constexpr bool kIsOneWarp<ThisWarp> = true;

}  // namespace device_detail

/// Opens a file or directory. `flags` as in open(2). A descriptor, or a negative errno: -EROFS for
/// flags that would write where the volume is mounted for reading. `mode`: the permissions of a
/// file that is made (kOpenCreate); there is no umask.
template <typename Group>
__device__ int open(const Group& group, VolumeHandle vol, const char* path, uint32_t flags = 0,
                    uint32_t mode = 0666) {
  return device_library::open(device_detail::scope_of(group), vol, path, flags, mode);
}

/// 0 or -EBADF. No other call may use the descriptor meanwhile.
template <typename Group>
__device__ int close(const Group& group, VolumeHandle vol, int fd) {
  return device_library::close(device_detail::scope_of(group), vol, fd);
}

/// Reads up to `bytes` at `offset`; zero copy where `buffer` and the range are aligned to 4 bytes
/// and to the SSD's LBA. Bytes read, fewer than asked at the end of the file or before a block that
/// cannot be read; or a negative errno.
template <typename Group>
__device__ int64_t pread(const Group& group, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                         uint64_t offset) {
  return device_library::pread(device_detail::scope_of(group), vol, fd, buffer, bytes, offset);
}

/// pread at the descriptor's position, which moves on by what the file has left (at most `bytes`),
/// whether or not all of it can be read. Groups that read at the same time get ranges of their own.
template <typename Group>
__device__ int64_t read(const Group& group, VolumeHandle vol, int fd, void* buffer,
                        uint64_t bytes) {
  return device_library::read(device_detail::scope_of(group), vol, fd, buffer, bytes);
}

/// preadv(2): one range of the file into several buffers. -EINVAL, before anything is read, for
/// more than kIoVectorsMax of them or for more bytes than the result can count. One thread of the
/// group may have filled `parts`.
template <typename Group>
__device__ int64_t preadv(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                          int count, uint64_t offset) {
  return device_library::preadv(device_detail::scope_of(group), vol, fd, parts, count, offset);
}

/// readv(2). The position moves as in read().
template <typename Group>
__device__ int64_t readv(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                         int count) {
  return device_library::readv(device_detail::scope_of(group), vol, fd, parts, count);
}

/// Starts a pread by a thread or a warp and returns at once; see vfs/async.h. -EAGAIN in the ticket
/// when too many are under way.
template <typename Group>
__device__ Ticket pread_async(const Group& group, VolumeHandle vol, int fd, void* buffer,
                              uint64_t bytes, uint64_t offset) {
  static_assert(device_detail::kIsOneWarp<decltype(device_detail::scope_of(group))>,
                "by a thread or a warp");
  return device_library::pread_async(device_detail::scope_of(group), vol, fd, buffer, bytes,
                                     offset);
}

/// Starts a pwrite by a thread or a warp and returns at once; see vfs/async_write.h. Whole blocks,
/// up to 1 MiB of them, are left under way, if `buffer` has them aligned to 4 bytes; what else
/// there is, is written before this returns. The file has its new contents and size when the ticket
/// was waited for, and its former ones until then, also after a crash. `buffer` must not be changed
/// before that. Reads and writes of the same blocks wait, and may end with -ETIMEDOUT. The ticket
/// has -EAGAIN when too many operations are under way: wait for one and try again; where 64 writes
/// of the file are under way, this one is done at once. There is one write behind the end of a file
/// at a time: to fill a file by several, make it as long first (ftruncate, fallocate). A thread
/// that has started one must wait for it before it reads or writes with shared or local memory:
/// other calls that wait for the same blocks may have all spare memory meanwhile, and after the
/// time for locks either this call gets -EBUSY or those get -ETIMEDOUT.
template <typename Group>
__device__ Ticket pwrite_async(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                               uint64_t bytes, uint64_t offset) {
  static_assert(device_detail::kIsOneWarp<decltype(device_detail::scope_of(group))>,
                "by a thread or a warp");
  return device_library::pwrite_async(device_detail::scope_of(group), vol, fd, buffer, bytes,
                                      offset);
}

/// Whether the SSD is done with a ticket, which is to be waited for all the same. By the scope that
/// started it.
template <typename Group>
__device__ bool poll(const Group& group, VolumeHandle vol, const Ticket& ticket) {
  static_assert(device_detail::kIsOneWarp<decltype(device_detail::scope_of(group))>,
                "by a thread or a warp");
  return device_library::poll(device_detail::scope_of(group), vol, ticket);
}

/// Waits for a ticket; what pread or pwrite would have returned. Once for each ticket, by a scope
/// like the one that started it; one with a negative result need not be waited for.
template <typename Group>
__device__ int64_t wait(const Group& group, VolumeHandle vol, const Ticket& ticket) {
  static_assert(device_detail::kIsOneWarp<decltype(device_detail::scope_of(group))>,
                "by a thread or a warp");
  return device_library::wait(device_detail::scope_of(group), vol, ticket);
}

template <typename Group>
__device__ int64_t lseek(const Group& group, VolumeHandle vol, int fd, int64_t offset, int whence) {
  return device_library::lseek(device_detail::scope_of(group), vol, fd, offset, whence);
}

/// `out` is written by one thread of the group, which must own it: memory shared by the group.
template <typename Group>
__device__ int stat(const Group& group, VolumeHandle vol, const char* path, Stat* out) {
  return device_library::stat(device_detail::scope_of(group), vol, path, out);
}

/// stat of a symbolic link itself.
template <typename Group>
__device__ int lstat(const Group& group, VolumeHandle vol, const char* path, Stat* out) {
  return device_library::lstat(device_detail::scope_of(group), vol, path, out);
}

template <typename Group>
__device__ int fstat(const Group& group, VolumeHandle vol, int fd, Stat* out) {
  return device_library::fstat(device_detail::scope_of(group), vol, fd, out);
}

/// `mode` is made of kMayRead, kMayWrite, kMayExecute; 0 asks whether the file exists.
template <typename Group>
__device__ int access(const Group& group, VolumeHandle vol, const char* path, uint32_t mode) {
  return device_library::access(device_detail::scope_of(group), vol, path, mode);
}

/// Bytes of the link's target, without a terminator.
template <typename Group>
__device__ int64_t readlink(const Group& group, VolumeHandle vol, const char* path, char* buffer,
                            uint64_t bytes) {
  return device_library::readlink(device_detail::scope_of(group), vol, path, buffer, bytes);
}

/// The value of an extended attribute; `name` (NUL-terminated) has its prefix, as in "user.colour".
/// Bytes of the value, which `value` has room for; with `bytes` 0 how many there are. -ENODATA
/// where there is no such attribute or the caller may not know of it, -ERANGE where it does not
/// fit, -EOPNOTSUPP for a prefix that F2FS does not have. ACLs come in the form of Linux's system
/// calls.
template <typename Group>
__device__ int64_t getxattr(const Group& group, VolumeHandle vol, const char* path,
                            const char* name, void* value, uint64_t bytes) {
  return device_library::getxattr(device_detail::scope_of(group), vol, path, name, value, bytes);
}

/// getxattr of a symbolic link itself.
template <typename Group>
__device__ int64_t lgetxattr(const Group& group, VolumeHandle vol, const char* path,
                             const char* name, void* value, uint64_t bytes) {
  return device_library::lgetxattr(device_detail::scope_of(group), vol, path, name, value, bytes);
}

template <typename Group>
__device__ int64_t fgetxattr(const Group& group, VolumeHandle vol, int fd, const char* name,
                             void* value, uint64_t bytes) {
  return device_library::fgetxattr(device_detail::scope_of(group), vol, fd, name, value, bytes);
}

/// The names of all extended attributes that the caller may know of, each with its prefix and a
/// NUL. Bytes written to `list`; with `bytes` 0 how many there are, at most kXattrListBytesMax.
/// -ERANGE where they do not fit.
template <typename Group>
__device__ int64_t listxattr(const Group& group, VolumeHandle vol, const char* path, char* list,
                             uint64_t bytes) {
  return device_library::listxattr(device_detail::scope_of(group), vol, path, list, bytes);
}

/// listxattr of a symbolic link itself.
template <typename Group>
__device__ int64_t llistxattr(const Group& group, VolumeHandle vol, const char* path, char* list,
                              uint64_t bytes) {
  return device_library::llistxattr(device_detail::scope_of(group), vol, path, list, bytes);
}

template <typename Group>
__device__ int64_t flistxattr(const Group& group, VolumeHandle vol, int fd, char* list,
                              uint64_t bytes) {
  return device_library::flistxattr(device_detail::scope_of(group), vol, fd, list, bytes);
}

// Changes of a volume that is mounted for writing, else -EROFS. Others see them at once; they are
// durable after sync() or when the host has unmounted the volume. -EPERM and -EACCES as chmod(2)
// and its like have them.

/// pwritev(2): `count` parts, one after the other, at `offset`; zero copy where the parts are
/// aligned to 4 bytes and their ranges to blocks. Bytes written, fewer than asked only where the
/// volume is full or the SSD fails in between, and behind them, as far as the file had bytes there
/// before, these or new ones; or a negative errno: -EINVAL also for more than kIoVectorsMax parts.
/// A descriptor that was opened to append writes at the end. All warps of the group write parts of
/// the range; other threads that read or write it wait. `parts` lie in memory that all of them
/// reach.
template <typename Group>
__device__ int64_t pwritev(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                           int count, uint64_t offset) {
  return device_library::pwritev(device_detail::scope_of(group), vol, fd, parts, count, offset);
}

/// pwritev() of one part.
template <typename Group>
__device__ int64_t pwrite(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                          uint64_t bytes, uint64_t offset) {
  return device_library::pwrite(device_detail::scope_of(group), vol, fd, buffer, bytes, offset);
}

/// writev(2): pwritev() at the descriptor's position, which moves past what was asked for. Groups
/// that write at the same time get ranges of their own.
template <typename Group>
__device__ int64_t writev(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                          int count) {
  return device_library::writev(device_detail::scope_of(group), vol, fd, parts, count);
}

/// writev() of one part.
template <typename Group>
__device__ int64_t write(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                         uint64_t bytes) {
  return device_library::write(device_detail::scope_of(group), vol, fd, buffer, bytes);
}

/// mkdir(2). 0 or a negative errno; so the next ones.
template <typename Group>
__device__ int mkdir(const Group& group, VolumeHandle vol, const char* path, uint32_t mode = 0777) {
  return device_library::mkdir(device_detail::scope_of(group), vol, path, mode);
}

template <typename Group>
__device__ int mknod(const Group& group, VolumeHandle vol, const char* path, uint32_t mode,
                     uint32_t major = 0, uint32_t minor = 0) {
  return device_library::mknod(device_detail::scope_of(group), vol, path, mode, major, minor);
}

/// `target` is NUL-terminated.
template <typename Group>
__device__ int symlink(const Group& group, VolumeHandle vol, const char* target, const char* path) {
  return device_library::symlink(device_detail::scope_of(group), vol, target, path);
}

/// `path` becomes another name of `existing`.
template <typename Group>
__device__ int link(const Group& group, VolumeHandle vol, const char* existing, const char* path) {
  return device_library::link(device_detail::scope_of(group), vol, existing, path);
}

/// Removes a name of a file that is not a directory. A file without names is freed, at the latest
/// when it is closed last.
template <typename Group>
__device__ int unlink(const Group& group, VolumeHandle vol, const char* path) {
  return device_library::unlink(device_detail::scope_of(group), vol, path);
}

/// Removes an empty directory.
template <typename Group>
__device__ int rmdir(const Group& group, VolumeHandle vol, const char* path) {
  return device_library::rmdir(device_detail::scope_of(group), vol, path);
}

/// Renames `from` to `to`, which replaces what had that name. `flags`: 0, kRenameNoReplace (-EEXIST
/// if something has it) or kRenameExchange (each gets the other's name).
template <typename Group>
__device__ int rename(const Group& group, VolumeHandle vol, const char* from, const char* to,
                      uint32_t flags = 0) {
  return device_library::rename(device_detail::scope_of(group), vol, from, to, flags);
}

/// The file gets shorter, or longer with zeros. 0 or a negative errno.
template <typename Group>
__device__ int truncate(const Group& group, VolumeHandle vol, const char* path, uint64_t size) {
  return device_library::truncate(device_detail::scope_of(group), vol, path, size);
}

template <typename Group>
__device__ int ftruncate(const Group& group, VolumeHandle vol, int fd, uint64_t size) {
  return device_library::ftruncate(device_detail::scope_of(group), vol, fd, size);
}

/// fallocate(2): sees to it that `bytes` bytes at `offset` can be written without any more room on
/// the volume, and with `mode` 0 that the file reaches to their end; with kFallocateKeepSize the
/// size stays, with kFallocateZeroRange what is there becomes zeros, and
/// kFallocatePunchHole | kFallocateKeepSize makes a hole. 0 or a negative errno: -EOPNOTSUPP for
/// other modes, -ENOSPC before anything is changed.
template <typename Group>
__device__ int fallocate(const Group& group, VolumeHandle vol, int fd, uint32_t mode,
                         uint64_t offset, uint64_t bytes) {
  return device_library::fallocate(device_detail::scope_of(group), vol, fd, mode, offset, bytes);
}

/// The permissions of `mode`; an access list follows them.
template <typename Group>
__device__ int chmod(const Group& group, VolumeHandle vol, const char* path, uint32_t mode) {
  return device_library::chmod(device_detail::scope_of(group), vol, path, mode);
}

template <typename Group>
__device__ int fchmod(const Group& group, VolumeHandle vol, int fd, uint32_t mode) {
  return device_library::fchmod(device_detail::scope_of(group), vol, fd, mode);
}

/// kKeepId leaves the one or the other as it is.
template <typename Group>
__device__ int chown(const Group& group, VolumeHandle vol, const char* path, uint32_t uid,
                     uint32_t gid) {
  return device_library::chown(device_detail::scope_of(group), vol, path, uid, gid);
}

template <typename Group>
__device__ int lchown(const Group& group, VolumeHandle vol, const char* path, uint32_t uid,
                      uint32_t gid) {
  return device_library::lchown(device_detail::scope_of(group), vol, path, uid, gid);
}

template <typename Group>
__device__ int fchown(const Group& group, VolumeHandle vol, int fd, uint32_t uid, uint32_t gid) {
  return device_library::fchown(device_detail::scope_of(group), vol, fd, uid, gid);
}

/// utimensat(2). Nanoseconds may be kTimeNow or kTimeOmit.
template <typename Group>
__device__ int utimens(const Group& group, VolumeHandle vol, const char* path,
                       const TimeStamp& accessed, const TimeStamp& modified) {
  return device_library::utimens(device_detail::scope_of(group), vol, path, accessed, modified);
}

/// utimens of a symbolic link itself.
template <typename Group>
__device__ int lutimens(const Group& group, VolumeHandle vol, const char* path,
                        const TimeStamp& accessed, const TimeStamp& modified) {
  return device_library::lutimens(device_detail::scope_of(group), vol, path, accessed, modified);
}

template <typename Group>
__device__ int futimens(const Group& group, VolumeHandle vol, int fd, const TimeStamp& accessed,
                        const TimeStamp& modified) {
  return device_library::futimens(device_detail::scope_of(group), vol, fd, accessed, modified);
}

/// Sets an extended attribute. `flags`: 0, kXattrCreate (-EEXIST) or kXattrReplace (-ENODATA).
/// -ENOSPC also where the inode has no more room.
template <typename Group>
__device__ int setxattr(const Group& group, VolumeHandle vol, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags = 0) {
  return device_library::setxattr(device_detail::scope_of(group), vol, path, name, value, bytes,
                                  flags);
}

template <typename Group>
__device__ int lsetxattr(const Group& group, VolumeHandle vol, const char* path, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags = 0) {
  return device_library::lsetxattr(device_detail::scope_of(group), vol, path, name, value, bytes,
                                   flags);
}

template <typename Group>
__device__ int fsetxattr(const Group& group, VolumeHandle vol, int fd, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags = 0) {
  return device_library::fsetxattr(device_detail::scope_of(group), vol, fd, name, value, bytes,
                                   flags);
}

template <typename Group>
__device__ int removexattr(const Group& group, VolumeHandle vol, const char* path,
                           const char* name) {
  return device_library::removexattr(device_detail::scope_of(group), vol, path, name);
}

template <typename Group>
__device__ int lremovexattr(const Group& group, VolumeHandle vol, const char* path,
                            const char* name) {
  return device_library::lremovexattr(device_detail::scope_of(group), vol, path, name);
}

template <typename Group>
__device__ int fremovexattr(const Group& group, VolumeHandle vol, int fd, const char* name) {
  return device_library::fremovexattr(device_detail::scope_of(group), vol, fd, name);
}

/// Makes what was done before durable on the SSD: a checkpoint. Other groups wait for it no longer
/// than for any other call. Where the SSD is an image in a GPU's reach, the image itself follows
/// when the host syncs or unmounts.
template <typename Group>
__device__ int sync(const Group& group, VolumeHandle vol) {
  return device_library::sync(device_detail::scope_of(group), vol);
}

/// The same for one file: its contents, its attributes and, if it is new, its name are on the SSD
/// when this returns 0; of a directory, as sync(). Also for descriptors that are open for reading.
template <typename Group>
__device__ int fsync(const Group& group, VolumeHandle vol, int fd) {
  return device_library::fsync(device_detail::scope_of(group), vol, fd);
}

/// fsync(), but for the times of the last change where they are all that has changed in the inode:
/// of a file in which blocks are overwritten it is then not written.
template <typename Group>
__device__ int fdatasync(const Group& group, VolumeHandle vol, int fd) {
  return device_library::fdatasync(device_detail::scope_of(group), vol, fd);
}

/// Empties up to `segments_max` segments that are only partly in use, so that what is written later
/// is contiguous; see vfs::collect_garbage. How many were tried, or a negative errno. One warp of
/// the group works; several groups may do so at a time.
template <typename Group>
__device__ int64_t collect_garbage(const Group& group, VolumeHandle vol, uint32_t segments_max) {
  return device_library::collect_garbage(device_detail::scope_of(group), vol, segments_max);
}

template <typename Group>
__device__ int opendir(const Group& group, VolumeHandle vol, const char* path) {
  return open(group, vol, path, kOpenReadOnly | kOpenDirectory);
}

/// The next entries of a directory, at most `capacity` (at least kReaddirEntriesMin); see
/// vfs::readdir.
template <typename Group>
__device__ int64_t readdir(const Group& group, VolumeHandle vol, int fd, NamedEntry* entries,
                           uint32_t capacity) {
  return device_library::readdir(device_detail::scope_of(group), vol, fd, entries, capacity);
}

/// Opens many files of one directory at once: those of `names` (NUL-terminated, relative to
/// `path`), or with no names all regular files, at most `count`, in the order of readdir. All warps
/// of the group share the work and synchronise between its steps. A batch descriptor, or a negative
/// errno, for a directory of which a part cannot be listed too. A file that cannot be opened has
/// its error in batch_file() and is left out of reads: -EFAULT where its name is not in global or
/// constant memory, which all warps look at. Of a file that is written or removed meanwhile, reads
/// of the batch give what was there before or after, or an error; the room that such changes free
/// on the volume is usable after batch_close().
template <typename Group>
__device__ int batch_open(const Group& group, VolumeHandle vol, const char* path,
                          const char* const* names, uint32_t count) {
  return device_library::batch_open(device_detail::scope_of(group), vol, path, names, count);
}

/// Files of an open batch, or -EBADF. Needs no group.
__device__ inline int64_t batch_count(VolumeHandle vol, int bd) {
  return device_library::batch_count(vol, bd);
}

/// Size, inode and error of file `index` (below batch_count) of an open batch. Needs no group.
__device__ inline BatchFile batch_file(VolumeHandle vol, int bd, uint32_t index) {
  return device_library::batch_file(vol, bd, index);
}

/// Reads all files of a batch, file i to `buffer + offsets[i]`. Bytes read, or -EBADF; what went
/// wrong with a single file is in batch_file().error.
template <typename Group>
__device__ int64_t batch_read(const Group& group, VolumeHandle vol, int bd, void* buffer,
                              const uint64_t* offsets) {
  return device_library::batch_read(device_detail::scope_of(group), vol, bd, buffer, offsets);
}

/// Makes `count` files with `mode` in the directory `path`, those of `names` (NUL-terminated,
/// without slashes), and opens them as a batch. (Of a volume that a server has mounted, each is
/// made, written and closed by itself, as one file is, so after a crash it may have a part of them,
/// and batch_write() asks later whether its mode allows to write.) With a `buffer`, file i comes
/// with the bytes[i] bytes at `buffer + offsets[i]`, and is there with all of them or, after a
/// crash, not at all;
/// best are buffers and offsets that are multiples of 4. All warps of the group share the work;
/// other calls that change the directory wait until all is done. A batch descriptor, or a negative
/// errno, and nothing was made: -EFAULT also where one of the names, which all warps look at, is
/// not in global or constant memory. A file that cannot be made has its error in batch_file():
/// -EEXIST, -ENOSPC, ...
template <typename Group>
__device__ int batch_create(const Group& group, VolumeHandle vol, const char* path,
                            const char* const* names, uint32_t count, uint32_t mode = 0666,
                            const void* buffer = nullptr, const uint64_t* offsets = nullptr,
                            const uint64_t* bytes = nullptr) {
  return device_library::batch_create(device_detail::scope_of(group), vol, path, names, count, mode,
                                      buffer, offsets, bytes);
}

/// Writes the first bytes[i] bytes of each file i of a batch from `buffer + offsets[i]`; a file
/// that is longer keeps the rest. Bytes written, or -EBADF; what went wrong with a single file is
/// in batch_file().error. The batch must not be read meanwhile.
template <typename Group>
__device__ int64_t batch_write(const Group& group, VolumeHandle vol, int bd, const void* buffer,
                               const uint64_t* offsets, const uint64_t* bytes) {
  return device_library::batch_write(device_detail::scope_of(group), vol, bd, buffer, offsets,
                                     bytes);
}

/// 0 or -EBADF.
template <typename Group>
__device__ int batch_close(const Group& group, VolumeHandle vol, int bd) {
  return device_library::batch_close(device_detail::scope_of(group), vol, bd);
}

/// Numbers of the file system; needs no group.
__device__ inline FilesystemStat statfs(VolumeHandle vol) { return device_library::statfs(vol); }

}  // namespace gofs
