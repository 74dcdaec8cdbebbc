// SPDX-License-Identifier: Apache-2.0
//
// What programs in C and other languages give to kernels, a volume as a plain pointer, and the
// calls of gofs_device.h that such kernels make with it.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/gofs.h"
#include "gofs/gofs_device.h"

namespace {

__global__ void ask_blocks_kernel(const void* volume, uint64_t* blocks) {
  *blocks = gofs::statfs(gofs::VolumeHandle{volume}).blocks;
}

TEST(DeviceC, the_pointer_to_a_volume_is_good_in_kernels_until_it_is_unmounted) {
  const gofs_gpu_test::FreshVolume image{64, [](gofs::image::ImageBuilder&) {}};
  gofs_mount_options_t options{};
  options.struct_bytes = sizeof(options);
  options.backend = "cuda";
  gofs_volume* volume = nullptr;
  ASSERT_EQ(gofs_mount(image.spec().c_str(), &options, &volume), 0) << gofs_last_error();
  const void* const pointer = gofs_volume_device_pointer(volume);
  ASSERT_NE(pointer, nullptr) << gofs_last_error();
  EXPECT_EQ(gofs_volume_device_pointer(volume), pointer);

  uint64_t* blocks = nullptr;
  CHECK_CUDA(cudaMallocHost(&blocks, sizeof(*blocks)));
  ask_blocks_kernel<<<1, 1>>>(pointer, blocks);
  CHECK_CUDA(cudaDeviceSynchronize());
  gofs_filesystem_stat_t stat{};
  EXPECT_EQ(gofs_statfs(volume, &stat), 0) << gofs_last_error();
  EXPECT_EQ(*blocks, stat.blocks);
  CHECK_CUDA(cudaFreeHost(blocks));

  EXPECT_EQ(gofs_unmount(volume), 0) << gofs_last_error();
  EXPECT_EQ(gofs_volume_device_pointer(volume), nullptr);
  EXPECT_EQ(gofs_last_errno(), -ENODEV);
  gofs_volume_free(volume);
}

/// What each call said, in the order of the calls; of one thread of the group.
struct Answers {
  long long values[24];
};

// The same calls by each kind of group; `path` is a file that is not there yet, in a directory that
// is empty. `memory` is the group's: 4 KiB.
#define CALL_ALL(kind)                                                                         \
  __device__ void call_all_##kind(const void* volume, const char* directory, const char* path, \
                                  char* memory, const unsigned long long* offsets,             \
                                  const unsigned long long* bytes, Answers& answers) {         \
    long long said[24] = {};                                                                   \
    int at = 0;                                                                                \
    said[at++] = gofs_open_##kind(nullptr, path, 0, 0);                                        \
    said[at++] = gofs_mkdir_##kind(volume, directory, 0755);                                   \
    const int fd = gofs_open_##kind(volume, path, 0102 /* O_CREAT | O_RDWR */, 0644);          \
    said[at++] = fd >= 0;                                                                      \
    said[at++] = gofs_pwrite_##kind(volume, fd, memory, 3000, 0);                              \
    said[at++] = gofs_fsize_##kind(volume, fd);                                                \
    said[at++] = gofs_pread_##kind(volume, fd, memory, 4096, 1000);                            \
    said[at++] = gofs_lseek_##kind(volume, fd, -10, 2);                                        \
    said[at++] = gofs_write_##kind(volume, fd, memory, 20);                                    \
    said[at++] = gofs_read_##kind(volume, fd, memory, 20);                                     \
    said[at++] = gofs_ftruncate_##kind(volume, fd, 100);                                       \
    said[at++] = gofs_fdatasync_##kind(volume, fd);                                            \
    said[at++] = gofs_close_##kind(volume, fd);                                                \
    said[at++] = gofs_close_##kind(volume, fd);                                                \
    said[at++] = gofs_size_##kind(volume, path);                                               \
    const int batch = gofs_batch_open_##kind(volume, directory, nullptr, 4);                   \
    said[at++] = gofs_batch_count_##kind(volume, batch);                                       \
    said[at++] = gofs_batch_size_##kind(volume, batch, 0);                                     \
    said[at++] = gofs_batch_size_##kind(volume, batch, 1);                                     \
    said[at++] = gofs_batch_read_##kind(volume, batch, memory, offsets);                       \
    said[at++] = gofs_batch_write_##kind(volume, batch, memory, offsets, bytes);               \
    said[at++] = gofs_batch_close_##kind(volume, batch);                                       \
    said[at++] = gofs_unlink_##kind(volume, path);                                             \
    said[at++] = gofs_rmdir_##kind(volume, directory);                                         \
    said[at++] = gofs_size_##kind(volume, path);                                               \
    said[at++] = gofs_sync_##kind(volume);                                                     \
    for (int i = 0; i < 24; ++i) answers.values[i] = said[i];                                  \
  }
