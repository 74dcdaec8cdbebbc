// SPDX-License-Identifier: Apache-2.0
//
// As many files open at the same time as a GPU has threads, and several grids that call at the same
// time, from kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

namespace {

constexpr uint32_t kOpenersMax = 65'536;
constexpr uint32_t kNameBytes = 16;
constexpr uint32_t kThreadsOfOpeners = 256;

struct Openers {
  gofs::VolumeHandle vol;
  uint32_t count;
  const char* paths;  // kNameBytes each
  uint64_t* words;    // one each
  int* fds;
  uint32_t* wrong;
};

/// Each thread opens a file of its own, and writes to it.
__global__ void open_kernel(Openers openers) {
  const uint32_t me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= openers.count) return;
  const auto thread = gofs::this_thread();
  const int fd = gofs::open(thread, openers.vol, openers.paths + uint64_t{me} * kNameBytes,
                            gofs::kOpenReadWrite);
  openers.fds[me] = fd;
  openers.words[me] = me * 0x9E3779B97F4A7C15ull;
  if (fd < 0 || gofs::pwrite(thread, openers.vol, fd, openers.words + me, 8, 0) != 8) {
    atomicAdd(openers.wrong, 1);
  }
  openers.words[me] = 0;
}

/// When all are open: each reads what it wrote, and closes its file.
__global__ void close_kernel(Openers openers) {
  const uint32_t me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= openers.count) return;
  const auto thread = gofs::this_thread();
  const int fd = openers.fds[me];
  const bool same = gofs::pread(thread, openers.vol, fd, openers.words + me, 8, 0) == 8 &&
                    openers.words[me] == me * 0x9E3779B97F4A7C15ull;
  if (!same) atomicAdd(openers.wrong, 1);
  if (gofs::close(thread, openers.vol, fd) != 0) atomicAdd(openers.wrong, 1);
}

class DeviceOpeners : public testing::Test {
 protected:
  ~DeviceOpeners() override {
    for (void* const memory : taken_) cudaFreeHost(memory);
  }
  template <typename T>
  T* shared(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, count * sizeof(T)), cudaSuccess);
    taken_.push_back(memory);
    std::fill_n(static_cast<uint8_t*>(memory), count * sizeof(T), uint8_t{0});
    return static_cast<T*>(memory);
  }

 private:
  std::vector<void*> taken_;
};

uint64_t bytes_of_open_files(const gofs::MemoryReport& report, bool in_use) {
  uint64_t bytes = 0;
  for (const gofs::MemoryPartReport& part : report.parts) {
    if (part.name != "descriptors" && part.name != "open_inodes" && part.name != "range_locks") {
      continue;
    }
    bytes += in_use ? part.in_use.value_or(0) : part.bytes();
  }
  return bytes;
}

TEST_F(DeviceOpeners, each_thread_has_a_file_of_its_own_open_and_written) {
  const uint32_t count = gofs_gpu_test::under_sanitizer() ? 512 : kOpenersMax;
  const gofs_gpu_test::FreshVolume image(1024, [&](gofs::image::ImageBuilder& builder) {
    gofs::image::Directory many;
    gofs_gpu_test::must(builder.add_directory(builder.root(), "many", {.mode = 0755}, {}, &many));
    for (uint32_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(i);
      gofs::image::FileSpec file;
      file.name = name;
      gofs_gpu_test::must(builder.add_file(many, file));
    }
  });
  Openers openers{};
  openers.count = count;
  char* const paths = shared<char>(size_t{count} * kNameBytes);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string path = "/many/" + std::to_string(i);
    std::copy_n(path.c_str(), path.size() + 1, paths + size_t{i} * kNameBytes);
  }
  openers.paths = paths;
  openers.words = shared<uint64_t>(count);
  openers.fds = shared<int>(count);
  openers.wrong = shared<uint32_t>(1);
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_LE(bytes_of_open_files(volume->memory().value(), false), uint64_t{64} << 20);
  openers.vol = volume->device();
  const uint32_t blocks = (count + kThreadsOfOpeners - 1) / kThreadsOfOpeners;
  open_kernel<<<blocks, kThreadsOfOpeners>>>(openers);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  ASSERT_EQ(*openers.wrong, 0u);
  std::vector<int> fds(openers.fds, openers.fds + count);
  std::sort(fds.begin(), fds.end());
  EXPECT_EQ(std::adjacent_find(fds.begin(), fds.end()), fds.end()) << "one given out twice";
  EXPECT_GE(bytes_of_open_files(volume->memory().value(), true), uint64_t{count} * 400);
  close_kernel<<<blocks, kThreadsOfOpeners>>>(openers);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(*openers.wrong, 0u);
  EXPECT_EQ(bytes_of_open_files(volume->memory().value(), true), 0u);
  const auto unmounted = volume->unmount();
  EXPECT_TRUE(unmounted) << unmounted.error().message;
}

TEST_F(DeviceOpeners, a_million_may_be_asked_for_and_take_at_most_a_gibibyte) {
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "nothing of it is a kernel's";
  const gofs_gpu_test::FreshVolume image(128, [](gofs::image::ImageBuilder&) {});
  auto volume = gofs::Volume::mount(image.spec() + "&descriptors=1000000", {.backend = "cuda"});
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_LE(bytes_of_open_files(volume->memory().value(), false), uint64_t{1} << 30);
}

