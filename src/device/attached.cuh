// SPDX-License-Identifier: Apache-2.0
//
// The calls of gofs.cuh on a volume that another process has mounted: through a channel, of which
// this program is a client (serve/kernel_channel.h).
#pragma once

#include "device/scopes.cuh"
#include "serve/kernel_batch.h"
#include "serve/kernel_data.h"

namespace gofs::attached {

using device_library::in;
using device_library::may_fill;
using device_library::may_read;
using device_library::may_read_all;
using device_library::may_read_value;
using request::Verb;
using serve::KernelCall;
using serve::KernelChannel;
using vfs::move_parts;

// --- Calls by their arguments. -------------------------------------------------------------------

__device__ inline KernelCall about(Verb verb) { return KernelCall(verb); }
__device__ inline KernelCall about(Verb verb, const char* path, bool keeps_link = false) {
  KernelCall call(verb);
  call.path = path;
  call.request.bits = keeps_link ? request::kKeepLink : uint16_t{0};
  return call;
}
__device__ inline KernelCall about(Verb verb, int fd) {
  KernelCall call(verb);
  call.request.descriptor = fd;
  return call;
}
__device__ inline KernelCall filling(KernelCall call, void* output, uint64_t bytes) {
  call.output = output;
  call.request.bytes = bytes;
  return call;
}

/// Makes the call once for the group, unless its arguments are `reachable`: not all of them.
template <typename Scope>
__device__ int64_t ask(bool reachable, Scope scope, KernelChannel& channel, KernelCall call) {
  return device_library::once_if(
      reachable, scope, channel,
      [&](simt::AnyWarp auto warp) -> int64_t { return serve::ask(warp, channel, call); });
}

// --- Files. --------------------------------------------------------------------------------------

template <typename Scope>
__device__ int open(Scope scope, KernelChannel& channel, const char* path, uint32_t flags,
                    uint32_t mode) {
  KernelCall call = about(Verb::kOpen, path);
  call.request.flags = flags;
  call.request.mode = mode;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}

template <typename Scope>
__device__ int close(Scope scope, KernelChannel& channel, int fd) {
  return static_cast<int>(ask(true, scope, channel, about(Verb::kClose, fd)));
}

template <typename Scope>
__device__ int64_t readdir(Scope scope, KernelChannel& channel, int fd, NamedEntry* entries,
                           uint32_t capacity) {
  const uint64_t bytes = uint64_t{capacity} * sizeof(NamedEntry);
  return ask(may_fill(scope, entries, bytes), scope, channel,
             filling(about(Verb::kReaddir, fd), entries, bytes));
}

template <typename Scope>
__device__ int64_t lseek(Scope scope, KernelChannel& channel, int fd, int64_t offset, int whence) {
  KernelCall call = about(Verb::kLseek, fd);
  call.request.offset = offset;
  call.request.flags = static_cast<uint32_t>(whence);
  return ask(true, scope, channel, call);
}

template <typename Scope>
__device__ int stat(Scope scope, KernelChannel& channel, const char* path, Stat* out) {
  const bool reachable = may_read(path) && may_fill(scope, out, sizeof(Stat));
  return static_cast<int>(
      ask(reachable, scope, channel, filling(about(Verb::kStat, path), out, sizeof(Stat))));
}

template <typename Scope>
__device__ int lstat(Scope scope, KernelChannel& channel, const char* path, Stat* out) {
  const bool reachable = may_read(path) && may_fill(scope, out, sizeof(Stat));
  return static_cast<int>(
      ask(reachable, scope, channel, filling(about(Verb::kStat, path, true), out, sizeof(Stat))));
}

template <typename Scope>
__device__ int fstat(Scope scope, KernelChannel& channel, int fd, Stat* out) {
  return static_cast<int>(ask(may_fill(scope, out, sizeof(Stat)), scope, channel,
                              filling(about(Verb::kFstat, fd), out, sizeof(Stat))));
}

/// Bytes of a file, by a call that answers with a Stat. The lanes of a warp read it from the stack
/// of the first one.
template <typename Scope>
__device__ int64_t size_by(bool reachable, Scope scope, KernelChannel& channel, KernelCall call) {
  return device_library::once_if(
      reachable, scope, channel, [&](simt::AnyWarp auto warp) -> int64_t {
        int64_t answer = 0;
        if (warp.thread_rank() == 0) {
          Stat result{};
          call = filling(call, &result, sizeof(result));
          answer = serve::ask(simt::PartialWarp::single(), channel, call);
          if (answer == 0) answer = static_cast<int64_t>(result.size_bytes);
        }
        return warp.shfl(answer, 0);
      });
}

template <typename Scope>
__device__ int64_t size(Scope scope, KernelChannel& channel, const char* path) {
  return size_by(may_read(path), scope, channel, about(Verb::kStat, path));
}

template <typename Scope>
__device__ int64_t fsize(Scope scope, KernelChannel& channel, int fd) {
  return size_by(true, scope, channel, about(Verb::kFstat, fd));
}

template <typename Scope>
__device__ int access(Scope scope, KernelChannel& channel, const char* path, uint32_t mode) {
  KernelCall call = about(Verb::kAccess, path);
  call.request.flags = mode;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}

template <typename Scope>
__device__ int64_t readlink(Scope scope, KernelChannel& channel, const char* path, char* buffer,
                            uint64_t bytes) {
  return ask(may_read(path) && may_fill(scope, buffer, bytes), scope, channel,
             filling(about(Verb::kReadlink, path), buffer, bytes));
}

// --- Data. ---------------------------------------------------------------------------------------

/// Whether `bytes` bytes at `memory` can be read by the group's threads, as of memory of theirs.
template <typename Scope>
__device__ bool may_take(Scope scope, const void* memory, uint64_t bytes) {
  return bytes == 0 || simt::is_common_source(memory) || may_fill(scope, memory, bytes);
}

template <typename Scope>
__device__ int64_t move(Scope scope, KernelChannel& channel, const serve::MovedRange& range) {
  const int64_t greatest =
      in(scope).most(channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t count) {
        return serve::move_share(warp, channel, range, index, count);
      });
  const int64_t moved = serve::moved_bytes(range, greatest);
  if (moved != serve::kByOneWarp) return moved;
  return in(scope).once(channel, [&](simt::AnyWarp auto warp) -> int64_t {
    return serve::moved_bytes(range, serve::move_share(warp, channel, range, 0, 1));
  });
}

