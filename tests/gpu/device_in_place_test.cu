// SPDX-License-Identifier: Apache-2.0
//
// Small writes by every scope over blocks that a file has: where in the image the new bytes are
// tells whether they went over the old ones, or, on a volume that writes nothing over, to new
// blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint64_t kPlaceBlock = 4096;
constexpr uint32_t kPlaceWords = kPlaceBlock / 8;
constexpr uint64_t kOldMark = 0x01d0b10c01d00000;
constexpr uint64_t kNewMark = 0x0e30b10c0e300000;

/// A file block for each case; further on those of lanes that write several.
enum PlaceCase : uint32_t {
  kByThread,
  kByLanesOfOneBlock,
  kByLaneBesideOthers,
  kByWarp,
  kByWarpInParts,
  kByWarpFromShared,
  kByBlock,
  kByBlockInParts,
  kByBlockFromShared,
  kByGrid,
  kByGridInParts,
  kPlaceCases,
};
constexpr uint32_t kLargeFrom = 16;  // the first of two blocks for each of 31 lanes
constexpr uint32_t kPlaceBlocks = kLargeFrom + 62;

/// Memory that both sides reach.
struct PlaceWork {
  gofs::VolumeHandle vol;
  int fd;
  const uint64_t* words;         // what the file shall hold
  const gofs::IoVector* halves;  // of each block, two
  int64_t* answers;              // by case
};

__device__ const uint64_t* place_words(const PlaceWork& work, uint32_t index) {
  return work.words + uint64_t{index} * kPlaceWords;
}
__device__ void fill_shared(const PlaceWork& work, uint64_t* shared, uint32_t index) {
  for (uint32_t i = threadIdx.x; i < kPlaceWords; i += blockDim.x) {
    shared[i] = place_words(work, index)[i];
  }
}
__device__ void note_place(const PlaceWork& work, uint32_t index, int64_t answer) {
  if (threadIdx.x == 0 && blockIdx.x == 0) work.answers[index] = answer;
}

__global__ void thread_in_place(PlaceWork work) {
  note_place(work, kByThread,
             gofs::pwrite(gofs::this_thread(), work.vol, work.fd, place_words(work, kByThread),
                          kPlaceBlock, kByThread * kPlaceBlock));
}

/// 32 threads: each a part of the block; then one a block, beside others that ask for two.
__global__ void lanes_in_place(PlaceWork work) {
  const uint32_t lane = threadIdx.x;
  const uint64_t part = kPlaceBlock / 32;
  const auto* const bytes =
      reinterpret_cast<const uint8_t*>(place_words(work, kByLanesOfOneBlock)) + lane * part;
  int64_t answer = gofs::pwrite(gofs::this_thread(), work.vol, work.fd, bytes, part,
                                kByLanesOfOneBlock * kPlaceBlock + lane * part);
  if (!__all_sync(~0u, answer == static_cast<int64_t>(part))) answer = -1;
  note_place(work, kByLanesOfOneBlock, answer);
  const uint32_t index = lane == 0 ? kByLaneBesideOthers : kLargeFrom + 2 * (lane - 1);
  const uint64_t count = lane == 0 ? kPlaceBlock : 2 * kPlaceBlock;
  answer = gofs::pwrite(gofs::this_thread(), work.vol, work.fd, place_words(work, index), count,
                        index * kPlaceBlock);
  if (!__all_sync(~0u, answer == static_cast<int64_t>(count))) answer = -1;
  note_place(work, kByLaneBesideOthers, answer);
}

/// A group's own memory, parts, and its buffer in shared memory. One block.
template <typename Group>
__device__ void group_in_place(const Group& group, const PlaceWork& work, uint32_t first) {
  __shared__ uint64_t shared[kPlaceWords];
  const auto place = [](uint32_t index) { return index * kPlaceBlock; };
  note_place(
      work, first,
      gofs::pwrite(group, work.vol, work.fd, place_words(work, first), kPlaceBlock, place(first)));
  note_place(
      work, first + 1,
      gofs::pwritev(group, work.vol, work.fd, work.halves + 2 * (first + 1), 2, place(first + 1)));
  fill_shared(work, shared, first + 2);
  __syncthreads();
  note_place(work, first + 2,
             gofs::pwrite(group, work.vol, work.fd, shared, kPlaceBlock, place(first + 2)));
}
__global__ void warp_in_place(PlaceWork work) { group_in_place(gofs::this_warp(), work, kByWarp); }
__global__ void block_in_place(PlaceWork work) {
  group_in_place(gofs::this_block(), work, kByBlock);
}

__global__ void grid_in_place(PlaceWork work) {
  const auto grid = gofs::this_grid();
  note_place(work, kByGrid,
             gofs::pwrite(grid, work.vol, work.fd, place_words(work, kByGrid), kPlaceBlock,
                          kByGrid * kPlaceBlock));
  note_place(work, kByGridInParts,
             gofs::pwritev(grid, work.vol, work.fd, work.halves + 2 * kByGridInParts, 2,
                           kByGridInParts * kPlaceBlock));
}

