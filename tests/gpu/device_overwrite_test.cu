// SPDX-License-Identifier: Apache-2.0
//
// Blocks of one file that many threads write over and read at once, by lanes of whole warps, of
// parts of them and by warps: each block is at any time what one of them wrote, and is so with the
// CPU backend once the volume was unmounted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint64_t kOverwriteBlock = 4096;
constexpr uint32_t kOverwriteWords = kOverwriteBlock / 4;
constexpr uint32_t kHotBlocks = 48;  // more than the lanes of a warp, so not all meet

struct OverwriteWork {
  gofs::VolumeHandle vol;
  int fd;
  uint32_t steps;
  uint32_t* buffers;  // a block for each thread
  uint32_t* torn;     // blocks in which two writes were found
  int* error;         // of some call
};

__device__ void fill_words(uint32_t* buffer, uint32_t word) {
  for (uint32_t i = 0; i < kOverwriteWords; ++i) buffer[i] = word;
}

__device__ bool is_whole(const uint32_t* buffer) {
  for (uint32_t i = 1; i < kOverwriteWords; ++i) {
    if (buffer[i] != buffer[0]) return false;
  }
  return true;
}

__device__ void note_answer(const OverwriteWork& work, int64_t answer) {
  if (answer == static_cast<int64_t>(kOverwriteBlock)) return;
  *work.error = answer < 0 ? static_cast<int>(answer) : -EIO;
}

/// Every fourth warp reads; of the others some write a block each, some by half of their lanes.
__global__ void overwrite_kernel(OverwriteWork work) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = thread / 32;
  uint32_t* const mine = work.buffers + uint64_t{thread} * kOverwriteWords;
  for (uint32_t step = 0; step < work.steps; ++step) {
    const uint32_t unit = step % 3 == 2 ? warp * 32 : thread;
    const uint64_t offset = (unit * 2654435761u + step * 40503u) % kHotBlocks * kOverwriteBlock;
    if (warp % 4 == 0) {
      note_answer(
          work, gofs::pread(gofs::this_thread(), work.vol, work.fd, mine, kOverwriteBlock, offset));
      if (!is_whole(mine)) atomicAdd(work.torn, 1u);
    } else if (step % 3 == 2) {
      uint32_t* const shared = work.buffers + uint64_t{warp} * 32 * kOverwriteWords;
      if (lane == 0) fill_words(shared, thread * work.steps + step);
      __syncwarp();
      note_answer(work, gofs::pwrite(gofs::this_warp(), work.vol, work.fd, shared, kOverwriteBlock,
                                     offset));
    } else if (step % 3 == 0 || lane % 2 == 0) {
      fill_words(mine, thread * work.steps + step);
      note_answer(work, gofs::pwrite(gofs::this_thread(), work.vol, work.fd, mine, kOverwriteBlock,
                                     offset));
    }
    __syncwarp();
    if (thread == 32 && step % 16 == 5) {
      const int synced = gofs::fdatasync(gofs::this_thread(), work.vol, work.fd);
      if (synced < 0) *work.error = synced;
    }
    __syncwarp();
  }
}

TEST(DeviceOverwrite, blocks_that_many_write_over_stay_whole) {
  const bool slow = gofs_gpu_test::under_sanitizer();
  const uint32_t blocks = slow ? 2 : 16;
  constexpr uint32_t kThreads = 128;
  const gofs_gpu_test::FreshVolume image(128, [](gofs::image::ImageBuilder& builder) {
    gofs::image::FileSpec spec;
    spec.name = "hot";
    spec.size_bytes = kHotBlocks * kOverwriteBlock;
    gofs_gpu_test::must(builder.add_file(builder.root(), spec));
  });
  OverwriteWork work{};
  work.steps = slow ? 6 : 200;
  CHECK_CUDA(cudaMalloc(&work.buffers, uint64_t{blocks} * kThreads * kOverwriteBlock));
  CHECK_CUDA(cudaMalloc(&work.torn, sizeof(uint32_t)));
  CHECK_CUDA(cudaMalloc(&work.error, sizeof(int)));
  CHECK_CUDA(cudaMemset(work.torn, 0, sizeof(uint32_t)));
  CHECK_CUDA(cudaMemset(work.error, 0, sizeof(int)));
  {
    auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    EXPECT_EQ(volume->info().mode, "adaptive");
    const auto fd = volume->open("/hot", gofs::kOpenReadWrite);
    ASSERT_TRUE(fd) << fd.error().message;
    work.vol = volume->device();
    work.fd = *fd;
    overwrite_kernel<<<blocks, kThreads>>>(work);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    uint32_t torn = 0;
    int error = 0;
    CHECK_CUDA(cudaMemcpy(&torn, work.torn, sizeof(torn), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(&error, work.error, sizeof(error), cudaMemcpyDeviceToHost));
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(error, 0);
    volume->close(*fd).value();
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(work.buffers);
  cudaFree(work.torn);
  cudaFree(work.error);

  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"}).value();
  std::vector<uint32_t> words(uint64_t{kHotBlocks} * kOverwriteWords);
  const int fd = volume.open("/hot").value();
  ASSERT_EQ(volume.pread(fd, words.data(), words.size() * 4, 0).value(), words.size() * 4);
  for (uint32_t block = 0; block < kHotBlocks; ++block) {
    const uint32_t* const first = &words[uint64_t{block} * kOverwriteWords];
    EXPECT_TRUE(std::all_of(first, first + kOverwriteWords, [&](uint32_t word) {
      return word == first[0];
    })) << block;
  }
  EXPECT_TRUE(volume.warnings().empty());
}

}  // namespace
