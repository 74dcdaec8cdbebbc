// SPDX-License-Identifier: Apache-2.0
//
// How fast kernels change a volume through the file API: files made in batch, with and without
// contents, and one by one; 4 KiB overwrites; fsync; a checkpoint; files removed. The volume is new
// for each model and goes afterwards.
//
// usage: gofs_write_rates FOLDER [MODEL ...]     FOLDER takes an image of 2 GiB
#include <cooperative_groups.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/image/image_builder.h"
#include "host/image/image_target.h"

namespace {

constexpr uint32_t kBatchFiles = 20'000;
constexpr uint32_t kFileBytes = 16 << 10;
constexpr uint32_t kGridBlocks = 64;
constexpr uint32_t kThreads = 128;
constexpr uint32_t kWarpsMax = 1024;
constexpr uint32_t kNameBytes = 16;
constexpr uint32_t kPathBytes = 32;

void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gofs_write_rates: %s\n", cudaGetErrorString(error));
  std::exit(1);
}
void must(const gofs::image::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gofs_write_rates: %s\n", status.message.c_str());
  std::exit(1);
}
template <typename T>
T must(gofs::Expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "gofs_write_rates: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// What the kernels share, in device memory.
struct Work {
  gofs::VolumeHandle vol;
  char* names;  // kBatchFiles of kNameBytes
  const char** name_of;
  uint8_t* data;  // kFileBytes for each file of a batch
  uint64_t* offsets;
  uint64_t* bytes;
  char* paths;       // kPathBytes for each warp
  int* descriptors;  // for each warp
  uint32_t failures;
};

__device__ uint32_t put_number(char* text, uint32_t number) {
  for (int digit = 5; digit >= 0; --digit) {
    text[digit] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  text[6] = '\0';
  return 6;
}

__global__ void prepare_kernel(Work* work) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kBatchFiles;
       i += gridDim.x * blockDim.x) {
    put_number(work->names + i * kNameBytes, i);
    work->name_of[i] = work->names + i * kNameBytes;
    work->offsets[i] = uint64_t{i} * kFileBytes;
    work->bytes[i] = kFileBytes;
  }
}

__global__ void batch_kernel(Work* work, const char* directory, bool with_contents) {
  const auto grid = gofs::this_grid();
  const int bd = with_contents
                     ? gofs::batch_create(grid, work->vol, directory, work->name_of, kBatchFiles,
                                          0644, work->data, work->offsets, work->bytes)
                     : gofs::batch_create(grid, work->vol, directory, work->name_of, kBatchFiles);
  if (bd < 0 && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&work->failures, 1u);
  if (bd >= 0) gofs::batch_close(grid, work->vol, bd);
}

enum class Each { kMakeDirectory, kMakeFiles, kRemoveFiles, kOpen, kOverwrite, kSync, kClose };

