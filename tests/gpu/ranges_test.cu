// SPDX-License-Identifier: Apache-2.0
//
// Volume::read_ranges() and write_ranges() of memory of a GPU, in the order of streams.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/volume.hpp"

namespace {

using gofs::IoRange;
using gofs::RangeCall;
using gofs::Volume;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kFileBytes = 24 * kMiB + 777;

/// Fills memory, after a while.
__global__ void fill_slowly(uint8_t* memory, uint64_t bytes, uint8_t value, long long cycles) {
  const long long began = clock64();
  while (clock64() - began < cycles) {
  }
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
       i += uint64_t{gridDim.x} * blockDim.x) {
    memory[i] = value;
  }
}

class GpuRangesTest : public ::testing::Test {
 protected:
  GpuRangesTest() {
    std::mt19937_64 random(1);
    content_.resize(kFileBytes);
    for (char& byte : content_) byte = static_cast<char>(random());
    volume_.emplace(Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false}).value());
    fd_ = volume_->open("/f", O_RDWR | O_CREAT).value();
    EXPECT_EQ(volume_->pwrite(fd_, content_.data(), kFileBytes, 0).value(), kFileBytes);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory_, kFileBytes), cudaSuccess);
  }
  ~GpuRangesTest() override {
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }
  std::string copied(uint64_t bytes) {
    std::string found(bytes, '\0');
    EXPECT_EQ(cudaMemcpyAsync(found.data(), memory_, bytes, cudaMemcpyDefault, stream_),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return found;
  }

  const gofs_gpu_test::FreshVolume image_{256, [](auto&) {}};
  std::optional<Volume> volume_;
  std::string content_;
  int fd_ = -1;
  cudaStream_t stream_ = nullptr;
  uint8_t* memory_ = nullptr;
};

TEST_F(GpuRangesTest, reads_into_memory_of_the_gpu) {
  const RangeCall call = volume_->read_ranges({{fd_, memory_, kFileBytes, 0}}, stream_).value();
  EXPECT_EQ(call.wait().value(), std::vector<int64_t>{kFileBytes});
  EXPECT_TRUE(copied(kFileBytes) == content_);
}

