// SPDX-License-Identifier: Apache-2.0
//
// Buffers in memory that only a block or a thread has, and in constant memory: reads and writes of
// every size and alignment by threads, also diverged ones, warps and blocks; names, results and
// parts there; what is refused; and how fast it is beside global memory.
#include <cooperative_groups.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/image/pattern.h"

namespace {

using gofs::image::pattern_byte;

constexpr uint64_t kNearFileBytes = 8 << 20;
constexpr uint64_t kNearSeed = 5;
constexpr uint32_t kNearThreads = 64;
constexpr uint32_t kNearBlocks = 4;
constexpr uint32_t kSharedBytes = 100 << 10;  // of a block
constexpr uint32_t kLocalBytes = 16'384 + 32;
constexpr uint32_t kLargeLocalBytes = 65'536 + 32;

/// Byte `i` of what caller `caller` writes in step `step`.
__device__ uint8_t written_byte(uint32_t caller, uint32_t step, uint64_t i) {
  return static_cast<uint8_t>(caller * 37 + step * 11 + i * 7 + i / 256);
}

struct NearWork {
  gofs::VolumeHandle vol;
  int fd;              // of the pattern, for reading
  int out;             // of what is written
  uint8_t* global;     // 128 KiB for each thread
  uint32_t* wrong;     // of how many bytes
  int64_t* results;    // of single calls
  uint32_t* failures;  // of calls that did not answer what they were to
};

__device__ void expect(const NearWork& work, bool holds, int line = __builtin_LINE()) {
  if (!holds && atomicAdd(work.failures, 1u) == 0) printf("line %d: a wrong answer\n", line);
}

__device__ constexpr uint32_t size_of_step(uint32_t step) {
  constexpr uint32_t kSizes[] = {1,    2,    3,    5,     15,    16,    17,    100,   511,   512,
                                 4095, 4096, 4097, 10000, 16384, 16385, 65535, 65536, 90'000};
  return kSizes[step % (sizeof(kSizes) / sizeof(kSizes[0]))];
}
constexpr uint32_t kSteps = 19;

/// One caller's steps: each reads a range of the pattern into `memory` and looks at it, then writes
/// other bytes from there and reads them back into global memory. `rank` of `threads` threads share
/// the memory, and sync() has them wait for each other.
template <typename Group, typename Sync>
__device__ void read_and_write(const NearWork& work, const Group& group, uint8_t* memory,
                               uint32_t room, uint32_t caller, uint32_t rank, uint32_t threads,
                               uint8_t* global, Sync sync) {
  const uint64_t home = uint64_t{caller} * (128 << 10);
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint32_t shift = (step * 5 + caller) % 19;
    const uint32_t bytes = size_of_step(step);
    if (bytes + shift > room) continue;
    uint8_t* const mine = memory + shift;
    const uint64_t offset = (caller * 4099ull + step * 65'537ull) % (kNearFileBytes - bytes);
    const int64_t got = gofs::pread(group, work.vol, work.fd, mine, bytes, offset);
    expect(work, got == bytes);
    uint32_t wrong = 0;
    for (uint32_t i = rank; i < bytes; i += threads) {
      if (mine[i] != pattern_byte(kNearSeed, offset + i)) ++wrong;
    }
    sync();
    for (uint32_t i = rank; i < bytes; i += threads) mine[i] = written_byte(caller, step, i);
    sync();
    const uint64_t place = home + step;
    expect(work, gofs::pwrite(group, work.vol, work.out, mine, bytes, place) == bytes);
    expect(work, gofs::pread(group, work.vol, work.out, global, bytes, place) == bytes);
    for (uint32_t i = rank; i < bytes; i += threads) {
      if (global[i] != written_byte(caller, step, i)) ++wrong;
    }
    sync();
    if (wrong != 0) atomicAdd(work.wrong, wrong);
  }
}

__device__ uint8_t* global_of(const NearWork& work, uint32_t caller) {
  return work.global + uint64_t{caller} * (128 << 10);
}

__global__ void local_kernel(NearWork work) {
  uint8_t memory[kLocalBytes];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  read_and_write(work, gofs::this_thread(), memory, kLocalBytes, thread, 0, 1,
                 global_of(work, thread), [] {});
}

/// As large as one call goes, by few threads.
__global__ void large_local_kernel(NearWork work) {
  uint8_t memory[kLargeLocalBytes];
  read_and_write(work, gofs::this_thread(), memory, kLargeLocalBytes, threadIdx.x, 0, 1,
                 global_of(work, threadIdx.x), [] {});
}

/// Threads that go different ways: some have local buffers, some shared, some global ones, of other
/// sizes, and some ask for nothing.
__global__ void diverged_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  uint8_t local[4096 + 16];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  uint8_t* const global = global_of(work, thread);
  uint8_t* const part = shared + threadIdx.x * 1400;
  for (uint32_t step = 0; step < 12; ++step) {
    const uint32_t kind = (thread + step * 7) % 5;
    const uint32_t bytes = kind == 0 ? 4096 : kind == 1 ? 1 + thread * 13 % 1300 : 700;
    const uint64_t offset = (thread * 8191ull + step * 999ull) % (kNearFileBytes - 4096);
    uint8_t* const mine = kind == 0 ? local + step : kind < 3 ? part + step : global;
    uint32_t wrong = 0;
    if (kind == 4) {
      expect(work, gofs::pread(gofs::this_thread(), work.vol, work.fd, nullptr, 0, 0) == 0);
    } else if (kind == 1) {
      expect(work,
             gofs::pread(gofs::this_thread(), work.vol, work.fd, mine, bytes, offset) == bytes);
    } else {
      expect(work,
             gofs::pread(gofs::this_thread(), work.vol, work.fd, mine, bytes, offset) == bytes);
    }
    for (uint32_t i = 0; kind != 4 && i < bytes; ++i) {
      if (mine[i] != pattern_byte(kNearSeed, offset + i)) ++wrong;
    }
    if (wrong != 0) atomicAdd(work.wrong, wrong);
  }
}

__global__ void shared_thread_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t room = kSharedBytes / blockDim.x;
  read_and_write(work, gofs::this_thread(), shared + threadIdx.x * room, room, thread, 0, 1,
                 global_of(work, thread), [] {});
}

