// SPDX-License-Identifier: Apache-2.0
//
// Names that come, go and change from kernels, while other groups look them up. What is left is
// looked at with the CPU backend once the volume was unmounted.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint32_t kPathBytes = 24;

/// Of one group.
struct Scratch {
  char own[kPathBytes];
  char moved[kPathBytes];
  uint32_t word;
  gofs::Stat stat;
};

struct Outcome {
  int worst;         // the first error that should not have been
  uint32_t looked;   // lookups of the name that is replaced all the time
  uint32_t missing;  // of them, those that did not find it
};

__device__ void name_own(char* path, char kind, uint32_t group) {
  const char text[] = {'/', 'd', '/', kind, '\0'};
  for (int i = 0; i < 4; ++i) path[i] = text[i];
  path[4] = static_cast<char>('0' + group / 100);
  path[5] = static_cast<char>('0' + group / 10 % 10);
  path[6] = static_cast<char>('0' + group % 10);
  path[7] = '\0';
}

/// Makes a file, moves it over "/d/shared", makes another, moves and removes it; a directory comes
/// and goes; a file without names is written and read.
template <typename Group>
__device__ int churn(const Group& group, gofs::VolumeHandle vol, Scratch& scratch) {
  const uint32_t flags = gofs::kOpenCreate | gofs::kOpenReadWrite;
  int fd = gofs::open(group, vol, scratch.own, flags, 0644);
  if (fd < 0) return fd;
  if (gofs::pwrite(group, vol, fd, "word", 4, 0) != 4) return -EIO;
  int error = gofs::close(group, vol, fd);
  if (error == 0) error = gofs::rename(group, vol, scratch.own, "/d/shared");
  if (error < 0) return error;
  fd = gofs::open(group, vol, scratch.own, flags, 0644);
  if (fd < 0) return fd;
  error = gofs::rename(group, vol, scratch.own, scratch.moved, gofs::kRenameNoReplace);
  if (error == 0) error = gofs::unlink(group, vol, scratch.moved);
  if (error < 0) return error;
  if (gofs::pwrite(group, vol, fd, "text", 4, 4096) != 4) return -EIO;
  if (gofs::pread(group, vol, fd, &scratch.word, 4, 4096) != 4) return -EIO;
  error = gofs::close(group, vol, fd);
  if (error == 0) error = gofs::mkdir(group, vol, scratch.own, 0755);
  if (error == 0) error = gofs::rmdir(group, vol, scratch.own);
  if (error == 0 && scratch.word != 0x74786574u) error = -EILSEQ;
  if (error == 0) error = gofs::unlink(group, vol, scratch.own) == -ENOENT ? 0 : -EEXIST;
  return error;
}

template <typename Group>
__device__ void run_group(const Group& group, gofs::VolumeHandle vol, uint32_t index, bool leader,
                          Scratch& scratch, Outcome& outcome, uint32_t turns) {
  int worst = 0;
  uint32_t missing = 0;
  for (uint32_t turn = 0; turn < turns; ++turn) {
    if (index % 4 == 3) {
      if (gofs::stat(group, vol, "/d/shared", &scratch.stat) != 0) ++missing;
      continue;
    }
    const int error = churn(group, vol, scratch);
    if (worst == 0) worst = error;
  }
  if (!leader) return;
  if (worst != 0) atomicCAS(&outcome.worst, 0, worst);
  if (index % 4 == 3) atomicAdd(&outcome.looked, turns);
  atomicAdd(&outcome.missing, missing);
}

__global__ void churn_kernel(gofs::VolumeHandle vol, Scratch* scratch, Outcome* outcome,
                             uint32_t turns, bool by_threads) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t index = thread / (by_threads ? 1 : 32);
  const bool leader = by_threads || threadIdx.x % 32 == 0;
  if (leader) {
    name_own(scratch[index].own, 'o', index);
    name_own(scratch[index].moved, 'm', index);
  }
  __syncwarp();
  if (by_threads) {
    run_group(gofs::this_thread(), vol, index, leader, scratch[index], *outcome, turns);
  } else {
    run_group(gofs::this_warp(), vol, index, leader, scratch[index], *outcome, turns);
  }
}

class DeviceNames : public testing::TestWithParam<bool> {
 protected:
  const gofs_gpu_test::FreshVolume image_{128, [](gofs::image::ImageBuilder&) {}};
};

