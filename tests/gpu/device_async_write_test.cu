// SPDX-License-Identifier: Apache-2.0
//
// Writes that kernels start and wait for later: each thread or warp fills one of its two buffers
// while the other one is under way, all in one file and each in a file of its own. Read back by
// kernels, and with the CPU backend once the volume was unmounted.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint64_t kBlockOfFile = 4096;
constexpr uint64_t kPartBytes = 3 * kBlockOfFile;
constexpr uint32_t kParts = 6;
constexpr uint64_t kGroupBytes = kParts * kPartBytes;
constexpr uint64_t kEndBytes = 1000;  // that a file of its own ends with, less than a block

struct AsyncWork {
  gofs::VolumeHandle vol;
  int shared;        // descriptor
  uint8_t* buffers;  // two parts for each group
  char* paths;       // 8 bytes for each
  int64_t* errors;   // one for each
  uint32_t groups;
};

__host__ __device__ constexpr uint8_t byte_of(uint32_t group, uint64_t at) {
  return static_cast<uint8_t>(group * 37 + at * 11 + at / 4096);
}

__host__ __device__ inline void name_async(char* path, uint32_t group) {
  path[0] = '/';
  path[1] = 'a';
  path[2] = static_cast<char>('0' + group / 100);
  path[3] = static_cast<char>('0' + group / 10 % 10);
  path[4] = static_cast<char>('0' + group % 10);
  path[5] = '\0';
}

/// A scope and the caller's place in it.
struct OneThread {
  gofs::ThisThread group;
  __device__ uint32_t rank() const { return 0; }
  __device__ uint32_t size() const { return 1; }
  __device__ void sync() const {}
};
struct OneWarp {
  gofs::ThisWarp group;
  __device__ uint32_t rank() const { return threadIdx.x % 32; }
  __device__ uint32_t size() const { return 32; }
  __device__ void sync() const { __syncwarp(); }
};

template <typename Caller>
__device__ void fill_part(const Caller& scope, uint8_t* buffer, uint32_t group, uint64_t from) {
  for (uint64_t i = scope.rank(); i < kPartBytes; i += scope.size()) {
    buffer[i] = byte_of(group, from + i);
  }
  scope.sync();
}

/// Writes kGroupBytes of `group` at `offset`, two parts under way at a time.
template <typename Caller>
__device__ int64_t write_parts_later(const Caller& scope, const AsyncWork& work, int fd,
                                     uint32_t group, uint64_t offset) {
  uint8_t* const buffers = work.buffers + group * 2 * kPartBytes;
  gofs::Ticket tickets[2] = {};
  int64_t error = 0;
  for (uint32_t part = 0; part < kParts + 2; ++part) {
    gofs::Ticket& ticket = tickets[part % 2];
    if (part >= 2) {
      while (!gofs::poll(scope.group, work.vol, ticket)) {
      }
      const int64_t written = gofs::wait(scope.group, work.vol, ticket);
      if (written != kPartBytes && error == 0) error = written < 0 ? written : -EIO;
      const bool was_under_way = ticket.operation != gofs::Ticket::kNoOperation;
      const int64_t again = gofs::wait(scope.group, work.vol, ticket);
      if (again != (was_under_way ? -EINVAL : written) && error == 0) error = -EEXIST;
    }
    if (part >= kParts) continue;
    uint8_t* const buffer = buffers + part % 2 * kPartBytes;
    fill_part(scope, buffer, group, part * kPartBytes);
    ticket = gofs::pwrite_async(scope.group, work.vol, fd, buffer, kPartBytes,
                                offset + part * kPartBytes);
    if (ticket.result < 0) return ticket.result;
  }
  return error;
}

/// The same with a file of its own that grows, and an end that is no block's.
template <typename Caller>
__device__ int64_t write_own_file(const Caller& scope, const AsyncWork& work, uint32_t group) {
  char* const path = work.paths + 8 * group;
  uint8_t* const buffer = work.buffers + group * 2 * kPartBytes;
  if (scope.rank() == 0) name_async(path, group);
  scope.sync();
  const int fd = gofs::open(scope.group, work.vol, path,
                            gofs::kOpenCreate | gofs::kOpenWriteOnly | gofs::kOpenAppend, 0600);
  if (fd < 0) return fd;
  for (uint32_t part = 0; part < 3; ++part) {
    const uint64_t bytes = part == 2 ? kEndBytes : kPartBytes;
    fill_part(scope, buffer, group, part * kPartBytes);
    const gofs::Ticket ticket = gofs::pwrite_async(scope.group, work.vol, fd, buffer, bytes, 0);
    // The file may be closed before its last write was waited for.
    if (part == 2 && gofs::close(scope.group, work.vol, fd) < 0) return -EBADF;
    const int64_t written = gofs::wait(scope.group, work.vol, ticket);
    if (written != static_cast<int64_t>(bytes)) return written < 0 ? written : -EIO;
  }
  return 0;
}

template <typename Caller>
__device__ void write_all_later(const Caller& scope, const AsyncWork& work, uint32_t group) {
  int64_t error = write_parts_later(scope, work, work.shared, group, uint64_t{group} * kGroupBytes);
  if (error == 0) error = write_own_file(scope, work, group);
  if (error == 0 && group % 16 == 0) error = gofs::sync(scope.group, work.vol);
  if (scope.rank() == 0) work.errors[group] = error;
}

