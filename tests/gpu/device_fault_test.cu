// SPDX-License-Identifier: Apache-2.0
//
// A kernel of the program that has a fault while others write: the CUDA context is gone, every call
// says so, nothing aborts or hangs, and another process finds what was synced. A fault ends the GPU
// for its process, so each comes in a child, which is this program again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fresh_volume.h"
#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#undef NDEBUG  // the assert below is a fault
#include <cassert>

namespace {

constexpr size_t kKeptBytes = 3'000'000;
constexpr const char* kImageVariable = "GOFS_FAULT_TEST_IMAGE";
constexpr const char* kFaultVariable = "GOFS_FAULT_TEST_KIND";

enum class Fault : int { kIllegalAddress, kMisaligned, kTrap, kAssert };

std::vector<char> kept_bytes(char first) {
  std::vector<char> bytes(kKeptBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(first + i * 7 + i / 253);
  return bytes;
}

__global__ void fault_kernel(Fault fault, char* somewhere) {
  switch (fault) {
    case Fault::kIllegalAddress:
      *reinterpret_cast<volatile int*>(16) = 1;
      return;
    case Fault::kMisaligned:
      *reinterpret_cast<volatile int*>(somewhere + 1) = 1;
      return;
    case Fault::kTrap:
      __trap();
      return;
    case Fault::kAssert:
      assert(somewhere == nullptr);
      return;
  }
}

/// "/wNNNNN" of a warp.
__device__ void name_of_warp(char* path, uint32_t warp) {
  path[0] = '/';
  path[1] = 'w';
  for (int i = 6; i >= 2; --i, warp /= 10) path[i] = static_cast<char>('0' + warp % 10);
  path[7] = '\0';
}

/// Each warp writes a file of its own, new and over what is there, and syncs it now and then; many
/// times, but not for ever.
__global__ void writers_kernel(gofs::VolumeHandle vol, const char* bytes, char* paths,
                               unsigned int* begun) {
  const auto warp = gofs::this_warp();
  const uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  char* const path = paths + 8 * index;
  if (threadIdx.x % 32 == 0) name_of_warp(path, index);
  __syncwarp();
  const int fd = gofs::open(warp, vol, path, gofs::kOpenCreate | gofs::kOpenReadWrite, 0644);
  for (uint32_t turn = 0; turn < 100'000 && fd >= 0; ++turn) {
    gofs::pwrite(warp, vol, fd, bytes + turn % 100, 5000, turn % 40 * 4000);
    if (turn % 16 == 15) gofs::fsync(warp, vol, fd);
    if (turn == 3 && threadIdx.x % 32 == 0) atomicAdd_system(begun, 1u);
  }
}

/// Whether `result` is CUDA's error, and says what to do.
template <typename T>
::testing::AssertionResult tells_fault(const gofs::Expected<T>& result) {
  if (result) return ::testing::AssertionFailure() << "it succeeds";
  const std::string& words = result.error().message;
  const bool told = words.find("cudaError") != std::string::npos &&
                    words.find("another process can mount it") != std::string::npos;
  if (told && result.error().code == EIO) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().code << ": " << words;
}

void keep_file(gofs::Volume& volume, const char* path, char first, bool by_fsync) {
  const std::vector<char> bytes = kept_bytes(first);
  const int fd = volume.open(path, O_CREAT | O_WRONLY, 0644).value();
  ASSERT_EQ(volume.pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  const auto synced = by_fsync ? volume.fsync(fd) : volume.sync();
  ASSERT_TRUE(synced) << synced.error().message;
}

/// Starts writers, and when all of them are at it, makes files durable beside them, and then comes
/// the kernel with the fault.
void have_fault_beside_writers(gofs::Volume& volume, Fault fault) {
  constexpr unsigned int kBlocks = 32;
  constexpr unsigned int kWarps = kBlocks * 4;
  char* bytes = nullptr;
  char* paths = nullptr;
  unsigned int* begun = nullptr;
  cudaStream_t writing = nullptr;
  cudaStream_t failing = nullptr;
  CHECK_CUDA(cudaMalloc(&bytes, 8192));
  CHECK_CUDA(cudaMemset(bytes, 'w', 8192));
  CHECK_CUDA(cudaMalloc(&paths, 8 * kWarps));
  CHECK_CUDA(cudaMallocHost(&begun, sizeof(*begun)));
  *begun = 0;
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaStreamCreateWithFlags(&writing, cudaStreamNonBlocking));
  CHECK_CUDA(cudaStreamCreateWithFlags(&failing, cudaStreamNonBlocking));
  writers_kernel<<<kBlocks, 128, 0, writing>>>(volume.device(), bytes, paths, begun);
  CHECK_CUDA(cudaGetLastError());
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (*static_cast<volatile unsigned int*>(begun) < kWarps) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience) << "the writers do not get on";
    std::this_thread::yield();
  }
  keep_file(volume, "/beside", 'b', true);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  keep_file(volume, "/and-again", 'a', false);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(cudaStreamQuery(writing), cudaErrorNotReady) << "the writers have ended";
  fault_kernel<<<1, 1, 0, failing>>>(fault, bytes);
  EXPECT_NE(cudaStreamSynchronize(failing), cudaSuccess);
}

