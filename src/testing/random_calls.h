// SPDX-License-Identifier: Apache-2.0
//
// For tests only: random calls by many warps at once, on a GPU or on the CPU, each warp in a
// directory of its own and now and then in one that they share. What a warp does follows from its
// seed alone, and what each call has answered is noted, so that the host can do the same on a model
// afterwards (tests/judges/random_calls_judge.hpp).
//
// A `Volume` performs the calls, as MountedVolume (random_calls_mounted.h) does: each by a warp and
// by its name in gofs.cuh. What stat() fills in all lanes see.
#pragma once

#include "format/node.h"
#include "gofs/types.h"
#include "simt/warp.h"

namespace gofs::testing {

enum class RandomKind : uint32_t {
  kWrite,  // made if it is not there -> bytes
  kRead,   // -> sum of the bytes
  kTruncate,
  kMkdir,
  kRmdir,
  kUnlink,
  kRename,
  kLink,
  kSymlink,
  kChmod,
  kSetxattr,
  kRemovexattr,
  kStat,  // -> size of a file, else the mode
  kFsync,
  kSync,
  kShared,  // makes a name that others want too -> 0 or -EEXIST
  kCount
};

struct RandomCall {
  RandomKind kind;
  uint32_t name;   // of two letters: the second one 0 for a name of the warp's own directory
  uint32_t other;  // a name as well
  uint32_t value;  // flags, mode or what is written
  uint32_t bytes;
  uint64_t offset;
};

inline constexpr uint32_t kRandomNames = 9;
inline constexpr uint32_t kRandomSharedNames = 64;
inline constexpr uint32_t kRandomBytesMost = 6000;
inline constexpr uint32_t kRandomPathBytes = 16;
inline constexpr uint32_t kRandomValueBytes = 40;  // of an extended attribute

/// Byte `index` of what a call writes.
GOFS_HD constexpr uint8_t random_byte(uint32_t value, uint64_t index) {
  return static_cast<uint8_t>('a' + (value + index) % 23);
}

/// Of what was read.
GOFS_HD constexpr int64_t random_sum(const uint8_t* bytes, uint64_t count) {
  uint64_t sum = 14695981039346656037ull;
  for (uint64_t i = 0; i < count; ++i) sum = (sum ^ bytes[i]) * 1099511628211ull;
  return static_cast<int64_t>(sum >> 1);
}

/// The calls of one warp.
class RandomCalls {
 public:
  GOFS_HD RandomCalls(uint64_t seed, uint32_t warp)
      : state_(seed * 0x9E3779B97F4A7C15ull + warp * 0xBF58476D1CE4E5B9ull) {}

  GOFS_HD RandomCall next() {
    // Half of the calls are about what files hold.
    constexpr RandomKind kKinds[] = {
        RandomKind::kWrite,    RandomKind::kWrite,    RandomKind::kWrite,
        RandomKind::kRead,     RandomKind::kRead,     RandomKind::kTruncate,
        RandomKind::kTruncate, RandomKind::kMkdir,    RandomKind::kRmdir,
        RandomKind::kUnlink,   RandomKind::kRename,   RandomKind::kRename,
        RandomKind::kLink,     RandomKind::kSymlink,  RandomKind::kChmod,
        RandomKind::kSetxattr, RandomKind::kSetxattr, RandomKind::kRemovexattr,
        RandomKind::kStat,     RandomKind::kShared};
    RandomCall call{};
    call.kind = kKinds[below(sizeof(kKinds) / sizeof(kKinds[0]))];
    if (below(60) == 0) call.kind = below(4) == 0 ? RandomKind::kSync : RandomKind::kFsync;
    call.name = some_name();
    call.other = some_name();
    call.value = below(1u << 20);
    call.bytes = below(4) == 0 ? below(kRandomBytesMost) : below(200);
    call.offset = below(3) == 0 ? below(40000) : below(3000);
    return call;
  }