template <typename Scope>
__device__ int64_t pread(Scope scope, KernelChannel& channel, int fd, void* buffer, uint64_t bytes,
                         uint64_t offset) {
  if (!may_fill(scope, buffer, bytes)) return -EFAULT;
  return move(scope, channel, {Verb::kPread, fd, static_cast<uint8_t*>(buffer), bytes, offset});
}

template <typename Scope>
__device__ int64_t pwrite(Scope scope, KernelChannel& channel, int fd, const void* buffer,
                          uint64_t bytes, uint64_t offset) {
  if (!may_take(scope, buffer, bytes)) return -EFAULT;
  auto* const input = static_cast<uint8_t*>(const_cast<void*>(buffer));
  return move(scope, channel, {Verb::kPwrite, fd, input, bytes, offset});
}

/// The place of a read at the descriptor's position, which moves on.
template <typename Scope>
__device__ int64_t advance(Scope scope, KernelChannel& channel, int fd, uint64_t bytes) {
  KernelCall call = about(Verb::kAdvance, fd);
  call.request.offset = static_cast<int64_t>(bytes);
  return ask(true, scope, channel, call);
}

template <typename Scope>
__device__ int64_t read(Scope scope, KernelChannel& channel, int fd, void* buffer, uint64_t bytes) {
  if (!may_fill(scope, buffer, bytes)) return -EFAULT;
  const int64_t offset = advance(scope, channel, fd, bytes);
  if (offset < 0) return offset;
  return attached::pread(scope, channel, fd, buffer, bytes, static_cast<uint64_t>(offset));
}

template <typename Scope>
__device__ int64_t write(Scope scope, KernelChannel& channel, int fd, const void* buffer,
                         uint64_t bytes) {
  return device_library::once_if(may_take(scope, buffer, bytes), scope, channel,
                                 [&](simt::AnyWarp auto warp) -> int64_t {
                                   return serve::write_on(warp, channel, fd, buffer, bytes);
                                 });
}

/// Bytes of the parts of a vector, or a negative errno: they cannot be those of a read (`fills`) or
/// write.
template <typename Scope>
__device__ int64_t check_parts(Scope scope, const IoVector* parts, int count, bool fills) {
  in(scope).gather();  // they may be those of one thread
  const auto reaches = [&](const IoVector& part) {
    return fills ? may_fill(scope, part.base, part.bytes) : may_take(scope, part.base, part.bytes);
  };
  return device_library::may_use_parts(parts, count, reaches) ? vfs::total_bytes(parts, count)
                                                              : -EFAULT;
}

