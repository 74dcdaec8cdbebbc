// SPDX-License-Identifier: Apache-2.0
//
// Writing the files of a batch (batch.h), a file a warp: each is opened, written and closed as
// pwrite() does it, so that others who have it open see it whole.
#pragma once

#include "vfs/batch.h"
#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// A descriptor for the file of `entry`, open for reading or writing (`flags`); waits while others
/// have all there are. Collective, uniform. Or a negative errno: -ENOENT (it was removed), -EACCES
/// and its like.
GOFS_NOINLINE GOFS_HD inline int open_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const BatchEntry& entry, uint32_t flags) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const int fd = reading_paths(warp, fs, [&]() -> int {
      f2fs::Inode inode{};
      const int loaded =
          load_known(warp, fs, warp.ballot(true), entry.ino, entry.generation, inode);
      int error = simt::first_error(warp, loaded);
      if (error < 0) return error == -ESTALE ? -ENOENT : error;
      // Who made a file may write to it, whatever its mode.
      error = entry.created ? 0 : check_open(warp, fs, inode, flags);
      return error < 0 ? error : open_checked(warp, fs, inode, flags);
    });
    if ((fd != -EMFILE && fd != -ENFILE) || warp.any(deadline.passed())) return fd;
    backoff.pause();
  }
}

/// Writes `bytes` bytes to the start of one file. Collective, uniform. Bytes written; what went
/// wrong is left in the entry.
GOFS_NOINLINE GOFS_HD inline uint64_t write_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                       BatchEntry& entry, const uint8_t* source,
                                                       uint64_t bytes) {
  const BatchEntry file = entry;
  warp.sync();
  if (file.error < 0) return 0;
  const int fd = open_batch_file(warp, fs, file, kOpenWriteOnly);
  int64_t written = fd;
  uint64_t size = file.size_bytes;
  uint64_t done = 0;
  if (fd >= 0) {
    // What made a write a short one, the next one says.
    do {
      written = pwrite(warp, fs, fd, source + done, bytes - done, done);
      if (written > 0) done += static_cast<uint64_t>(written);
    } while (written > 0 && done < bytes);
    const OpenInode& open = fs.open_inodes[fs.descriptors[fd].open_inode];
    size = simt::load_relaxed(open.inode.size_bytes);
    (void)close(warp, fs, fd);
  }
  if (warp.thread_rank() == 0) {
    entry.kind = BatchEntryKind::kGeneral;  // its blocks lie elsewhere now
    entry.size_bytes = size;
    if (written < 0) entry.error = static_cast<int>(written);
  }
  warp.sync();
  return done;
}

}  // namespace detail

/// Writes the first bytes[i] bytes of each file i of the batch from `buffer + offsets[i]`; longer
/// files keep the rest. Collective; warps 0 to `warp_count` - 1 do it together. Returns the bytes
/// that this warp has written; a file's error is left in its entry, also where some of its bytes
/// were written before. No thread reads the batch meanwhile.
GOFS_NOINLINE GOFS_HD inline uint64_t write_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                                  BatchTable& table, Batch& batch,
                                                  const uint8_t* buffer, const uint64_t* offsets,
                                                  const uint64_t* bytes, uint32_t warp_index,
                                                  uint32_t warp_count) {
  uint64_t written = 0;
  for (uint32_t index = warp_index; index < batch.count; index += warp_count) {
    written += detail::write_batch_file(warp, fs, table.files[batch.first + index],
                                        buffer + offsets[index], bytes[index]);
  }
  return written;
}

}  // namespace gofs::vfs
