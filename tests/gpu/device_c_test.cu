// SPDX-License-Identifier: Apache-2.0
//
// What programs in C and other languages give to kernels: a volume as a plain pointer.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/gofs.h"

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
  ASSERT_EQ(gofs_mount(image.path().c_str(), &options, &volume), 0) << gofs_last_error();
  const void* const pointer = gofs_volume_device_pointer(volume);
  ASSERT_NE(pointer, nullptr) << gofs_last_error();
  EXPECT_EQ(gofs_volume_device_pointer(volume), pointer);

  uint64_t* blocks = nullptr;
  CHECK_CUDA(cudaMallocManaged(&blocks, sizeof(*blocks)));
  ask_blocks_kernel<<<1, 1>>>(pointer, blocks);
  CHECK_CUDA(cudaDeviceSynchronize());
  gofs_filesystem_stat_t stat{};
  EXPECT_EQ(gofs_statfs(volume, &stat), 0) << gofs_last_error();
  EXPECT_EQ(*blocks, stat.blocks);
  CHECK_CUDA(cudaFree(blocks));

  EXPECT_EQ(gofs_unmount(volume), 0) << gofs_last_error();
  EXPECT_EQ(gofs_volume_device_pointer(volume), nullptr);
  EXPECT_EQ(gofs_last_errno(), -ENODEV);
  gofs_volume_free(volume);
}

}  // namespace