/// Every warp does `what` `times` times, with files of its own.
__global__ void each_kernel(Work* work, Each what, uint32_t times) {
  const uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const bool leader = threadIdx.x % 32 == 0;
  const auto warp = gofs::this_warp();
  char* const path = work->paths + uint64_t{index} * kPathBytes;
  uint8_t* const page = work->data + uint64_t{index} * 4096;
  const gofs::VolumeHandle vol = work->vol;
  const uint32_t makes = gofs::kOpenCreate | gofs::kOpenReadWrite;
  int64_t error = 0;
  if (leader) {
    path[0] = '/';
    path[1] = 'w';
    put_number(path + 2, index);
  }
  __syncwarp();
  uint32_t random = index * 2654435761u + 12345u;
  for (uint32_t i = 0; i < times && error >= 0; ++i) {
    random = random * 1664525u + 1013904223u;
    switch (what) {
      case Each::kMakeDirectory:
        error = gofs::mkdir(warp, vol, path, 0755);
        break;
      case Each::kMakeFiles:
      case Each::kRemoveFiles:
        if (leader) {
          path[8] = '/';
          put_number(path + 9, i);
        }
        __syncwarp();
        if (what == Each::kRemoveFiles) {
          error = gofs::unlink(warp, vol, path);
        } else {
          error = gofs::open(warp, vol, path, makes, 0644);
          if (error >= 0) error = gofs::close(warp, vol, static_cast<int>(error));
        }
        break;
      case Each::kOpen: {
        if (leader) {
          path[8] = '/';
          path[9] = 'x';
          path[10] = '\0';
        }
        __syncwarp();
        const int fd = gofs::open(warp, vol, path, makes, 0644);
        if (leader) work->descriptors[index] = fd;
        error = fd < 0 ? fd : gofs::pwrite(warp, vol, fd, work->data, 256 << 10, 0);
        break;
      }
      case Each::kOverwrite:
        error = gofs::pwrite(warp, vol, work->descriptors[index], page, 4096,
                             uint64_t{random >> 8} % 64 * 4096);
        break;
      case Each::kSync:
        error = gofs::pwrite(warp, vol, work->descriptors[index], page, 4096,
                             uint64_t{random >> 8} % 64 * 4096);
        if (error >= 0) error = gofs::fsync(warp, vol, work->descriptors[index]);
        break;
      case Each::kClose:
        error = gofs::close(warp, vol, work->descriptors[index]);
        break;
    }
    __syncwarp();
  }
  if (error < 0 && leader) atomicAdd(&work->failures, 1u);
}