template <typename Scope>
__device__ int64_t preadv(Scope scope, KernelChannel& channel, int fd, const IoVector* parts,
                          int count, uint64_t offset) {
  const int64_t bytes = check_parts(scope, parts, count, true);
  if (bytes < 0) return bytes;
  return move_parts(parts, count, [&](const IoVector& part, uint64_t done) {
    return attached::pread(scope, channel, fd, part.base, part.bytes, offset + done);
  });
}

template <typename Scope>
__device__ int64_t readv(Scope scope, KernelChannel& channel, int fd, const IoVector* parts,
                         int count) {
  const int64_t bytes = check_parts(scope, parts, count, true);
  if (bytes < 0) return bytes;
  const int64_t offset = advance(scope, channel, fd, static_cast<uint64_t>(bytes));
  if (offset < 0) return offset;
  return move_parts(parts, count, [&](const IoVector& part, uint64_t done) {
    return attached::pread(scope, channel, fd, part.base, part.bytes,
                           static_cast<uint64_t>(offset) + done);
  });
}

/// Writes the parts of a vector by one call.
template <typename Scope>
__device__ int64_t write_parts(Scope scope, KernelChannel& channel,
                               const serve::WrittenParts& write) {
  return in(scope).once(channel, [&](simt::AnyWarp auto warp) -> int64_t {
    return serve::write_parts(warp, channel, write);
  });
}

template <typename Scope>
__device__ int64_t pwritev(Scope scope, KernelChannel& channel, int fd, const IoVector* parts,
                           int count, uint64_t offset) {
  const int64_t bytes = check_parts(scope, parts, count, false);
  if (bytes < 0) return bytes;
  const auto all = static_cast<uint64_t>(bytes);
  if (serve::is_one_write(channel, count, all)) {
    return attached::write_parts(scope, channel, {Verb::kPwrite, fd, parts, count, all, offset});
  }
  return move_parts(parts, count, [&](const IoVector& part, uint64_t done) {
    return attached::pwrite(scope, channel, fd, part.base, part.bytes, offset + done);
  });
}

template <typename Scope>
__device__ int64_t writev(Scope scope, KernelChannel& channel, int fd, const IoVector* parts,
                          int count) {
  const int64_t bytes = check_parts(scope, parts, count, false);
  if (bytes < 0) return bytes;
  const auto all = static_cast<uint64_t>(bytes);
  if (serve::is_one_write(channel, count, all)) {
    return attached::write_parts(scope, channel, {Verb::kWrite, fd, parts, count, all, 0});
  }
  return move_parts(parts, count, [&](const IoVector& part, uint64_t) {
    return attached::write(scope, channel, fd, part.base, part.bytes);
  });
}

// --- What is started and waited for: a ticket has the slot and its lap. --------------------------

template <typename Scope>
__device__ Ticket begin_async(Scope scope, KernelChannel& channel, KernelCall call) {
  serve::RingPlace place{};
  const int error = serve::begin_call(in(scope).async_warp(), channel, call, true, place);
  if (error != 0) return {error, Ticket::kNoOperation, 0, 0};
  return {static_cast<int64_t>(call.request.bytes), place.slot, place.lap, 0};
}

template <typename Scope>
__device__ Ticket pread_async(Scope scope, KernelChannel& channel, int fd, void* buffer,
                              uint64_t bytes, uint64_t offset) {
  if (bytes != 0 && !simt::is_common_target(buffer)) return device_library::refused_ticket();
  KernelCall call = filling(about(Verb::kPread, fd), buffer, bytes);
  call.request.offset = static_cast<int64_t>(offset);
  return begin_async(scope, channel, call);
}

template <typename Scope>
__device__ Ticket pwrite_async(Scope scope, KernelChannel& channel, int fd, const void* buffer,
                               uint64_t bytes, uint64_t offset) {
  if (bytes != 0 && !simt::is_common_source(buffer)) return device_library::refused_ticket();
  KernelCall call = about(Verb::kPwrite, fd);
  call.input = buffer;
  call.request.bytes = bytes;
  call.request.offset = static_cast<int64_t>(offset);
  return begin_async(scope, channel, call);
}

