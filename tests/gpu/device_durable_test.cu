// SPDX-License-Identifier: Apache-2.0
//
// Files made durable one by one from kernels while other groups collect garbage: every call
// succeeds, and the files hold what was written last.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint32_t kFileBytes = 40'000;
constexpr uint32_t kGroups = 8;  // warps; the last one collects garbage

/// "/fN" of a group.
__host__ __device__ void name_group(char* path, uint32_t group) {
  path[0] = '/';
  path[1] = 'f';
  path[2] = static_cast<char>('0' + group);
  path[3] = '\0';
}

__device__ int write_durably(gofs::VolumeHandle vol, const char* path, const uint8_t* bytes,
                             uint32_t turns) {
  const auto warp = gofs::this_warp();
  const int fd = gofs::open(warp, vol, path, gofs::kOpenCreate | gofs::kOpenReadWrite, 0644);
  if (fd < 0) return fd;
  for (uint32_t turn = 0; turn < turns; ++turn) {
    // Parts of it out of place, each turn another, and all of it in the last one.
    const uint64_t offset = turn + 1 == turns ? 0 : turn * 4096 % kFileBytes;
    const uint64_t count = turn + 1 == turns ? kFileBytes : 1000;
    const uint64_t most = kFileBytes - offset;
    const uint64_t part = count < most ? count : most;
    const int64_t written = gofs::pwrite(warp, vol, fd, bytes + offset, part, offset);
    if (written != static_cast<int64_t>(part)) return written < 0 ? written : -EIO;
    const int synced = turn % 2 == 0 ? gofs::fsync(warp, vol, fd) : gofs::fdatasync(warp, vol, fd);
    if (synced < 0) return synced;
  }
  return gofs::close(warp, vol, fd);
}

__global__ void durable_kernel(gofs::VolumeHandle vol, const uint8_t* bytes, char* paths,
                               int* errors, uint32_t turns) {
  const uint32_t group = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  char* const path = paths + 4 * group;
  const bool leader = threadIdx.x % 32 == 0;
  if (leader) name_group(path, group);
  __syncwarp();
  int error = 0;
  if (group + 1 == kGroups) {
    for (uint32_t turn = 0; turn < turns && error >= 0; ++turn) {
      error = static_cast<int>(gofs::collect_garbage(gofs::this_warp(), vol, 4));
    }
    if (error > 0) error = 0;
  } else {
    error = write_durably(vol, path, bytes + group * 100, turns);
  }
  if (leader) errors[group] = error;
}

TEST(DeviceDurable, files_are_made_durable_beside_the_collection_of_garbage) {
  const uint32_t turns = gofs_gpu_test::under_sanitizer() ? 2 : 40;
  const gofs_gpu_test::FreshVolume image{128, [](gofs::image::ImageBuilder&) {}};
  std::vector<uint8_t> pattern(kFileBytes + 100 * kGroups);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 31 + i / 251);
  uint8_t* device_pattern = nullptr;
  char* paths = nullptr;
  int* errors = nullptr;
  CHECK_CUDA(cudaMalloc(&device_pattern, pattern.size()));
  CHECK_CUDA(cudaMalloc(&paths, 4 * kGroups));
  CHECK_CUDA(cudaMalloc(&errors, kGroups * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(device_pattern, pattern.data(), pattern.size(), cudaMemcpyHostToDevice));
  {
    auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    durable_kernel<<<kGroups / 2, 64>>>(volume->device(), device_pattern, paths, errors, turns);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<int> got(kGroups);
    CHECK_CUDA(cudaMemcpy(got.data(), errors, kGroups * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<int>(kGroups, 0));
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(device_pattern);
  cudaFree(paths);
  cudaFree(errors);

  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"}).value();
  for (uint32_t group = 0; group + 1 < kGroups; ++group) {
    char path[4];
    name_group(path, group);
    std::vector<uint8_t> bytes(kFileBytes + 1);
    const int fd = volume.open(path).value();
    ASSERT_EQ(volume.pread(fd, bytes.data(), bytes.size(), 0).value(), kFileBytes) << path;
    bytes.resize(kFileBytes);
    const auto begin = pattern.begin() + group * 100;
    EXPECT_TRUE(std::vector<uint8_t>(begin, begin + kFileBytes) == bytes) << path;
    EXPECT_TRUE(volume.close(fd));
  }
  EXPECT_TRUE(volume.warnings().empty());
}

}  // namespace
