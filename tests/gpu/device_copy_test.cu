// SPDX-License-Identifier: Apache-2.0
//
// simt::copy_ranges() on a GPU: whole and partial warps of blocks of any size, ranges of any size
// and alignment, from the host's memory and the GPU's own.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "fresh_volume.h"
#include "simt/copy_ranges.h"

namespace {

using gofs::simt::CopyRange;

constexpr uint32_t kRoomBytes = 9216;  // of each range, so that some bytes around it are left
constexpr uint32_t kBegin = 256;       // of a range in its room
constexpr uint8_t kGuard = 0xa5;

/// What each warp does.
struct WarpWork {
  uint32_t present;  // lanes of it that are there,
  uint32_t lanes;    // and ranks of these whose ranges are copied
};

__global__ void __launch_bounds__(1024)
    copy_kernel(const CopyRange* ranges, const WarpWork* works) {
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const WarpWork work = works[warp];
  const uint32_t lane = threadIdx.x % 32;
  if ((work.present >> lane & 1) == 0) return;
  if (work.present == ~0u) {
    gofs::simt::copy_ranges(gofs::simt::Warp::full(), work.lanes, ranges[warp * 32 + lane]);
    return;
  }
  const gofs::simt::PartialWarp some(work.present);
  gofs::simt::copy_ranges(some, work.lanes, ranges[warp * 32 + some.thread_rank()]);
}

class DeviceCopy : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kWarps = 32;
  static constexpr size_t kBytes = size_t{kWarps} * 32 * kRoomBytes;

  void SetUp() override {
    CHECK_CUDA(cudaMallocHost(&far_, kBytes));
    CHECK_CUDA(cudaMalloc(&near_, kBytes));
    CHECK_CUDA(cudaMalloc(&targets_, kBytes));
    CHECK_CUDA(cudaMallocHost(&ranges_, kWarps * 32 * sizeof(CopyRange)));
    CHECK_CUDA(cudaMallocHost(&works_, kWarps * sizeof(WarpWork)));
    for (size_t i = 0; i < kBytes; ++i) far_[i] = static_cast<uint8_t>(random_());
    CHECK_CUDA(cudaMemcpy(near_, far_, kBytes, cudaMemcpyDefault));
  }
  void TearDown() override {
    cudaFreeHost(far_);
    cudaFree(near_);
    cudaFree(targets_);
    cudaFreeHost(ranges_);
    cudaFreeHost(works_);
  }

  /// All warps copy ranges whose sizes `size(warp)` gives, and all else is as it was.
  template <typename Size>
  void expect_copied(Size size) {
    std::vector<uint8_t> wanted(kBytes, kGuard);
    CHECK_CUDA(cudaMemset(targets_, kGuard, kBytes));
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      WarpWork& work = works_[warp];
      const uint32_t kind = random_() % 4;
      work.present = kind == 0 ? random_() | 1 : kind == 1 ? 0xffu << random_() % 24 : ~0u;
      work.lanes = random_() | random_();
      const auto here = static_cast<uint32_t>(__builtin_popcount(work.present));
      if (here < 32) work.lanes &= (1u << here) - 1;
      const uint32_t shift = random_() % 8 == 0 ? random_() % 32 : 0;
      for (uint32_t rank = 0; rank < 32; ++rank) {
        const size_t place = (size_t{warp} * 32 + rank) * kRoomBytes + kBegin;
        CopyRange& range = ranges_[warp * 32 + rank];
        range.target = targets_ + place + shift;
        range.source = random_() % 16 == 0  ? nullptr
                       : random_() % 2 == 0 ? near_ + place
                                            : far_ + place;
        range.bytes = size(warp);
        if ((work.lanes >> rank & 1) == 0) continue;
        if (range.source == nullptr) std::memset(&wanted[place + shift], 0, range.bytes);
        if (range.source != nullptr) std::memcpy(&wanted[place + shift], far_ + place, range.bytes);
      }
    }
    copy_kernel<<<kWarps * 32 / GetParam(), GetParam()>>>(ranges_, works_);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<uint8_t> got(kBytes);
    CHECK_CUDA(cudaMemcpy(got.data(), targets_, kBytes, cudaMemcpyDefault));
    EXPECT_TRUE(got == wanted);
  }

  std::mt19937 random_{GetParam()};
  uint8_t* far_ = nullptr;   // the host's memory,
  uint8_t* near_ = nullptr;  // and the GPU's, with the same in it
  uint8_t* targets_ = nullptr;
  CopyRange* ranges_ = nullptr;
  WarpWork* works_ = nullptr;
};

TEST_P(DeviceCopy, ranges_of_one_size_arrive_and_nothing_else_changes) {
  for (const uint32_t bytes : {0u, 4u, 16u, 512u, 1024u, 2048u, 4096u, 4112u, 8192u}) {
    SCOPED_TRACE(bytes);
    expect_copied([bytes](uint32_t) { return bytes; });
  }
}

TEST_P(DeviceCopy, ranges_of_all_sizes_arrive_and_nothing_else_changes) {
  for (const uint32_t unit : {1u, 16u, 512u, 2048u, 4096u}) {
    SCOPED_TRACE(unit);
    expect_copied([&](uint32_t) { return random_() % (8192 / unit + 1) * unit; });
  }
}

INSTANTIATE_TEST_SUITE_P(threads, DeviceCopy, testing::Values(32u, 64u, 128u, 256u, 512u, 1024u),
                         testing::PrintToStringParamName());

}  // namespace
