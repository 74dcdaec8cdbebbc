// SPDX-License-Identifier: Apache-2.0
//
// Descriptors. A descriptor belongs to a client (caller.h), not to a thread: any warp that works
// for the client may use it, and to others it is not open. Closing it while others use it is the
// caller's mistake, as it is with threads; who serves clients that make mistakes holds it
// (clients.h).
#pragma once

#include "vfs/by_number.h"
#include "vfs/free_removed.h"

namespace gofs::vfs {

using gofs::kOpenAccessMask;
using gofs::kOpenAppend;
using gofs::kOpenCreate;
using gofs::kOpenDataSync;
using gofs::kOpenDirectory;
using gofs::kOpenExclusive;
using gofs::kOpenNoAtime;
using gofs::kOpenNoFollow;
using gofs::kOpenPath;
using gofs::kOpenReadOnly;
using gofs::kOpenReadWrite;
using gofs::kOpenSync;
using gofs::kOpenTruncate;
using gofs::kOpenWriteOnly;

/// Of Linux's flags that are not ours: the one that is refused (O_TMPFILE, without O_DIRECTORY),
/// and all that are known.
inline constexpr uint32_t kOpenTemporary = 020000000;
inline constexpr uint32_t kOpenFlagsKnown =
    kOpenAccessMask | kOpenCreate | kOpenExclusive | kOpenTruncate | kOpenAppend | kOpenDirectory |
    kOpenNoFollow | kOpenSync | kOpenPath | kOpenNoAtime | 0400 /* O_NOCTTY */ |
    04000 /* O_NONBLOCK */ | 020000 /* O_ASYNC */ | 040000 /* O_DIRECT */ |
    0100000 /* O_LARGEFILE */ | 02000000 /* O_CLOEXEC */;

/// What a descriptor that was opened with `flags` is good for.
GOFS_HD constexpr bool may_read(uint32_t flags) {
  return (flags & kOpenAccessMask) != kOpenWriteOnly;
}
GOFS_HD constexpr bool may_write(uint32_t flags) {
  return (flags & kOpenAccessMask) != kOpenReadOnly;
}

namespace detail {

/// Whether a descriptor with this `state` is open for the caller.
GOFS_HD inline bool is_open_for(const simt::AnyWarp auto& warp, uint32_t state) {
  if constexpr (HasCaller<decltype(warp)>) {
    return (state & (kDescriptorOwner | kDescriptorLeaving)) == owner_of_client(client_of(warp));
  } else {
    return state == kDescriptorOpen;
  }
}

}  // namespace detail

/// The caller's open descriptor `fd`, or null (EBADF).
GOFS_HD inline Descriptor* find_descriptor(const simt::AnyWarp auto& warp, const Filesystem& fs,
                                           int fd) {
  if (fd < 0 || static_cast<uint32_t>(fd) >= fs.descriptor_count) return nullptr;
  Descriptor& descriptor = fs.descriptors[fd];
  const uint32_t state = simt::load_acquire(descriptor.state);  // [V3]
  return detail::is_open_for(warp, state) ? &descriptor : nullptr;
}

/// The descriptor `fd` if it is open for more than its path, else null (EBADF).
GOFS_HD inline Descriptor* find_file(const simt::AnyWarp auto& warp, const Filesystem& fs, int fd) {
  Descriptor* const descriptor = find_descriptor(warp, fs, fd);
  return descriptor != nullptr && (descriptor->flags & kOpenPath) == 0 ? descriptor : nullptr;
}

/// The descriptor `fd` if it is open for reading, else null (EBADF).
GOFS_HD inline Descriptor* find_readable(const simt::AnyWarp auto& warp, const Filesystem& fs,
                                         int fd) {
  Descriptor* const descriptor = find_file(warp, fs, fd);
  return descriptor != nullptr && may_read(descriptor->flags) ? descriptor : nullptr;
}

/// The descriptor `fd` if it is open for writing, else null (EBADF).
GOFS_HD inline Descriptor* find_writable(const simt::AnyWarp auto& warp, const Filesystem& fs,
                                         int fd) {
  Descriptor* const descriptor = find_file(warp, fs, fd);
  return descriptor != nullptr && may_write(descriptor->flags) ? descriptor : nullptr;
}

/// The inode that `fd` has open, if `fits(flags)`, or null. As find_descriptor, in fewer round
/// trips to memory, none of which waits for another that it does not need; nothing is acquired
/// [V3], since whoever has been given a descriptor has seen it opened.
template <typename Fits>
GOFS_HD OpenInode* find_inode_that(const simt::AnyWarp auto& warp, const Filesystem& fs, int fd,
                                   Fits fits) {
  const auto index = static_cast<uint32_t>(fd);
  const uint32_t count = fs.descriptor_count;
  OpenInode* const inodes = simt::load_here(fs.open_inodes);
  const Descriptor& descriptor = fs.descriptors[index < count ? index : 0];
  const uint32_t state = simt::load_here(descriptor.state);
  const uint32_t flags = simt::load_here(descriptor.flags);
  const uint32_t place = simt::load_here(descriptor.open_inode);
  const bool usable =
      index < count && detail::is_open_for(warp, state) && (flags & kOpenPath) == 0 && fits(flags);
  return usable ? &inodes[place] : nullptr;
}

/// The inode that `fd` has open for reading, or null: find_readable().
GOFS_HD inline OpenInode* find_file_inode(const simt::AnyWarp auto& warp, const Filesystem& fs,
                                          int fd) {
  return find_inode_that(warp, fs, fd, [](uint32_t flags) { return may_read(flags); });
}

/// The inode that `fd` has open for writing where it says, and nothing more, or null.
GOFS_HD inline OpenInode* find_inode_to_overwrite(const simt::AnyWarp auto& warp,
                                                  const Filesystem& fs, int fd) {
  return find_inode_that(warp, fs, fd, [](uint32_t flags) {
    return may_write(flags) && (flags & (kOpenAppend | kOpenDataSync)) == 0;
  });
}

namespace detail {

/// Whether the flags of an inode let a caller open it so: one that is append-only is appended to,
/// and one that fs-verity protects stays as it is. Of immutable ones check_permission() says so.
GOFS_HD inline int check_frozen(const f2fs::Inode& inode, uint32_t flags) {
  const bool writes = may_write(flags) || (flags & kOpenTruncate) != 0;
  if ((inode.advise & format::kAdviseVerity) != 0 && writes) return -EPERM;
  if ((inode.flags & format::kFlagAppend) == 0) return 0;
  const bool appends = (flags & (kOpenAppend | kOpenTruncate)) == kOpenAppend;
  return writes && !appends ? -EPERM : 0;
}

/// Whether an inode that was found may be opened so. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int check_open(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                              uint32_t flags) {
  const bool writes = may_write(flags) || (flags & kOpenTruncate) != 0;
  if ((flags & kOpenDirectory) != 0 && !inode.is_directory()) return -ENOTDIR;
  if ((flags & kOpenPath) == 0) {
    if (inode.is_symlink()) return -ELOOP;
    if (inode.is_directory() && (writes || (flags & kOpenCreate) != 0)) return -EISDIR;
    const uint32_t wanted =
        (may_read(flags) ? uint32_t{kMayRead} : 0) | (writes ? uint32_t{kMayWrite} : 0);
    const bool special = !inode.is_directory() && !inode.is_regular();
    if (writes && !special && fs.writer == nullptr) return -EROFS;
    int error = check_permission(warp, fs, inode, wanted);
    if (error < 0) return error;
    error = check_frozen(inode, flags);
    if (error < 0) return error;
    if ((flags & kOpenNoAtime) != 0 && !owns(credentials_of(warp, fs), inode)) return -EPERM;
    if (special) return -ENXIO;  // no thread drives a device here
    error = f2fs::check_supported(inode);
    if (error < 0) return error;
  }
  return 0;
}

/// A number for a descriptor. Collective, uniform; or -EMFILE.
GOFS_HD inline int take_descriptor(simt::AnyWarp auto warp, Filesystem& fs) {
  int fd = 0;
  if (warp.thread_rank() == 0) fd = take_number(fs.descriptor_numbers);
  return warp.shfl(fd, 0);
}

/// Releases it, unused. Collective.
GOFS_HD inline void release_descriptor(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  if (warp.thread_rank() == 0) {
    release_number(fs.descriptor_numbers, static_cast<uint32_t>(fd));
  }
}

/// Opens the descriptor `fd`, which was taken, for an open inode, to which the caller has counted
/// a reference. One lane.
GOFS_HD inline void fill_descriptor(const simt::AnyWarp auto& warp, Filesystem& fs, int fd,
                                    uint32_t open_inode, const f2fs::Inode& inode, uint32_t flags) {
  // chattr +S: all that is written to it is to be durable.
  if ((inode.flags & format::kFlagSync) != 0) flags |= kOpenDataSync;
  Descriptor& descriptor = fs.descriptors[fd];
  simt::store_relaxed(descriptor.open_inode, open_inode);
  simt::store_relaxed(descriptor.flags, flags);
  simt::store_relaxed(descriptor.position, uint64_t{0});
  simt::store_release(descriptor.state, owner_of_client(client_of(warp)));  // [V3]
}

/// Opens the descriptor `fd`, which was taken, for an inode, by one lane: `fd`, or as
/// acquire_open_inode() says.
GOFS_HD inline int open_descriptor(const simt::AnyWarp auto& warp, Filesystem& fs, int fd,
                                   const f2fs::Inode& inode, uint32_t flags, SeenClosings* seen) {
  const int open_inode = acquire_open_inode(fs, inode, seen);
  if (open_inode < 0) return open_inode;
  fill_descriptor(warp, fs, fd, static_cast<uint32_t>(open_inode), inode, flags);
  return fd;
}

/// Opens the descriptor `fd`, which was taken, for an inode that may be opened. Where the volume is
/// written to, `inode` may be old: it is loaded again when it is sure that it is not open.
/// Collective, uniform: `fd`, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int open_taken(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                            f2fs::Inode inode, uint32_t flags) {
  SeenClosings seen{false, 0};
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (;;) {
    int opened = 0;
    if (warp.thread_rank() == 0) {
      opened = open_descriptor(warp, fs, fd, inode, flags, fs.writer == nullptr ? nullptr : &seen);
    }
    opened = warp.shfl(opened, 0);
    warp.sync();
    if (opened != -EAGAIN) return opened;
    // Others open and close so many that it is never sure.
    if (warp.any(deadline.passed())) return -EBUSY;
    const int error = load_uniform(warp, fs, inode.ino, inode);
    if (error < 0) return error;
  }
}

