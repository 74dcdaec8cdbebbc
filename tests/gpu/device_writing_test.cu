// SPDX-License-Identifier: Apache-2.0
//
// Changing a volume from kernels: many groups at once, with checkpoints beside them. What they did
// is looked at with the CPU backend once the volume was unmounted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint32_t kNewFilesMax = 600;
constexpr uint32_t kValueBytes = 1500;  // more than an inode has room for

/// "/fNNN" at `path`.
__device__ void name_new_file(char* path, uint32_t index) {
  path[0] = '/';
  path[1] = 'f';
  path[2] = static_cast<char>('0' + index / 100);
  path[3] = static_cast<char>('0' + index / 10 % 10);
  path[4] = static_cast<char>('0' + index % 10);
  path[5] = '\0';
}

template <typename Group>
__device__ int change_file(const Group& group, gofs::VolumeHandle vol, const char* path,
                           uint32_t index, const char* value) {
  int error = gofs::chmod(group, vol, path, 0400 + index % 64);
  if (error == 0) error = gofs::chown(group, vol, path, index, gofs::kKeepId);
  if (error == 0) error = gofs::utimens(group, vol, path, {index, 1}, {0, gofs::kTimeNow});
  if (error == 0) error = gofs::setxattr(group, vol, path, "user.short", value, 20);
  if (error == 0 && index % 4 == 0) {
    error = gofs::setxattr(group, vol, path, "user.long", value, kValueBytes);
  }
  if (error == 0 && index % 8 == 0) error = gofs::removexattr(group, vol, path, "user.long");
  if (error == 0 && index % 100 == 0) error = gofs::sync(group, vol);
  return error;
}

/// Every warp, or every thread, changes every `count`-th file.
__global__ void change_kernel(gofs::VolumeHandle vol, const char* value, char* paths, int* errors,
                              uint32_t files, bool by_threads) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t threads = gridDim.x * blockDim.x;
  const uint32_t unit = by_threads ? 1 : 32;
  char* const path = paths + 8 * (thread / unit);
  for (uint32_t index = thread / unit; index < files; index += threads / unit) {
    if (by_threads || threadIdx.x % 32 == 0) name_new_file(path, index);
    if (!by_threads) __syncwarp();
    const int error = by_threads ? change_file(gofs::this_thread(), vol, path, index, value)
                                 : change_file(gofs::this_warp(), vol, path, index, value);
    if (by_threads || threadIdx.x % 32 == 0) errors[index] = error;
  }
}

/// Bytes of new file `index`; they are those of the pattern from 4 * index on.
__host__ __device__ constexpr uint64_t new_file_bytes(uint32_t index) {
  return uint64_t{index % 5} * 9000 + index;
}

/// "/nNNN" for each file, made and written by one group, and "/dNNN" for some.
template <typename Group>
__device__ int make_file(const Group& group, gofs::VolumeHandle vol, char* path, bool writes_path,
                         uint32_t index, const uint8_t* pattern) {
  const int fd = gofs::open(group, vol, path,
                            gofs::kOpenCreate | gofs::kOpenExclusive | gofs::kOpenWriteOnly, 0640);
  if (fd < 0) return fd;
  const uint64_t bytes = new_file_bytes(index);
  const int64_t written = gofs::pwrite(group, vol, fd, pattern + 4 * index, bytes, 0);
  int error = gofs::close(group, vol, fd);
  if (written != static_cast<int64_t>(bytes)) error = written < 0 ? written : -EIO;
  if (index % 8 != 0 || error < 0) return error;
  if (writes_path) path[1] = 'd';
  __syncwarp(__activemask());
  error = gofs::mkdir(group, vol, path, 0750);
  return error;
}

__global__ void make_kernel(gofs::VolumeHandle vol, const uint8_t* pattern, char* paths,
                            int* errors, uint32_t files, bool by_threads) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t threads = gridDim.x * blockDim.x;
  const uint32_t unit = by_threads ? 1 : 32;
  const bool leader = by_threads || threadIdx.x % 32 == 0;
  char* const path = paths + 8 * (thread / unit);
  for (uint32_t index = thread / unit; index < files; index += threads / unit) {
    if (leader) {
      name_new_file(path, index);
      path[1] = 'n';
    }
    if (!by_threads) __syncwarp();
    const int error = by_threads ? make_file(gofs::this_thread(), vol, path, leader, index, pattern)
                                 : make_file(gofs::this_warp(), vol, path, leader, index, pattern);
    if (leader) errors[index] = error;
    if (!by_threads) __syncwarp();
  }
}

class DeviceWriting : public testing::TestWithParam<bool> {
 protected:
  static std::string path_of(uint32_t index) {
    char path[16];
    std::snprintf(path, sizeof(path), "/f%03u", index);
    return path;
  }