template <typename Scope>
__device__ bool poll(Scope scope, KernelChannel& channel, const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return true;
  return serve::has_ended(in(scope).async_warp(), channel, {ticket.operation, ticket.generation});
}

template <typename Scope>
__device__ int64_t wait(Scope scope, KernelChannel& channel, const Ticket& ticket) {
  if (ticket.operation == Ticket::kNoOperation) return ticket.result;
  return serve::end_call(in(scope).async_warp(), channel, {ticket.operation, ticket.generation});
}

// --- Names. --------------------------------------------------------------------------------------

template <typename Scope>
__device__ int mkdir(Scope scope, KernelChannel& channel, const char* path, uint32_t mode) {
  KernelCall call = about(Verb::kMkdir, path);
  call.request.mode = mode;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}

template <typename Scope>
__device__ int mknod(Scope scope, KernelChannel& channel, const char* path, uint32_t mode,
                     uint32_t major, uint32_t minor) {
  KernelCall call = about(Verb::kMknod, path);
  call.request.mode = mode;
  call.request.device_major = major;
  call.request.device_minor = minor;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}

/// A call about two paths.
template <typename Scope>
__device__ int between(Scope scope, KernelChannel& channel, Verb verb, const char* other,
                       const char* path, uint32_t flags = 0) {
  KernelCall call = about(verb, path);
  call.other = other;
  call.request.flags = flags;
  return static_cast<int>(ask(may_read(other, path), scope, channel, call));
}

template <typename Scope>
__device__ int symlink(Scope scope, KernelChannel& channel, const char* target, const char* path) {
  return between(scope, channel, Verb::kSymlink, target, path);
}
template <typename Scope>
__device__ int link(Scope scope, KernelChannel& channel, const char* existing, const char* path) {
  return between(scope, channel, Verb::kLink, existing, path);
}
template <typename Scope>
__device__ int rename(Scope scope, KernelChannel& channel, const char* from, const char* to,
                      uint32_t flags) {
  return between(scope, channel, Verb::kRename, from, to, flags);
}
template <typename Scope>
__device__ int unlink(Scope scope, KernelChannel& channel, const char* path) {
  return static_cast<int>(ask(may_read(path), scope, channel, about(Verb::kUnlink, path)));
}
template <typename Scope>
__device__ int rmdir(Scope scope, KernelChannel& channel, const char* path) {
  return static_cast<int>(ask(may_read(path), scope, channel, about(Verb::kRmdir, path)));
}

// --- Attributes. ---------------------------------------------------------------------------------

template <typename Scope>
__device__ int truncate(Scope scope, KernelChannel& channel, const char* path, uint64_t size) {
  KernelCall call = about(Verb::kTruncate, path);
  call.request.bytes = size;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}
template <typename Scope>
__device__ int ftruncate(Scope scope, KernelChannel& channel, int fd, uint64_t size) {
  KernelCall call = about(Verb::kFtruncate, fd);
  call.request.bytes = size;
  return static_cast<int>(ask(true, scope, channel, call));
}
template <typename Scope>
__device__ int fallocate(Scope scope, KernelChannel& channel, int fd, uint32_t mode,
                         uint64_t offset, uint64_t bytes) {
  KernelCall call = about(Verb::kFallocate, fd);
  call.request.flags = mode;
  call.request.offset = static_cast<int64_t>(offset);
  call.request.bytes = bytes;
  return static_cast<int>(ask(true, scope, channel, call));
}
template <typename Scope>
__device__ int chmod(Scope scope, KernelChannel& channel, const char* path, uint32_t mode) {
  KernelCall call = about(Verb::kChmod, path);
  call.request.mode = mode;
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}
template <typename Scope>
__device__ int fchmod(Scope scope, KernelChannel& channel, int fd, uint32_t mode) {
  KernelCall call = about(Verb::kFchmod, fd);
  call.request.mode = mode;
  return static_cast<int>(ask(true, scope, channel, call));
}