TEST_F(GpuRangesTest, comes_after_what_the_stream_has_had_and_before_what_it_gets) {
  const int turns = gofs_gpu_test::under_sanitizer() ? 3 : 1000;
  constexpr uint64_t kBytes = 300'000;
  for (int turn = 0; turn < turns; ++turn) {
    const uint64_t at = static_cast<uint64_t>(turn) * 20'011;
    fill_slowly<<<8, 256, 0, stream_>>>(memory_, kBytes, 0xaa, 50'000);
    const RangeCall call = volume_->read_ranges({{fd_, memory_, kBytes, at}}, stream_).value();
    const std::string found = copied(kBytes);
    EXPECT_TRUE(call.is_done());
    ASSERT_TRUE(found == content_.substr(at, kBytes)) << turn;
    ASSERT_EQ(call.wait().value(), std::vector<int64_t>{kBytes});
  }
}

TEST_F(GpuRangesTest, writes_what_memory_holds_when_the_stream_comes_there) {
  constexpr uint64_t kBytes = 5 * kMiB + 3;
  fill_slowly<<<8, 256, 0, stream_>>>(memory_, kBytes, 'b', 2'000'000);
  const RangeCall call = volume_->write_ranges({{fd_, memory_, kBytes, 100}}, stream_).value();
  fill_slowly<<<8, 256, 0, stream_>>>(memory_, kBytes, 'c', 0);
  EXPECT_EQ(call.wait().value(), std::vector<int64_t>{kBytes});
  content_.replace(100, kBytes, kBytes, 'b');
  std::string found(kFileBytes, '\0');
  EXPECT_EQ(volume_->pread(fd_, found.data(), kFileBytes, 0).value(), kFileBytes);
  EXPECT_TRUE(found == content_);
}

TEST_F(GpuRangesTest, takes_all_kinds_of_memory_in_one_call) {
  uint8_t* pinned = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, 100'000));
  std::vector<uint8_t> pageable(100'000);
  const auto results = volume_
                           ->read_ranges({{fd_, memory_, 100'000, 0},
                                          {fd_, pinned, 100'000, 1000},
                                          {fd_, pageable.data(), 100'000, 2000},
                                          {fd_, memory_ + 200'000, 100'000, kFileBytes - 10},
                                          {fd_ + 1000, memory_ + 400'000, 1, 0}},
                                         stream_)
                           .value()
                           .wait()
                           .value();
  EXPECT_EQ(results, (std::vector<int64_t>{100'000, 100'000, 100'000, 10, -EBADF}));
  EXPECT_TRUE(copied(100'000) == content_.substr(0, 100'000));
  EXPECT_TRUE(std::equal(pinned, pinned + 100'000, content_.begin() + 1000,
                         [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
  EXPECT_TRUE(std::equal(pageable.begin(), pageable.end(), content_.begin() + 2000,
                         [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
  CHECK_CUDA(cudaFreeHost(pinned));
}

TEST_F(GpuRangesTest, small_ranges_of_many_sizes_are_right) {
  std::mt19937_64 random(3);
  std::vector<IoRange> ranges;
  std::vector<uint64_t> places;
  uint64_t place = 0;
  while (place < 16 * kMiB) {
    const uint64_t bytes = random() % (random() % 4 == 0 ? 100'000 : 5000);
    ranges.push_back({fd_, memory_ + place, bytes, random() % kFileBytes});
    places.push_back(place);
    place += bytes + random() % 7;
  }
  CHECK_CUDA(cudaMemsetAsync(memory_, 0, kFileBytes, stream_));
  const auto results = volume_->read_ranges(ranges, stream_).value().wait().value();
  const std::string found = copied(kFileBytes);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t there = std::min(ranges[i].bytes, kFileBytes - ranges[i].offset);
    ASSERT_EQ(results[i], static_cast<int64_t>(there)) << i;
    ASSERT_EQ(found.compare(places[i], there, content_, ranges[i].offset, there), 0) << i;
  }
}

TEST_F(GpuRangesTest, refuses_memory_that_ends_before_its_range) {
  EXPECT_EQ(volume_->read_ranges({{fd_, memory_, uint64_t{1} << 46, 0}}).error().code, EFAULT);
}

TEST_F(GpuRangesTest, refuses_a_stream_that_is_captured) {
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  const auto refused = volume_->read_ranges({{fd_, memory_, 100, 0}}, stream_);
  EXPECT_EQ(refused.error().code, EOPNOTSUPP);
  CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
  CHECK_CUDA(cudaGraphDestroy(graph));
  EXPECT_TRUE(volume_->read_ranges({{fd_, memory_, 100, 0}}, stream_).value().wait());
}

TEST_F(GpuRangesTest, unmounting_waits_for_what_was_begun) {
  fill_slowly<<<1, 1, 0, stream_>>>(memory_, 1, 1, 100'000'000);
  const RangeCall call = volume_->read_ranges({{fd_, memory_, kFileBytes, 0}}, stream_).value();
  EXPECT_FALSE(call.is_done());
  EXPECT_TRUE(volume_->unmount());
  EXPECT_TRUE(call.is_done());
  EXPECT_EQ(call.wait().value(), std::vector<int64_t>{kFileBytes});
  EXPECT_TRUE(copied(kFileBytes) == content_);
}

TEST_F(GpuRangesTest, results_are_right_where_many_are_under_way) {
  std::vector<RangeCall> calls;
  std::vector<cudaStream_t> streams(4);
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreate(&stream));
  for (uint32_t i = 0; i < 64; ++i) {
    calls.push_back(
        volume_->read_ranges({{fd_, memory_ + i * 300'000, 300'000 - i, i * 1000}}, streams[i % 4])
            .value());
  }
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(calls[i].wait().value(), std::vector<int64_t>{300'000 - i});
  }
  const std::string found = copied(64 * 300'000);
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_EQ(found.compare(i * 300'000, 300'000 - i, content_, i * 1000, 300'000 - i), 0) << i;
  }
  for (cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