TEST_P(DeviceNames, what_is_renamed_and_removed_beside_lookups_ends_as_it_should) {
  // All of them want one directory, and who waits slows down who is at work, so under racecheck a
  // turn of 256 threads takes about as long as a lock is waited for.
  const bool few = gofs_gpu_test::under_sanitizer() && GetParam();
  const uint32_t blocks = few ? 2 : 4;
  const uint32_t threads = few ? 32 : 64;
  const uint32_t turns = gofs_gpu_test::under_sanitizer() ? 1 : 12;
  Scratch* scratch = nullptr;
  Outcome* outcome = nullptr;
  CHECK_CUDA(cudaMalloc(&scratch, blocks * threads * sizeof(Scratch)));
  CHECK_CUDA(cudaMalloc(&outcome, sizeof(Outcome)));
  CHECK_CUDA(cudaMemset(outcome, 0, sizeof(Outcome)));
  uint64_t used_before = 0;
  {
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    ASSERT_TRUE(volume->mkdir("/d", 0755));
    const auto fd = volume->open("/d/shared", gofs::kOpenCreate | gofs::kOpenWriteOnly, 0644);
    ASSERT_TRUE(fd) << fd.error().message;
    ASSERT_TRUE(volume->pwrite(*fd, "word", 4, 0));
    ASSERT_TRUE(volume->close(*fd));
    used_before = volume->statfs().value().files_used;
    churn_kernel<<<blocks, threads>>>(volume->device(), scratch, outcome, turns, GetParam());
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    Outcome got{};
    CHECK_CUDA(cudaMemcpy(&got, outcome, sizeof(got), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got.worst, 0);
    EXPECT_EQ(got.missing, 0u);
    EXPECT_GT(got.looked, 0u);
    EXPECT_EQ(volume->statfs().value().files_used, used_before);
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(scratch);
  cudaFree(outcome);

  auto volume = gofs::Volume::mount(image_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(volume.info().clean);
  EXPECT_EQ(volume.statfs().value().files_used, used_before);
  EXPECT_EQ(volume.stat("/d/shared").value().size_bytes, 4u);
  EXPECT_EQ(volume.stat("/d").value().links, 2u);
  EXPECT_TRUE(volume.warnings().empty());
}

/// Each warp makes names in "/d", of four the second a directory, and removes each third one.
__global__ void crowd_kernel(gofs::VolumeHandle vol, Scratch* scratch, Outcome* outcome,
                             uint32_t names) {
  const auto warp = gofs::this_warp();
  const uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  char* const path = scratch[index].own;
  int worst = 0;
  for (uint32_t number = 0; number < names; ++number) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      name_own(path, static_cast<char>('a' + number), index % 1000);
      path[7] = static_cast<char>('0' + index / 1000);
      path[8] = '\0';
    }
    __syncwarp();
    const bool is_directory = number % 4 == 1;
    const int made =
        is_directory ? gofs::mkdir(warp, vol, path, 0755)
                     : gofs::open(warp, vol, path, gofs::kOpenCreate | gofs::kOpenExclusive, 0644);
    int error = made < 0 || is_directory ? made : gofs::close(warp, vol, made);
    if (error == 0 && number % 3 == 2) {
      error = is_directory ? gofs::rmdir(warp, vol, path) : gofs::unlink(warp, vol, path);
    }
    if (worst == 0) worst = error;
  }
  if (threadIdx.x % 32 == 0 && worst != 0) atomicCAS(&outcome->worst, 0, worst);
}

INSTANTIATE_TEST_SUITE_P(ByThreads, DeviceNames, testing::Bool());

class CrowdedDirectory : public testing::Test {
 protected:
  const gofs_gpu_test::FreshVolume image_{128, [](gofs::image::ImageBuilder&) {}};
};

// So many that names begin at several hash levels.
TEST_F(CrowdedDirectory, all_that_a_crowd_makes_in_one_directory_is_there) {
  const uint32_t warps = gofs_gpu_test::under_sanitizer() ? 128 : 1024;
  const uint32_t names = gofs_gpu_test::under_sanitizer() ? 2 : 6;
  constexpr uint32_t kWarpsOfBlock = 8;
  Scratch* scratch = nullptr;
  Outcome* outcome = nullptr;
  CHECK_CUDA(cudaMalloc(&scratch, warps * sizeof(Scratch)));
  CHECK_CUDA(cudaMalloc(&outcome, sizeof(Outcome)));
  CHECK_CUDA(cudaMemset(outcome, 0, sizeof(Outcome)));
  {
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    ASSERT_TRUE(volume->mkdir("/d", 0755));
    crowd_kernel<<<warps / kWarpsOfBlock, kWarpsOfBlock * 32>>>(volume->device(), scratch, outcome,
                                                                names);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    Outcome got{};
    CHECK_CUDA(cudaMemcpy(&got, outcome, sizeof(got), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got.worst, 0);
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  cudaFree(scratch);
  cudaFree(outcome);

  auto volume = gofs::Volume::mount(image_.path(), {.backend = "cpu"}).value();
  const int fd = volume.opendir("/d").value();
  uint64_t found = 0;
  for (;;) {
    const auto entries = volume.readdir(fd).value();
    if (entries.empty()) break;
    found += entries.size();
  }
  EXPECT_EQ(found, uint64_t{warps} * (names - names / 3));
  EXPECT_EQ(volume.stat("/d").value().links, 2 + warps);  // the sixth is removed
  EXPECT_TRUE(volume.warnings().empty());
}

}  // namespace
