// SPDX-License-Identifier: Apache-2.0
//
// The host fills the GPU's memory: kernels in any stream see all of it, and none is waited for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/volume.hpp"
#include "gpu/cuda_backend.h"
#include "host/volume_access.h"
#include "simt/clock.h"

namespace {

__global__ void set_words(uint32_t* words, uint64_t count, uint64_t stride) {
  for (uint64_t i = 0; i < count; i += stride) words[i] = 1;
  words[count - 1] = 1;
}

__global__ void add_words(const uint32_t* words, uint32_t count, uint32_t* sum) {
  uint32_t added = 0;
  for (uint32_t i = 0; i < count; ++i) added += words[i];
  *sum = added;
}

/// Says whether the host has set `flag`, as soon as it has, or in `timeout_ns`.
__global__ void await_flag(const volatile uint32_t* flag, uint64_t timeout_ns, uint32_t* seen) {
  const auto deadline = gofs::simt::Deadline::after_ns(timeout_ns);
  while (*flag == 0 && !deadline.passed()) {
  }
  *seen = *flag;
}

class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    backend_ = gofs::gpu::make_cuda_backend(error);
    ASSERT_NE(backend_, nullptr) << error;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) CHECK_CUDA(cudaStreamDestroy(stream_));
  }
  gofs::simt::MemorySpace& memory() { return backend_->memory(); }

  std::unique_ptr<gofs::kernels::Backend> backend_;
  cudaStream_t stream_ = nullptr;
};

TEST_F(DeviceMemoryTest, is_zeroed_before_a_kernel_gets_it) {
  const uint64_t bytes = uint64_t{gofs_gpu_test::under_sanitizer() ? 64u : 1024u} << 20;
  const uint64_t count = bytes / sizeof(uint32_t);
  const uint64_t stride = count / 64;
  for (int round = 0; round < 3; ++round) {
    auto* const words = memory().allocate_array<uint32_t>(count);
    set_words<<<1, 1, 0, stream_>>>(words, count, stride);
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    CHECK_CUDA(cudaDeviceSynchronize());
    for (uint64_t i = 0; i < count; i += stride) {
      ASSERT_EQ(memory().read_object(words + i), 1u) << "byte " << i * sizeof(uint32_t);
    }
    EXPECT_EQ(memory().read_object(words + count - 1), 1u);
    EXPECT_EQ(memory().read_object(words + count / 2 + 1), 0u);
    memory().release(words);
  }
}

TEST_F(DeviceMemoryTest, is_written_before_a_kernel_reads_it) {
  constexpr uint32_t kCount = 10'000;  // little enough for CUDA to put it off
  auto* const words = memory().allocate_array<uint32_t>(kCount);
  auto* const sum = memory().allocate_array<uint32_t>(1);
  for (uint32_t value = 1; value <= 20; ++value) {
    const std::vector<uint32_t> source(kCount, value);
    memory().write(words, source.data(), kCount * sizeof(uint32_t));
    add_words<<<1, 1, 0, stream_>>>(words, kCount, sum);
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    EXPECT_EQ(memory().read_object(sum), kCount * value);
  }
  memory().release(sum);
  memory().release(words);
}

TEST_F(DeviceMemoryTest, is_filled_while_a_kernel_runs_in_the_default_stream) {
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "it may run one thing after the other";
  constexpr uint64_t kTimeoutNs = 5'000'000'000;
  auto* const flag = backend_->shared_memory().allocate_array<uint32_t>(1);
  auto* const seen = backend_->shared_memory().allocate_array<uint32_t>(1);
  auto* const words = memory().allocate_array<uint32_t>(1000);
  await_flag<<<1, 1>>>(flag, kTimeoutNs, seen);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<uint32_t> source(1000, 7);
  memory().write(words, source.data(), source.size() * sizeof(uint32_t));
  EXPECT_EQ(memory().read_object(words + 999), 7u);
  *static_cast<volatile uint32_t*>(flag) = 1;
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(*seen, 1u) << "the host has waited for the kernel";
  memory().release(words);
  backend_->shared_memory().release(seen);
  backend_->shared_memory().release(flag);
}

// Both memories: the GPU's has the tables, the host's what is stored on the SSD and the calls.
TEST_F(DeviceMemoryTest, of_a_volume_is_told_by_part) {
  const gofs_gpu_test::FreshVolume image(64, [](gofs::image::ImageBuilder&) {});
  size_t free_before = 0;
  size_t free_now = 0;
  size_t all = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_before, &all));
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda"});
  ASSERT_TRUE(volume) << volume.error().message;
  CHECK_CUDA(cudaMemGetInfo(&free_now, &all));
  const auto report = volume->memory();
  ASSERT_TRUE(report) << report.error().message;
  uint64_t on_gpu = 0;
  uint64_t on_host = 0;
  for (const gofs::MemoryPartReport& part : report->parts) {
    on_gpu += part.device_bytes;
    on_host += part.host_bytes;
    EXPECT_LE(part.in_use.value_or(0), part.bytes()) << part.name;
    if (part.name == "page_cache") EXPECT_GE(part.device_bytes, uint64_t{64} << 20);
    if (part.name == "page_cache") EXPECT_GT(*part.in_use, 0u);
    if (part.name == "ssd_media") EXPECT_GE(part.host_bytes, uint64_t{64} << 20);
    if (part.name == "calls") EXPECT_GT(part.host_bytes, 0u);
  }
  gofs::kernels::Backend& backend = gofs::host::state_of(*volume).backend();
  EXPECT_EQ(on_gpu, backend.memory().bytes_taken());
  EXPECT_EQ(on_host, backend.shared_memory().bytes_taken());
  EXPECT_EQ(on_gpu + on_host, report->filesystem_bytes + report->ssd_bytes);
  // Small allocations come out of what the driver has already.
  constexpr uint64_t kSlackBytes = uint64_t{8} << 20;
  EXPECT_GE(free_before - free_now + kSlackBytes, on_gpu);
}

}  // namespace