/// The same call with owners.
__device__ inline KernelCall owned(KernelCall call, uint32_t uid, uint32_t gid) {
  call.request.uid = uid;
  call.request.gid = gid;
  return call;
}
template <typename Scope>
__device__ int chown(Scope scope, KernelChannel& channel, const char* path, uint32_t uid,
                     uint32_t gid) {
  return static_cast<int>(
      ask(may_read(path), scope, channel, owned(about(Verb::kChown, path), uid, gid)));
}
template <typename Scope>
__device__ int lchown(Scope scope, KernelChannel& channel, const char* path, uint32_t uid,
                      uint32_t gid) {
  return static_cast<int>(
      ask(may_read(path), scope, channel, owned(about(Verb::kChown, path, true), uid, gid)));
}
template <typename Scope>
__device__ int fchown(Scope scope, KernelChannel& channel, int fd, uint32_t uid, uint32_t gid) {
  return static_cast<int>(ask(true, scope, channel, owned(about(Verb::kFchown, fd), uid, gid)));
}

/// The same call with times.
__device__ inline KernelCall timed(KernelCall call, const TimeStamp& accessed,
                                   const TimeStamp& modified) {
  call.request.accessed = accessed;
  call.request.modified = modified;
  return call;
}
template <typename Scope>
__device__ int utimens(Scope scope, KernelChannel& channel, const char* path,
                       const TimeStamp& accessed, const TimeStamp& modified) {
  return static_cast<int>(
      ask(may_read(path), scope, channel, timed(about(Verb::kUtimens, path), accessed, modified)));
}
template <typename Scope>
__device__ int lutimens(Scope scope, KernelChannel& channel, const char* path,
                        const TimeStamp& accessed, const TimeStamp& modified) {
  return static_cast<int>(ask(may_read(path), scope, channel,
                              timed(about(Verb::kUtimens, path, true), accessed, modified)));
}
template <typename Scope>
__device__ int futimens(Scope scope, KernelChannel& channel, int fd, const TimeStamp& accessed,
                        const TimeStamp& modified) {
  return static_cast<int>(
      ask(true, scope, channel, timed(about(Verb::kFutimens, fd), accessed, modified)));
}

// --- Extended attributes. ------------------------------------------------------------------------

/// A call about an attribute of a file, which is filled in.
template <typename Scope>
__device__ int64_t get_value(bool reachable, Scope scope, KernelChannel& channel, KernelCall call,
                             void* value, uint64_t bytes) {
  return ask(reachable && may_fill(scope, value, bytes), scope, channel,
             filling(call, value, bytes));
}
template <typename Scope>
__device__ int64_t getxattr(Scope scope, KernelChannel& channel, const char* path, const char* name,
                            void* value, uint64_t bytes) {
  KernelCall call = about(Verb::kGetxattr, path);
  call.name = name;
  return get_value(may_read(path, name), scope, channel, call, value, bytes);
}
template <typename Scope>
__device__ int64_t lgetxattr(Scope scope, KernelChannel& channel, const char* path,
                             const char* name, void* value, uint64_t bytes) {
  KernelCall call = about(Verb::kGetxattr, path, true);
  call.name = name;
  return get_value(may_read(path, name), scope, channel, call, value, bytes);
}
template <typename Scope>
__device__ int64_t fgetxattr(Scope scope, KernelChannel& channel, int fd, const char* name,
                             void* value, uint64_t bytes) {
  KernelCall call = about(Verb::kFgetxattr, fd);
  call.name = name;
  return get_value(may_read(name), scope, channel, call, value, bytes);
}
template <typename Scope>
__device__ int64_t listxattr(Scope scope, KernelChannel& channel, const char* path, char* list,
                             uint64_t bytes) {
  return get_value(may_read(path), scope, channel, about(Verb::kListxattr, path), list, bytes);
}
template <typename Scope>
__device__ int64_t llistxattr(Scope scope, KernelChannel& channel, const char* path, char* list,
                              uint64_t bytes) {
  return get_value(may_read(path), scope, channel, about(Verb::kListxattr, path, true), list,
                   bytes);
}
template <typename Scope>
__device__ int64_t flistxattr(Scope scope, KernelChannel& channel, int fd, char* list,
                              uint64_t bytes) {
  return get_value(true, scope, channel, about(Verb::kFlistxattr, fd), list, bytes);
}

