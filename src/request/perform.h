// SPDX-License-Identifier: Apache-2.0
//
// Performs a call that is asked for by a record, by one warp and for whom the warp works.
#pragma once

#include "request/request.h"
#include "vfs/async.h"
#include "vfs/batch_calls.h"
#include "vfs/call_counts.h"
#include "vfs/copy_range.h"
#include "vfs/fallocate.h"
#include "vfs/identity.h"
#include "vfs/memory_use.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/statistics.h"

namespace gofs::request {

namespace detail {

inline constexpr uint32_t kErrnoEnd = 4096;  // as Linux has it

GOFS_HD inline vfs::LastLink last_link(const Request& request) {
  return (request.bits & kKeepLink) != 0 ? vfs::LastLink::kKeep : vfs::LastLink::kFollow;
}

/// Hands a struct to the buffer, if there is nothing wrong. Uniform.
template <typename Struct>
GOFS_HD int64_t give(simt::AnyWarp auto warp, const Arguments& call, const Struct& it,
                     int64_t answer) {
  if (answer < 0) return answer;
  if (call.request.bytes < sizeof(it)) return -EINVAL;
  if (warp.thread_rank() == 0) *static_cast<Struct*>(call.buffer) = it;
  return answer;
}

// Not inlined, these eight: what they hold would be part of every call's frame.

GOFS_NOINLINE GOFS_HD inline int64_t memory(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                            const Arguments& call) {
  vfs::MemoryUse use;
  vfs::count_memory(warp, fs, use);
  return give(warp, call, use, sizeof(use) / 8);
}

GOFS_NOINLINE GOFS_HD inline int64_t statistics(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                                const Arguments& call) {
  Statistics found;
  vfs::gather_statistics(warp, fs, found);
  return give(warp, call, found, 0);
}

GOFS_NOINLINE GOFS_HD inline int64_t stat(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                          const Arguments& call) {
  Stat stat{};
  const int64_t answer = call.request.verb == Verb::kFstat
                             ? vfs::fstat(warp, fs, call.request.descriptor, stat)
                             : vfs::stat(warp, fs, call.path, last_link(call.request), stat);
  return give(warp, call, stat, answer);
}

GOFS_NOINLINE GOFS_HD inline int64_t identity(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                              const Arguments& call) {
  Identity identity{};
  const int64_t answer = vfs::identity(warp, fs, call.request.descriptor, identity);
  return give(warp, call, identity, answer);
}

GOFS_NOINLINE GOFS_HD inline int64_t open_identity(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                                   const Arguments& call) {
  if (call.request.bytes != sizeof(Identity)) return -EINVAL;
  return vfs::open_identity(warp, fs, *static_cast<const Identity*>(call.buffer),
                            call.request.flags);
}

GOFS_NOINLINE GOFS_HD inline int64_t statfs(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                            const Arguments& call) {
  return give(warp, call, vfs::statfs(fs), 0);
}

GOFS_NOINLINE GOFS_HD inline int64_t copy_range(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                                const Arguments& call) {
  const Request& request = call.request;
  const vfs::CopyRange range{request.descriptor, request.other_descriptor,
                             static_cast<uint64_t>(request.offset),
                             static_cast<uint64_t>(request.other_offset), request.length};
  return vfs::copy_range(warp, fs, range, call.buffer, request.bytes);
}

/// Steps of a batch.
GOFS_NOINLINE GOFS_HD inline int64_t batch(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                           const Arguments& call) {
  const Request& request = call.request;
  const int bd = request.descriptor;
  const auto count = static_cast<uint32_t>(simt::min<uint64_t>(request.length, UINT32_MAX));
  switch (request.verb) {
    case Verb::kBatchOpen:
      if (request.flags > static_cast<uint32_t>(vfs::BatchSource::kNewFiles)) return -EINVAL;
      return vfs::open_batch(warp, fs, call.path, count, vfs::BatchSource{request.flags});
    case Verb::kBatchEnter:
      if (request.flags >= kErrnoEnd) return -EINVAL;
      return vfs::enter_batch_file(warp, fs, bd, request.number, call.path,
                                   -static_cast<int>(request.flags), (request.bits & kMade) != 0);
    case Verb::kBatchLoad:
      return vfs::load_batch_part(warp, fs, bd, request.number, count);
    case Verb::kBatchFiles:
      return vfs::list_batch_files(warp, fs, bd, request.number,
                                   static_cast<BatchFile*>(call.buffer),
                                   static_cast<uint32_t>(request.bytes / sizeof(BatchFile)));
    case Verb::kBatchPread:
      return vfs::pread_batch_file(warp, fs, bd, request.number, call.buffer, request.bytes,
                                   static_cast<uint64_t>(request.offset));
    case Verb::kBatchPwrite:
      return vfs::pwrite_batch_file(warp, fs, bd, request.number, call.buffer, request.bytes,
                                    static_cast<uint64_t>(request.offset));
    default:
      return fs.batches == nullptr ? -EBADF : vfs::end_batch(warp, *fs.batches, bd);
  }
}

/// A write at an offset. Pieces of a range in any order have no places where writes go to the end.
GOFS_HD inline int64_t perform_pwrite(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                      const Arguments& call) {
  const Request& request = call.request;
  if ((request.bits & kPiece) != 0) {
    const vfs::Descriptor* const descriptor = vfs::find_writable(warp, fs, request.descriptor);
    if (descriptor != nullptr && (descriptor->flags & kOpenAppend) != 0) return -ESPIPE;
  }
  return vfs::pwrite(warp, fs, request.descriptor, call.buffer, request.bytes,
                     static_cast<uint64_t>(request.offset));
}

/// Calls that change the volume.
GOFS_HD inline int64_t perform_change(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                      const Arguments& call) {
  const Request& request = call.request;
  const vfs::LastLink last = last_link(request);
  const auto offset = static_cast<uint64_t>(request.offset);
  switch (request.verb) {
    case Verb::kPwrite:
      return perform_pwrite(warp, fs, call);
    case Verb::kWrite:
      return vfs::write(warp, fs, request.descriptor, call.buffer, request.bytes);
    case Verb::kSetxattr:
      return vfs::setxattr(warp, fs, call.path, last, call.name, call.buffer, request.bytes,
                           request.flags);
    case Verb::kFsetxattr:
      return vfs::fsetxattr(warp, fs, request.descriptor, call.name, call.buffer, request.bytes,
                            request.flags);
    case Verb::kRemovexattr:
      return vfs::removexattr(warp, fs, call.path, last, call.name);
    case Verb::kFremovexattr:
      return vfs::fremovexattr(warp, fs, request.descriptor, call.name);
    case Verb::kChmod:
      if (request.number != 0) return vfs::chmod_inode(warp, fs, request.number, request.mode);
      return vfs::chmod(warp, fs, call.path, request.mode);
    case Verb::kFchmod:
      return vfs::fchmod(warp, fs, request.descriptor, request.mode);
    case Verb::kChown:
      if (request.number != 0) {
        return vfs::chown_inode(warp, fs, request.number, request.uid, request.gid);
      }
      return vfs::chown(warp, fs, call.path, last, request.uid, request.gid);
    case Verb::kFchown:
      return vfs::fchown(warp, fs, request.descriptor, request.uid, request.gid);
    case Verb::kUtimens:
      if (request.number != 0) {
        return vfs::utimens_inode(warp, fs, request.number, request.accessed, request.modified);
      }
      return vfs::utimens(warp, fs, call.path, last, request.accessed, request.modified);
    case Verb::kFutimens:
      return vfs::futimens(warp, fs, request.descriptor, request.accessed, request.modified);
    case Verb::kMkdir:
      return vfs::mkdir(warp, fs, call.path, request.mode);
    case Verb::kMknod:
      return vfs::mknod(warp, fs, call.path, request.mode,
                        {request.device_major, request.device_minor});
    case Verb::kSymlink:
      return vfs::symlink(warp, fs, call.other, call.path);
    case Verb::kLink:
      return vfs::link(warp, fs, call.other, call.path);
    case Verb::kUnlink:
      if (request.number != 0) return vfs::unlink_in(warp, fs, request.number, call.path);
      return vfs::unlink(warp, fs, call.path);
    case Verb::kRmdir:
      if (request.number != 0) return vfs::rmdir_in(warp, fs, request.number, call.path);
      return vfs::rmdir(warp, fs, call.path);
    case Verb::kRename:
      return vfs::rename(warp, fs, call.other, call.path, request.flags);
    case Verb::kTruncate:
      return vfs::truncate(warp, fs, call.path, request.bytes);
    case Verb::kFtruncate:
      return vfs::ftruncate(warp, fs, request.descriptor, request.bytes);
    case Verb::kFallocate:
      return vfs::fallocate(warp, fs, request.descriptor, request.flags, offset, request.bytes);
    case Verb::kCopyRange:
      return copy_range(warp, fs, call);
    case Verb::kFsync:
      return vfs::fsync(warp, fs, request.descriptor);
    case Verb::kFdatasync:
      return vfs::fdatasync(warp, fs, request.descriptor);
    case Verb::kSync:
      return vfs::sync(warp, fs);
    default:
      return -ENOSYS;
  }
}

GOFS_HD inline int64_t perform_any(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                                   const Arguments& call) {
  const Request& request = call.request;
  const vfs::LastLink last = last_link(request);
  auto* const text = static_cast<char*>(call.buffer);
  switch (request.verb) {
    case Verb::kOpen:
      return vfs::open(warp, fs, call.path, request.flags, request.mode);
    case Verb::kOpenInode:
      return vfs::open_inode(warp, fs, request.number, request.flags);
    case Verb::kOpenIdentity:
      return open_identity(warp, fs, call);
    case Verb::kClose:
      return vfs::close(warp, fs, request.descriptor);
    case Verb::kPread:
      return vfs::pread(warp, fs, request.descriptor, call.buffer, request.bytes,
                        static_cast<uint64_t>(request.offset));
    case Verb::kLseek:
      return vfs::lseek(warp, fs, request.descriptor, request.offset,
                        static_cast<int>(request.flags));
    case Verb::kAdvance:
      return vfs::advance_position(warp, fs, request.descriptor,
                                   static_cast<uint64_t>(request.offset));
    case Verb::kReaddir:
      return vfs::readdir(warp, fs, request.descriptor, static_cast<NamedEntry*>(call.buffer),
                          static_cast<uint32_t>(request.bytes / sizeof(NamedEntry)));
    case Verb::kStat:
    case Verb::kFstat:
      return stat(warp, fs, call);
    case Verb::kIdentity:
      return identity(warp, fs, call);
    case Verb::kStatfs:
      return statfs(warp, fs, call);
    case Verb::kAccess:
      return vfs::access(warp, fs, call.path, request.flags);
    case Verb::kReadlink:
      return vfs::readlink(warp, fs, call.path, text, request.bytes);
    case Verb::kGetxattr:
      return vfs::getxattr(warp, fs, call.path, last, call.name, call.buffer, request.bytes);
    case Verb::kFgetxattr:
      return vfs::fgetxattr(warp, fs, request.descriptor, call.name, call.buffer, request.bytes);
    case Verb::kListxattr:
      return vfs::listxattr(warp, fs, call.path, last, text, request.bytes);
    case Verb::kFlistxattr:
      return vfs::flistxattr(warp, fs, request.descriptor, text, request.bytes);
    case Verb::kMemory:
      return memory(warp, fs, call);
    case Verb::kStatistics:
      return statistics(warp, fs, call);
    case Verb::kBatchOpen:
    case Verb::kBatchEnter:
    case Verb::kBatchLoad:
    case Verb::kBatchFiles:
    case Verb::kBatchPread:
    case Verb::kBatchPwrite:
    case Verb::kBatchClose:
      return batch(warp, fs, call);
    default:
      return perform_change(warp, fs, call);
  }
}

/// A call of `verb` that was performed. One lane.
GOFS_HD inline void count_performed(vfs::Filesystem& fs, Verb verb, int64_t result) {
  const CallKind kind = counted_as(verb);
  if (kind == kNotCounted) return;
  if (kind == CallKind::kRead || kind == CallKind::kWrite) {
    vfs::count_transfer(fs, kind, result);
  } else {
    vfs::count_call(fs, kind, result);
  }
}

}  // namespace detail

/// The answer, as the verb says. Collective, uniform. Buffers of structs are aligned for them.
GOFS_HD inline int64_t perform(simt::AnyWarp auto warp, vfs::Filesystem& fs,
                               const Arguments& call) {
  const int64_t result = detail::perform_any(warp, fs, call);
  if (warp.thread_rank() == 0) detail::count_performed(fs, call.request.verb, result);
  return result;
}

}  // namespace gofs::request