__global__ void shared_warp_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  const uint32_t warps = blockDim.x / 32;
  const uint32_t warp = blockIdx.x * warps + threadIdx.x / 32;
  const uint32_t room = kSharedBytes / warps;
  read_and_write(work, gofs::this_warp(), shared + threadIdx.x / 32 * room, room, warp,
                 threadIdx.x % 32, 32, global_of(work, warp), [] { __syncwarp(); });
}

__global__ void shared_block_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  read_and_write(work, gofs::this_block(), shared, kSharedBytes, blockIdx.x, threadIdx.x,
                 blockDim.x, global_of(work, blockIdx.x), [] { __syncthreads(); });
}

__constant__ uint8_t constant_bytes[5000];
__constant__ char constant_name[] = "/named";

/// Writes what constant memory has, by all scopes. Cooperative.
__global__ void constant_kernel(NearWork work) {
  const auto vol = work.vol;
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (const uint32_t bytes : {1u, 4096u, 4999u}) {
    const uint8_t* const from = constant_bytes + (bytes == 4999 ? 1 : 0);
    const uint64_t place = uint64_t{thread} * 8192;
    expect(work, gofs::pwrite(gofs::this_thread(), vol, work.out, from, bytes, place) == bytes);
    expect(work, gofs::pwrite(gofs::this_warp(), vol, work.out, from, bytes, 4 << 20) == bytes);
    expect(work, gofs::pwrite(gofs::this_block(), vol, work.out, from, bytes, 5 << 20) == bytes);
    expect(work, gofs::pwrite(gofs::this_grid(), vol, work.out, from, bytes, 6 << 20) == bytes);
    uint8_t* const global = global_of(work, thread);
    for (const uint64_t at : {place, uint64_t{6} << 20}) {
      expect(work, gofs::pread(gofs::this_thread(), vol, work.out, global, bytes, at) == bytes);
      uint32_t wrong = 0;
      for (uint32_t i = 0; i < bytes; ++i) wrong += global[i] != from[i] ? 1 : 0;
      if (wrong != 0) atomicAdd(work.wrong, wrong);
    }
    cooperative_groups::this_grid().sync();
  }
  uint8_t* const target = const_cast<uint8_t*>(constant_bytes);
  expect(work, gofs::pread(gofs::this_thread(), vol, work.fd, target, 10, 0) == -EFAULT);
  expect(work, gofs::pread(gofs::this_grid(), vol, work.fd, target, 10, 0) == -EFAULT);
}

