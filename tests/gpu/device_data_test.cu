// SPDX-License-Identifier: Apache-2.0
//
// Writing by whole blocks and grids from kernels, many files at once, room and holes. What they did
// is looked at with the CPU backend once the volume was unmounted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint32_t kBlocks = 4;
constexpr uint32_t kThreads = 96;
constexpr uint64_t kBlockFileBytes = 300'001;
constexpr uint64_t kGridFileBytes = 3'000'003;
constexpr uint64_t kHoleAt = 8192;
constexpr uint64_t kHoleBytes = 12'288;
constexpr uint32_t kFilesMax = 2000;

/// Byte `i` of what file `file` shall hold.
__host__ __device__ constexpr uint8_t byte_of_file(uint32_t file, uint64_t i) {
  return static_cast<uint8_t>(i * 31 + i / 251 + file * 7);
}
__host__ __device__ constexpr uint64_t batch_file_bytes(uint32_t index) {
  return index % 4 == 0 ? 16384 : uint64_t{index % 7} * 1500 + index % 3;
}

struct Work {
  gofs::VolumeHandle vol;
  const uint8_t* pattern;  // of file 0
  const char* const* paths;
  const char* const* names;  // of a batch
  const uint8_t* data;       // of its files
  const uint64_t* offsets;
  const uint64_t* sizes;
  uint32_t files;
  int64_t* results;  // 16 for each block
};

/// Each block writes a file of its own, in one piece and then in parts at its end.
__global__ void block_kernel(Work work) {
  const auto block = gofs::this_block();
  int64_t* const results = work.results + 16 * blockIdx.x;
  const int fd = gofs::open(block, work.vol, work.paths[blockIdx.x],
                            gofs::kOpenCreate | gofs::kOpenReadWrite, 0600);
  __shared__ gofs::IoVector parts[2];
  if (threadIdx.x == 0) {
    parts[0] = {const_cast<uint8_t*>(work.pattern) + 200'000, 50'001};
    parts[1] = {const_cast<uint8_t*>(work.pattern) + 250'001, 50'000};
  }
  __syncthreads();
  const int64_t written = gofs::write(block, work.vol, fd, work.pattern, 200'000);
  const int64_t more = gofs::writev(block, work.vol, fd, parts, 2);
  const int reserved =
      gofs::fallocate(block, work.vol, fd, gofs::kFallocateKeepSize, kBlockFileBytes, 100'000);
  const int punched =
      gofs::fallocate(block, work.vol, fd, gofs::kFallocatePunchHole | gofs::kFallocateKeepSize,
                      kHoleAt, kHoleBytes);
  const int refused = gofs::fallocate(block, work.vol, fd, 8, 0, 4096);
  if (threadIdx.x == 0) {
    results[0] = written;
    results[1] = more;
    results[2] = reserved;
    results[3] = punched;
    results[4] = refused;
    results[5] = gofs::close(gofs::this_thread(), work.vol, fd);
  }
}

/// The grid writes one file and makes many.
__global__ void grid_kernel(Work work) {
  const auto grid = gofs::this_grid();
  const int fd =
      gofs::open(grid, work.vol, "/grid", gofs::kOpenCreate | gofs::kOpenReadWrite, 0600);
  const int64_t written = gofs::pwrite(grid, work.vol, fd, work.pattern, kGridFileBytes, 0);
  const int closed = gofs::close(grid, work.vol, fd);
  const int bd = gofs::batch_create(grid, work.vol, "/many", work.names, work.files, 0640,
                                    work.data, work.offsets, work.sizes);
  const int empty = gofs::batch_create(grid, work.vol, "/later", work.names, work.files);
  const int64_t later =
      gofs::batch_write(grid, work.vol, empty, work.data, work.offsets, work.sizes);
  const int64_t again = gofs::batch_create(grid, work.vol, "/many", work.names, 1);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    int64_t* const results = work.results;
    results[6] = written;
    results[7] = closed;
    results[8] = later;
    results[9] = again < 0 ? again : gofs::batch_file(work.vol, static_cast<int>(again), 0).error;
    int first = 0;
    for (uint32_t i = 0; i < work.files && first == 0; ++i) {
      first = gofs::batch_file(work.vol, bd, i).error;
      if (first == 0) first = gofs::batch_file(work.vol, empty, i).error;
    }
    results[10] = first;
  }
  gofs::batch_close(grid, work.vol, bd);
  gofs::batch_close(grid, work.vol, empty);
}

class DeviceData : public testing::Test {
 protected:
  ~DeviceData() override {
    for (void* const memory : taken_) cudaFreeHost(memory);
  }

  /// Memory that both sides reach, until the test is over.
  template <typename T>
  T* shared(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, count * sizeof(T)), cudaSuccess);
    taken_.push_back(memory);
    return static_cast<T*>(memory);
  }
  const char* text(const std::string& string) {
    char* const memory = shared<char>(string.size() + 1);
    std::copy_n(string.c_str(), string.size() + 1, memory);
    return memory;
  }
  static std::string name_of(uint32_t index) { return "file-" + std::to_string(index); }

  /// A sanitizer takes a hundred times as long.
  const uint32_t files_ = gofs_gpu_test::under_sanitizer() ? 60 : kFilesMax;
  const gofs_gpu_test::FreshVolume image_{
      512, [](gofs::image::ImageBuilder& builder) {
        for (const char* const name : {"many", "later"}) {
          gofs_gpu_test::must(
              builder.add_directory(builder.root(), name, {.mode = 0755}, {}, nullptr));
        }
      }};
  std::vector<void*> taken_;
};