/// Reads its part of the shared file, asynchronously as well.
template <typename Caller>
__device__ void read_all_later(const Caller& scope, const AsyncWork& work, uint32_t group) {
  uint8_t* const buffer = work.buffers + group * 2 * kPartBytes;
  int64_t error = 0;
  for (uint32_t part = 0; part < kParts && error == 0; ++part) {
    const gofs::Ticket ticket =
        gofs::pread_async(scope.group, work.vol, work.shared, buffer, kPartBytes,
                          group * kGroupBytes + part * kPartBytes);
    if (gofs::wait(scope.group, work.vol, ticket) != kPartBytes) error = -EIO;
    uint32_t wrong = 0;
    for (uint64_t i = scope.rank(); i < kPartBytes; i += scope.size()) {
      if (buffer[i] != byte_of(group, part * kPartBytes + i)) wrong = 1;
    }
    if (scope.size() == 32) wrong = __any_sync(0xffffffffu, wrong != 0) ? 1 : 0;
    if (wrong != 0) error = -EUCLEAN;
    scope.sync();
  }
  if (scope.rank() == 0) work.errors[group] = error;
}

__global__ void prepare_async_kernel(AsyncWork work, char* path, int* fd) {
  const int opened =
      gofs::open(gofs::this_warp(), work.vol, path, gofs::kOpenCreate | gofs::kOpenReadWrite);
  // So that each group writes within it.
  const int error =
      opened < 0 ? opened
                 : gofs::ftruncate(gofs::this_warp(), work.vol, opened, work.groups * kGroupBytes);
  if (threadIdx.x == 0) *fd = error < 0 ? error : opened;
}

__global__ void async_kernel(AsyncWork work, bool by_threads, bool reads) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t group = by_threads ? thread : thread / 32;
  if (group >= work.groups) return;
  if (by_threads) {
    const OneThread scope{};
    reads ? read_all_later(scope, work, group) : write_all_later(scope, work, group);
  } else {
    const OneWarp scope{};
    reads ? read_all_later(scope, work, group) : write_all_later(scope, work, group);
  }
}

class DeviceAsyncWrite : public testing::TestWithParam<bool> {};

TEST_P(DeviceAsyncWrite, groups_fill_one_buffer_while_the_other_is_under_way) {
  const bool by_threads = GetParam();
  const uint32_t groups = gofs_gpu_test::under_sanitizer() ? 4 : 96;
  const uint32_t threads = by_threads ? 32 : 64;
  const uint32_t blocks = by_threads ? (groups + 31) / 32 : groups / 2;
  const gofs_gpu_test::FreshVolume image{128, [](gofs::image::ImageBuilder&) {}};
  AsyncWork work{};
  work.groups = groups;
  char* path = nullptr;
  int* fd = nullptr;
  CHECK_CUDA(cudaMalloc(&work.buffers, groups * 2 * kPartBytes));
  CHECK_CUDA(cudaMalloc(&work.paths, 8 * groups));
  CHECK_CUDA(cudaMalloc(&work.errors, groups * sizeof(int64_t)));
  CHECK_CUDA(cudaMalloc(&path, 8));
  CHECK_CUDA(cudaMalloc(&fd, sizeof(int)));
  CHECK_CUDA(cudaMemcpy(path, "/shared", 8, cudaMemcpyHostToDevice));
  {
    auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    work.vol = volume->device();
    prepare_async_kernel<<<1, 32>>>(work, path, fd);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(&work.shared, fd, sizeof(int), cudaMemcpyDeviceToHost));
    ASSERT_GE(work.shared, 0);
    for (const bool reads : {false, true}) {
      async_kernel<<<blocks, threads>>>(work, by_threads, reads);
      CHECK_CUDA(cudaGetLastError());
      CHECK_CUDA(cudaDeviceSynchronize());
      std::vector<int64_t> got(groups);
      CHECK_CUDA(
          cudaMemcpy(got.data(), work.errors, groups * sizeof(int64_t), cudaMemcpyDeviceToHost));
      EXPECT_EQ(got, std::vector<int64_t>(groups, 0)) << (reads ? "reading" : "writing");
    }
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(work.buffers);
  cudaFree(work.paths);
  cudaFree(work.errors);
  cudaFree(path);
  cudaFree(fd);

  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"}).value();
  const auto expect_bytes = [&](const char* name, uint64_t offset, uint64_t bytes, uint32_t group) {
    const int file = volume.open(name).value();
    std::vector<uint8_t> got(bytes + 1);
    const bool ends = offset == 0 && bytes != kGroupBytes;
    ASSERT_EQ(volume.pread(file, got.data(), bytes + (ends ? 1 : 0), offset).value(), bytes)
        << name;
    for (uint64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(got[i], byte_of(group, i)) << name << ' ' << group << ' ' << i;
    }
    EXPECT_TRUE(volume.close(file));
  };
  for (uint32_t group = 0; group < groups; ++group) {
    expect_bytes("/shared", group * kGroupBytes, kGroupBytes, group);
    char name[8];
    name_async(name, group);
    expect_bytes(name, 0, 2 * kPartBytes + kEndBytes, group);
  }
  EXPECT_TRUE(volume.warnings().empty());
}

INSTANTIATE_TEST_SUITE_P(ByThreads, DeviceAsyncWrite, testing::Bool());

}  // namespace