/// Takes a descriptor for an inode that may be opened. Collective, uniform; or a negative errno.
GOFS_HD inline int open_checked(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                                uint32_t flags) {
  const int fd = take_descriptor(warp, fs);
  if (fd < 0) return fd;
  const int opened = open_taken(warp, fs, fd, inode, flags);
  if (opened < 0) release_descriptor(warp, fs, fd);
  return opened;
}

/// Opens an inode that was found. Collective, uniform. A descriptor, or a negative errno.
GOFS_HD inline int open_found(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                              uint32_t flags) {
  const int error = check_open(warp, fs, inode, flags);
  return error < 0 ? error : open_checked(warp, fs, inode, flags);
}

/// 0, or what is wrong with the flags of open(), whatever is opened.
GOFS_HD inline int check_flags(uint32_t flags) {
  if ((flags & kOpenTemporary) != 0) return -EOPNOTSUPP;
  const bool known = (flags & ~kOpenFlagsKnown) == 0;
  return known && (flags & kOpenAccessMask) != kOpenAccessMask ? 0 : -EINVAL;
}

}  // namespace detail

/// Opens what `path` names, which is there, as it is: `flags` without kOpenCreate and
/// kOpenTruncate; open.h has all of them. Collective, uniform. A descriptor, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int open_existing(simt::AnyWarp auto warp, Filesystem& fs,
                                               const char* path, uint32_t flags) {
  const int refused = detail::check_flags(flags);
  if (refused < 0) return refused;
  const bool no_follow = (flags & kOpenNoFollow) != 0;
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error =
        resolve(warp, fs, path, no_follow ? LastLink::kKeep : LastLink::kFollow, inode);
    return error < 0 ? error : detail::open_found(warp, fs, inode, flags);
  });
}