/// A call that sets an attribute. The server refuses a value that is too long, of which no byte is
/// handed over.
template <typename Scope>
__device__ int set_value(bool reachable, Scope scope, KernelChannel& channel, KernelCall call,
                         const char* name, const void* value, uint64_t bytes, uint32_t flags) {
  call.name = name;
  call.request.bytes = bytes;
  call.request.flags = flags;
  call.input = value;
  if (bytes > kXattrValueBytesMax) call.request.bytes = kXattrValueBytesMax + 1;
  if (bytes > kXattrValueBytesMax || bytes == 0) call.input = nullptr;
  return static_cast<int>(ask(reachable && may_read_value(value, bytes), scope, channel, call));
}
template <typename Scope>
__device__ int setxattr(Scope scope, KernelChannel& channel, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags) {
  return set_value(may_read(path, name), scope, channel, about(Verb::kSetxattr, path), name, value,
                   bytes, flags);
}
template <typename Scope>
__device__ int lsetxattr(Scope scope, KernelChannel& channel, const char* path, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags) {
  return set_value(may_read(path, name), scope, channel, about(Verb::kSetxattr, path, true), name,
                   value, bytes, flags);
}
template <typename Scope>
__device__ int fsetxattr(Scope scope, KernelChannel& channel, int fd, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags) {
  return set_value(may_read(name), scope, channel, about(Verb::kFsetxattr, fd), name, value, bytes,
                   flags);
}
template <typename Scope>
__device__ int remove_value(bool reachable, Scope scope, KernelChannel& channel, KernelCall call,
                            const char* name) {
  call.name = name;
  return static_cast<int>(ask(reachable, scope, channel, call));
}
template <typename Scope>
__device__ int removexattr(Scope scope, KernelChannel& channel, const char* path,
                           const char* name) {
  return remove_value(may_read(path, name), scope, channel, about(Verb::kRemovexattr, path), name);
}
template <typename Scope>
__device__ int lremovexattr(Scope scope, KernelChannel& channel, const char* path,
                            const char* name) {
  return remove_value(may_read(path, name), scope, channel, about(Verb::kRemovexattr, path, true),
                      name);
}
template <typename Scope>
__device__ int fremovexattr(Scope scope, KernelChannel& channel, int fd, const char* name) {
  return remove_value(may_read(name), scope, channel, about(Verb::kFremovexattr, fd), name);
}

// --- The volume. ---------------------------------------------------------------------------------

template <typename Scope>
__device__ int sync(Scope scope, KernelChannel& channel) {
  return static_cast<int>(ask(true, scope, channel, about(Verb::kSync)));
}
template <typename Scope>
__device__ int fsync(Scope scope, KernelChannel& channel, int fd) {
  return static_cast<int>(ask(true, scope, channel, about(Verb::kFsync, fd)));
}
template <typename Scope>
__device__ int fdatasync(Scope scope, KernelChannel& channel, int fd) {
  return static_cast<int>(ask(true, scope, channel, about(Verb::kFdatasync, fd)));
}
/// Cleaning is the server's own business.
template <typename Scope>
__device__ int64_t collect_garbage(Scope, KernelChannel&, uint32_t) {
  return -EPERM;
}
__device__ inline FilesystemStat statfs(KernelChannel& channel) {
  FilesystemStat result{};
  KernelCall call = filling(about(Verb::kStatfs), &result, sizeof(result));
  (void)serve::ask(simt::PartialWarp::single(), channel, call);
  return result;
}

// --- Batches. ------------------------------------------------------------------------------------

/// The files of a batch, or a negative errno, for all of the group.
template <typename Scope>
__device__ int64_t count_batch(Scope scope, KernelChannel& channel, int bd) {
  return in(scope).once(channel, [&](simt::AnyWarp auto warp) -> int64_t {
    return serve::count_batch(warp, channel, bd);
  });
}

template <typename Scope>
__device__ int begin_batch(Scope scope, KernelChannel& channel, const char* path, uint32_t count,
                           vfs::BatchSource source) {
  KernelCall call = about(Verb::kBatchOpen, path);
  call.request.length = count;
  call.request.flags = static_cast<uint32_t>(source);
  return static_cast<int>(ask(may_read(path), scope, channel, call));
}

template <typename Scope>
__device__ int batch_open(Scope scope, KernelChannel& channel, const char* path,
                          const char* const* names, uint32_t count) {
  if (names != nullptr && !may_read_all(names, count)) return -EFAULT;
  const auto source = names != nullptr ? vfs::BatchSource::kNames : vfs::BatchSource::kDirectory;
  const int bd = begin_batch(scope, channel, path, count, source);
  if (bd < 0) return bd;
  const int64_t there = names != nullptr ? count : count_batch(scope, channel, bd);
  if (there < 0) return static_cast<int>(there);
  in(scope).share(channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    const serve::BatchShare share{bd, static_cast<uint32_t>(there), index, warps};
    if (names != nullptr) {
      serve::enter_names(warp, channel, share, names);
    } else {
      serve::load_listed(warp, channel, share);
    }
    return 0;
  });
  return bd;
}