 private:
  GOFS_HD uint32_t below(uint32_t limit) {
    state_ += 0x9E3779B97F4A7C15ull;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return static_cast<uint32_t>((x ^ (x >> 31)) % limit);
  }
  GOFS_HD uint32_t some_name() {
    const uint32_t first = 1 + below(kRandomNames);
    return first + (below(3) == 0 ? (1 + below(kRandomNames)) << 8 : 0);
  }

  uint64_t state_;
};

/// "/w012/a" or "/w012/a/b" for a call's name, NUL-terminated; the directory alone for 0.
GOFS_HD inline void put_random_path(char* path, uint32_t warp, uint32_t name) {
  uint32_t at = 0;
  path[at++] = '/';
  path[at++] = 'w';
  for (uint32_t unit = 100; unit != 0; unit /= 10) {
    path[at++] = static_cast<char>('0' + warp / unit % 10);
  }
  for (; name != 0; name >>= 8) {
    path[at++] = '/';
    path[at++] = static_cast<char>('a' + (name & 0xff) - 1);
  }
  path[at] = '\0';
}

/// "/shared/s12".
GOFS_HD inline void put_shared_path(char* path, uint32_t number) {
  constexpr char kHome[] = "/shared/s";
  uint32_t at = 0;
  for (; kHome[at] != '\0'; ++at) path[at] = kHome[at];
  path[at++] = static_cast<char>('0' + number / 10);
  path[at++] = static_cast<char>('0' + number % 10);
  path[at] = '\0';
}

/// "user.a" and so on.
GOFS_HD inline void put_random_xattr(char* name, uint32_t value) {
  constexpr char kPrefix[] = "user.";
  for (uint32_t i = 0; i < 5; ++i) name[i] = kPrefix[i];
  name[5] = static_cast<char>('a' + value % 4);
  name[6] = '\0';
}

/// What a warp needs for itself, in memory that the device reaches.
struct RandomScratch {
  Stat stat;
  char path[kRandomPathBytes];
  char other[kRandomPathBytes];
  uint8_t bytes[kRandomBytesMost];
};

struct RandomCallsParams {
  uint64_t seed;
  uint32_t calls;          // of each warp
  int64_t* answers;        // of all calls of warp 0, of warp 1, ...
  RandomScratch* scratch;  // of each warp
};

namespace detail {

/// Opens a file, calls `work(fd)` and closes it. Collective, uniform.
template <typename Volume, typename Work>
GOFS_HD int64_t with_file(simt::AnyWarp auto warp, const Volume& volume, const char* path,
                          uint32_t flags, Work work) {
  const int fd = volume.open(warp, path, flags, 0644);
  if (fd < 0) return fd;
  const int64_t answer = work(fd);
  const int closed = volume.close(warp, fd);
  return closed < 0 ? closed : answer;
}

template <typename Volume>
GOFS_HD int64_t perform_data(simt::AnyWarp auto warp, const Volume& volume, const RandomCall& call,
                             RandomScratch& scratch) {
  switch (call.kind) {
    case RandomKind::kWrite:
      for (uint32_t i = warp.thread_rank(); i < call.bytes; i += warp.size()) {
        scratch.bytes[i] = random_byte(call.value, i);
      }
      warp.sync();
      return with_file(warp, volume, scratch.path, kOpenWriteOnly | kOpenCreate, [&](int fd) {
        return volume.pwrite(warp, fd, scratch.bytes, call.bytes, call.offset);
      });
    case RandomKind::kRead:
      return with_file(warp, volume, scratch.path, kOpenReadOnly, [&](int fd) -> int64_t {
        const int64_t got = volume.pread(warp, fd, scratch.bytes, call.bytes, call.offset);
        return got < 0 ? got : random_sum(scratch.bytes, static_cast<uint64_t>(got));
      });
    case RandomKind::kFsync:
      return with_file(warp, volume, scratch.path, kOpenReadOnly,
                       [&](int fd) -> int64_t { return volume.fsync(warp, fd); });
    default:
      return volume.truncate(warp, scratch.path, call.offset);
  }
}

template <typename Volume>
GOFS_HD int64_t perform_attributes(simt::AnyWarp auto warp, const Volume& volume,
                                   const RandomCall& call, RandomScratch& scratch) {
  if (call.kind == RandomKind::kChmod) {
    return volume.chmod(warp, scratch.path, call.value & 07777);
  }
  if (call.kind == RandomKind::kStat) {
    const int error = volume.lstat(warp, scratch.path, scratch.stat);
    if (error < 0) return error;
    const Stat& stat = scratch.stat;
    const bool regular = (stat.mode & format::kModeTypeMask) == format::kModeRegular;
    return regular ? static_cast<int64_t>(stat.size_bytes) : int64_t{stat.mode};
  }
  char* const name = scratch.other;
  if (warp.thread_rank() == 0) put_random_xattr(name, call.value);
  for (uint32_t i = warp.thread_rank(); i < kRandomValueBytes; i += warp.size()) {
    scratch.bytes[i] = random_byte(call.value, i);
  }
  warp.sync();
  if (call.kind == RandomKind::kRemovexattr) {
    return volume.lremovexattr(warp, scratch.path, name);
  }
  return volume.lsetxattr(warp, scratch.path, name, scratch.bytes, call.bytes % kRandomValueBytes,
                          call.value % 3);
}

template <typename Volume>
GOFS_HD int64_t perform_names(simt::AnyWarp auto warp, const Volume& volume, const RandomCall& call,
                              const RandomScratch& scratch) {
  switch (call.kind) {
    case RandomKind::kMkdir:
      return volume.mkdir(warp, scratch.path, 0755);
    case RandomKind::kRmdir:
      return volume.rmdir(warp, scratch.path);
    case RandomKind::kUnlink:
      return volume.unlink(warp, scratch.path);
    case RandomKind::kRename:
      return volume.rename(warp, scratch.path, scratch.other, call.value % 3);
    case RandomKind::kLink:
      return volume.link(warp, scratch.path, scratch.other);
    case RandomKind::kSymlink:
      return volume.symlink(warp, scratch.other, scratch.path);
    case RandomKind::kShared:
      return volume.mknod(warp, scratch.path, format::kModeRegular | 0600);
    default:
      return volume.sync(warp);
  }
}

/// Collective, uniform.
template <typename Volume>
GOFS_NOINLINE GOFS_HD int64_t perform(simt::AnyWarp auto warp, const Volume& volume,
                                      uint32_t warp_index, const RandomCall& call,
                                      RandomScratch& scratch) {
  warp.sync();
  if (warp.thread_rank() == 0) {
    put_random_path(scratch.path, warp_index, call.name);
    put_random_path(scratch.other, warp_index, call.other);
    if (call.kind == RandomKind::kShared) {
      put_shared_path(scratch.path, call.value % kRandomSharedNames);
    }
  }
  warp.sync();
  switch (call.kind) {
    case RandomKind::kWrite:
    case RandomKind::kRead:
    case RandomKind::kTruncate:
    case RandomKind::kFsync:
      return perform_data(warp, volume, call, scratch);
    case RandomKind::kChmod:
    case RandomKind::kStat:
    case RandomKind::kSetxattr:
    case RandomKind::kRemovexattr:
      return perform_attributes(warp, volume, call, scratch);
    default:
      return perform_names(warp, volume, call, scratch);
  }
}

}  // namespace detail

/// What a kernel calls with each of its warps. "/shared" is there.
template <typename Volume>
GOFS_HD void random_calls_body(simt::AnyWarp auto warp, uint32_t warp_index,
                               const RandomCallsParams& params, const Volume& volume) {
  RandomScratch& scratch = params.scratch[warp_index];
  int64_t* const answers = params.answers + uint64_t{warp_index} * params.calls;
  if (warp.thread_rank() == 0) put_random_path(scratch.path, warp_index, 0);
  warp.sync();
  const int home = volume.mkdir(warp, scratch.path, 0777);
  RandomCalls calls(params.seed, warp_index);
  for (uint32_t i = 0; i < params.calls; ++i) {
    const RandomCall call = calls.next();
    const int64_t answer =
        home < 0 ? home : detail::perform(warp, volume, warp_index, call, scratch);
    if (warp.thread_rank() == 0) answers[i] = answer;
  }
}

}  // namespace gofs::testing
