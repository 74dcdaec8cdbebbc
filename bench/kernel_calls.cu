// SPDX-License-Identifier: Apache-2.0
//
// Calls that kernels make, of a volume that is mounted here or by gofsd: the same kernel, so what
// is measured of one and of the other may be compared.
//
// usage: gofs_kernel_calls VOLUME|SOCKET [SECONDS [WARPS,... [CALL [TIME]]]]
//   The volume gets a file of 64 MiB. CALL is the only call that is measured, TIME the second of
//   the epoch at which it begins: several programs then measure at once.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "take.hpp"

namespace {

using gofs::Volume;
using gofs::VolumeHandle;
using gofs::measuring::fail;
using gofs::measuring::take;

constexpr const char* kPath = "/gofs_kernel_calls";
constexpr uint64_t kFileBytes = uint64_t{64} << 20;
constexpr uint64_t kSmall = 4096;
constexpr uint64_t kLarge = 128 * 1024;
constexpr uint32_t kWarpsOfBlock = 4;

enum class Kind { kAccess, kRead, kWrite };
struct Row {
  Kind kind;
  uint64_t bytes;
  bool registered;  // the memory that is read into, or written from
  const char* name;
};
constexpr Row kRows[] = {
    {Kind::kAccess, kSmall, false, "access"},   {Kind::kRead, kSmall, false, "pread 4 KiB"},
    {Kind::kRead, kSmall, true, "registered"},  {Kind::kWrite, kSmall, false, "pwrite 4 KiB"},
    {Kind::kWrite, kSmall, true, "registered"}, {Kind::kRead, kLarge, false, "pread 128 KiB"},
    {Kind::kRead, kLarge, true, "registered"},  {Kind::kWrite, kLarge, false, "pwrite 128 KiB"},
    {Kind::kWrite, kLarge, true, "registered"}};

void take(cudaError_t result) {
  if (result != cudaSuccess) fail(cudaGetErrorString(result));
}

bool is_socket(const char* path) {
  struct stat there {};
  return stat(path, &there) == 0 && S_ISSOCK(there.st_mode);
}

__device__ uint64_t now_ns() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// What a warp has done in its time.
struct Done {
  uint64_t calls;
  uint64_t ns;
  int64_t error;  // of a call that failed, or 0
};

/// Calls of each warp, one after the other, for `ns`: of `bytes` anywhere in the file.
__global__ void call_kernel(VolumeHandle volume, int fd, Kind kind, uint64_t bytes, uint64_t ns,
                            uint8_t* buffers, Done* all) {
  const uint32_t number = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const auto warp = gofs::this_warp();
  uint8_t* const buffer = buffers + number * bytes;
  uint64_t random = number;
  Done done{};
  const uint64_t began = now_ns();
  do {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t offset = (random >> 33) % (kFileBytes / bytes) * bytes;
    int64_t answer = 0;
    switch (kind) {
      case Kind::kAccess:
        answer = gofs::access(warp, volume, "/", 0);
        break;
      case Kind::kRead:
        answer = gofs::pread(warp, volume, fd, buffer, bytes, offset);
        break;
      case Kind::kWrite:
        answer = gofs::pwrite(warp, volume, fd, buffer, bytes, offset);
        break;
    }
    if (answer < 0) done.error = answer;
    ++done.calls;
    done.ns = __shfl_sync(~0u, now_ns() - began, 0);
  } while (done.error == 0 && done.ns < ns);
  if (threadIdx.x % 32 == 0) all[number] = done;
}

class Calls {
 public:
  Calls(Volume& volume, uint32_t warps_most) : volume_(volume) {
    if (!volume_.device()) fail("kernels cannot use it: " + first_warning());
    fd_ = take(volume_.open(kPath, O_RDWR | O_CREAT, 0600));
    const std::vector<uint8_t> bytes(uint64_t{1} << 20, 'x');
    for (uint64_t at = 0; at < kFileBytes; at += bytes.size()) {
      take(volume_.pwrite(fd_, bytes.data(), bytes.size(), at));
    }
    buffer_bytes_ = warps_most * kLarge;
    take(cudaMalloc(&buffers_, buffer_bytes_));
    take(cudaMallocHost(&done_, warps_most * sizeof(Done)));
  }