/// What begins in the block's shared memory, of kSharedBytes, and does not end there.
__device__ void refuse_what_runs_over_the_end(const NearWork& work, uint8_t* shared) {
  const auto vol = work.vol;
  const int fd = work.out;
  const auto thread = gofs::this_thread();
  const auto warp = gofs::this_warp();
  const auto block = gofs::this_block();
  const auto refused = [&](int64_t result) { expect(work, result == -EFAULT); };
  uint8_t* const last = shared + kSharedBytes - 8;
  refused(gofs::setxattr(thread, vol, "/out", "user.x", last, 60'000));
  refused(gofs::lsetxattr(warp, vol, "/out", "user.x", last, 60'000));
  refused(gofs::fsetxattr(block, vol, fd, "user.x", last, 60'000));
  expect(work, gofs::setxattr(block, vol, "/out", "user.x", last, 70'000) == -E2BIG);
  auto* const parts = reinterpret_cast<gofs::IoVector*>(last);
  refused(gofs::pwritev(thread, vol, fd, parts, gofs::kIoVectorsMax, 0));
  refused(gofs::writev(warp, vol, fd, parts, gofs::kIoVectorsMax));
  refused(gofs::pwritev(block, vol, fd, parts, gofs::kIoVectorsMax, 0));
  refused(gofs::preadv(thread, vol, fd, parts, gofs::kIoVectorsMax, 0));
  refused(gofs::readv(block, vol, fd, parts, gofs::kIoVectorsMax));
  auto* const names = reinterpret_cast<const char* const*>(last);
  auto* const numbers = reinterpret_cast<const uint64_t*>(last);
  auto* const enough = reinterpret_cast<const char* const*>(work.global);
  refused(gofs::batch_open(block, vol, "/", names, 2000));
  refused(gofs::batch_create(block, vol, "/", names, 2000));
  refused(gofs::batch_create(block, vol, "/", enough, 2000, 0666, work.global, numbers, numbers));
  // It is not known where a text ends; the memory may have a little more than was asked for.
  for (uint32_t i = threadIdx.x; i < kSharedBytes; i += blockDim.x) shared[i] = 'x';
  __syncthreads();
  auto* const name = reinterpret_cast<const char*>(last);
  expect(work, gofs::open(thread, vol, name) < 0);
  expect(work, gofs::open(block, vol, name) < 0);
  expect(work, gofs::getxattr(warp, vol, "/out", name, nullptr, 0) < 0);
}

/// What no scope, or not this one, can use. Cooperative.
__global__ void refusal_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  uint8_t local[128];
  const auto vol = work.vol;
  const int fd = work.out;
  const auto thread = gofs::this_thread();
  const auto warp = gofs::this_warp();
  const auto block = gofs::this_block();
  const auto grid = gofs::this_grid();
  const auto refused = [&](int64_t result) { expect(work, result == -EFAULT); };
  void* const odd = reinterpret_cast<void*>(16);
  void* const wild = reinterpret_cast<void*>(~uint64_t{0} - 4096);
  for (void* const nowhere : {static_cast<void*>(nullptr), odd, wild}) {
    refused(gofs::pread(thread, vol, fd, nowhere, 1, 0));
    refused(gofs::pread(warp, vol, fd, nowhere, 1, 0));
    refused(gofs::pread(block, vol, fd, nowhere, 1, 0));
    refused(gofs::pread(grid, vol, fd, nowhere, 1, 0));
    refused(gofs::pwrite(thread, vol, fd, nowhere, 1, 0));
    refused(gofs::pwrite(warp, vol, fd, nowhere, 1, 0));
    refused(gofs::pwrite(block, vol, fd, nowhere, 1, 0));
    refused(gofs::pwrite(grid, vol, fd, nowhere, 1, 0));
    refused(gofs::write(block, vol, fd, nowhere, 1));
    refused(gofs::read(block, vol, fd, nowhere, 1));
  }
  expect(work, gofs::pread(thread, vol, fd, nullptr, 0, 0) == 0);
  expect(work, gofs::pwrite(block, vol, fd, nullptr, 0, 0) == 0);
  expect(work, gofs::pread(grid, vol, fd, nullptr, 0, 0) == 0);
  // Local memory is a thread's.
  refused(gofs::pread(warp, vol, fd, local, 100, 0));
  refused(gofs::pread(block, vol, fd, local, 100, 0));
  refused(gofs::pread(grid, vol, fd, local, 100, 0));
  refused(gofs::pwrite(warp, vol, fd, local, 100, 0));
  refused(gofs::write(block, vol, fd, local, 100));
  refused(gofs::write(grid, vol, fd, local, 100));
  refused(gofs::read(warp, vol, fd, local, 100));
  // Shared memory is a block's, and ends somewhere.
  refused(gofs::pread(grid, vol, fd, shared, 100, 0));
  refused(gofs::pwrite(grid, vol, fd, shared, 100, 0));
  refused(gofs::pread(block, vol, fd, shared, kSharedBytes + (16 << 10), 0));
  refused(gofs::pwrite(thread, vol, fd, shared, kSharedBytes + (16 << 10), 0));
  // What is waited for later, or shared by others.
  refused(gofs::pread_async(thread, vol, fd, shared, 100, 0).result);
  refused(gofs::pread_async(warp, vol, fd, shared, 100, 0).result);
  refused(gofs::pread_async(thread, vol, fd, local, 100, 0).result);
  refused(gofs::pwrite_async(thread, vol, fd, local, 100, 0).result);
  refused(gofs::pwrite_async(warp, vol, fd, nullptr, 100, 0).result);
  const gofs::IoVector parts[2] = {{global_of(work, 0), 10}, {nullptr, 10}};
  refused(gofs::pwritev(warp, vol, fd, parts, 2, 0));
  refused(gofs::writev(block, vol, fd, parts, 2));
  refused(gofs::preadv(warp, vol, fd, parts, 2, 0));
  refused(gofs::readv(thread, vol, fd, parts, 2));
  refused(gofs::pwritev(block, vol, fd, nullptr, 2, 0));
  // Names and results.
  refused(gofs::open(block, vol, nullptr));
  refused(gofs::stat(block, vol, nullptr, reinterpret_cast<gofs::Stat*>(work.results)));
  refused(gofs::stat(block, vol, "/pattern", reinterpret_cast<gofs::Stat*>(local)));
  refused(gofs::fstat(grid, vol, fd, reinterpret_cast<gofs::Stat*>(shared)));
  refused(gofs::rename(thread, vol, "/pattern", nullptr));
  refused(gofs::getxattr(warp, vol, "/pattern", "user.x", local, 100));
  const char* names[1] = {reinterpret_cast<const char*>(shared)};
  const int bd = gofs::batch_open(block, vol, "/", names, 1);
  expect(work, bd >= 0 && gofs::batch_file(vol, bd, 0).error == -EFAULT);
  const uint64_t at[1] = {0};
  refused(gofs::batch_read(block, vol, bd, shared, at));
  expect(work, gofs::batch_close(block, vol, bd) == 0);
  const char* made[2] = {"made", reinterpret_cast<const char*>(shared)};
  refused(gofs::batch_create(block, vol, "/", made, 2));
  expect(work, gofs::access(block, vol, "/made", 0) == -ENOENT);
  refuse_what_runs_over_the_end(work, shared);
  expect(work, gofs::lseek(thread, vol, fd, 0, gofs::kSeekCurrent) == 0);
}

/// Names and results wherever they may be.
__global__ void names_kernel(NearWork work) {
  extern __shared__ uint8_t shared[];
  const auto vol = work.vol;
  const auto thread = gofs::this_thread();
  const auto warp = gofs::this_warp();
  const auto block = gofs::this_block();
  // The same name in each thread's own memory.
  char local_name[16];
  const char* const text = "/named";
  for (int i = 0; i < 7; ++i) local_name[i] = text[i];
  auto* const shared_name = reinterpret_cast<char*>(shared);
  if (threadIdx.x < 7) shared_name[threadIdx.x] = text[threadIdx.x];
  __syncthreads();
  const char* const names[] = {local_name, shared_name, text, constant_name};
  for (const char* const name : names) {
    for (int scope = 0; scope < 3; ++scope) {
      const int fd = scope == 0   ? gofs::open(thread, vol, name)
                     : scope == 1 ? gofs::open(warp, vol, name)
                                  : gofs::open(block, vol, name);
      expect(work, fd >= 0);
      if (scope == 0) gofs::close(thread, vol, fd);
      if (scope == 1) gofs::close(warp, vol, fd);
      if (scope == 2) gofs::close(block, vol, fd);
    }
  }
  gofs::Stat mine{};
  expect(work, gofs::stat(thread, vol, local_name, &mine) == 0 && mine.size_bytes == 3000);
  auto* const stat = reinterpret_cast<gofs::Stat*>(shared + 64);
  expect(work, gofs::stat(block, vol, shared_name, stat) == 0 && stat->size_bytes == 3000);
  __syncthreads();
  auto* const entries = reinterpret_cast<gofs::NamedEntry*>(shared + 512);
  const int directory = gofs::opendir(block, vol, "/");
  expect(work, gofs::readdir(block, vol, directory, entries, 32) == 3);
  gofs::close(block, vol, directory);
  char value[16] = "colour";
  if (threadIdx.x % 32 == 0) {
    expect(work, gofs::setxattr(thread, vol, "/named", "user.x", value, 6) == 0);
    for (char& letter : value) letter = 0;
    expect(work, gofs::getxattr(thread, vol, "/named", "user.x", value, 16) == 6);
    expect(work, value[0] == 'c' && value[5] == 'r' && value[6] == 0);
  }
  __syncwarp();
  auto* const list = reinterpret_cast<char*>(shared) + 32'768 + threadIdx.x / 32 * 256;
  expect(work, gofs::listxattr(warp, vol, "/named", list, 200) == 7 && list[5] == 'x');
  // Parts of all kinds, whose array is each thread's own, or the block's.
  uint8_t local[300];
  for (uint32_t i = 0; i < 300; ++i) local[i] = written_byte(threadIdx.x, 1, i);
  uint8_t* const part = shared + 40'000 + threadIdx.x * 256;
  for (uint32_t i = 0; i < 200; ++i) part[i] = written_byte(threadIdx.x, 1, 300 + i);
  uint8_t* const global = global_of(work, threadIdx.x);
  for (uint32_t i = 0; i < 100; ++i) global[i] = written_byte(threadIdx.x, 1, 500 + i);
  const gofs::IoVector parts[3] = {{local, 300}, {part, 200}, {global, 100}};
  const uint64_t place = threadIdx.x * 1000ull;
  expect(work, gofs::pwritev(thread, vol, work.out, parts, 3, place) == 600);
  for (uint32_t i = 0; i < 200; ++i) part[i] = local[i] = global[i % 100] = 0;
  expect(work, gofs::preadv(thread, vol, work.out, parts, 3, place) == 600);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 600; ++i) {
    const uint8_t got = i < 300 ? local[i] : i < 500 ? part[i - 300] : global[i - 500];
    wrong += got != written_byte(threadIdx.x, 1, i) ? 1 : 0;
  }
  if (wrong != 0) atomicAdd(work.wrong, wrong);
  __syncthreads();
  auto* const vectors = reinterpret_cast<gofs::IoVector*>(shared + 39'000);
  if (threadIdx.x == 0) {
    vectors[0] = {shared + 40'000, 1001};
    vectors[1] = {global_of(work, 0), 50};
  }
  expect(work, gofs::pwritev(block, vol, work.out, vectors, 2, 1 << 20) == 1051);
}

constexpr uint32_t kTargetRoom = 4160;
constexpr uint32_t kLinkBytes = 64 + 2 * kTargetRoom;  // a path, a target, and what is read

__device__ char target_letter(uint32_t length, uint32_t i) {
  return static_cast<char>('a' + (length * 7 + i * 3 + i / 26) % 26);
}

/// "/l", and numbers that tell the caller and the link.
__device__ void name_link(char* to, uint32_t caller, uint32_t length) {
  *to++ = '/';
  *to++ = 'l';
  for (uint32_t digits = 0, left = caller * 10'000 + length; digits < 8; ++digits, left /= 10) {
    *to++ = static_cast<char>('0' + left % 10);
  }
  *to = '\0';
}

/// Makes a link of which all that the call is told lies in `memory`, which the group reaches, and
/// reads it there: what does not fit in the inode is a block, which other warps move. `rank` of
/// `threads` threads share the memory, and sync() has them wait for each other.
template <typename Group, typename Sync>
__device__ void make_and_read_link(const NearWork& work, const Group& group, char* memory,
                                   uint32_t length, uint32_t caller, uint32_t rank,
                                   uint32_t threads, Sync sync) {
  const uint32_t shift = length % 3 == 0 ? caller % 16 : 0;
  char* const target = memory + 64 + shift;
  char* const buffer = memory + 64 + kTargetRoom + (length % 5 == 0 ? caller % 16 : 0);
  if (rank == 0) name_link(memory, caller, length);
  for (uint32_t i = rank; i < length; i += threads) target[i] = target_letter(length, i);
  if (rank == 0) target[length] = '\0';
  sync();
  expect(work, gofs::symlink(group, work.vol, target, memory) == 0);
  for (const uint32_t capacity : {4096u, 3584u, 512u, 64u}) {
    const uint32_t wanted = min(length, capacity);
    for (uint32_t i = rank; i < wanted + 16; i += threads) buffer[i] = '#';
    sync();
    expect(work, gofs::readlink(group, work.vol, memory, buffer, capacity) == wanted);
    uint32_t wrong = 0;
    for (uint32_t i = rank; i < wanted + 16; i += threads) {
      if (buffer[i] != (i < wanted ? target_letter(length, i) : '#')) ++wrong;
    }
    if (wrong != 0) atomicAdd(work.wrong, wrong);
    sync();
  }
  expect(work, gofs::unlink(group, work.vol, memory) == 0);
  sync();
}

__device__ constexpr uint32_t length_of_link(uint32_t step) {
  constexpr uint32_t kLengths[] = {3600, 16, 3584, 59, 3585, 3390, 3999, 4080, 4095};
  return kLengths[step % (sizeof(kLengths) / sizeof(kLengths[0]))];
}

__global__ void links_of_threads_kernel(NearWork work, uint32_t steps) {
  extern __shared__ char shared_text[];
  alignas(16) char local[kLinkBytes];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t step = 0; step < steps; ++step) {
    make_and_read_link(work, gofs::this_thread(), local, length_of_link(step + thread), thread, 0,
                       1, [] {});
    if (threadIdx.x < kSharedBytes / kLinkBytes) {
      make_and_read_link(work, gofs::this_thread(), shared_text + threadIdx.x * kLinkBytes,
                         length_of_link(step + 3), thread + 1000, 0, 1, [] {});
    }
  }
}

__global__ void links_of_warps_kernel(NearWork work, uint32_t steps) {
  extern __shared__ char shared_text[];
  const uint32_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (uint32_t step = 0; step < steps; ++step) {
    make_and_read_link(work, gofs::this_warp(), shared_text + threadIdx.x / 32 * kLinkBytes,
                       length_of_link(step), warp, threadIdx.x % 32, 32, [] { __syncwarp(); });
  }
}

/// All lengths that whole warps copy 16 bytes at a time.
__global__ void links_of_blocks_kernel(NearWork work, uint32_t length_step) {
  extern __shared__ char shared_text[];
  for (uint32_t length = 3504; length <= 4080; length += length_step) {
    make_and_read_link(work, gofs::this_block(), shared_text, length, blockIdx.x, threadIdx.x,
                       blockDim.x, [] { __syncthreads(); });
  }
}

/// What a kernel may be given besides pointers.
struct alignas(16) GivenTexts {
  uint8_t bytes[4096];
  char target[3601];
  char path[16];
  char key[16];
  char value[100];
  gofs::IoVector parts[2];
};

__constant__ GivenTexts constant_texts;

/// Uses what lies in constant memory, or in that of the kernel's parameters.
template <typename Group>
__device__ void use_given(const NearWork& work, const Group& group, const GivenTexts& given,
                          const char* link, uint32_t caller, bool looks) {
  const auto vol = work.vol;
  uint8_t* const global = global_of(work, caller);
  const uint64_t place = caller * 8192ull;
  uint32_t wrong = 0;
  // Whole blocks, what is copied 16 bytes at a time, and what is not.
  for (const uint32_t bytes : {4096u, 4080u, 777u}) {
    expect(work, gofs::pwrite(group, vol, work.out, given.bytes, bytes, place) == bytes);
    expect(work, gofs::pread(group, vol, work.out, global, bytes, place) == bytes);
    for (uint32_t i = 0; looks && i < bytes; ++i) wrong += global[i] != given.bytes[i] ? 1 : 0;
  }
  const int fd = gofs::open(group, vol, given.path);
  expect(work, fd >= 0 && gofs::close(group, vol, fd) == 0);
  expect(work, gofs::symlink(group, vol, given.target, link) == 0);
  auto* const text = reinterpret_cast<char*>(global);
  expect(work, gofs::readlink(group, vol, link, text, 4096) == 3600);
  for (uint32_t i = 0; looks && i < 3600; ++i) wrong += text[i] != given.target[i] ? 1 : 0;
  expect(work, gofs::unlink(group, vol, link) == 0);
  expect(work, gofs::setxattr(group, vol, given.path, given.key, given.value, 100) == 0);
  expect(work, gofs::getxattr(group, vol, given.path, given.key, global, 100) == 100);
  for (uint32_t i = 0; looks && i < 100; ++i) {
    wrong += text[i] != given.value[i] ? 1 : 0;
  }
  expect(work, gofs::pwritev(group, vol, work.out, given.parts, 2, place) == 300);
  if (wrong != 0) atomicAdd(work.wrong, wrong);
}

/// One block, of two warps.
__device__ void use_given_by_all(const NearWork& work, const GivenTexts& given) {
  const auto vol = work.vol;
  if (threadIdx.x == 40) use_given(work, gofs::this_thread(), given, "/by-thread", 1, true);
  __syncthreads();
  if (threadIdx.x / 32 == 1) {
    use_given(work, gofs::this_warp(), given, "/by-warp", 2, threadIdx.x == 32);
    const gofs::Ticket ticket =
        gofs::pwrite_async(gofs::this_warp(), vol, work.out, given.bytes, 4096, 1 << 20);
    expect(work, gofs::wait(gofs::this_warp(), vol, ticket) == 4096);
  }
  __syncthreads();
  use_given(work, gofs::this_block(), given, "/by-block", 3, threadIdx.x == 0);
}

__global__ void parameters_kernel(NearWork work, const __grid_constant__ GivenTexts given) {
  use_given_by_all(work, given);
}
__global__ void constants_kernel(NearWork work) { use_given_by_all(work, constant_texts); }

/// Some time for the other threads to come too early.
__device__ void dawdle() {
  const long long begin = clock64();
  while (clock64() - begin < 200'000) {
  }
}

/// Parts that one thread has filled in when it comes, and not before. Cooperative.
__global__ void late_parts_kernel(NearWork work) {
  __shared__ gofs::IoVector parts[2];
  const auto block = gofs::this_block();
  const auto grid = gofs::this_grid();
  auto* const everyone = reinterpret_cast<gofs::IoVector*>(work.results);
  uint8_t* const global = global_of(work, blockIdx.x);
  const auto whole_grid = cooperative_groups::this_grid();
  const bool first = whole_grid.thread_rank() == 0;
  const int fd = gofs::open(block, work.vol, "/pattern");
  for (uint32_t turn = 0; turn < 6; ++turn) {
    const uint32_t bytes = 100 + turn * 999;
    if (threadIdx.x == 0) parts[0] = parts[1] = {nullptr, 1};
    if (first) everyone[0] = everyone[1] = {nullptr, 1};
    whole_grid.sync();
    if (threadIdx.x == 0) {
      dawdle();
      parts[0] = {global, bytes};
      parts[1] = {global + bytes, 50};
    }
    const int64_t got = turn % 2 == 0 ? gofs::preadv(block, work.vol, work.fd, parts, 2, turn)
                                      : gofs::readv(block, work.vol, fd, parts, 2);
    expect(work, got == bytes + 50);
    if (first) {
      dawdle();
      everyone[0] = {global, bytes};
      everyone[1] = {global + bytes, 60};
    }
    const int64_t read = turn % 2 == 0 ? gofs::preadv(grid, work.vol, work.fd, everyone, 2, turn)
                                       : gofs::readv(grid, work.vol, work.fd, everyone, 2);
    expect(work, read == bytes + 60);
    whole_grid.sync();
  }
  gofs::close(block, work.vol, fd);
}

/// Records of a thread's stack, appended by all threads at once.
__global__ void append_kernel(NearWork work, int fd) {
  uint8_t record[1000];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t i = 0; i < sizeof(record); ++i) record[i] = static_cast<uint8_t>(thread);
  expect(work, gofs::write(gofs::this_thread(), work.vol, fd, record, sizeof(record)) ==
                   static_cast<int64_t>(sizeof(record)));
}

enum class Memory { kGlobal, kShared, kLocal };

/// Random 4 KiB reads, or others, one outstanding for each thread, into memory of one kind.
template <uint32_t kBytes, Memory kMemory>
__global__ void rate_kernel(NearWork work, uint32_t reads) {
  extern __shared__ uint8_t shared[];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  alignas(16) uint8_t local[kMemory == Memory::kLocal ? kBytes : 16];
  uint8_t* const buffer = kMemory == Memory::kLocal    ? local
                          : kMemory == Memory::kShared ? shared + uint64_t{threadIdx.x} * kBytes
                                                       : work.global + uint64_t{thread} * kBytes;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < reads; ++i) {
    const uint64_t mixed = (thread * 2654435761ull + i * 40503ull) * 0x9e3779b97f4a7c15ull;
    const uint64_t offset = (mixed >> 20) % (kNearFileBytes / kBytes) * kBytes;
    expect(work,
           gofs::pread(gofs::this_thread(), work.vol, work.fd, buffer, kBytes, offset) == kBytes);
    wrong += buffer[i % kBytes] != pattern_byte(kNearSeed, offset + i % kBytes) ? 1 : 0;
  }
  if (wrong != 0) atomicAdd(work.wrong, wrong);
}

class DeviceNear : public testing::Test {
 protected:
  DeviceNear()
      : image_(192, [](gofs::image::ImageBuilder& builder) {
          gofs::image::FileSpec spec;
          spec.name = "pattern";
          spec.size_bytes = kNearFileBytes;
          spec.content = gofs::image::pattern_content(kNearSeed);
          gofs_gpu_test::must(builder.add_file(builder.root(), spec));
          spec.name = "named";
          spec.size_bytes = 3000;
          gofs_gpu_test::must(builder.add_file(builder.root(), spec));
          spec.name = "out";
          spec.size_bytes = 0;
          gofs_gpu_test::must(builder.add_file(builder.root(), spec));
        }) {}
  ~DeviceNear() override {
    cudaFree(work_.global);
    cudaFree(work_.wrong);
  }

  void SetUp() override {
    constexpr uint64_t kCallers = kNearBlocks * kNearThreads;
    CHECK_CUDA(cudaMalloc(&work_.global, kCallers * (128 << 10) + (160 << 20)));
    CHECK_CUDA(cudaMalloc(&work_.wrong, 4096));
    CHECK_CUDA(cudaMemset(work_.wrong, 0, 4096));
    work_.failures = work_.wrong + 1;
    work_.results = reinterpret_cast<int64_t*>(work_.wrong + 16);
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    volume_ = std::make_unique<gofs::Volume>(std::move(*volume));
    work_.vol = volume_->device();
    work_.fd = volume_->open("/pattern").value();
    work_.out = volume_->open("/out", gofs::kOpenReadWrite).value();
  }
  void TearDown() override {
    if (volume_ == nullptr) return;
    const auto unmounted = volume_->unmount();
    EXPECT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume_->warnings()) ADD_FAILURE() << warning;
  }
  /// Waits for what was launched, and looks at what it found.
  void expect_all_right() {
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    uint32_t found[2] = {};
    CHECK_CUDA(cudaMemcpy(found, work_.wrong, sizeof(found), cudaMemcpyDeviceToHost));
    EXPECT_EQ(found[0], 0u) << "bytes are wrong";
    EXPECT_EQ(found[1], 0u) << "calls gave wrong answers";
    const gofs::MemoryReport report = volume_->memory().value();
    for (const gofs::MemoryPartReport& part : report.parts) {
      if (part.name == "bounces") EXPECT_EQ(part.in_use.value_or(1), 0u);
    }
  }
  template <typename Kernel, typename... More>
  void launch(Kernel kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes,
              More... more) {
    CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)));
    kernel<<<blocks, threads, shared_bytes>>>(work_, more...);
    expect_all_right();
  }
  template <typename Kernel>
  void launch_together(Kernel kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes) {
    CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)));
    void* arguments[] = {&work_};
    CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), dim3(blocks),
                                           dim3(threads), arguments, shared_bytes));
    expect_all_right();
  }
  /// Reads a second.
  template <uint32_t kBytes, Memory kMemory>
  double rate(uint32_t blocks, uint32_t threads) {
    const uint32_t reads = 200;
    const uint32_t shared_bytes = kMemory == Memory::kShared ? threads * kBytes : 0;
    const auto kernel = rate_kernel<kBytes, kMemory>;
    EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)),
              cudaSuccess);
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e9f;
    for (int round = 0; round < 4; ++round) {  // the first one fills the block map
      cudaEventRecord(begin);
      kernel<<<blocks, threads, shared_bytes>>>(work_, reads);
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, begin, end);
      if (round != 0) best = std::min(best, milliseconds);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    expect_all_right();
    return double{reads} * blocks * threads / (best / 1e3);
  }
  template <uint32_t kBytes>
  void compare_rates(uint32_t blocks, uint32_t threads) {
    const double global = rate<kBytes, Memory::kGlobal>(blocks, threads);
    const double shared = rate<kBytes, Memory::kShared>(blocks, threads);
    const double local = rate<kBytes, Memory::kLocal>(blocks, threads);
    std::printf(
        "%u reads of %u bytes outstanding: global %.2f M/s, shared %.2f (%.2f), "
        "local %.2f (%.2f)\n",
        blocks * threads, kBytes, global / 1e6, shared / 1e6, shared / global, local / 1e6,
        local / global);
    EXPECT_GE(shared, global / 2);
    EXPECT_GE(local, global / 2);
  }

  const gofs_gpu_test::FreshVolume image_;
  NearWork work_{};
  std::unique_ptr<gofs::Volume> volume_;
};

