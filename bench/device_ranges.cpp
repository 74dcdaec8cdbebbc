// SPDX-License-Identifier: Apache-2.0
//
// Ranges straight into memory of the GPU, as a host program reads and writes them
// (Volume::read_ranges): one of 1 GiB, and 16 KiB each of many. With the default stream, and all
// that the call costs the host. `gofs bench stream` has the rates of raw commands.
//
// usage: gofs_device_ranges IMAGE [RUNS]   IMAGE holds a volume of 4 GiB or more, which is changed
#include <cuda_runtime.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "take.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using gofs::IoRange;
using gofs::Volume;
using gofs::measuring::fail;
using gofs::measuring::take;

constexpr uint64_t kFileBytes = uint64_t{1} << 30;
constexpr uint64_t kSmallBytes = 16 * 1024;
constexpr uint32_t kSmallRanges = 100'000;

void take(cudaError_t result) {
  if (result != cudaSuccess) fail(cudaGetErrorString(result));
}

/// Seconds.
struct Took {
  double all;
  double begun;  // of these, before the call that begins has returned
};

/// The middle one of `runs`. `results` are looked at after the time.
template <typename Begin>
Took median(uint32_t runs, const std::vector<IoRange>& ranges, Begin begin) {
  std::vector<Took> all;
  for (uint32_t run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    const gofs::RangeCall call = take(begin(ranges));
    const std::chrono::duration<double> begun = Clock::now() - start;
    const std::vector<int64_t> results = take(call.wait());
    const std::chrono::duration<double> ended = Clock::now() - start;
    all.push_back({ended.count(), begun.count()});
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (results[i] != static_cast<int64_t>(ranges[i].bytes)) fail("a range was not moved");
    }
  }
  std::sort(all.begin(), all.end(), [](const Took& a, const Took& b) { return a.all < b.all; });
  return all[all.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: gofs_device_ranges IMAGE [RUNS]\n");
    return 2;
  }
  const auto runs = static_cast<uint32_t>(count > 2 ? std::stoul(words[2]) : 5);
  Volume volume = take(Volume::mount(words[1], {.backend = "cuda", .read_only = false}));
  uint8_t* memory = nullptr;
  take(cudaMalloc(&memory, uint64_t{kSmallRanges} * kSmallBytes));
  const int fd = take(volume.open("/large", O_RDWR | O_CREAT));
  const std::vector<IoRange> whole = {{fd, memory, kFileBytes, 0}};
  std::vector<IoRange> small;
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < kSmallRanges; ++i) {
    small.push_back({fd, memory + uint64_t{i} * kSmallBytes, kSmallBytes,
                     random() % (kFileBytes / kSmallBytes) * kSmallBytes});
  }
  const auto read = [&](const std::vector<IoRange>& ranges) { return volume.read_ranges(ranges); };
  const auto write = [&](const std::vector<IoRange>& ranges) {
    return volume.write_ranges(ranges);
  };
  const auto show = [](const char* what, const Took& took, uint64_t bytes) {
    fmt::print("{:<28} {:>9.2f} ms {:>8.2f} GB/s, begun after {:.2f} ms\n", what, 1e3 * took.all,
               static_cast<double>(bytes) / took.all / 1e9, 1e3 * took.begun);
  };
  show("1 GiB, written, new", median(1, whole, write), kFileBytes);
  show("1 GiB, written over", median(runs, whole, write), kFileBytes);
  show("1 GiB, read", median(runs, whole, read), kFileBytes);
  constexpr uint64_t kSmallAll = kSmallRanges * kSmallBytes;
  show("100,000 x 16 KiB, read", median(runs, small, read), kSmallAll);
  show("100,000 x 16 KiB, written", median(runs, small, write), kSmallAll);
  const std::vector<IoRange> one = {{fd, memory, 4096, 0}};
  fmt::print("{:<28} {:>9.2f} us\n", "4 KiB, read, and waited for",
             1e6 * median(501, one, read).all);
  take(cudaFree(memory));
  return 0;
}