CALL_ALL(thread)
CALL_ALL(warp)
CALL_ALL(block)
CALL_ALL(grid)
#undef CALL_ALL

enum class Kind { kThread, kWarp, kBlock, kGrid };

__global__ void __launch_bounds__(1024)
    call_kernel(Kind kind, const void* volume, char* memory, const unsigned long long* numbers,
                Answers* answers) {
  const auto call = [&](auto calls) {
    calls(volume, "/new", "/new/file", memory, numbers, numbers + 1, *answers);
  };
  if (kind == Kind::kThread && threadIdx.x == 0) call(call_all_thread);
  if (kind == Kind::kWarp && threadIdx.x < 32) call(call_all_warp);
  if (kind == Kind::kBlock) call(call_all_block);
  if (kind == Kind::kGrid) call(call_all_grid);
}

TEST(DeviceC, every_kind_of_group_makes_the_calls_of_c) {
  const gofs_gpu_test::FreshVolume image{64, [](gofs::image::ImageBuilder&) {}};
  gofs_mount_options_t options{};
  options.struct_bytes = sizeof(options);
  options.backend = "cuda";
  options.writable = 1;
  gofs_volume* volume = nullptr;
  ASSERT_EQ(gofs_mount(image.spec().c_str(), &options, &volume), 0) << gofs_last_error();
  const void* pointer = gofs_volume_device_pointer(volume);
  ASSERT_NE(pointer, nullptr) << gofs_last_error();
  char* memory = nullptr;
  unsigned long long* numbers = nullptr;
  Answers* answers = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 4096));
  CHECK_CUDA(cudaMallocHost(&numbers, 2 * sizeof(*numbers)));
  CHECK_CUDA(cudaMallocHost(&answers, sizeof(*answers)));
  numbers[0] = 0;
  numbers[1] = 50;
  for (Kind kind : {Kind::kThread, Kind::kWarp, Kind::kBlock, Kind::kGrid}) {
    SCOPED_TRACE(static_cast<int>(kind));
    *answers = {};
    const unsigned blocks = kind == Kind::kGrid ? 2 : 1;
    void* arguments[] = {&kind, &pointer, &memory, &numbers, &answers};
    CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&call_kernel), dim3(blocks),
                                           dim3(1024), arguments, 0, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    const long long expected[] = {-EINVAL, 0,   1, 3000, 3000,    2000, 2990, 20, 0, 0, 0,       0,
                                  -EBADF,  100, 1, 100,  -EINVAL, 100,  50,   0,  0, 0, -ENOENT, 0};
    for (int i = 0; i < 24; ++i) EXPECT_EQ(answers->values[i], expected[i]) << "call " << i;
  }
  CHECK_CUDA(cudaFree(memory));
  CHECK_CUDA(cudaFreeHost(numbers));
  CHECK_CUDA(cudaFreeHost(answers));
  EXPECT_EQ(gofs_unmount(volume), 0) << gofs_last_error();
  gofs_volume_free(volume);
}

}  // namespace
