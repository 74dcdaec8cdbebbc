// SPDX-License-Identifier: Apache-2.0
//
// Calls of kernels in Volume::statistics(): each as one, whoever makes it, with its bytes; and as
// many commands and blocks as the SSD has counted by itself.
#include <gtest/gtest.h>

#include <cerrno>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/statistics_for_test.h"

namespace {

using gofs::host::calls_of;

constexpr uint32_t kCountedBlock = 4096;
constexpr uint32_t kCountedThreads = 256;
constexpr uint32_t kCountedWarps = kCountedThreads / 32;
constexpr uint32_t kCountedFileBlocks = 1024;

struct CountedWork {
  gofs::VolumeHandle vol;
  int fd;
  char* buffers;  // a block for each thread
  int* wrong;     // calls that did not end as they are to
};

__device__ void expect_answer(const CountedWork& work, int64_t answer, int64_t expected) {
  if (answer != expected) atomicAdd(work.wrong, 1);
}

/// In each warp: a read and a write by each of its threads, which half of them write again; a read
/// and a write of 32 blocks by the warp; one read in vain by each thread, and one by the warp. Then
/// a read by the block.
__global__ void counted_kernel(CountedWork work) {
  const uint32_t lane = threadIdx.x % 32;
  char* const mine = work.buffers + uint64_t{threadIdx.x} * kCountedBlock;
  char* const all = work.buffers + uint64_t{threadIdx.x - lane} * kCountedBlock;
  const uint64_t at = uint64_t{threadIdx.x} * kCountedBlock;
  const uint64_t all_at = uint64_t{threadIdx.x - lane} * kCountedBlock;
  const auto thread = gofs::this_thread();
  const auto warp = gofs::this_warp();
  expect_answer(work, gofs::pread(thread, work.vol, work.fd, mine, kCountedBlock, at),
                kCountedBlock);
  expect_answer(work, gofs::pwrite(thread, work.vol, work.fd, mine, kCountedBlock, at),
                kCountedBlock);
  if (lane % 2 == 0) {
    expect_answer(work, gofs::pwrite(thread, work.vol, work.fd, mine, 100, at), 100);
  }
  expect_answer(work, gofs::pread(thread, work.vol, -1, mine, kCountedBlock, at), -EBADF);
  __syncwarp();
  expect_answer(work, gofs::pread(warp, work.vol, work.fd, all, 32 * kCountedBlock, all_at),
                32 * kCountedBlock);
  expect_answer(work, gofs::pwrite(warp, work.vol, work.fd, all, 32 * kCountedBlock, all_at),
                32 * kCountedBlock);
  expect_answer(work, gofs::pread(warp, work.vol, -1, all, 32 * kCountedBlock, all_at), -EBADF);
  __syncthreads();
  expect_answer(work,
                gofs::pread(gofs::this_block(), work.vol, work.fd, work.buffers,
                            kCountedThreads * kCountedBlock, 0),
                kCountedThreads * kCountedBlock);
}

TEST(DeviceStatistics, calls_of_threads_warps_and_blocks_count_once) {
  const gofs_gpu_test::FreshVolume image(128, [](gofs::image::ImageBuilder& builder) {
    gofs::image::FileSpec spec;
    spec.name = "data";
    spec.size_bytes = uint64_t{kCountedFileBlocks} * kCountedBlock;
    gofs_gpu_test::must(builder.add_file(builder.root(), spec));
  });
  CountedWork work{};
  CHECK_CUDA(cudaMalloc(&work.buffers, uint64_t{kCountedThreads} * kCountedBlock));
  CHECK_CUDA(cudaMalloc(&work.wrong, sizeof(int)));
  CHECK_CUDA(cudaMemset(work.wrong, 0, sizeof(int)));
  {
    auto volume =
        gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false}).value();
    work.vol = volume.device();
    work.fd = volume.open("/data", gofs::kOpenReadWrite).value();
    const gofs::Statistics before = gofs::host::checked_statistics(volume);
    counted_kernel<<<1, kCountedThreads>>>(work);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    int wrong = -1;
    CHECK_CUDA(cudaMemcpy(&wrong, work.wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
    EXPECT_EQ(wrong, 0);
    const gofs::Statistics after = gofs::host::checked_statistics(volume);

    const gofs::OutcomeCounts& read = calls_of(after, gofs::CallKind::kRead);
    const gofs::OutcomeCounts& read_before = calls_of(before, gofs::CallKind::kRead);
    const gofs::OutcomeCounts& written = calls_of(after, gofs::CallKind::kWrite);
    const gofs::OutcomeCounts& written_before = calls_of(before, gofs::CallKind::kWrite);
    EXPECT_EQ(read.succeeded - read_before.succeeded, kCountedThreads + kCountedWarps + 1);
    EXPECT_EQ(read.failed - read_before.failed, kCountedThreads + kCountedWarps);
    EXPECT_EQ(written.succeeded - written_before.succeeded,
              kCountedThreads + kCountedThreads / 2 + kCountedWarps);
    EXPECT_EQ(written.failed, written_before.failed);
    constexpr uint64_t kBlocksBytes = uint64_t{kCountedThreads} * kCountedBlock;
    EXPECT_EQ(after.bytes_read - before.bytes_read, 3 * kBlocksBytes);
    EXPECT_EQ(after.bytes_written - before.bytes_written,
              2 * kBlocksBytes + kCountedThreads / 2 * 100);
    EXPECT_GE(after.ssd_bytes_read - before.ssd_bytes_read, 3 * kBlocksBytes);
    volume.close(work.fd).value();
    const auto unmounted = volume.unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
  }
  cudaFree(work.buffers);
  cudaFree(work.wrong);
}

}  // namespace
