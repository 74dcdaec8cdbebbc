// SPDX-License-Identifier: Apache-2.0
//
// Counts the words of files on the GPU: each block opens a file by its name, reads it piece by
// piece and counts. Then the host reads the same files through the same volume and checks.
//
//   word_count VOLUME FILE...
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"

constexpr uint64_t kPieceBytes = 64 << 10;

struct Job {
  char path[256];
  unsigned long long words;
  int error;  // 0 or a negative errno
};

__host__ __device__ bool starts_word(char before, char c) {
  return (before == ' ' || before == '\n') && c != ' ' && c != '\n';
}

__global__ void count_words(gofs::VolumeHandle vol, Job* jobs, char* pieces) {
  const auto block = gofs::this_block();
  Job& job = jobs[blockIdx.x];
  char* const piece = pieces + blockIdx.x * kPieceBytes;
  const int fd = gofs::open(block, vol, job.path);  // every thread gets the same answer
  int64_t got = fd;
  unsigned long long words = 0;
  char last = ' ';  // of the piece before
  // A block's call begins when all of its threads have come, and what it read is there for all of
  // them when it returns: `piece` needs no barriers of ours.
  for (uint64_t at = 0; fd >= 0; at += kPieceBytes) {
    got = gofs::pread(block, vol, fd, piece, kPieceBytes, at);
    if (got <= 0) break;
    for (int64_t i = threadIdx.x; i < got; i += blockDim.x) {
      words += starts_word(i == 0 ? last : piece[i - 1], piece[i]);
    }
    last = piece[got - 1];
  }
  if (fd >= 0) gofs::close(block, vol, fd);
  atomicAdd(&job.words, words);
  if (threadIdx.x == 0) job.error = static_cast<int>(got);
}

uint64_t count_on_host(gofs::Volume& volume, const char* path) {
  const int fd = volume.open(path).value();
  std::vector<char> text(volume.fstat(fd).value().size_bytes);
  volume.pread(fd, text.data(), text.size(), 0).value();
  volume.close(fd).value();
  uint64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i) words += starts_word(i ? text[i - 1] : ' ', text[i]);
  return words;
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

int main(int argc, char** argv) try {
  if (argc < 3) throw std::invalid_argument("usage: word_count VOLUME FILE...");
  gofs::MountOptions options;
  options.backend = "cuda";
  gofs::Volume volume = gofs::Volume::mount(argv[1], options).value();
  const auto count = static_cast<unsigned>(argc - 2);
  std::vector<Job> jobs(count);
  for (unsigned i = 0; i < count; ++i) {
    std::snprintf(jobs[i].path, sizeof(jobs[i].path), "%s", argv[i + 2]);
  }
  const size_t job_bytes = count * sizeof(Job);
  Job* gpu_jobs = nullptr;
  char* pieces = nullptr;
  check(cudaMalloc(&gpu_jobs, job_bytes));
  check(cudaMalloc(&pieces, count * kPieceBytes));
  check(cudaMemcpy(gpu_jobs, jobs.data(), job_bytes, cudaMemcpyHostToDevice));
  count_words<<<count, 256>>>(volume.device(), gpu_jobs, pieces);
  check(cudaGetLastError());
  check(cudaMemcpy(jobs.data(), gpu_jobs, job_bytes, cudaMemcpyDeviceToHost));
  bool right = true;
  for (const Job& job : jobs) {
    std::printf("%8llu %s %s\n", job.words, job.path, job.error ? gofs::error_text(job.error) : "");
    right = right && job.error == 0 && job.words == count_on_host(volume, job.path);
  }
  check(cudaFree(pieces));
  check(cudaFree(gpu_jobs));
  return right ? 0 : 1;
} catch (const std::exception& error) {  // those of GoFS name the path and what went wrong
  std::fprintf(stderr, "word_count: %s\n", error.what());
  return 1;
}