constexpr uint32_t kGrids = 3;
constexpr uint32_t kBlocksOfGrid = 8;
constexpr uint32_t kThreadsOfGrid = 96;

__host__ __device__ constexpr uint64_t grid_file_bytes(uint32_t grid) {
  return 100'000 + grid * 40'003;
}
__host__ __device__ constexpr uint8_t grid_byte(uint32_t grid, uint64_t i) {
  return static_cast<uint8_t>(i * 13 + i / 251 + grid * 77);
}

struct Together {
  gofs::VolumeHandle vol;
  uint32_t grid;
  uint32_t rounds;
  const char* path;   // of the grid's file
  const char* other;  // of one that it makes and removes
  uint8_t* read;      // grid_file_bytes() and some
  const uint8_t* written;
  unsigned* started;  // of all grids
  uint32_t* wrong;    // of this one: which call it was
};

/// The same calls as other grids at the same time, on files of its own.
__global__ void together_kernel(Together work) {
  const auto grid = gofs::this_grid();
  const bool leads = blockIdx.x == 0 && threadIdx.x == 0;
  const uint64_t me = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x;
  const uint64_t bytes = grid_file_bytes(work.grid);
  if (leads) {
    // Until all run, or not for ever where there is no room for them.
    atomicAdd_system(work.started, 1u);
    for (int turn = 0; turn < 1'000'000 && *static_cast<volatile unsigned*>(work.started) != kGrids;
         ++turn) {
      __nanosleep(100);
    }
  }
  const auto expect = [&](bool right, uint32_t call) {
    if (!right) atomicMax(work.wrong, call);
  };
  for (uint32_t round = 0; round < work.rounds; ++round) {
    const int fd = gofs::open(grid, work.vol, work.path, gofs::kOpenReadWrite);
    expect(fd >= 0, 1);
    expect(
        gofs::pread(grid, work.vol, fd, work.read, bytes + 100, 0) == static_cast<int64_t>(bytes),
        2);
    for (uint64_t i = me; i < bytes; i += uint64_t{gridDim.x} * blockDim.x) {
      expect(work.read[i] == grid_byte(work.grid, i), 3);
    }
    expect(gofs::pwrite(grid, work.vol, fd, work.written, bytes - 5000, 5000) ==
               static_cast<int64_t>(bytes - 5000),
           4);
    expect(gofs::lseek(grid, work.vol, fd, 0, gofs::kSeekEnd) == static_cast<int64_t>(bytes), 5);
    expect(gofs::close(grid, work.vol, fd) == 0, 6);
    const int made =
        gofs::open(grid, work.vol, work.other, gofs::kOpenWriteOnly | gofs::kOpenCreate, 0600);
    expect(made >= 0, 7);
    const int64_t count = 1 + work.grid;
    expect(gofs::write(grid, work.vol, made, work.written, count) == count, 8);
    expect(gofs::close(grid, work.vol, made) == 0, 9);
    expect(gofs::close(grid, work.vol, -5) == -EBADF, 10);
    expect(gofs::unlink(grid, work.vol, work.other) == 0, 11);
  }
}

TEST_F(DeviceOpeners, several_grids_call_at_the_same_time_and_none_gets_what_another_asked_for) {
  const auto path_of = [](uint32_t grid) { return "/grid" + std::to_string(grid); };
  const gofs_gpu_test::FreshVolume image(256, [](gofs::image::ImageBuilder&) {});
  auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
  ASSERT_TRUE(volume) << volume.error().message;
  unsigned* const started = shared<unsigned>(1);
  std::vector<Together> works(kGrids);
  std::vector<cudaStream_t> streams(kGrids);
  for (uint32_t i = 0; i < kGrids; ++i) {
    const uint64_t bytes = grid_file_bytes(i);
    std::vector<uint8_t> content(bytes);
    for (uint64_t k = 0; k < bytes; ++k) content[k] = grid_byte(i, k);
    ASSERT_EQ(volume->batch_create("/", {{path_of(i).substr(1), content.data(), bytes}}).value(),
              std::vector<int>{0});
    char* const paths = shared<char>(2 * kNameBytes);
    std::copy_n(path_of(i).c_str(), path_of(i).size() + 1, paths);
    std::copy_n(path_of(i + 10).c_str(), path_of(i + 10).size() + 1, paths + kNameBytes);
    uint8_t* const written = shared<uint8_t>(bytes);
    for (uint64_t k = 5000; k < bytes; ++k) written[k - 5000] = grid_byte(i, k);
    works[i] = {volume->device(),
                i,
                gofs_gpu_test::under_sanitizer() ? 2u : 50u,
                paths,
                paths + kNameBytes,
                shared<uint8_t>(bytes + 4096),
                written,
                started,
                shared<uint32_t>(1)};
    CHECK_CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  for (uint32_t i = 0; i < kGrids; ++i) {
    void* arguments[] = {&works[i]};
    CHECK_CUDA(cudaLaunchCooperativeKernel(together_kernel, dim3(kBlocksOfGrid),
                                           dim3(kThreadsOfGrid), arguments, 0, streams[i]));
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  for (uint32_t i = 0; i < kGrids; ++i) {
    EXPECT_EQ(*works[i].wrong, 0u) << "grid " << i << ": the last call that was wrong";
    cudaStreamDestroy(streams[i]);
  }
  EXPECT_EQ(*started, kGrids);
  const auto unmounted = volume->unmount();
  EXPECT_TRUE(unmounted) << unmounted.error().message;
  for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
}

}  // namespace