uint64_t place_word(uint64_t mark, uint32_t index, uint32_t word) {
  return mark + index * uint64_t{kPlaceWords} + word;
}

/// Where in an image the file's blocks are, as they are when all their words have `mark`.
std::map<uint32_t, uint64_t> places_of(const std::string& path, uint64_t mark) {
  std::map<uint32_t, uint64_t> places;
  std::ifstream image(path, std::ios::binary);
  std::vector<uint64_t> words(kPlaceWords);
  for (uint64_t at = 0; image.read(reinterpret_cast<char*>(words.data()), kPlaceBlock);
       at += kPlaceBlock) {
    const uint64_t index = (words[0] - mark) / kPlaceWords;
    if (words[0] < mark || index >= kPlaceBlocks) continue;
    bool whole = true;
    for (uint32_t i = 0; i < kPlaceWords; ++i) {
      whole = whole && words[i] == place_word(mark, static_cast<uint32_t>(index), i);
    }
    if (whole) places[static_cast<uint32_t>(index)] = at;
  }
  return places;
}

class DeviceInPlace : public testing::Test {
 protected:
  ~DeviceInPlace() override {
    for (void* const memory : taken_) cudaFreeHost(memory);
  }
  template <typename T>
  T* shared(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, count * sizeof(T)), cudaSuccess);
    taken_.push_back(memory);
    return static_cast<T*>(memory);
  }
  /// Writes all cases to the volume of `image`, and unmounts it.
  void write_all(const std::string& image, bool log_structured) {
    uint64_t* const words = shared<uint64_t>(uint64_t{kPlaceBlocks} * kPlaceWords);
    auto* const halves = shared<gofs::IoVector>(2 * kPlaceBlocks);
    PlaceWork work{{}, -1, words, halves, shared<int64_t>(kPlaceCases)};
    for (uint32_t index = 0; index < kPlaceBlocks; ++index) {
      uint64_t* const block = words + uint64_t{index} * kPlaceWords;
      for (uint32_t i = 0; i < kPlaceWords; ++i) block[i] = place_word(kNewMark, index, i);
      halves[2 * index] = {block, 1000};
      halves[2 * index + 1] = {reinterpret_cast<uint8_t*>(block) + 1000, kPlaceBlock - 1000};
    }
    auto volume = gofs::Volume::mount(
        image, {.backend = "cuda", .read_only = false, .log_structured = log_structured});
    ASSERT_TRUE(volume) << volume.error().message;
    work.vol = volume->device();
    work.fd = volume->open("/file", gofs::kOpenReadWrite).value();
    thread_in_place<<<1, 1>>>(work);
    lanes_in_place<<<1, 32>>>(work);
    warp_in_place<<<1, 32>>>(work);
    block_in_place<<<1, 96>>>(work);
    void* arguments[] = {&work};
    CHECK_CUDA(cudaLaunchCooperativeKernel(grid_in_place, dim3(2), dim3(64), arguments));
    CHECK_CUDA(cudaDeviceSynchronize());
    for (uint32_t index = 0; index < kPlaceCases; ++index) {
      const bool parts = index == kByLanesOfOneBlock;
      EXPECT_EQ(work.answers[index], static_cast<int64_t>(parts ? kPlaceBlock / 32 : kPlaceBlock))
          << index;
    }
    volume->close(work.fd).value();
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }

 private:
  std::vector<void*> taken_;
};

TEST_F(DeviceInPlace, small_writes_stay_where_they_are_whoever_asks) {
  std::string old(uint64_t{kPlaceBlocks} * kPlaceBlock, '\0');
  for (uint32_t index = 0; index < kPlaceBlocks; ++index) {
    auto* const block = reinterpret_cast<uint64_t*>(old.data()) + uint64_t{index} * kPlaceWords;
    for (uint32_t i = 0; i < kPlaceWords; ++i) block[i] = place_word(kOldMark, index, i);
  }
  for (const bool log_structured : {false, true}) {
    const gofs_gpu_test::FreshVolume image(64, [&](gofs::image::ImageBuilder& builder) {
      gofs::image::FileSpec spec;
      spec.name = "file";
      spec.size_bytes = old.size();
      spec.content = gofs::image::string_content(old);
      gofs_gpu_test::must(builder.add_file(builder.root(), spec));
    });
    const std::map<uint32_t, uint64_t> before = places_of(image.path(), kOldMark);
    ASSERT_EQ(before.size(), kPlaceBlocks);
    write_all(image.spec(), log_structured);
    std::map<uint32_t, uint64_t> after = places_of(image.path(), kNewMark);
    for (uint32_t index = 0; index < kPlaceCases; ++index) {
      ASSERT_EQ(after.count(index), 1u) << index;
      EXPECT_EQ(after[index] == before.at(index), !log_structured) << index;
    }
    for (uint32_t index = kLargeFrom; index < kPlaceBlocks; ++index) {
      ASSERT_EQ(after.count(index), 1u) << index;
      EXPECT_NE(after[index], before.at(index)) << index;
    }
  }
}

}  // namespace
