// SPDX-License-Identifier: Apache-2.0
//
// Draws a picture on the GPU into a new file: each warp draws one band after the other into one of
// its two buffers, while the SSD takes the other one. Then the host reads the file and checks.
//
//   draw VOLUME FILE        (a grey picture, as PGM)
#include <fcntl.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

constexpr uint32_t kWidth = 2048;
constexpr uint32_t kHeight = 1536;
constexpr uint32_t kBandBytes = 8 * kWidth;  // whole blocks of 4 KiB: zero copy
constexpr uint32_t kBands = kWidth * kHeight / kBandBytes;
constexpr uint64_t kHeaderBytes = 4096;
constexpr uint32_t kWarps = 32;

/// How soon z = z * z + c leaves the circle of radius 2 (Mandelbrot's set), with 24 bits behind the
/// point, so that CPU and GPU agree.
__host__ __device__ uint8_t shade(uint32_t pixel) {
  constexpr int kShift = 24;
  const int64_t c_x = (int64_t{pixel % kWidth} * 7 << kShift) / (2 * kWidth) - (5 << kShift) / 2;
  const int64_t c_y = (int64_t{pixel / kWidth} * 5 << kShift) / (2 * kHeight) - (5 << kShift) / 4;
  int64_t x = 0;
  int64_t y = 0;
  uint8_t steps = 0;
  for (; steps < 255 && x * x + y * y < int64_t{4} << 2 * kShift; ++steps) {
    const int64_t next = ((x * x - y * y) >> kShift) + c_x;
    y = (2 * x * y >> kShift) + c_y;
    x = next;
  }
  return static_cast<uint8_t>(255 - steps);
}

/// Warps of 32, one a block. `errors`: a negative errno for each, or 0.
__global__ void draw(gofs::VolumeHandle vol, int fd, uint8_t* buffers, int64_t* errors) {
  const auto warp = gofs::this_warp();
  gofs::Ticket tickets[2];
  int64_t error = 0;
  const auto end = [&](const gofs::Ticket& ticket) {
    const int64_t written = gofs::wait(warp, vol, ticket);
    if (written != kBandBytes) error = written < 0 ? written : -EIO;
  };
  uint32_t started = 0;
  for (uint32_t band = blockIdx.x; band < kBands; band += gridDim.x, ++started) {
    gofs::Ticket& ticket = tickets[started % 2];
    uint8_t* const pixels = buffers + (2 * blockIdx.x + started % 2) * kBandBytes;
    if (started >= 2) end(ticket);  // the buffer is ours again
    for (uint32_t i = threadIdx.x; i < kBandBytes; i += 32)
      pixels[i] = shade(band * kBandBytes + i);
    ticket = gofs::pwrite_async(warp, vol, fd, pixels, kBandBytes,
                                kHeaderBytes + uint64_t{band} * kBandBytes);
  }
  for (uint32_t i = started < 2 ? 0 : started - 2; i < started; ++i) end(tickets[i % 2]);
  if (threadIdx.x == 0) errors[blockIdx.x] = error;
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("usage: draw VOLUME FILE");
  gofs::MountOptions options;
  options.backend = "cuda";
  options.read_only = false;
  gofs::Volume volume = gofs::Volume::mount(argv[1], options).value();
  const std::string head = "P5\n#";
  const std::string tail =
      "\n" + std::to_string(kWidth) + " " + std::to_string(kHeight) + "\n255\n";
  // The comment makes it a block.
  const std::string header =
      head + std::string(kHeaderBytes - head.size() - tail.size(), ' ') + tail;
  const int fd = volume.open(argv[2], O_RDWR | O_CREAT | O_TRUNC).value();
  // As long as it will be: writes behind the end would wait for each other.
  volume.ftruncate(fd, kHeaderBytes + uint64_t{kBands} * kBandBytes).value();
  volume.pwrite(fd, header.data(), header.size(), 0).value();
  uint8_t* buffers = nullptr;
  int64_t* errors = nullptr;
  check(cudaMalloc(&buffers, 2 * kWarps * kBandBytes));
  check(cudaMallocHost(&errors, kWarps * sizeof(int64_t)));
  draw<<<kWarps, 32>>>(volume.device(), fd, buffers, errors);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  for (uint32_t i = 0; i < kWarps; ++i) {
    const std::string warp = "warp " + std::to_string(i);
    if (errors[i] != 0) throw std::runtime_error(warp + ": " + gofs::error_text(errors[i]));
  }
  std::vector<uint8_t> pixels(kBands * kBandBytes);
  volume.pread(fd, pixels.data(), pixels.size(), kHeaderBytes).value();
  volume.close(fd).value();
  volume.unmount().value();  // and it is durable
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < pixels.size(); i += 7) wrong += pixels[i] != shade(i) ? 1 : 0;
  std::printf("%s: %u x %u, %u pixels wrong\n", argv[2], kWidth, kHeight, wrong);
  check(cudaFreeHost(errors));
  check(cudaFree(buffers));
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "draw: %s\n", error.what());
  return 1;
}