TEST_F(DeviceData, what_blocks_and_grids_write_is_there_after_unmounting) {
  uint8_t* const pattern = shared<uint8_t>(kGridFileBytes);
  for (uint64_t i = 0; i < kGridFileBytes; ++i) pattern[i] = byte_of_file(0, i);
  const char** const paths = shared<const char*>(kBlocks);
  for (uint32_t i = 0; i < kBlocks; ++i) paths[i] = text("/block-" + std::to_string(i));
  const char** const names = shared<const char*>(files_);
  uint64_t* const offsets = shared<uint64_t>(files_);
  uint64_t* const sizes = shared<uint64_t>(files_);
  uint64_t all = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < files_; ++i) {
    names[i] = text(name_of(i));
    offsets[i] = all;
    sizes[i] = batch_file_bytes(i);
    sum += sizes[i];
    all += (sizes[i] + 3) / 4 * 4;
  }
  uint8_t* const data = shared<uint8_t>(all);
  for (uint32_t i = 0; i < files_; ++i) {
    for (uint64_t k = 0; k < sizes[i]; ++k) data[offsets[i] + k] = byte_of_file(i, k);
  }
  int64_t* const results = shared<int64_t>(16 * kBlocks);
  {
    auto volume = gofs::Volume::mount(image_.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    Work work{volume->device(), pattern, paths, names, data, offsets, sizes, files_, results};
    block_kernel<<<kBlocks, kThreads>>>(work);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const std::vector<int64_t> got(results + 16 * i, results + 16 * i + 6);
      EXPECT_EQ(got, (std::vector<int64_t>{200'000, 100'001, 0, 0, -EOPNOTSUPP, 0})) << i;
    }
    void* arguments[] = {&work};
    CHECK_CUDA(cudaLaunchCooperativeKernel(grid_kernel, dim3(kBlocks), dim3(kThreads), arguments));
    CHECK_CUDA(cudaDeviceSynchronize());
    const std::vector<int64_t> got(results + 6, results + 11);
    EXPECT_EQ(got,
              (std::vector<int64_t>{kGridFileBytes, 0, static_cast<int64_t>(sum), -EEXIST, 0}));
    const auto made = volume->batch_create("/later", {{"by-host", pattern, 5000}}, 0600);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(*made, std::vector<int>{0});
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }

  auto volume = gofs::Volume::mount(image_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(volume.info().clean);
  std::vector<uint8_t> bytes(kGridFileBytes + 1);
  const auto read = [&](const std::string& path) {
    const int fd = volume.open(path).value();
    const uint64_t got = volume.pread(fd, bytes.data(), bytes.size(), 0).value();
    volume.close(fd).value();
    return got;
  };
  ASSERT_EQ(read("/grid"), kGridFileBytes);
  EXPECT_TRUE(std::equal(pattern, pattern + kGridFileBytes, bytes.begin()));
  for (uint32_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(read(paths[i]), kBlockFileBytes) << paths[i];
    std::vector<uint8_t> wanted(pattern, pattern + kBlockFileBytes);
    std::fill_n(wanted.begin() + kHoleAt, kHoleBytes, uint8_t{0});
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), bytes.begin())) << paths[i];
    EXPECT_GT(volume.stat(paths[i]).value().blocks_512 * 512, kBlockFileBytes - kHoleBytes + 90'000)
        << "with what is reserved";
  }
  for (const std::string folder : {"/many/", "/later/"}) {
    for (uint32_t i = 0; i < files_; ++i) {
      const std::string path = folder + name_of(i);
      ASSERT_EQ(read(path), sizes[i]) << path;
      ASSERT_TRUE(std::equal(data + offsets[i], data + offsets[i] + sizes[i], bytes.begin()))
          << path;
    }
  }
  EXPECT_EQ(read("/later/by-host"), 5000u);
  EXPECT_TRUE(volume.warnings().empty());
}

}  // namespace