TEST_F(DeviceNear, threads_read_and_write_their_stacks) {
  launch(local_kernel, gofs_gpu_test::under_sanitizer() ? 1 : kNearBlocks, kNearThreads, 0);
}

TEST_F(DeviceNear, threads_read_and_write_64_kib_of_their_stacks) {
  launch(large_local_kernel, 1, 3, 0);
  if (!gofs_gpu_test::under_sanitizer()) launch(large_local_kernel, 1, 32, 0);
}

TEST_F(DeviceNear, threads_read_and_write_parts_of_shared_memory) {
  launch(shared_thread_kernel, 2, kNearThreads, kSharedBytes);
  launch(shared_thread_kernel, 1, 1, kSharedBytes);
}

TEST_F(DeviceNear, threads_that_have_diverged_use_memory_of_all_kinds) {
  launch(diverged_kernel, gofs_gpu_test::under_sanitizer() ? 1 : kNearBlocks, kNearThreads,
         kSharedBytes);
}

TEST_F(DeviceNear, warps_read_and_write_shared_memory) {
  launch(shared_warp_kernel, kNearBlocks, kNearThreads, kSharedBytes);
  launch(shared_warp_kernel, 1, 32, kSharedBytes);
}

TEST_F(DeviceNear, blocks_of_any_size_read_and_write_shared_memory) {
  for (const uint32_t threads : {128u, 100u, 32u, 17u, 1u}) {
    launch(shared_block_kernel, 2, threads, kSharedBytes);
  }
}

