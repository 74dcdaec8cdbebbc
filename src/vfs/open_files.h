// SPDX-License-Identifier: Apache-2.0
//
// Descriptors. A descriptor belongs to the volume, not to a thread:
// any warp may use it. Closing it while others use it is the caller's mistake, as it is with
// threads.
#pragma once

#include "vfs/open_inodes.h"
#include "vfs/path.h"

namespace gofs::vfs {

/// Flags of open(), with Linux's numbers so that a program may use its own <fcntl.h>.
inline constexpr uint32_t kOpenReadOnly = 0;
inline constexpr uint32_t kOpenAccessMask = 3;
inline constexpr uint32_t kOpenCreate = 0100;
inline constexpr uint32_t kOpenTruncate = 01000;
inline constexpr uint32_t kOpenDirectory = 0200000;
inline constexpr uint32_t kOpenNoFollow = 0400000;
inline constexpr uint32_t kOpenPath = 010000000;
inline constexpr uint32_t kOpenFlagsKnown =
    kOpenAccessMask | kOpenCreate | 0200 /* O_EXCL */ | kOpenTruncate | 02000 /* O_APPEND */ |
    kOpenDirectory | kOpenNoFollow | kOpenPath | 04000 /* O_NONBLOCK */ |
    0100000 /* O_LARGEFILE */ | 02000000 /* O_CLOEXEC */ | 01000000 /* O_NOATIME */;

namespace detail {

/// Reserves a descriptor number, lowest free first from a start that differs between processors. By
/// one lane. -EMFILE when all are in use.
GOFS_HD inline int reserve_descriptor(Filesystem& fs) {
  const uint32_t start = simt::processor_id() * 67u % fs.descriptor_count;
  for (uint32_t k = 0; k < fs.descriptor_count; ++k) {
    const uint32_t index = (start + k) % fs.descriptor_count;
    uint32_t& state = fs.descriptors[index].state;
    if (simt::load_relaxed(state) != kDescriptorFree) continue;
    uint32_t expected = kDescriptorFree;
    if (simt::AtomicRef<uint32_t>(state).compare_exchange_strong(
            expected, kDescriptorOpening, simt::memory_order_acquire, simt::memory_order_relaxed)) {
      return static_cast<int>(index);
    }
  }
  return -EMFILE;
}

}  // namespace detail

/// The open descriptor `fd`, or null (EBADF).
GOFS_HD inline Descriptor* find_descriptor(const Filesystem& fs, int fd) {
  if (fd < 0 || static_cast<uint32_t>(fd) >= fs.descriptor_count) return nullptr;
  Descriptor& descriptor = fs.descriptors[fd];
  return simt::load_acquire(descriptor.state) == kDescriptorOpen ? &descriptor : nullptr;  // [V3]
}

/// The descriptor `fd` if it is open for more than its path, else null (EBADF).
GOFS_HD inline Descriptor* find_file(const Filesystem& fs, int fd) {
  Descriptor* const descriptor = find_descriptor(fs, fd);
  return descriptor != nullptr && (descriptor->flags & kOpenPath) == 0 ? descriptor : nullptr;
}

/// The inode that `fd` has open for more than its path, or null. As find_file, in fewer round trips
/// to memory, none of which waits for another that it does not need; nothing is acquired [V3],
/// since whoever has been given a descriptor has seen it opened.
GOFS_HD inline OpenInode* find_file_inode(const Filesystem& fs, int fd) {
  const auto index = static_cast<uint32_t>(fd);
  const uint32_t count = fs.descriptor_count;
  OpenInode* const inodes = simt::load_here(fs.open_inodes);
  const Descriptor& descriptor = fs.descriptors[index < count ? index : 0];
  const uint32_t state = simt::load_here(descriptor.state);
  const uint32_t flags = simt::load_here(descriptor.flags);
  const uint32_t place = simt::load_here(descriptor.open_inode);
  const bool usable = index < count && state == kDescriptorOpen && (flags & kOpenPath) == 0;
  return usable ? &inodes[place] : nullptr;
}

namespace detail {

/// Opens an inode that was found. Collective, uniform. A descriptor, or a negative errno.
GOFS_HD inline int open_found(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::Inode& inode,
                              uint32_t flags) {
  const bool writes = (flags & kOpenAccessMask) != kOpenReadOnly || (flags & kOpenTruncate) != 0;
  if ((flags & kOpenDirectory) != 0 && !inode.is_directory()) return -ENOTDIR;
  if ((flags & kOpenPath) == 0) {
    if (inode.is_symlink()) return -ELOOP;
    if (inode.is_directory() && writes) return -EISDIR;
    int error = check_permission(warp, fs, inode, kMayRead);
    if (error < 0) return error;
    if (writes) return -EROFS;
    if (!inode.is_directory() && !inode.is_regular()) return -ENXIO;  // device nodes have no driver
    error = f2fs::check_supported(inode);
    if (error < 0) return error;
  }
  int fd = 0;
  if (warp.thread_rank() == 0) {
    fd = reserve_descriptor(fs);
    if (fd >= 0) {
      Descriptor& descriptor = fs.descriptors[fd];
      const int open_inode = acquire_open_inode(fs, inode);
      if (open_inode < 0) {
        simt::store_release(descriptor.state, uint32_t{kDescriptorFree});
        fd = open_inode;
      } else {
        simt::store_relaxed(descriptor.open_inode, static_cast<uint32_t>(open_inode));
        simt::store_relaxed(descriptor.flags, flags);
        simt::store_relaxed(descriptor.position, uint64_t{0});
        simt::store_release(descriptor.state, uint32_t{kDescriptorOpen});  // [V3]
      }
    }
  }
  fd = warp.shfl(fd, 0);
  warp.sync();
  return fd;
}

GOFS_HD inline bool flags_known(uint32_t flags) {
  return (flags & ~kOpenFlagsKnown) == 0 && (flags & kOpenAccessMask) != kOpenAccessMask;
}

}  // namespace detail

/// Opens `path`. Collective, uniform. A descriptor, or a negative errno; -EROFS for anything that
/// would write, since the volume is mounted for reading.
GOFS_NOINLINE GOFS_HD inline int open(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                      uint32_t flags) {
  if (!detail::flags_known(flags)) return -EINVAL;
  const bool no_follow = (flags & kOpenNoFollow) != 0;
  f2fs::Inode inode{};
  int error = resolve(warp, fs, path, no_follow ? LastLink::kKeep : LastLink::kFollow, inode);
  if (error == -ENOENT && (flags & kOpenCreate) != 0) error = -EROFS;
  return error < 0 ? error : detail::open_found(warp, fs, inode, flags);
}

/// Opens the file with number `ino`, for those who walk a whole volume: the permissions of the
/// directories above it are not asked. Collective, uniform. As open().
GOFS_NOINLINE GOFS_HD inline int open_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                                            uint32_t flags) {
  if (!detail::flags_known(flags)) return -EINVAL;
  f2fs::Inode inode{};
  const int error = detail::load_uniform(warp, fs, ino, inode);
  return error < 0 ? error : detail::open_found(warp, fs, inode, flags);
}