/// Opens the file with number `ino`, for those who walk a whole volume: the permissions of the
/// directories above it are not asked. Collective, uniform. As open_existing(); -ESTALE where the
/// file has been removed.
GOFS_NOINLINE GOFS_HD inline int open_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                            uint32_t flags) {
  int refused = may_use_numbers(warp);
  if (refused == 0) refused = detail::check_flags(flags);
  if (refused < 0) return refused;
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = load_numbered(warp, fs, warp.ballot(true), ino, inode);
    const int one = simt::first_error(warp, error);
    return one < 0 ? one : detail::open_found(warp, fs, inode, flags);
  });
}

namespace detail {

/// Gives a reference to an open inode back, and cleans up after the last one. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void leave_open_inode(simt::AnyWarp auto warp, Filesystem& fs,
                                                   uint32_t index) {
  warp.sync();
  Released released{};
  if (warp.thread_rank() == 0) released = release_open_inode(fs, index);
  f2fs::release_maps(warp, fs.volume.maps, released.maps);
  released.removed_ino = warp.shfl(released.removed_ino, 0);
  if (released.removed_ino != 0) free_removed(warp, fs, released.removed_ino);
}

/// What has become of a descriptor.
enum class Closed : uint32_t {
  kNot,     // it was not open for the caller
  kHeld,    // closed when nothing holds it any more
  kClosed,  // by the caller, who releases what it had
};

