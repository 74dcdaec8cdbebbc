// SPDX-License-Identifier: Apache-2.0
//
// Setting the sizes of files.
#pragma once

#include "f2fs/truncate.h"
#include "vfs/write_request.h"

namespace gofs::vfs {

namespace detail {

/// Sets the size of a file of which `file` holds all, in as many portions as it takes;
/// `also(Operation&)`, which answers uniformly 0 or a negative errno, is part of the first, behind
/// the size. Collective, uniform. 0 or a negative errno: where it is -ENOSPC, of a block for the
/// new end, the file is as it was, or others have taken all that a hundred checkpoints had made
/// free.
template <typename Also>
GOFS_HD int set_size(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::FileHold& file,
                     uint64_t size, Also also) {
  // A file that has lost nodes already does not give up as soon as others have taken what they
  // left.
  uint32_t patience = 100;
  bool begun = false;
  for (bool more = true; more;) {
    more = false;
    const int error = operate_or_sync(
        warp, fs, f2fs::kPagesToTruncate + 1,
        [&](f2fs::Operation& op) {
          const int failed = f2fs::truncate_file(warp, op, file, size, more);
          return failed < 0 || begun ? failed : also(op);
        },
        [] { return true; });  // no more room is needed than there was
    if (error == -ENOSPC && begun && --patience != 0) {
      more = true;
    } else if (error < 0) {
      return error;
    }
    begun = true;
  }
  return 0;
}

/// Sets the size of an open file. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int resize_open(simt::AnyWarp auto warp, Filesystem& fs,
                                             OpenInode& open, uint64_t size) {
  WriteHold hold{};
  int error = lose_capability(warp, fs, open.inode);
  if (error < 0) return error;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  error = hold_in_ring(warp, open, Hold::kWholeFile, {}, deadline, hold);
  if (error < 0) return error;
  error = set_size(warp, fs, held_file(hold), size,
                   [&](f2fs::Operation& op) { return clear_setid(warp, op, fs, open.inode.ino); });
  if (warp.thread_rank() == 0) {
    simt::store_relaxed(open.inode.clean_tail, 0u);
    if (error == 0) extend_map(fs, open.inode);
  }
  release(warp, fs, hold);
  return error;
}

}  // namespace detail

/// ftruncate(2): the file gets shorter, or longer with zeros. 0 or a negative errno: -EBADF,
/// -EINVAL (not open for writing), -EPERM (of a file that is only appended to), -EFBIG, -ENOSPC,
/// and as pwrite().
GOFS_NOINLINE GOFS_HD inline int ftruncate(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           uint64_t size) {
  const Descriptor* const descriptor = find_file(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  if (!may_write(descriptor->flags) || size > kOffsetMax) return -EINVAL;
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  if ((open.inode.flags & format::kFlagAppend) != 0) return -EPERM;
  const int error = detail::resize_open(warp, fs, open, size);
  return error < 0 ? error : detail::sync_if_asked(warp, fs, *descriptor);
}

/// truncate(2) of what `path` names.
GOFS_NOINLINE GOFS_HD inline int truncate(simt::AnyWarp auto warp, Filesystem& fs, const char* path,
                                          uint64_t size) {
  if (size > kOffsetMax) return -EINVAL;
  const int fd = reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode inode{};
    const int error = resolve(warp, fs, path, LastLink::kFollow, inode);
    if (error < 0) return error;
    if (inode.is_directory()) return -EISDIR;
    return inode.is_regular() ? detail::open_found(warp, fs, inode, kOpenWriteOnly) : -EINVAL;
  });
  if (fd < 0) return fd;
  const int error = ftruncate(warp, fs, fd, size);
  (void)close(warp, fs, fd);
  return error;
}

}  // namespace gofs::vfs
