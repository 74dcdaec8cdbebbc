// SPDX-License-Identifier: Apache-2.0
//
// A large sparse image of which a GPU has memory for a part only: what statfs says can be written
// is written, then it is refused at once, and all of it is there afterwards.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

__global__ void ask_room_kernel(gofs::VolumeHandle vol, uint64_t* available) {
  *available = gofs::statfs(vol).blocks_available;
}

/// Each block of warps writes a file of its own until that is refused.
__global__ void fill_kernel(gofs::VolumeHandle vol, const char* bytes, uint64_t portion,
                            unsigned long long* written, int* errors) {
  const auto block = gofs::this_block();
  __shared__ char path[4];
  if (threadIdx.x == 0) {
    path[0] = '/';
    path[1] = static_cast<char>('a' + blockIdx.x % 26);
    path[2] = static_cast<char>('a' + blockIdx.x / 26);
    path[3] = '\0';
  }
  __syncthreads();
  const int fd = gofs::open(block, vol, path, gofs::kOpenCreate | gofs::kOpenWriteOnly, 0644);
  int64_t result = fd;
  for (uint64_t at = 0; result >= 0; at += portion) {
    result = gofs::pwrite(block, vol, fd, bytes, portion, at);
    if (result > 0 && threadIdx.x == 0) atomicAdd(written, static_cast<unsigned long long>(result));
    if (result >= 0 && result < static_cast<int64_t>(portion)) result = -ENOSPC;
  }
  if (threadIdx.x == 0) errors[blockIdx.x] = static_cast<int>(result);
}

TEST(DeviceRoom, what_statfs_says_can_be_written_and_then_it_is_refused_at_once) {
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "it moves hundreds of MiB";
  constexpr unsigned int kBlocks = 64;
  constexpr uint64_t kPortion = 256 << 10;
  const gofs_gpu_test::FreshVolume image{24 << 10, [](gofs::image::ImageBuilder&) {}};
  auto volume =
      gofs::Volume::mount(image.path() + "?spare=1G", {.backend = "cuda", .read_only = false});
  ASSERT_TRUE(volume) << volume.error().message;
  const auto room = volume->statfs().value();
  EXPECT_GT(room.blocks_free * 4096, uint64_t{20} << 30);
  const uint64_t available = room.blocks_available * 4096;
  EXPECT_GT(available, 300 * kMiB);
  EXPECT_LT(available, 1024 * kMiB);

  char* bytes = nullptr;
  uint64_t* seen = nullptr;
  unsigned long long* written = nullptr;
  int* errors = nullptr;
  CHECK_CUDA(cudaMalloc(&bytes, kPortion));
  CHECK_CUDA(cudaMemset(bytes, 'r', kPortion));
  CHECK_CUDA(cudaMallocHost(&seen, sizeof(*seen)));
  CHECK_CUDA(cudaMallocHost(&written, sizeof(*written)));
  CHECK_CUDA(cudaMallocHost(&errors, kBlocks * sizeof(*errors)));
  *written = 0;
  ask_room_kernel<<<1, 1>>>(volume->device(), seen);
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(*seen, room.blocks_available);

  const auto began = std::chrono::steady_clock::now();
  fill_kernel<<<kBlocks, 128>>>(volume->device(), bytes, kPortion, written, errors);
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  for (unsigned int i = 0; i < kBlocks; ++i) EXPECT_EQ(errors[i], -ENOSPC) << i;
  EXPECT_LE(*written, available);
  EXPECT_GE(*written, available * 9 / 10);

  const auto refused_from = std::chrono::steady_clock::now();
  const std::vector<char> more(kMiB, 'm');
  const int fd = volume->open("/aa", O_WRONLY).value();
  const auto write_more = [&](uint64_t portion_index) {
    return volume->pwrite(fd, more.data(), more.size(), (uint64_t{2} << 30) + portion_index * kMiB);
  };
  // Where all writers were refused at one moment, some had blocks that others would have taken.
  const auto remnant = write_more(0);
  EXPECT_TRUE(!remnant || *remnant < kMiB);
  for (int i = 1; i <= 50; ++i) {
    const auto refused = write_more(i);
    ASSERT_FALSE(refused) << *refused;
    EXPECT_EQ(refused.error().code, ENOSPC);
    EXPECT_NE(refused.error().message.find("spare="), std::string::npos) << refused.error().message;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - refused_from, std::chrono::seconds(5));
  const auto unmounted = volume->unmount();
  ASSERT_TRUE(unmounted) << unmounted.error().message;
  cudaFree(bytes);
  cudaFreeHost(seen);
  cudaFreeHost(written);
  cudaFreeHost(errors);
  if (!gofs::image::tool_exists("fsck.f2fs")) return;
  EXPECT_TRUE(gofs::image::fsck_is_clean(image.path()));
}

}  // namespace