template <typename Scope>
__device__ int64_t batch_read(Scope scope, KernelChannel& channel, int bd, void* buffer,
                              const uint64_t* offsets) {
  const int64_t count = count_batch(scope, channel, bd);
  if (count <= 0) return count;
  if (!simt::is_common_target(buffer) || !may_read_all(offsets, count)) return -EFAULT;
  return in(scope).share(
      channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        const serve::BatchShare share{bd, static_cast<uint32_t>(count), index, warps};
        return serve::read_files(warp, channel, share, static_cast<uint8_t*>(buffer), offsets);
      });
}

template <typename Scope>
__device__ int batch_create(Scope scope, KernelChannel& channel, const char* path,
                            const char* const* names, uint32_t count, uint32_t mode,
                            const void* buffer, const uint64_t* offsets, const uint64_t* bytes) {
  if (!may_read(path) || !may_read_all(names, count)) return -EFAULT;
  const bool filled = count != 0 && buffer != nullptr;
  if (filled && !(simt::is_common_source(buffer) && may_read_all(offsets, count) &&
                  may_read_all(bytes, count))) {
    return -EFAULT;
  }
  const auto caller = in(scope);
  const int64_t hidden = caller.share(
      channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        return vfs::detail::count_hidden_names(warp, names, count, index, warps);
      });
  if (hidden != 0) return hidden < 0 ? static_cast<int>(hidden) : -EFAULT;
  const int bd = begin_batch(scope, channel, path, count, vfs::BatchSource::kNewFiles);
  if (bd < 0) return bd;
  const vfs::BatchCreation creation{
      path, names, count, mode, static_cast<const uint8_t*>(buffer), offsets, bytes};
  caller.share(channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    serve::make_files(warp, channel, {bd, count, index, warps}, creation);
    return 0;
  });
  return bd;
}

template <typename Scope>
__device__ int64_t batch_write(Scope scope, KernelChannel& channel, int bd, const void* buffer,
                               const uint64_t* offsets, const uint64_t* bytes) {
  const int64_t count = count_batch(scope, channel, bd);
  if (count <= 0) return count;
  if (!simt::is_common_source(buffer) || !may_read_all(offsets, count) ||
      !may_read_all(bytes, count)) {
    return -EFAULT;
  }
  return in(scope).share(
      channel, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        const serve::BatchShare share{bd, static_cast<uint32_t>(count), index, warps};
        return serve::write_files(warp, channel, share, static_cast<const uint8_t*>(buffer),
                                  offsets, bytes);
      });
}

template <typename Scope>
__device__ int batch_close(Scope scope, KernelChannel& channel, int bd) {
  return static_cast<int>(ask(true, scope, channel, about(Verb::kBatchClose, bd)));
}
__device__ inline int64_t batch_count(KernelChannel& channel, int bd) {
  return serve::count_batch(simt::PartialWarp::single(), channel, bd);
}
__device__ inline BatchFile batch_file(KernelChannel& channel, int bd, uint32_t index) {
  return serve::batch_file(simt::PartialWarp::single(), channel, bd, index);
}

}  // namespace gofs::attached

namespace gofs::device_library {

#if defined(GOFS_ONLY_ATTACHED)
inline constexpr bool kOnlyAttached = true;
#else
inline constexpr bool kOnlyAttached = false;
#endif

/// What libgofs_client answers where a volume is mounted by this program: libgofs_device does that.
struct NotAttached {
  __device__ operator int() const { return -ENOTSUP; }
  __device__ operator int64_t() const { return -ENOTSUP; }
  __device__ operator bool() const { return true; }
  __device__ operator Ticket() const { return {-ENOTSUP, Ticket::kNoOperation, 0, 0}; }
  __device__ operator BatchFile() const { return {0, 0, -ENOTSUP, 0, 0}; }
  __device__ operator FilesystemStat() const { return {}; }
};

}  // namespace gofs::device_library

/// The call of a client, where `vol` is another process's.
#define GOFS_IF_ATTACHED(call)                                        \
  if (serve::KernelChannel* const channel = serve::channel_of(vol)) { \
    return attached::call;                                            \
  }                                                                   \
  if constexpr (kOnlyAttached) return NotAttached()