/// The child; the cases below start it.
TEST(DeviceFaultChild, DISABLED_has_a_fault_beside_writers) {
  const char* const image = std::getenv(kImageVariable);
  const char* const kind = std::getenv(kFaultVariable);
  ASSERT_TRUE(image != nullptr && kind != nullptr) << "started by DeviceFault";
  const gofs::MountOptions options{.backend = "cuda", .read_only = false};
  auto volume = gofs::Volume::mount(image, options);
  ASSERT_TRUE(volume) << volume.error().message;
  keep_file(*volume, "/synced", 's', false);
  keep_file(*volume, "/fsynced", 'f', true);
  const int fd = volume->open("/fsynced", O_RDWR).value();
  have_fault_beside_writers(*volume, static_cast<Fault>(std::atoi(kind)));

  char bytes[100] = {};
  EXPECT_TRUE(tells_fault(volume->pread(fd, bytes, sizeof(bytes), 0)));
  EXPECT_TRUE(tells_fault(volume->pwrite(fd, bytes, sizeof(bytes), 0)));
  EXPECT_TRUE(tells_fault(volume->stat("/synced")));
  EXPECT_TRUE(tells_fault(volume->batch_create("/", {{"new", bytes, 10}})));
  EXPECT_TRUE(tells_fault(volume->collect_garbage()));
  EXPECT_TRUE(tells_fault(volume->statfs()));
  EXPECT_TRUE(tells_fault(volume->memory()));
  EXPECT_TRUE(tells_fault(volume->fsync(fd)));
  EXPECT_TRUE(tells_fault(volume->sync()));
  ASSERT_EQ(volume->warnings().size(), 1u);
  EXPECT_EQ(volume->info().backend, "cuda");
  if (std::atoi(kind) % 2 == 0) EXPECT_TRUE(tells_fault(volume->unmount()));
  for (const char* backend : {"cuda", "auto"}) {
    const auto second = gofs::Volume::mount("ram:64M", {.backend = backend});
    ASSERT_FALSE(second) << backend;
    EXPECT_NE(second.error().message.find("only a new process"), std::string::npos)
        << second.error().message;
  }
}  // and the destructor

/// Runs the child on `spec`. Its exit status, or -1 where it was ended by a signal or hung.
int run_child(const std::string& spec, Fault fault) {
  std::vector<std::string> texts = {
      std::string(kImageVariable) + "=" + spec,
      std::string(kFaultVariable) + "=" + std::to_string(static_cast<int>(fault))};
  std::vector<char*> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text(*one);
    if (!text.starts_with("GTEST_")) environment.push_back(*one);  // its shard is none of ours
  }
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=DeviceFaultChild.*";
  std::string disabled = "--gtest_also_run_disabled_tests";
  char* const arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = -1;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()) != 0) {
    return -1;
  }
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > patience) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      ADD_FAILURE() << "the child hangs";
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(status)) ADD_FAILURE() << "ended by signal " << WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void expect_kept(gofs::Volume& volume, const char* path, char first) {
  const std::vector<char> wanted = kept_bytes(first);
  std::vector<char> got(wanted.size() + 1);
  const auto fd = volume.open(path);
  ASSERT_TRUE(fd) << fd.error().message;
  const auto read = volume.pread(*fd, got.data(), got.size(), 0);
  ASSERT_TRUE(read) << read.error().message;
  got.resize(*read);
  EXPECT_TRUE(got == wanted) << path;
}

void expect_all_survives(const char* options, Fault fault) {
  if (gofs_gpu_test::under_sanitizer()) GTEST_SKIP() << "the fault is no finding";
  const gofs_gpu_test::FreshVolume image{256, [](gofs::image::ImageBuilder&) {}};
  ASSERT_EQ(run_child(image.path() + options, fault), 0);
  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu", .read_only = false});
  ASSERT_TRUE(volume) << volume.error().message;
  expect_kept(*volume, "/synced", 's');
  expect_kept(*volume, "/fsynced", 'f');
  expect_kept(*volume, "/beside", 'b');
  expect_kept(*volume, "/and-again", 'a');
  const auto unmounted = volume->unmount();
  ASSERT_TRUE(unmounted) << unmounted.error().message;
  if (!gofs::image::tool_exists("fsck.f2fs")) return;
  EXPECT_TRUE(gofs::image::fsck_is_clean(image.path()));
}

TEST(DeviceFault, what_was_synced_survives_an_illegal_address) {
  expect_all_survives("?media=memory", Fault::kIllegalAddress);
}

TEST(DeviceFault, what_was_synced_survives_a_misaligned_address) {
  expect_all_survives("?media=memory", Fault::kMisaligned);
}

TEST(DeviceFault, what_was_synced_survives_a_trap) {
  expect_all_survives("?media=memory", Fault::kTrap);
}

TEST(DeviceFault, what_was_synced_survives_an_assert) {
  expect_all_survives("?media=memory", Fault::kAssert);
}

TEST(DeviceFault, what_was_synced_survives_where_the_media_is_lost) {
  expect_all_survives("?media=hbm", Fault::kIllegalAddress);
}

}  // namespace