/// Closes a descriptor that has this `state`. One lane.
GOFS_HD inline Closed close_state(const simt::AnyWarp auto& warp, uint32_t& state) {
  simt::AtomicRef<uint32_t> word(state);
  uint32_t seen = owner_of_client(client_of(warp));
  // Most often nothing holds it. Others that do come and go, in few instructions each.
  for (;;) {
    const bool held = seen >= kDescriptorHold;
    if (word.compare_exchange_strong(seen, held ? seen | kDescriptorLeaving : kDescriptorClosed,
                                     simt::memory_order_acquire, simt::memory_order_relaxed)) {
      return held ? Closed::kHeld : Closed::kClosed;
    }
    if (!is_open_for(warp, seen)) return Closed::kNot;
  }
}

/// Releases the number of a descriptor that was closed. Returns the open inode, which is to be
/// released as well. One lane.
GOFS_HD inline uint32_t release_closed(Filesystem& fs, const Descriptor& descriptor, int fd) {
  const uint32_t index = descriptor.open_inode;
  release_number(fs.descriptor_numbers, static_cast<uint32_t>(fd));
  return index;
}

}  // namespace detail

/// Frees what the file holds, if it has no names any more and is not open elsewhere. Collective,
/// uniform. 0 or -EBADF.
GOFS_HD inline int close(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  warp.sync();
  int error = 0;
  uint32_t index = 0;
  if (warp.thread_rank() == 0) {
    Descriptor* const descriptor = find_descriptor(warp, fs, fd);
    const auto closed =
        descriptor == nullptr ? detail::Closed::kNot : detail::close_state(warp, descriptor->state);
    if (closed == detail::Closed::kNot) error = -EBADF;
    if (closed == detail::Closed::kHeld) error = 1;
    if (closed == detail::Closed::kClosed) index = detail::release_closed(fs, *descriptor, fd);
  }
  error = warp.shfl(error, 0);
  if (error > 0) return 0;  // the last call that holds it does the rest
  if (error == 0) detail::leave_open_inode(warp, fs, warp.shfl(index, 0));
  return error;
}

}  // namespace gofs::vfs