/// Collective, uniform. 0 or -EBADF.
GOFS_HD inline int close(simt::AnyWarp auto warp, Filesystem& fs, int fd) {
  warp.sync();
  const bool leader = warp.thread_rank() == 0;
  int error = 0;
  detail::FreedMap freed{0, 0};
  if (leader) {
    Descriptor* descriptor = find_descriptor(fs, fd);
    uint32_t expected = kDescriptorOpen;
    if (descriptor == nullptr ||
        !simt::AtomicRef<uint32_t>(descriptor->state)
             .compare_exchange_strong(expected, kDescriptorOpening, simt::memory_order_acquire,
                                      simt::memory_order_relaxed)) {
      error = -EBADF;
    } else {
      freed = detail::release_open_inode(fs, descriptor->open_inode);
      simt::store_release(descriptor->state, uint32_t{kDescriptorFree});
    }
  }
  error = warp.shfl(error, 0);
  freed = detail::FreedMap{warp.shfl(freed.words, 0), warp.shfl(freed.count, 0)};
  if (freed.words != 0) {
    auto* const words = reinterpret_cast<uint32_t*>(freed.words);
    warp.sync();
    simt::zero_bytes(warp, words, freed.count * sizeof(uint32_t));
    warp.sync();
    if (leader) fs.maps.release(words, freed.count);
  }
  return error;
}

}  // namespace gofs::vfs