TEST_F(DeviceNear, constant_memory_is_written_from_and_not_read_to) {
  std::vector<uint8_t> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 100);
  CHECK_CUDA(cudaMemcpyToSymbol(constant_bytes, bytes.data(), bytes.size()));
  launch_together(constant_kernel, 2, kNearThreads, 0);
}

TEST_F(DeviceNear, what_a_scope_does_not_reach_is_refused) {
  launch_together(refusal_kernel, 2, kNearThreads, kSharedBytes);
}

TEST_F(DeviceNear, names_results_and_parts_may_lie_anywhere_that_the_group_has) {
  launch(names_kernel, 1, kNearThreads, kSharedBytes);
}

TEST_F(DeviceNear, links_with_targets_of_any_length_are_made_and_read_by_threads) {
  const bool few = gofs_gpu_test::under_sanitizer();
  launch(links_of_threads_kernel, 1, few ? 4 : kNearThreads, kSharedBytes, few ? 2 : 9);
}

TEST_F(DeviceNear, links_with_targets_of_any_length_are_made_and_read_by_warps) {
  launch(links_of_warps_kernel, 2, kNearThreads, kSharedBytes,
         gofs_gpu_test::under_sanitizer() ? 2 : 9);
}

TEST_F(DeviceNear, links_with_targets_of_any_length_are_made_and_read_by_blocks) {
  const uint32_t step = gofs_gpu_test::under_sanitizer() ? 96 : 16;
  launch(links_of_blocks_kernel, 2, kNearThreads, kSharedBytes, step);
  launch(links_of_blocks_kernel, 1, 1, kSharedBytes, step);
}