/// Runs `launch()` on the device. Seconds.
template <typename Launch>
double seconds_of(Launch launch) {
  cudaEvent_t begin;
  cudaEvent_t end;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  must(cudaEventRecord(begin));
  launch();
  must(cudaGetLastError());
  must(cudaEventRecord(end));
  must(cudaEventSynchronize(end));
  float milliseconds = 0;
  must(cudaEventElapsedTime(&milliseconds, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds / 1e3;
}

class Rates {
 public:
  Rates(gofs::Volume& volume, std::string model) : volume_(volume), model_(std::move(model)) {
    work_.vol = volume.device();
    work_.names = take<char>(kBatchFiles * kNameBytes);
    work_.name_of = take<const char*>(kBatchFiles);
    work_.data = take<uint8_t>(uint64_t{kBatchFiles} * kFileBytes);
    work_.offsets = take<uint64_t>(kBatchFiles);
    work_.bytes = take<uint64_t>(kBatchFiles);
    work_.paths = take<char>(kWarpsMax * kPathBytes);
    work_.descriptors = take<int>(kWarpsMax);
    device_work_ = take<Work>(1);
    for (const char* const name : {"/empty", "/filled"}) {
      directories_.push_back(take<char>(kPathBytes));
      must(cudaMemcpy(directories_.back(), name, std::string(name).size() + 1,
                      cudaMemcpyHostToDevice));
      must(volume.mkdir(name, 0755));
    }
    must(cudaMemcpy(device_work_, &work_, sizeof(work_), cudaMemcpyHostToDevice));
    prepare_kernel<<<kGridBlocks, kThreads>>>(device_work_);
    must(cudaDeviceSynchronize());
  }
  ~Rates() {
    for (void* const memory : taken_) cudaFree(memory);
  }

  /// Warps whose calls failed.
  uint32_t measure() {
    batch("batch, empty files", directories_[0], false, 0);
    batch("batch, 16 KiB files", directories_[1], true, kFileBytes);
    checkpoint();
    each("mkdir, 1,024 warps", Each::kMakeDirectory, kWarpsMax, 1, 0);
    each("open and close new files, 1,024 warps", Each::kMakeFiles, kWarpsMax, 20, 0);
    each("unlink, 1,024 warps", Each::kRemoveFiles, kWarpsMax, 20, 0);
    run(Each::kOpen, kWarpsMax, 1);
    for (const uint32_t warps : {1u, 32u, 1024u}) {
      each("overwrite 4 KiB, " + std::to_string(warps) + " warps", Each::kOverwrite, warps,
           warps == 1024 ? 32 : 256, 4096);
    }
    for (const uint32_t warps : {1u, 32u, 1024u}) {
      each("overwrite 4 KiB and fsync, " + std::to_string(warps) + " warps", Each::kSync, warps,
           warps == 1024 ? 4 : 64, 4096);
    }
    run(Each::kClose, kWarpsMax, 1);
    checkpoint();
    Work done{};
    must(cudaMemcpy(&done, device_work_, sizeof(done), cudaMemcpyDeviceToHost));
    std::printf("%-8s %u warps failed\n", model_.c_str(), done.failures);
    return done.failures;
  }

 private:
  template <typename T>
  T* take(uint64_t count) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, count * sizeof(T)));
    must(cudaMemset(memory, 0, count * sizeof(T)));
    taken_.push_back(memory);
    return static_cast<T*>(memory);
  }
  double run(Each what, uint32_t warps, uint32_t times) {
    const uint32_t threads = std::min(32 * warps, kThreads);
    return seconds_of(
        [&] { each_kernel<<<32 * warps / threads, threads>>>(device_work_, what, times); });
  }
  void each(const std::string& name, Each what, uint32_t warps, uint32_t times, uint64_t bytes) {
    tell(name, uint64_t{warps} * times, run(what, warps, times), bytes, warps);
  }
  void batch(const std::string& name, const char* directory, bool with_contents, uint64_t bytes) {
    void* arguments[] = {&device_work_, &directory, &with_contents};
    const double seconds = seconds_of([&] {
      must(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(batch_kernel), kGridBlocks, kThreads,
                                       arguments, 0, nullptr));
    });
    tell(name, kBatchFiles, seconds, bytes, 0);
  }
  void checkpoint() {
    const auto before = std::chrono::steady_clock::now();
    must(volume_.sync());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    tell("sync of all that has changed", 1, took.count(), 0, 1);
  }
  void tell(const std::string& name, uint64_t operations, double seconds, uint64_t bytes,
            uint32_t side_by_side) {
    const double rate = static_cast<double>(operations) / seconds;
    std::printf("%-8s %-42s %12.0f /s %9.3f GB/s", model_.c_str(), name.c_str(), rate,
                rate * static_cast<double>(bytes) / 1e9);
    if (side_by_side != 0) std::printf(" %12.1f us each", 1e6 * side_by_side / rate);
    std::printf("\n");
    std::fflush(stdout);
  }

  gofs::Volume& volume_;
  std::string model_;
  std::vector<void*> taken_;
  std::vector<char*> directories_;
  Work work_{};
  Work* device_work_ = nullptr;
};

void make_image(const std::string& path) {
  std::unique_ptr<gofs::image::ImageTarget> target;
  must(gofs::image::open_file_target(path, uint64_t{2} << 30, &target));
  gofs::image::VolumeOptions options;
  options.overwrite = true;
  options.flush = false;
  std::unique_ptr<gofs::image::ImageBuilder> builder;
  must(gofs::image::ImageBuilder::create(*target, options, &builder));
  must(builder->finish());
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    std::fprintf(stderr, "usage: gofs_write_rates FOLDER [MODEL ...]\n");
    return 2;
  }
  const std::string path = std::string(arguments[1]) + "/gofs-write-rates.img";
  std::vector<std::string> models(arguments + 2, arguments + argument_count);
  if (models.empty()) models = {"none", "990pro", "p5800x"};
  uint32_t failures = 0;
  for (const std::string& model : models) {
    make_image(path);
    {
      gofs::Volume volume = must(gofs::Volume::mount(path + "?model=" + model + "&queues=64",
                                                     {.backend = "cuda", .read_only = false}));
      failures += Rates(volume, model).measure();
      must(volume.unmount());
    }
    unlink(path.c_str());
  }
  return failures == 0 ? 0 : 1;
}
