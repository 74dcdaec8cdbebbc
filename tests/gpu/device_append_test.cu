// SPDX-License-Identifier: Apache-2.0
//
// Blocks that many threads append, lanes of whole warps and warps, to files of their own and to one
// of all, while some of it is made durable: with the CPU backend each is there once, and whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint64_t kAppendBlock = 4096;
constexpr uint32_t kAppendWords = kAppendBlock / 4;
constexpr uint32_t kAppendThreads = 128;  // of a block
constexpr uint32_t kStepsToShare = 6;     // one of so many goes to the file of all

struct AppendWork {
  gofs::VolumeHandle vol;
  const int* fds;  // of each warp, and then that of all
  uint32_t warps;
  uint32_t steps;
  uint32_t* buffers;  // a block for each thread
  int* error;         // of some call
};

__device__ void note_append(const AppendWork& work, int64_t answer, uint64_t bytes) {
  if (answer == static_cast<int64_t>(bytes)) return;
  *work.error = answer < 0 ? static_cast<int>(answer) : -EIO;
}

/// Each block has a word that no other has.
__global__ void append_kernel(AppendWork work) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t warp = thread / 32;
  uint32_t* const mine = work.buffers + uint64_t{thread} * kAppendWords;
  for (uint32_t step = 0; step < work.steps; ++step) {
    const int fd = work.fds[step % kStepsToShare == 2 ? work.warps : warp];
    for (uint32_t i = 0; i < kAppendWords; ++i) mine[i] = thread * work.steps + step + 1;
    __syncwarp();
    if (step % 3 == 1) {
      // By the warp, as one write.
      uint32_t* const all = work.buffers + uint64_t{warp} * 32 * kAppendWords;
      note_append(work, gofs::pwrite(gofs::this_warp(), work.vol, fd, all, 32 * kAppendBlock, 0),
                  32 * kAppendBlock);
    } else {
      note_append(work, gofs::pwrite(gofs::this_thread(), work.vol, fd, mine, kAppendBlock, 0),
                  kAppendBlock);
    }
    __syncwarp();
    if (thread % 256 == 32 && step % 8 == 5) {
      const int synced = gofs::fsync(gofs::this_thread(), work.vol, fd);
      if (synced < 0) *work.error = synced;
    }
    __syncwarp();
  }
}

TEST(DeviceAppend, blocks_are_there_once_and_whole) {
  const bool slow = gofs_gpu_test::under_sanitizer();
  const uint32_t blocks = slow ? 2 : 16;
  const uint32_t warps = blocks * kAppendThreads / 32;
  const gofs_gpu_test::FreshVolume image(1024, [](gofs::image::ImageBuilder&) {});
  AppendWork work{};
  work.warps = warps;
  work.steps = slow ? 6 : 48;
  const auto name_of = [&](uint32_t file) { return "/log" + std::to_string(file); };
  CHECK_CUDA(cudaMalloc(&work.buffers, uint64_t{blocks} * kAppendThreads * kAppendBlock));
  CHECK_CUDA(cudaMalloc(&work.error, sizeof(int)));
  CHECK_CUDA(cudaMemset(work.error, 0, sizeof(int)));
  int* fds_there = nullptr;
  CHECK_CUDA(cudaMalloc(&fds_there, (warps + 1) * sizeof(int)));
  work.fds = fds_there;
  {
    auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    std::vector<int> fds;
    for (uint32_t file = 0; file <= warps; ++file) {
      const auto fd =
          volume->open(name_of(file), gofs::kOpenCreate | gofs::kOpenReadWrite | gofs::kOpenAppend);
      ASSERT_TRUE(fd) << fd.error().message;
      fds.push_back(*fd);
    }
    CHECK_CUDA(cudaMemcpy(fds_there, fds.data(), fds.size() * sizeof(int), cudaMemcpyHostToDevice));
    work.vol = volume->device();
    append_kernel<<<blocks, kAppendThreads>>>(work);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    int error = 0;
    CHECK_CUDA(cudaMemcpy(&error, work.error, sizeof(error), cudaMemcpyDeviceToHost));
    EXPECT_EQ(error, 0);
    for (const int fd : fds) volume->close(fd).value();
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(work.buffers);
  cudaFree(work.error);
  cudaFree(fds_there);

  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"}).value();
  std::vector<uint32_t> found;
  std::vector<uint32_t> words;
  for (uint32_t file = 0; file <= warps; ++file) {
    const int fd = volume.open(name_of(file)).value();
    words.resize(volume.fstat(fd).value().size_bytes / 4);
    ASSERT_EQ(words.size() % kAppendWords, 0u) << file;
    ASSERT_EQ(volume.pread(fd, words.data(), words.size() * 4, 0).value(), words.size() * 4);
    for (auto first = words.begin(); first != words.end(); first += kAppendWords) {
      EXPECT_TRUE(std::all_of(first, first + kAppendWords, [&](uint32_t word) {
        return word == *first;
      })) << file;
      found.push_back(*first);
    }
    volume.close(fd).value();
  }
  std::sort(found.begin(), found.end());
  ASSERT_EQ(found.size(), uint64_t{blocks} * kAppendThreads * work.steps);
  for (uint32_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i + 1);
  EXPECT_TRUE(volume.warnings().empty());
}

}  // namespace