  void show(const Row& row, uint32_t warps, double seconds) {
    gofs::BufferHandle registered;
    if (row.registered) registered = take(volume_.register_buffer(buffers_, buffer_bytes_));
    const uint32_t of_block = warps % kWarpsOfBlock == 0 ? kWarpsOfBlock : 1;
    call_kernel<<<warps / of_block, 32 * of_block>>>(volume_.device(), fd_, row.kind, row.bytes,
                                                     static_cast<uint64_t>(1e9 * seconds), buffers_,
                                                     done_);
    take(cudaGetLastError());
    take(cudaDeviceSynchronize());
    if (row.registered) take(volume_.unregister_buffer(registered));
    uint64_t calls = 0;
    uint64_t ns = 0;
    double rate = 0;
    for (uint32_t i = 0; i < warps; ++i) {
      const Done& done = done_[i];
      if (done.error != 0)
        fail(std::string(row.name) + ": " + std::strerror(static_cast<int>(-done.error)));
      calls += done.calls;
      ns += done.ns;
      rate += 1e9 * static_cast<double>(done.calls) / static_cast<double>(done.ns);
    }
    std::printf("%-18s %8u %10.2f us %10.0f/s\n", row.name, warps,
                1e-3 * static_cast<double>(ns) / static_cast<double>(calls), rate);
    std::fflush(stdout);
  }

 private:
  std::string first_warning() const {
    const auto warnings = volume_.warnings();
    return warnings.empty() ? "of the CPU" : warnings.front();
  }

  Volume& volume_;
  int fd_ = -1;
  uint8_t* buffers_ = nullptr;
  uint64_t buffer_bytes_ = 0;
  Done* done_ = nullptr;
};

/// How long it takes a program to come, and to get a channel for its kernels; CUDA's context is
/// there already.
void show_coming(const char* socket) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  constexpr int kTimes = 20;
  Milliseconds attaching{};
  Milliseconds for_kernels{};
  for (int i = 0; i < kTimes; ++i) {
    const auto began = Clock::now();
    Volume volume = take(Volume::attach(socket));
    const auto attached = Clock::now();
    if (!volume.device()) fail("kernels cannot use it");
    attaching += attached - began;
    for_kernels += Clock::now() - attached;
  }
  std::printf("to attach takes %.2f ms, and the channel for kernels %.2f ms\n",
              attaching.count() / kTimes, for_kernels.count() / kTimes);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr,
                 "usage: gofs_kernel_calls VOLUME|SOCKET [SECONDS [WARPS,... [CALL [TIME]]]]\n");
    return 2;
  }
  const double seconds = count > 2 ? std::stod(words[2]) : 0.5;
  std::vector<uint32_t> warps;
  std::stringstream list(count > 3 ? words[3] : "1,32,256,1024");
  for (std::string word; std::getline(list, word, ',');) warps.push_back(std::stoul(word));
  Volume volume = is_socket(words[1])
                      ? take(Volume::attach(words[1]))
                      : take(Volume::mount(words[1], {.backend = "cuda", .read_only = false}));
  Calls calls(volume, *std::max_element(warps.begin(), warps.end()));
  const char* const only = count > 4 ? words[4] : nullptr;
  if (only == nullptr)
    std::printf("%-18s %8s %13s %12s\n", "call", "warps", "one call", "together");
  if (count > 5) {
    using Clock = std::chrono::system_clock;
    const Clock::time_point begin(std::chrono::seconds(std::stoll(words[5])));
    if (Clock::now() > begin) fail("it was not ready in time");
    std::this_thread::sleep_until(begin);
  }
  bool measured = false;
  for (const Row& row : kRows) {
    if (only != nullptr && std::string_view(row.name) != only) continue;
    for (const uint32_t one : warps) calls.show(row, one, seconds);
    measured = true;
  }
  if (!measured) fail(std::string("no such call: ") + only);
  if (only == nullptr && is_socket(words[1])) show_coming(words[1]);
  return 0;
}