  /// A sanitizer takes a hundred times as long.
  const uint32_t files_ = gofs_gpu_test::under_sanitizer() ? 40 : kNewFilesMax;
  const gofs_gpu_test::FreshVolume image_{
      128, [this](gofs::image::ImageBuilder& builder) {
        for (uint32_t i = 0; i < files_; ++i) {
          gofs::image::FileSpec spec;
          spec.name = path_of(i).substr(1);
          spec.inline_xattr = true;
          gofs_gpu_test::must(builder.add_file(builder.root(), spec));
        }
      }};
};

TEST_P(DeviceWriting, what_kernels_change_is_there_after_unmounting) {
  constexpr uint32_t kBlocks = 4;
  constexpr uint32_t kThreads = 64;
  const bool by_threads = GetParam();
  std::string value(kValueBytes, '\0');
  for (uint32_t i = 0; i < kValueBytes; ++i) value[i] = static_cast<char>('a' + i % 26);
  char* device_value = nullptr;
  char* paths = nullptr;
  int* errors = nullptr;
  CHECK_CUDA(cudaMalloc(&device_value, kValueBytes));
  CHECK_CUDA(cudaMalloc(&paths, 8 * kBlocks * kThreads));
  CHECK_CUDA(cudaMalloc(&errors, files_ * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(device_value, value.data(), kValueBytes, cudaMemcpyHostToDevice));
  {
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    change_kernel<<<kBlocks, kThreads>>>(volume->device(), device_value, paths, errors, files_,
                                         by_threads);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<int> got(files_);
    CHECK_CUDA(cudaMemcpy(got.data(), errors, files_ * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<int>(files_, 0));
    const auto host = volume->chmod("/f000", 0777);
    EXPECT_TRUE(host) << host.error().message;
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    EXPECT_TRUE(volume->warnings().empty());
  }
  cudaFree(device_value);
  cudaFree(paths);
  cudaFree(errors);

  auto volume = gofs::Volume::mount(image_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(volume.info().clean);
  for (uint32_t i = 0; i < files_; ++i) {
    const std::string path = path_of(i);
    const gofs::Stat stat = volume.stat(path).value();
    EXPECT_EQ(stat.mode & 07777, i == 0 ? 0777 : 0400 + i % 64) << path;
    EXPECT_EQ(stat.uid, i) << path;
    EXPECT_EQ(stat.accessed.seconds, i) << path;
    EXPECT_GT(stat.modified.seconds, 1'700'000'000) << path;
    EXPECT_EQ(volume.getxattr(path, "user.short").value(), value.substr(0, 20)) << path;
    const auto long_value = volume.getxattr(path, "user.long");
    EXPECT_EQ(long_value ? *long_value : "none", i % 8 == 4 ? value : "none") << path;
  }
  EXPECT_TRUE(volume.warnings().empty());
}

TEST_P(DeviceWriting, files_that_kernels_make_are_there_with_all_their_bytes) {
  constexpr uint32_t kBlocks = 4;
  constexpr uint32_t kThreads = 64;
  std::vector<uint8_t> pattern(new_file_bytes(4) + 5 * kNewFilesMax);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 31 + i / 251);
  uint8_t* device_pattern = nullptr;
  char* paths = nullptr;
  int* errors = nullptr;
  CHECK_CUDA(cudaMalloc(&device_pattern, pattern.size()));
  CHECK_CUDA(cudaMalloc(&paths, 8 * kBlocks * kThreads));
  CHECK_CUDA(cudaMalloc(&errors, files_ * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(device_pattern, pattern.data(), pattern.size(), cudaMemcpyHostToDevice));
  {
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    make_kernel<<<kBlocks, kThreads>>>(volume->device(), device_pattern, paths, errors, files_,
                                       GetParam());
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<int> got(files_);
    CHECK_CUDA(cudaMemcpy(got.data(), errors, files_ * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<int>(files_, 0));
    EXPECT_TRUE(volume->symlink("n000", "/by_host"));
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(device_pattern);
  cudaFree(paths);
  cudaFree(errors);

  auto volume = gofs::Volume::mount(image_.path(), {.backend = "cpu"}).value();
  std::vector<uint8_t> bytes(pattern.size());
  for (uint32_t i = 0; i < files_; ++i) {
    std::string path = path_of(i);
    path[1] = 'n';
    const int fd = volume.open(path).value();
    const uint64_t wanted = new_file_bytes(i);
    ASSERT_EQ(volume.pread(fd, bytes.data(), bytes.size(), 0).value(), wanted) << path;
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(wanted),
                           pattern.begin() + 4 * i))
        << path;
    EXPECT_EQ(volume.stat(path).value().mode & 07777, 0640u);
    volume.close(fd).value();
    path[1] = 'd';
    EXPECT_EQ(static_cast<bool>(volume.stat(path)), i % 8 == 0) << path;
  }
  EXPECT_EQ(volume.readlink("/by_host").value(), "n000");
  EXPECT_TRUE(volume.warnings().empty());
}

INSTANTIATE_TEST_SUITE_P(ByThreads, DeviceWriting, testing::Bool());

}  // namespace