TEST_F(DeviceNear, what_a_kernel_is_given_as_parameters_or_constants_is_read_from) {
  auto given = std::make_unique<GivenTexts>();
  for (uint32_t i = 0; i < sizeof(given->bytes); ++i) given->bytes[i] = pattern_byte(9, i);
  for (uint32_t i = 0; i < 3600; ++i) given->target[i] = static_cast<char>('a' + i * 11 % 23);
  std::snprintf(given->path, sizeof(given->path), "/named");
  std::snprintf(given->key, sizeof(given->key), "user.given");
  for (uint32_t i = 0; i < sizeof(given->value); ++i) given->value[i] = static_cast<char>(i * 3);
  given->parts[0] = {work_.global, 200};
  given->parts[1] = {work_.global + 1000, 100};
  parameters_kernel<<<1, kNearThreads>>>(work_, *given);
  expect_all_right();
  CHECK_CUDA(cudaMemcpyToSymbol(constant_texts, given.get(), sizeof(*given)));
  constants_kernel<<<1, kNearThreads>>>(work_);
  expect_all_right();
}

TEST_F(DeviceNear, parts_are_looked_at_when_all_threads_have_come) {
  launch_together(late_parts_kernel, 2, 4 * kNearThreads, 0);
}

TEST_F(DeviceNear, records_appended_from_stacks_are_whole) {
  const int fd =
      volume_->open("/log", gofs::kOpenReadWrite | gofs::kOpenCreate | gofs::kOpenAppend).value();
  append_kernel<<<2, kNearThreads>>>(work_, fd);
  expect_all_right();
  std::vector<uint8_t> all(2 * kNearThreads * 1000 + 1);
  ASSERT_EQ(volume_->pread(fd, all.data(), all.size(), 0).value(), all.size() - 1);
  std::vector<uint32_t> seen(256);
  for (size_t at = 0; at + 1 < all.size(); at += 1000) {
    ++seen[all[at]];
    EXPECT_EQ(std::count(&all[at], &all[at] + 1000, all[at]), 1000) << at;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 2 * kNearThreads);
}

TEST_F(DeviceNear, calls_by_the_host_refuse_memory_of_a_gpu) {
  const auto read = volume_->pread(work_.fd, work_.global, 100, 0);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, EFAULT);
  EXPECT_NE(read.error().message.find("memory of GPU 0"), std::string::npos)
      << read.error().message;
  EXPECT_FALSE(volume_->pwrite(work_.out, work_.global, 100, 0));
  EXPECT_FALSE(volume_->write(work_.out, work_.global, 100));
  void* managed = nullptr;
  CHECK_CUDA(cudaMallocManaged(&managed, 100));
  EXPECT_EQ(volume_->pread(work_.fd, managed, 100, 0).value(), 100u);
  cudaFree(managed);
}

TEST_F(DeviceNear, shared_and_local_memory_have_half_the_rate_of_global_at_least) {
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "a rate under a sanitizer says nothing";
  compare_rates<4096>(32, 32);
  compare_rates<4096>(128, 32);
  compare_rates<512>(32, 32);
  compare_rates<512>(128, 256);
}

}  // namespace
