// SPDX-License-Identifier: Apache-2.0
//
// copy_file_range(2): data goes from one open file to another by the warp that is asked, through
// memory that the caller lends it.
#pragma once

#include "vfs/read.h"
#include "vfs/write.h"

namespace gofs::vfs {

struct CopyRange {
  int from;
  int to;
  uint64_t from_offset;
  uint64_t to_offset;
  uint64_t bytes;
};

namespace detail {

/// What is left of the range before the source's end, in `bytes`. 0, or a negative errno: what
/// Linux says of the range first. By one lane.
GOFS_HD inline int check_copy(const simt::AnyWarp auto& warp, const Filesystem& fs,
                              const CopyRange& range, uint64_t& bytes) {
  const Descriptor* const from = find_file(warp, fs, range.from);
  const Descriptor* const to = find_file(warp, fs, range.to);
  if (from == nullptr || to == nullptr) return -EBADF;
  const OpenInode& source = fs.open_inodes[from->open_inode];
  const OpenInode& target = fs.open_inodes[to->open_inode];
  if (source.inode.is_directory() || target.inode.is_directory()) return -EISDIR;
  if (!source.inode.is_regular() || !target.inode.is_regular()) return -EINVAL;
  if (!may_read(from->flags) || !may_write(to->flags) || (to->flags & kOpenAppend) != 0) {
    return -EBADF;
  }
  if (range.from_offset > kOffsetMax || range.to_offset > kOffsetMax) return -EINVAL;
  bytes = bytes_before_end(source, range.from_offset, simt::min(range.bytes, kOffsetMax));
  if (bytes != 0 && range.to_offset >= f2fs::kFileBytesMax) return -EFBIG;
  if (bytes != 0) bytes = simt::min(bytes, f2fs::kFileBytesMax - range.to_offset);
  const bool overlaps = &source == &target && range.to_offset + bytes > range.from_offset &&
                        range.to_offset < range.from_offset + bytes;
  return overlaps ? -EINVAL : 0;
}

}  // namespace detail

/// copy_file_range(2) of as much as `room_bytes` at `room` hold: bytes copied, 0 at the end of the
/// source, fewer than there are where the target has no room for more; or a negative errno: -EBADF
/// (also a target that was opened to append), -EISDIR, -EINVAL (neither may be other than a regular
/// file, nor may parts of one file overlap), -EFBIG, and those of pread() and pwrite(). Holes are
/// copied as zeros. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t copy_range(simt::AnyWarp auto warp, Filesystem& fs,
                                                const CopyRange& range, void* room,
                                                uint64_t room_bytes) {
  uint64_t bytes = 0;
  int error = 0;
  if (warp.thread_rank() == 0) error = detail::check_copy(warp, fs, range, bytes);
  error = warp.shfl(error, 0);
  bytes = simt::min(warp.shfl(bytes, 0), room_bytes);
  if (error < 0 || bytes == 0) return error;
  const int64_t read = pread(warp, fs, range.from, room, bytes, range.from_offset);
  if (read <= 0) return read;
  warp.sync();  // each lane writes what others have read
  return pwrite(warp, fs, range.to, room, static_cast<uint64_t>(read), range.to_offset);
}

}  // namespace gofs::vfs
