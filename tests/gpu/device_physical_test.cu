// SPDX-License-Identifier: Apache-2.0
//
// Kernels on an NVMe controller that is not ours: QEMU's, over qtest, with a thread of the host
// that relays doorbells (tests/physical/). Threads write blocks, read them back through buffers in
// the GPU's memory and compare them there; afterwards fsck.f2fs judges the image.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "../physical/qemu_provider.hpp"
#include "../qemu/machine_for_test.h"
#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "gpu/device_source.h"
#include "host/image/fsck_for_test.h"
#include "host/volume_access.h"

namespace {

constexpr uint32_t kPhysicalBlocks = 8;
constexpr uint32_t kPhysicalThreads = 256;
constexpr uint32_t kPhysicalWarps = kPhysicalBlocks * kPhysicalThreads / 32;
constexpr uint32_t kPhysicalBlockBytes = 4096;
constexpr uint32_t kPhysicalTurns = 8;  // of a round, a block a thread each
constexpr uint32_t kPhysicalRounds = 6;

struct PhysicalVerdict {
  uint32_t errors;  // calls that failed
  int first_error;
  uint32_t wrong;  // words that were not what was written
};

/// What word `index` of a block holds.
__device__ uint64_t physical_word(uint32_t warp, uint64_t block, uint32_t round, uint32_t index) {
  return (uint64_t{warp} << 48 | block << 24 | uint64_t{round} << 16 | index) *
         0x9e3779b97f4a7c15ull;
}

__device__ void judge_physical(PhysicalVerdict* verdict, int64_t result, int64_t wanted) {
  if (result == wanted) return;
  atomicAdd(&verdict->errors, 1u);
  atomicCAS(&verdict->first_error, 0, static_cast<int>(result));
}

/// Each warp has a file; its threads write and read a block each, at the same time.
__global__ void physical_kernel(gofs::VolumeHandle vol, uint64_t* buffers, char* paths,
                                PhysicalVerdict* verdict) {
  constexpr uint32_t kWords = kPhysicalBlockBytes / 8;
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t group = thread / 32;
  const uint32_t lane = thread % 32;
  uint64_t* const words = buffers + uint64_t{thread} * kWords;
  char* const path = paths + 8 * group;
  if (lane == 0) {
    path[0] = '/';
    path[1] = static_cast<char>('A' + group / 16);
    path[2] = static_cast<char>('A' + group % 16);
    path[3] = '\0';
  }
  __syncwarp();
  const int fd =
      gofs::open(gofs::this_warp(), vol, path, gofs::kOpenCreate | gofs::kOpenReadWrite, 0644);
  if (lane == 0) judge_physical(verdict, fd >= 0 ? 0 : fd, 0);
  if (fd < 0) return;
  for (uint32_t round = 0; round < kPhysicalRounds; ++round) {
    for (uint32_t turn = 0; turn < kPhysicalTurns; ++turn) {
      const uint64_t block = turn * 32 + lane;
      for (uint32_t i = 0; i < kWords; ++i) words[i] = physical_word(group, block, round, i);
      __syncwarp();
      judge_physical(verdict,
                     gofs::pwrite(gofs::this_thread(), vol, fd, words, kPhysicalBlockBytes,
                                  block * kPhysicalBlockBytes),
                     kPhysicalBlockBytes);
    }
    __syncwarp();
    const int synced = gofs::fsync(gofs::this_warp(), vol, fd);
    if (lane == 0) judge_physical(verdict, synced, 0);
    for (uint32_t turn = 0; turn < kPhysicalTurns; ++turn) {
      // Another lane's block than the one that it wrote.
      const uint64_t block = (kPhysicalTurns - 1 - turn) * 32 + (lane * 7 + round) % 32;
      for (uint32_t i = 0; i < kWords; ++i) words[i] = 0;
      judge_physical(verdict,
                     gofs::pread(gofs::this_thread(), vol, fd, words, kPhysicalBlockBytes,
                                 block * kPhysicalBlockBytes),
                     kPhysicalBlockBytes);
      for (uint32_t i = 0; i < kWords; ++i) {
        if (words[i] != physical_word(group, block, round, i)) atomicAdd(&verdict->wrong, 1u);
      }
    }
    __syncwarp();
  }
  const int closed = gofs::close(gofs::this_warp(), vol, fd);
  if (lane == 0) judge_physical(verdict, closed, 0);
}

TEST(DevicePhysical, kernels_run_the_file_system_on_a_controller_that_is_not_ours) {
  GOFS_NEED_QEMU();
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "takes too long under a sanitizer";
  const gofs_gpu_test::FreshVolume image{512, [](gofs::image::ImageBuilder&) {}};
  gofs::ssd::QemuOptions machine = gofs::ssd::qemu_for_test();
  machine.ram_bytes = uint64_t{256} << 20;
  machine.disks = {gofs::ssd::QemuDisk{}};
  machine.disks[0].image = image.path();
  machine.disks[0].lba_bytes = 4096;

  uint64_t* buffers = nullptr;
  char* paths = nullptr;
  PhysicalVerdict* verdict = nullptr;
  CHECK_CUDA(cudaMalloc(&buffers, uint64_t{kPhysicalWarps} * 32 * kPhysicalBlockBytes));
  CHECK_CUDA(cudaMalloc(&paths, 8 * kPhysicalWarps));
  CHECK_CUDA(cudaMalloc(&verdict, sizeof(PhysicalVerdict)));
  CHECK_CUDA(cudaMemset(verdict, 0, sizeof(PhysicalVerdict)));
  {
    gofs::tests::QemuVolumes qemu(machine);
    auto volume = gofs::Volume::mount("qemu:0?depth=64", {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    const auto begin = std::chrono::steady_clock::now();
    physical_kernel<<<kPhysicalBlocks, kPhysicalThreads>>>(volume->device(), buffers, paths,
                                                           verdict);
    CHECK_CUDA(cudaDeviceSynchronize());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const uint64_t commands = gofs::host::state_of(*volume).commands_issued();
    EXPECT_GE(commands, 100'000u);
    std::printf("%llu commands in %.2f s, %s\n", static_cast<unsigned long long>(commands),
                seconds.count(), volume->info().ssd.c_str());
    const auto unmounted = volume->unmount();
    EXPECT_TRUE(unmounted) << unmounted.error().message;
  }
  PhysicalVerdict found{};
  CHECK_CUDA(cudaMemcpy(&found, verdict, sizeof(found), cudaMemcpyDeviceToHost));
  EXPECT_EQ(found.errors, 0u) << found.first_error;
  EXPECT_EQ(found.wrong, 0u);
  cudaFree(buffers);
  cudaFree(paths);
  cudaFree(verdict);
  if (gofs::image::tool_exists("fsck.f2fs")) {
    EXPECT_TRUE(gofs::image::fsck_is_clean(image.path()));
  }
  // And as our own controller has it.
  const auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"});
  ASSERT_TRUE(volume) << volume.error().message;
}

__global__ void count_up(uint32_t* words, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) words[i] += i;
}

// Where the driver or gdrdrv maps the GPU's memory, both sides see the same of it; elsewhere the
// message names what is missing.
TEST(DevicePhysical, memory_of_the_gpu_is_seen_from_outside_or_it_is_said_why_not) {
  constexpr uint32_t kWords = 65536;
  try {
    const auto source = gofs::gpu::make_device_source(kWords * sizeof(uint32_t));
    auto* const seen = reinterpret_cast<volatile uint32_t*>(source->base());
    for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(seen[i], 0u);
    for (uint32_t i = 0; i < kWords; ++i) seen[i] = 3 * i;
    __sync_synchronize();
    count_up<<<1, 256>>>(reinterpret_cast<uint32_t*>(source->warp_base()), kWords);
    CHECK_CUDA(cudaDeviceSynchronize());
    for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(seen[i], 4 * i);
    std::printf("%s\n", source->description().c_str());
  } catch (const std::system_error& problem) {
    std::printf("%s\n", problem.what());
    EXPECT_EQ(problem.code().value(), EOPNOTSUPP);
    EXPECT_NE(std::string(problem.what()).find("dma-buf"), std::string::npos);
    EXPECT_NE(std::string(problem.what()).find("gdr"), std::string::npos);
  }
}

TEST(DevicePhysical, views_of_the_gpus_memory_are_of_whole_pages) {
  void* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 1 << 20));
  EXPECT_THROW((void)gofs::gpu::view_device_memory(static_cast<uint8_t*>(memory) + 512, 65536),
               std::system_error);
  EXPECT_THROW((void)gofs::gpu::view_device_memory(memory, 4096), std::system_error);
  cudaFree(memory);
}

}  // namespace
