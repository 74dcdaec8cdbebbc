// SPDX-License-Identifier: Apache-2.0
//
// GoFS beside what else a program does with CUDA: its errors are not the program's, nor the
// program's ours; and a graph that another thread captures forbids nothing.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "fresh_volume.h"
#include "gofs/volume.hpp"

namespace {

TEST(DeviceNeighbour, an_error_of_ours_is_not_the_programs_last_one) {
  (void)cudaGetLastError();
  const auto refused = gofs::Volume::mount("ram:100T?media=hbm", {.backend = "cuda"});
  EXPECT_FALSE(refused);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  const gofs_gpu_test::FreshVolume image{64, [](gofs::image::ImageBuilder&) {}};
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false}).value();
  const int fd = volume.open("/file", O_CREAT | O_RDWR, 0644).value();
  const std::string bytes(100'000, 'b');  // memory that CUDA does not know
  EXPECT_TRUE(volume.pwrite(fd, bytes.data(), bytes.size(), 0));
  EXPECT_TRUE(volume.sync());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_TRUE(volume.unmount());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(DeviceNeighbour, an_error_that_the_program_has_not_asked_for_is_left) {
  const gofs_gpu_test::FreshVolume image{64, [](gofs::image::ImageBuilder&) {}};
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false}).value();
  void* much = nullptr;
  ASSERT_NE(cudaMalloc(&much, size_t{1} << 50), cudaSuccess);
  EXPECT_TRUE(volume.mkdir("/new"));
  EXPECT_TRUE(volume.unmount());
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST(DeviceNeighbour, calls_work_while_the_program_captures_a_graph) {
  const gofs_gpu_test::FreshVolume image{64, [](gofs::image::ImageBuilder&) {}};
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false}).value();
  char* memory = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 4096));
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::atomic<bool> ending{false};
  std::atomic<int> graphs{0};
  std::thread capturing([&] {
    // In the strictest mode, in which other threads may not do much.
    while (!ending.load()) {
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
      EXPECT_EQ(cudaMemsetAsync(memory, 1, 4096, stream), cudaSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      if (graph != nullptr) cudaGraphDestroy(graph);
      ++graphs;
    }
  });
  for (int i = 0; i < 30 || graphs < 5; ++i) {
    const std::string path = "/file" + std::to_string(i % 100);
    const auto fd = volume.open(path, O_CREAT | O_RDWR, 0644);
    ASSERT_TRUE(fd) << fd.error().message;
    const std::string bytes(50'000, 'b');
    const auto written = volume.pwrite(*fd, bytes.data(), bytes.size(), 0);
    EXPECT_TRUE(written) << written.error().message;
    const auto synced = volume.fsync(*fd);
    EXPECT_TRUE(synced) << synced.error().message;
    EXPECT_TRUE(volume.close(*fd));
    const auto made = volume.batch_create("/", {{"b" + std::to_string(i), bytes.data(), 100}});
    EXPECT_TRUE(made) << made.error().message;
    const auto second = gofs::Volume::mount("ram:64M?media=hbm", {.backend = "cuda"});
    EXPECT_FALSE(second) << "there is no volume";
    EXPECT_EQ(second.error().message.find("apture"), std::string::npos) << second.error().message;
  }
  ending.store(true);
  capturing.join();
  EXPECT_TRUE(volume.unmount());
  cudaStreamDestroy(stream);
  cudaFree(memory);
}

}  // namespace
