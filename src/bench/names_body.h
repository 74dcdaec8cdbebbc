// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark of names runs on the backend: warps that make files and directories one by
// one, each in a directory of its own or all in one, and remove them.
#pragma once

#include "bench/write_body.h"
#include "vfs/open_files.h"

namespace gofs::bench {

enum class NameStep : uint32_t {
  kMake,    // as many as there is time for, at most `operations` and at least one
  kCheck,   // the last one is as it was made
  kRemove,  // all that were made
  kGone,    // the last one is not there
};
enum class NamePlace : uint32_t {
  kOwnHome,    // each warp in its own directory
  kFirstHome,  // all in that of the first warp
};
enum class NameKind : uint32_t {
  kHome,       // the warps' own directories, which are all in the root: one each
  kDirectory,  // in them
  kFile,       // in them: open with kOpenCreate, pwrite if they are to hold anything, close
};

struct NamesParams {
  vfs::Filesystem* fs;
  NameStep step;
  NameKind kind;
  NamePlace place;
  uint32_t warps;
  uint32_t operations;  // of each warp, at most
  uint64_t time_ns;
  uint32_t file_bytes;  // whole blocks, or 0
  uint64_t run;
  char* paths;       // kNamePathBytes for each warp
  uint8_t* buffers;  // file_bytes for each warp
  uint32_t* done;    // made by each warp
  vfs::Stat* stats;  // one for each warp
};

struct NamesResults {
  uint64_t first_ns = ~uint64_t{0};  // as in WriteResults
  uint64_t last_ns = 0;
  uint64_t names = 0;  // made or removed
  uint64_t wrong = 0;  // that are not as they should be
  int error = 0;
};

struct NamesJob {
  NamesParams params;
  NamesResults results;
};

inline constexpr uint32_t kNamePathBytes = 32;

namespace detail {

GOFS_HD inline char* put_number(char* text, uint32_t number) {
  constexpr uint32_t kDigits = 6;
  for (uint32_t i = 0; i < kDigits; ++i, number /= 10) {
    text[kDigits - 1 - i] = static_cast<char>('0' + number % 10);
  }
  text[kDigits] = '\0';
  return text + kDigits;
}
GOFS_HD inline char* put_name(char* text, char letter, uint32_t number) {
  *text++ = '/';
  *text++ = letter;
  return put_number(text, number);
}

/// Collective: the path of the warp's `number`-th name.
GOFS_HD inline const char* name_path(simt::AnyWarp auto warp, const NamesParams& params,
                                     uint32_t warp_index, uint32_t number) {
  char* const path = params.paths + uint64_t{warp_index} * kNamePathBytes;
  warp.sync();
  if (warp.thread_rank() == 0) {
    const char letter = params.kind == NameKind::kDirectory ? 'd' : 'f';
    const bool together = params.place == NamePlace::kFirstHome;
    char* const home = put_name(path, 'w', together ? 0 : warp_index);
    if (params.kind != NameKind::kHome && together) {
      put_number(put_name(home, letter, warp_index), number);
    } else if (params.kind != NameKind::kHome) {
      put_name(home, letter, number);
    }
  }
  warp.sync();
  return path;
}

GOFS_HD inline WriteStamp name_stamp(const NamesParams& params, uint32_t warp_index,
                                     uint32_t number, uint32_t block) {
  return {warp_index, block, params.run, number};
}

/// Collective, uniform; so the next ones.
template <typename Api>
GOFS_DEVICE int make_file(simt::AnyWarp auto warp, const NamesParams& params, uint32_t warp_index,
                          uint32_t number, const char* path) {
  uint8_t* const buffer = params.buffers + uint64_t{warp_index} * params.file_bytes;
  for (uint32_t at = warp.thread_rank() * kBlockBytes; at < params.file_bytes;
       at += warp.size() * kBlockBytes) {
    put_stamp(buffer + at, kBlockBytes, name_stamp(params, warp_index, number, at / kBlockBytes));
  }
  warp.sync();
  vfs::Filesystem& fs = *params.fs;
  const int fd = Api::open_by_warp(
      warp, fs, path, vfs::kOpenCreate | vfs::kOpenExclusive | vfs::kOpenReadWrite, 0644);
  if (fd < 0) return fd;
  const int64_t put =
      params.file_bytes == 0 ? 0 : Api::pwrite_by_warp(warp, fs, fd, buffer, params.file_bytes, 0);
  const int closed = Api::close_by_warp(warp, fs, fd);
  if (put != params.file_bytes) return put < 0 ? static_cast<int>(put) : -EIO;
  return closed;
}

template <typename Api>
GOFS_DEVICE int make_one(simt::AnyWarp auto warp, const NamesParams& params, uint32_t warp_index,
                         uint32_t number) {
  const char* const path = name_path(warp, params, warp_index, number);
  if (params.kind != NameKind::kFile) return Api::mkdir_by_warp(warp, *params.fs, path, 0755);
  return make_file<Api>(warp, params, warp_index, number, path);
}

template <typename Api>
GOFS_DEVICE int remove_one(simt::AnyWarp auto warp, const NamesParams& params, uint32_t warp_index,
                           uint32_t number) {
  const char* const path = name_path(warp, params, warp_index, number);
  return params.kind == NameKind::kFile ? Api::unlink_by_warp(warp, *params.fs, path)
                                        : Api::rmdir_by_warp(warp, *params.fs, path);
}

/// 1 if it is as it was made, 0 if not, or a negative errno.
template <typename Api>
GOFS_DEVICE int look_at(simt::AnyWarp auto warp, const NamesParams& params, uint32_t warp_index,
                        uint32_t number) {
  const char* const path = name_path(warp, params, warp_index, number);
  vfs::Filesystem& fs = *params.fs;
  vfs::Stat& stat = params.stats[warp_index];
  const int error = Api::lstat_by_warp(warp, fs, path, &stat);
  if (error < 0) return error;
  const bool is_directory = (stat.mode & format::kModeTypeMask) == format::kModeDirectory;
  if (params.kind != NameKind::kFile) return is_directory ? 1 : 0;
  if (is_directory || stat.size_bytes != params.file_bytes) return 0;
  if (params.file_bytes == 0) return 1;
  const int fd = Api::open_by_warp(warp, fs, path, vfs::kOpenReadOnly, 0);
  if (fd < 0) return fd;
  uint8_t* const buffer = params.buffers + uint64_t{warp_index} * params.file_bytes;
  const int64_t got = Api::pread_by_warp(warp, fs, fd, buffer, params.file_bytes, 0);
  warp.sync();
  bool right = got == params.file_bytes;
  for (uint32_t at = warp.thread_rank() * kBlockBytes; right && at < params.file_bytes;
       at += warp.size() * kBlockBytes) {
    right = has_stamp(buffer + at, kBlockBytes,
                      name_stamp(params, warp_index, number, at / kBlockBytes));
  }
  const int closed = Api::close_by_warp(warp, fs, fd);
  return closed < 0 ? closed : warp.all(right) ? 1 : 0;
}

}  // namespace detail

template <typename Api>
GOFS_DEVICE void names_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t, NamesJob& job) {
  const NamesParams params = job.params;
  NamesResults& results = job.results;
  if (warp_index >= params.warps) return;
  const bool leader = warp.thread_rank() == 0;
  uint64_t now_ns = warp.shfl(simt::now_ns(), 0);
  const uint64_t end_ns = now_ns + params.time_ns;
  if (leader) {
    simt::AtomicRef<uint64_t>(results.first_ns).fetch_min(now_ns, simt::memory_order_relaxed);
  }
  const uint32_t made = warp.shfl(params.done[warp_index], 0);
  uint32_t done = 0;
  uint32_t wrong = 0;
  int error = 0;
  switch (params.step) {
    case NameStep::kMake:
      while (done < params.operations && error == 0 && (done == 0 || now_ns < end_ns)) {
        error = detail::make_one<Api>(warp, params, warp_index, done);
        if (error == 0) ++done;
        now_ns = warp.shfl(simt::now_ns(), 0);
      }
      warp.sync();
      if (leader) params.done[warp_index] = done;
      break;
    case NameStep::kRemove:
      while (done < made && error == 0) {
        error = detail::remove_one<Api>(warp, params, warp_index, done);
        if (error == 0) ++done;
      }
      break;
    case NameStep::kCheck: {
      const int right = made == 0 ? 1 : detail::look_at<Api>(warp, params, warp_index, made - 1);
      if (right < 0) error = right;
      if (right == 0) ++wrong;
      break;
    }
    case NameStep::kGone: {
      const int right =
          made == 0 ? -ENOENT : detail::look_at<Api>(warp, params, warp_index, made - 1);
      if (right >= 0) ++wrong;
      if (right < 0 && right != -ENOENT) error = right;
      break;
    }
  }
  warp.sync();
  if (!leader) return;
  simt::AtomicRef<uint64_t>(results.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::add_relaxed(results.names, uint64_t{done});
  simt::add_relaxed(results.wrong, uint64_t{wrong});
  if (error != 0) simt::store_relaxed(results.error, error);
}

}  // namespace gofs::bench
