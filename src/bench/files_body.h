// SPDX-License-Identifier: Apache-2.0
//
// Files that warps open, read and close one by one, to be compared with a batch (kernels/batch.h)
// of the same files.
#pragma once

#include "vfs/filesystem.h"
#include "vfs/open_files.h"

namespace gofs::bench {

inline constexpr uint32_t kBenchPathBytes = 32;  // of one path, with its end

struct FilesParams {
  vfs::Filesystem* fs;
  const char* paths;  // kBenchPathBytes for each file
  uint32_t count;     // of files
  uint32_t warps;     // that take part
  uint32_t file_bytes;
  uint8_t* buffers;  // file_bytes for each file

  // Results.
  uint64_t first_ns;  // start of the earliest and end of the latest warp; the caller sets ~0
  uint64_t last_ns;   // and 0
  uint64_t bytes;
  uint64_t wrong_stamps;  // blocks that do not begin with their index in the file
  int error;              // of some file
};

namespace detail {

/// Collective, uniform: bytes read, or a negative errno.
template <typename Api>
GOFS_DEVICE int64_t open_read_close(simt::AnyWarp auto warp, const FilesParams& params,
                                    uint32_t file, uint8_t* buffer) {
  vfs::Filesystem& fs = *params.fs;
  const char* const path = params.paths + uint64_t{file} * kBenchPathBytes;
  const int fd = Api::open_by_warp(warp, fs, path, vfs::kOpenReadOnly, 0);
  if (fd < 0) return fd;
  const int64_t got = Api::pread_by_warp(warp, fs, fd, buffer, params.file_bytes, 0);
  const int closed = Api::close_by_warp(warp, fs, fd);
  return closed < 0 ? closed : got;
}

}  // namespace detail

/// A file a warp.
template <typename Api>
GOFS_DEVICE void files_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                            FilesParams& shared) {
  const FilesParams params = shared;
  if (warp_index >= params.warps) return;
  const bool leader = warp.thread_rank() == 0;
  if (leader) {
    simt::AtomicRef<uint64_t>(shared.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  warp.sync();
  uint64_t bytes = 0;
  uint64_t wrong = 0;
  int error = 0;
  for (uint32_t file = warp_index; file < params.count && error == 0; file += params.warps) {
    uint8_t* const buffer = params.buffers + uint64_t{file} * params.file_bytes;
    const int64_t got = detail::open_read_close<Api>(warp, params, file, buffer);
    warp.sync();
    if (got != params.file_bytes) error = got < 0 ? static_cast<int>(got) : -EIO;
    if (error != 0) break;
    bytes += params.file_bytes;
    for (uint32_t at = warp.thread_rank() * kBlockBytes; at < params.file_bytes;
         at += warp.size() * kBlockBytes) {
      if (format::load_u64(buffer + at) != at / kBlockBytes) ++wrong;
    }
  }
  warp.sync();
  wrong = simt::reduce_add(warp, wrong);
  if (!leader) return;
  simt::AtomicRef<uint64_t>(shared.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::add_relaxed(shared.bytes, bytes);
  simt::add_relaxed(shared.wrong_stamps, wrong);
  if (error != 0) simt::store_relaxed(shared.error, error);
}

}  // namespace gofs::bench
