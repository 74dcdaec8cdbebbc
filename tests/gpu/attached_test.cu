// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a program that is attached to gofsd: both run on one GPU at the same time, by MPS,
// which this program starts and ends. The kernels are linked with libgofs_client alone.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../daemon/daemon_for_test.hpp"
#include "../judges/random_calls_judge.hpp"
#include "gofs/gofs.cuh"
#include "random_calls_public.cuh"

#define CHECK_CUDA(call) ASSERT_EQ(call, cudaSuccess) << cudaGetErrorString(cudaGetLastError())

namespace {

using gofs::Volume;
using gofs::VolumeHandle;
using gofs::daemon_test::Daemon;

/// The control daemon of MPS, for the GPUs that this process sees. By a process that uses none: it
/// ends when all that do have gone.
class Mps {
 public:
  Mps() {
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder_.c_str(), 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", folder_.c_str(), 1);
    runs_ = succeeds("mkdir -p " + folder_ + " && nvidia-cuda-mps-control -d");
  }
  bool runs() const { return runs_; }
  /// Whether it could be ended. Where tests have `failed` its logs are shown.
  bool end(bool failed) {
    const bool ended =
        !runs_ || succeeds("echo quit -t 5 | timeout 20 nvidia-cuda-mps-control > /dev/null");
    if (failed || !ended) (void)succeeds("tail -n 40 " + folder_ + "/*.log >&2");
    return succeeds("rm -rf " + folder_) && ended;
  }

 private:
  static bool succeeds(const std::string& command) { return std::system(command.c_str()) == 0; }

  const std::string folder_ = "/tmp/gofs-mps-" + std::to_string(getpid());
  bool runs_ = false;
};

/// Results of a kernel, in memory that the host reads.
template <typename T>
class Pinned {
 public:
  explicit Pinned(size_t count = 1) {
    EXPECT_EQ(cudaMallocHost(&data_, count * sizeof(T)), cudaSuccess);
    std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* get() const { return data_; }
  T& operator[](size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
};

/// A server for all tests, where there is MPS.
class Servers : public ::testing::Environment {
 public:
  explicit Servers(bool are_there) : are_there_(are_there) {}
  void SetUp() override {
    if (!are_there_) return;
    daemon_.emplace();
    daemon_->start({"--backend", "cuda"});
    EXPECT_TRUE(daemon_->has_said("is served at")) << daemon_->said();
  }
  void TearDown() override {
    if (daemon_) daemon_->stop();
    daemon_.reset();
  }
  bool are_there() const { return are_there_; }
  Daemon& daemon() { return *daemon_; }

 private:
  const bool are_there_;
  std::optional<Daemon> daemon_;
};
Servers* all_servers = nullptr;
Servers& servers() { return *all_servers; }

/// Calls the server, and then stores to an address that nobody has; or not.
__global__ void fault_kernel(VolumeHandle vol, int* nowhere, int64_t* last) {
  int64_t answer = 0;
  for (int i = 0; i < 20; ++i) answer |= gofs::access(gofs::this_warp(), vol, "/", 0);
  if (threadIdx.x == 0) *last = answer;
  if (nowhere != nullptr) *nowhere = 1;
}

__global__ void spin_kernel(VolumeHandle vol, volatile int64_t* counts, int64_t* last) {
  int64_t answer = 0;
  while (answer == 0) {
    answer = gofs::access(gofs::this_warp(), vol, "/", 0);
    if (threadIdx.x == 0) counts[blockIdx.x] = counts[blockIdx.x] + 1;
  }
  if (threadIdx.x == 0) last[blockIdx.x] = answer;
}

/// A program that is told by this variable to be a client, and by its value of which server.
constexpr const char* kBeClient = "GOFS_TEST_CLIENT_OF";
/// And by this one what of: kernels that call until they fail where it is "spin", that read for
/// ever where it is "read on", into registered memory where it is "read on there", that fault where
/// it is "fault", and else a few calls.
constexpr const char* kClientDoes = "GOFS_TEST_CLIENT_DOES";
constexpr int kContextEnded = 5;

/// Exit status 0: it was answered; kContextEnded: its kernel was ended.
int call_and_fault(VolumeHandle handle, bool faults) {
  Pinned<int64_t> last;
  last[0] = 1;
  fault_kernel<<<1, 32>>>(handle, faults ? reinterpret_cast<int*>(16) : nullptr, last.get());
  const cudaError_t ended = cudaDeviceSynchronize();
  if (ended != cudaSuccess) std::_Exit(kContextEnded);
  std::_Exit(last[0] == 0 ? 0 : 3);
}

/// Reads the file into its block's part of memory, again and again.
__global__ void read_on_kernel(VolumeHandle vol, int fd, uint8_t* memory, uint64_t bytes,
                               volatile int64_t* counts) {
  uint8_t* const part = memory + blockIdx.x * bytes;
  while (gofs::pread(gofs::this_block(), vol, fd, part, bytes, 0) >= 0) {
    if (threadIdx.x == 0) counts[blockIdx.x] = counts[blockIdx.x] + 1;
  }
}

/// A kernel of it reads into memory that is registered, or not, until somebody kills it.
int read_on(Volume& volume, VolumeHandle handle, bool registers) {
  constexpr uint64_t kPart = 256 * 1024;
  constexpr int kBlocks = 8;
  const int fd = volume.open("/read-on", gofs::kOpenReadWrite | gofs::kOpenCreate, 0600).value();
  const std::vector<uint8_t> bytes(kPart, 'r');
  if (volume.pwrite(fd, bytes.data(), kPart, 0).value() != kPart) return 6;
  uint8_t* memory = nullptr;
  if (cudaMalloc(&memory, kBlocks * kPart) != cudaSuccess) return 7;
  if (registers && !volume.register_buffer(memory, kBlocks * kPart)) return 8;
  Pinned<int64_t> counts(kBlocks);
  read_on_kernel<<<kBlocks, 64>>>(handle, fd, memory, kPart, counts.get());
  const volatile int64_t* const seen = counts.get();
  while (seen[0] < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::printf("calls\n");
  std::fflush(stdout);
  for (;;) ::pause();
}

/// Exit status 0: all warps of its kernel were told -ESTALE; it ends as soon as they were.
/// kContextEnded: its kernel was ended before.
int be_client(const std::string& socket) {
  auto volume = Volume::attach(socket, {.attach_timeout_ns = 60'000'000'000});
  if (!volume) return std::fprintf(stderr, "%s\n", volume.error().message.c_str()), 1;
  const VolumeHandle handle = volume->device();
  for (const auto& warning : volume->warnings()) std::fprintf(stderr, "%s\n", warning.c_str());
  if (!handle) return 2;
  const std::string does = std::getenv(kClientDoes);
  if (does == "read on") return read_on(*volume, handle, false);
  if (does == "read on there") return read_on(*volume, handle, true);
  if (does != "spin") return call_and_fault(handle, does == "fault");
  Pinned<int64_t> counts(4);
  Pinned<int64_t> last(4);
  spin_kernel<<<4, 32>>>(handle, counts.get(), last.get());
  const volatile int64_t* const seen = counts.get();
  while (seen[0] < 1000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::printf("calls\n");
  std::fflush(stdout);
  const volatile int64_t* const ended = last.get();
  for (int i = 0; i < 4; ++i) {
    while (ended[i] == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const cudaError_t state = cudaStreamQuery(nullptr);
      if (state == cudaSuccess || state == cudaErrorNotReady) continue;
      std::fprintf(stderr, "its kernel was ended: %s\n", cudaGetErrorString(state));
      std::_Exit(kContextEnded);
    }
    if (ended[i] != -ESTALE) return 3;
  }
  // MPS leaves open what becomes of others when a client ends with work under way.
  std::_Exit(cudaDeviceSynchronize() == cudaSuccess ? 0 : 4);
}

std::string client_that(const std::string& does) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  return std::string(kBeClient) + "=" + servers().daemon().socket() + " " + kClientDoes + "='" +
         does + "' timeout -s KILL 90 " + self;
}

/// A fault of a client's kernel ends the contexts of all programs that MPS serves, the worker's
/// too. Clients of the host attach to the next one, which has what was durable, and clients with
/// kernels that come then are served. How long that took is printed. As often as the variable
/// GOFS_TEST_FAULTS says.
TEST(AFault, of_a_client_ends_the_worker_and_the_next_one_serves_others) {
  if (!servers().are_there()) GTEST_SKIP() << "there is no nvidia-cuda-mps-control";
  const char* const wanted = std::getenv("GOFS_TEST_FAULTS");
  const int faults = wanted != nullptr ? std::atoi(wanted) : 3;
  gofs::daemon_test::Counter one(servers().daemon().socket(), 1);
  gofs::daemon_test::Counter another(servers().daemon().socket(), 2);
  double longest = 0;
  for (int i = 0; i < faults; ++i) {
    SCOPED_TRACE(i);
    const int faulty = std::system(client_that("fault").c_str());
    EXPECT_EQ(WEXITSTATUS(faulty), kContextEnded);
    const auto began = std::chrono::steady_clock::now();
    // One that comes before the worker has noticed loses its context too.
    int status = -1;
    for (int tries = 0; tries < 20 && status != 0; ++tries) {
      status = std::system(client_that("call").c_str());
    }
    EXPECT_EQ(status, 0) << WEXITSTATUS(status) << servers().daemon().said();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    longest = std::max(longest, took.count());
  }
  const uint64_t counted = one.end() + another.end();
  EXPECT_GE(counted, 1u);
  std::printf(
      "%d faults; the next client was served and ended after %.2f s at the latest; "
      "2 of the host counted to %llu\n",
      faults, longest, static_cast<unsigned long long>(counted));
}

/// Where a process is killed that has a kernel under way, MPS may end the contexts of all others:
/// then the client's kernel has learnt nothing, and its program learns it from CUDA. In either case
/// the next worker serves the next client. These are the first tests, since this program uses no
/// GPU before.
TEST(AKilledWorker, ends_the_kernels_of_clients_and_the_next_one_serves_others) {
  if (!servers().are_there()) GTEST_SKIP() << "there is no nvidia-cuda-mps-control";
  for (int turn = 0; turn < 5; ++turn) {
    SCOPED_TRACE(turn);
    FILE* const running = ::popen(client_that("spin").c_str(), "r");
    ASSERT_NE(running, nullptr);
    char said[16] = {};
    EXPECT_NE(std::fgets(said, sizeof(said), running), nullptr);
    EXPECT_STREQ(said, "calls\n");
    if (said[0] != 0) servers().daemon().kill_worker();
    const int status = ::pclose(running);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kContextEnded)
        << WEXITSTATUS(status) << servers().daemon().said();
  }
}

/// A client is killed while its kernel reads, also into memory that the server reaches. MPS may end
/// the contexts of all others with it, and then the next worker serves. Another client sees no
/// wrong byte.
TEST(AKilledClient, whose_kernel_was_under_way_harms_no_file) {
  if (!servers().are_there()) GTEST_SKIP() << "there is no nvidia-cuda-mps-control";
  constexpr uint64_t kRegistered = uint64_t{8} * 256 * 1024;
  gofs::daemon_test::Counter other(servers().daemon().socket(), 1);
  int workers[2] = {};
  for (int turn = 0; turn < 6; ++turn) {
    SCOPED_TRACE(turn);
    const bool registers = turn % 2 == 1;
    const auto before = servers().daemon().status();
    FILE* const running =
        ::popen(client_that(registers ? "read on there" : "read on").c_str(), "r");
    ASSERT_NE(running, nullptr);
    char said[16] = {};
    EXPECT_NE(std::fgets(said, sizeof(said), running), nullptr);
    EXPECT_STREQ(said, "calls\n");
    // Of its two channels the first one has what is registered.
    const auto clients = servers().daemon().status().clients;
    uint64_t registered = 0;
    for (const auto& client : clients) registered += client.window_bytes;
    EXPECT_EQ(registered, registers ? kRegistered : 0);
    for (const auto& client : clients) {
      const bool is_new = std::none_of(before.clients.begin(), before.clients.end(),
                                       [&](const auto& one) { return one.pid == client.pid; });
      if (is_new && client.pid != getpid()) (void)::kill(client.pid, SIGKILL);
    }
    (void)::pclose(running);
    EXPECT_EQ(std::system(client_that("call").c_str()), 0) << servers().daemon().said();
    const auto after = servers().daemon().status();
    workers[registers] += after.pid != before.pid ? 1 : 0;
    for (const auto& client : after.clients) EXPECT_EQ(client.window_bytes, 0u);
  }
  std::printf(
      "%d of 3 took the worker with them, and %d of 3 that had registered memory; another "
      "client counted to %llu\n",
      workers[0], workers[1], static_cast<unsigned long long>(other.end()));
}

class AttachedKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!servers().are_there()) GTEST_SKIP() << "there is no nvidia-cuda-mps-control";
    attach();
  }
  void attach() {
    volume_.emplace(Volume::attach(servers().daemon().socket()).value());
    handle_ = volume_->device();
    for (const std::string& warning : volume_->warnings()) ADD_FAILURE() << warning;
    ASSERT_TRUE(handle_);
  }

  std::optional<Volume> volume_;
  VolumeHandle handle_;
};

struct Answers {
  int64_t values[32];
};

/// The calls of one group, each of whose answers its first thread notes.
template <typename Group>
__device__ void call_all(const Group& group, bool notes, VolumeHandle vol, const char* directory,
                         const char* path, const char* other, uint8_t* buffer, uint64_t bytes,
                         gofs::Stat* stat, Answers& answers) {
  int at = 0;
  const auto note = [&](int64_t answer) {
    if (notes) answers.values[at] = answer;
    ++at;
  };
  note(gofs::mkdir(group, vol, directory, 0755));
  note(gofs::open(group, vol, path));  // not yet
  const int fd = gofs::open(group, vol, path, gofs::kOpenReadWrite | gofs::kOpenCreate, 0644);
  note(fd >= 0 ? 1 : fd);
  note(gofs::pwrite(group, vol, fd, buffer, bytes, 0));
  note(gofs::fsync(group, vol, fd));
  note(gofs::pread(group, vol, fd, buffer + bytes, bytes + 100, 0));
  note(gofs::write(group, vol, fd, buffer, 1000));
  note(gofs::lseek(group, vol, fd, 0, 1));
  note(gofs::read(group, vol, fd, buffer + bytes, 500));
  note(gofs::fstat(group, vol, fd, stat));
  note(gofs::rename(group, vol, path, other));
  note(gofs::stat(group, vol, path, stat));
  note(gofs::ftruncate(group, vol, fd, 77));
  note(gofs::stat(group, vol, other, stat));
  note(gofs::setxattr(group, vol, other, "user.a", buffer, 10));
  note(gofs::getxattr(group, vol, other, "user.a", buffer + bytes, 100));
  note(gofs::close(group, vol, fd));
  note(gofs::close(group, vol, fd));
  note(gofs::pread(group, vol, fd, nullptr, 10, 0));
  note(gofs::unlink(group, vol, other));
  note(gofs::rmdir(group, vol, directory));
}

struct Texts {
  char directory[32];
  char path[48];
  char other[48];
};

/// `kind`: 0 threads, 1 warps, 2 blocks, 3 the grid. Every group has texts, memory and answers of
/// its own.
__global__ void call_kernel(VolumeHandle vol, int kind, const Texts* texts, uint8_t* memory,
                            uint64_t bytes, gofs::Stat* stats, Answers* answers) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t number = kind == 0 ? thread : kind == 1 ? thread / 32 : kind == 2 ? blockIdx.x : 0;
  const Texts& text = texts[number];
  uint8_t* const buffer = memory + number * 2 * (bytes + 128);
  gofs::Stat* const stat = stats + number;
  Answers& said = answers[number];
  if (kind == 0) {
    call_all(gofs::this_thread(), true, vol, text.directory, text.path, text.other, buffer, bytes,
             stat, said);
  } else if (kind == 1) {
    call_all(gofs::this_warp(), thread % 32 == 0, vol, text.directory, text.path, text.other,
             buffer, bytes, stat, said);
  } else if (kind == 2) {
    call_all(gofs::this_block(), threadIdx.x == 0, vol, text.directory, text.path, text.other,
             buffer, bytes, stat, said);
  } else {
    call_all(gofs::this_grid(), thread == 0, vol, text.directory, text.path, text.other, buffer,
             bytes, stat, said);
  }
}

class Groups : public AttachedKernels, public ::testing::WithParamInterface<int> {};

TEST_P(Groups, make_all_calls) {
  const int kind = GetParam();
  constexpr uint64_t kBytes = 700'001;
  const dim3 blocks(kind == 0 ? 1 : 3);
  const dim3 threads(kind == 0 ? 40 : 128);
  const uint32_t groups = kind == 0 ? 40 : kind == 1 ? 12 : kind == 2 ? 3 : 1;
  Pinned<Texts> texts(groups);
  for (uint32_t i = 0; i < groups; ++i) {
    std::snprintf(texts[i].directory, sizeof(texts[i].directory), "/d%d-%u", kind, i);
    std::snprintf(texts[i].path, sizeof(texts[i].path), "/d%d-%u/file", kind, i);
    std::snprintf(texts[i].other, sizeof(texts[i].other), "/d%d-%u/renamed", kind, i);
  }
  const uint64_t room = groups * 2 * (kBytes + 128);
  uint8_t* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, room));
  std::vector<uint8_t> bytes(room);
  for (uint64_t i = 0; i < room; ++i) bytes[i] = static_cast<uint8_t>(i * 7 / 3);
  CHECK_CUDA(cudaMemcpy(memory, bytes.data(), room, cudaMemcpyDefault));
  Pinned<gofs::Stat> stats(groups);
  Pinned<Answers> answers(groups);
  const Texts* text = texts.get();
  gofs::Stat* stat = stats.get();
  Answers* said = answers.get();
  uint64_t count = kBytes;
  int which = kind;
  void* arguments[] = {&handle_, &which, &text, &memory, &count, &stat, &said};
  CHECK_CUDA(cudaLaunchCooperativeKernel(call_kernel, blocks, threads, arguments, 0, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  std::vector<uint8_t> after(room);
  CHECK_CUDA(cudaMemcpy(after.data(), memory, room, cudaMemcpyDefault));
  cudaFree(memory);
  const int64_t all = static_cast<int64_t>(kBytes);
  const int64_t expected[] = {0,       -ENOENT, 1, all, 0,  all, 1000,   1000,    500, 0, 0,
                              -ENOENT, 0,       0, 0,   10, 0,   -EBADF, -EFAULT, 0,   0};
  for (uint32_t i = 0; i < groups; ++i) {
    for (size_t k = 0; k < std::size(expected); ++k) {
      EXPECT_EQ(answers[i].values[k], expected[k]) << "group " << i << ", call " << k;
    }
    EXPECT_EQ(stats[i].size_bytes, 77u);
    const uint64_t begin = i * 2 * (kBytes + 128);
    // What was read last lies over the first 500.
    EXPECT_EQ(std::memcmp(&bytes[begin + 500], &after[begin + kBytes + 500], kBytes - 500), 0)
        << "group " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, Groups, ::testing::Values(0, 1, 2, 3));

/// Files that a kernel makes, reads and lists as batches; offsets and sizes of each.
struct BatchTask {
  const char* directory;
  const char* const* names;
  uint32_t count;
  uint8_t* memory;
  uint8_t* found;
  const uint64_t* offsets;
  const uint64_t* bytes;
};

template <typename Group>
__device__ void call_batches(const Group& group, bool notes, VolumeHandle vol,
                             const BatchTask& task, int64_t* answers) {
  int at = 0;
  const auto note = [&](int64_t answer) {
    if (notes) answers[at] = answer;
    ++at;
  };
  note(gofs::mkdir(group, vol, task.directory, 0755));
  const int made = gofs::batch_create(group, vol, task.directory, task.names, task.count, 0600,
                                      task.memory, task.offsets, task.bytes);
  note(gofs::batch_count(vol, made));
  note(gofs::batch_file(vol, made, task.count - 1).created);
  note(gofs::batch_close(group, vol, made));
  note(gofs::batch_close(group, vol, made));
  const int named = gofs::batch_open(group, vol, task.directory, task.names, task.count);
  note(gofs::batch_count(vol, named));
  note(gofs::batch_file(vol, named, 1).size_bytes);
  note(gofs::batch_read(group, vol, named, task.found, task.offsets));
  note(gofs::batch_write(group, vol, named, task.memory, task.offsets, task.bytes));
  note(gofs::batch_close(group, vol, named));
  const int listed = gofs::batch_open(group, vol, task.directory, nullptr, 10'000);
  note(gofs::batch_count(vol, listed));
  note(gofs::batch_file(vol, listed, 0).error);
  note(gofs::batch_close(group, vol, listed));
  note(gofs::batch_create(group, vol, "/none", task.names, task.count, 0600, nullptr, nullptr,
                          nullptr));
}

__global__ void batch_kernel(VolumeHandle vol, int kind, BatchTask task, int64_t* answers) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if (kind == 3) {
    call_batches(gofs::this_grid(), first, vol, task, answers);
  } else if (blockIdx.x == 0 && kind == 2) {
    call_batches(gofs::this_block(), first, vol, task, answers);
  } else if (blockIdx.x == 0 && kind == 1 && threadIdx.x < 32) {
    call_batches(gofs::this_warp(), first, vol, task, answers);
  } else if (first && kind == 0) {
    call_batches(gofs::this_thread(), true, vol, task, answers);
  }
}

TEST_P(Groups, make_read_and_list_batches) {
  const int kind = GetParam();
  constexpr uint32_t kFiles = 150;
  const std::string directory = "/batch-" + std::to_string(kind);
  Pinned<char> texts(kFiles * 16 + 16);
  Pinned<const char*> names(kFiles);
  Pinned<uint64_t> offsets(kFiles);
  Pinned<uint64_t> bytes(kFiles);
  uint64_t all = 0;
  std::snprintf(texts.get(), 16, "%s", directory.c_str());
  for (uint32_t i = 0; i < kFiles; ++i) {
    char* const name = texts.get() + 16 + i * 16;
    std::snprintf(name, 16, "file-%u", i);
    names[i] = name;
    offsets[i] = all;
    bytes[i] = i == 7 ? 300'001 : 1000 + i;  // one is longer than a call takes
    all += bytes[i];
  }
  std::vector<uint8_t> contents(all);
  for (uint64_t i = 0; i < all; ++i) contents[i] = static_cast<uint8_t>(i * 11 / 7);
  uint8_t* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 2 * all));
  CHECK_CUDA(cudaMemset(memory, 0, 2 * all));
  CHECK_CUDA(cudaMemcpy(memory, contents.data(), all, cudaMemcpyDefault));
  BatchTask task{texts.get(),  names.get(),   kFiles,     memory,
                 memory + all, offsets.get(), bytes.get()};
  Pinned<int64_t> answers(16);
  int which = kind;
  int64_t* said = answers.get();
  void* arguments[] = {&handle_, &which, &task, &said};
  CHECK_CUDA(cudaLaunchCooperativeKernel(batch_kernel, dim3(4), dim3(128), arguments, 0, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  std::vector<uint8_t> found(all);
  CHECK_CUDA(cudaMemcpy(found.data(), memory + all, all, cudaMemcpyDefault));
  cudaFree(memory);
  const auto sum = static_cast<int64_t>(all);
  const int64_t expected[] = {0,   kFiles, 1, 0,      -EBADF, kFiles, 1001,
                              sum, sum,    0, kFiles, 0,      0,      -ENOENT};
  for (size_t k = 0; k < std::size(expected); ++k) {
    EXPECT_EQ(answers[k], expected[k]) << "call " << k;
  }
  EXPECT_EQ(found, contents);
}

__global__ void near_kernel(VolumeHandle vol, int64_t* answers) {
  __shared__ uint8_t shared[3000];
  const auto block = gofs::this_block();
  for (uint32_t i = threadIdx.x; i < sizeof(shared); i += blockDim.x) {
    shared[i] = static_cast<uint8_t>(i * 5);
  }
  __syncthreads();
  const int fd = gofs::open(block, vol, "/near", gofs::kOpenReadWrite | gofs::kOpenCreate, 0644);
  const int64_t wrote = gofs::pwrite(block, vol, fd, shared, sizeof(shared), 0);
  for (uint32_t i = threadIdx.x; i < sizeof(shared); i += blockDim.x) shared[i] = 0;
  __syncthreads();
  const int64_t got = gofs::pread(block, vol, fd, shared, sizeof(shared), 0);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < sizeof(shared); ++i) {
    if (shared[i] != static_cast<uint8_t>(i * 5)) ++wrong;
  }
  uint8_t own[64];
  const int64_t mine = gofs::pread(gofs::this_thread(), vol, fd, own, sizeof(own), threadIdx.x);
  for (uint32_t i = 0; i < sizeof(own); ++i) {
    if (own[i] != static_cast<uint8_t>((threadIdx.x + i) * 5)) ++wrong;
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(&answers[2]), wrong);
  if (mine != 64) atomicAdd(reinterpret_cast<unsigned long long*>(&answers[2]), 1ull);
  if (threadIdx.x == 0) {
    answers[0] = wrote;
    answers[1] = got;
  }
}

TEST_F(AttachedKernels, reach_shared_and_local_memory) {
  Pinned<int64_t> answers(3);
  near_kernel<<<1, 96>>>(handle_, answers.get());
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(answers[0], 3000);
  EXPECT_EQ(answers[1], 3000);
  EXPECT_EQ(answers[2], 0);
}

__global__ void async_kernel(VolumeHandle vol, int fd, uint8_t* buffer, int64_t* answers) {
  const auto warp = gofs::this_warp();
  gofs::Ticket tickets[8];
  for (int i = 0; i < 8; ++i) {
    tickets[i] = gofs::pwrite_async(warp, vol, fd, buffer + i * 4096, 4096, i * 4096);
  }
  int64_t sum = 0;
  for (const gofs::Ticket& ticket : tickets) sum += gofs::wait(warp, vol, ticket);
  for (int i = 0; i < 8; ++i) {
    tickets[i] = gofs::pread_async(warp, vol, fd, buffer + (8 + i) * 4096, 4096, i * 4096);
  }
  for (const gofs::Ticket& ticket : tickets) {
    while (!gofs::poll(warp, vol, ticket)) {
    }
    sum += gofs::wait(warp, vol, ticket);
  }
  if (threadIdx.x == 0) answers[0] = sum;
}

TEST_F(AttachedKernels, share_descriptors_with_the_host_and_start_what_they_wait_for_later) {
  const int fd = volume_->open("/async", O_RDWR | O_CREAT, 0600).value();
  Pinned<uint8_t> buffer(16 * 4096);
  for (int i = 0; i < 8 * 4096; ++i) buffer[i] = static_cast<uint8_t>(i / 5);
  Pinned<int64_t> answers;
  async_kernel<<<1, 32>>>(handle_, fd, buffer.get(), answers.get());
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(answers[0], 16 * 4096);
  EXPECT_EQ(std::memcmp(buffer.get(), buffer.get() + 8 * 4096, 8 * 4096), 0);
  std::vector<uint8_t> found(8 * 4096);
  EXPECT_EQ(volume_->pread(fd, found.data(), found.size(), 0).value(), found.size());
  EXPECT_EQ(std::memcmp(buffer.get(), found.data(), found.size()), 0);
}

/// Warps, each with its part, and then blocks, each with all of it: from memory to the file, and
/// into the memory behind that.
__global__ void copy_kernel(VolumeHandle vol, int fd, uint8_t* memory, uint64_t bytes,
                            int64_t* answers) {
  const auto block = gofs::this_block();
  const uint64_t part = bytes / (blockDim.x / 32);
  const uint64_t at = threadIdx.x / 32 * part;
  int64_t sum = gofs::pwrite(gofs::this_warp(), vol, fd, memory + at, part, at);
  __syncthreads();
  const int64_t got = gofs::pread(block, vol, fd, memory + bytes, bytes, 0);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(answers), static_cast<unsigned long long>(sum));
  }
  if (threadIdx.x == 0) answers[1] = got;
}

/// Memory that was mapped, and can be shared with other processes, or not.
class MappedMemory {
 public:
  MappedMemory(uint64_t bytes, bool shareable) : bytes_(bytes) {
    CUmemAllocationProp memory{};
    memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    if (shareable) memory.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access{};
    access.location = memory.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(call<decltype(&cuMemCreate)>("cuMemCreate")(&handle, bytes, &memory, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(call<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at_, bytes, 0, 0, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(call<decltype(&cuMemMap)>("cuMemMap")(at_, bytes, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(call<decltype(&cuMemRelease)>("cuMemRelease")(handle), CUDA_SUCCESS);
    EXPECT_EQ(call<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at_, bytes, &access, 1),
              CUDA_SUCCESS);
  }
  ~MappedMemory() {
    EXPECT_EQ(call<decltype(&cuMemUnmap)>("cuMemUnmap")(at_, bytes_), CUDA_SUCCESS);
  }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(at_); }

 private:
  template <typename Function>
  static Function call(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, 10020, cudaEnableDefault, &found),
              cudaSuccess);
    return reinterpret_cast<Function>(function);
  }

  const uint64_t bytes_;
  CUdeviceptr at_ = 0;
};

class RegisteredMemory : public AttachedKernels {
 protected:
  uint64_t registered() {
    uint64_t bytes = 0;
    for (const auto& client : servers().daemon().status().clients) bytes += client.window_bytes;
    return bytes;
  }
  /// Kernels and the host move `kBytes` from there to a file, and back to behind them.
  void expect_moved(uint8_t* memory) {
    const int fd = volume_->open("/registered", O_RDWR | O_CREAT | O_TRUNC, 0600).value();
    std::vector<uint8_t> bytes(kBytes);
    for (uint64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 4096 + seed_);
    ++seed_;
    CHECK_CUDA(cudaMemcpy(memory, bytes.data(), kBytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemset(memory + kBytes, 0, kBytes));
    Pinned<int64_t> answers(2);
    copy_kernel<<<1, 256>>>(handle_, fd, memory, kBytes, answers.get());
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(answers[0], kBytes);
    EXPECT_EQ(answers[1], kBytes);
    std::vector<uint8_t> found(kBytes);
    CHECK_CUDA(cudaMemcpy(found.data(), memory + kBytes, kBytes, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(found == bytes);
    found.assign(kBytes, 0);
    EXPECT_EQ(volume_->pread(fd, found.data(), kBytes, 0).value(), kBytes);
    EXPECT_TRUE(found == bytes);
    // By the host, in the order of a stream.
    CHECK_CUDA(cudaMemset(memory + kBytes, 0, kBytes));
    EXPECT_EQ(volume_->read_ranges({{fd, memory + kBytes, kBytes, 0}})->wait().value().at(0),
              kBytes);
    CHECK_CUDA(cudaMemcpy(found.data(), memory + kBytes, kBytes, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(found == bytes);
    CHECK_CUDA(cudaMemset(memory, 'w', kBytes));
    EXPECT_EQ(volume_->write_ranges({{fd, memory, kBytes, 0}})->wait().value().at(0), kBytes);
    EXPECT_EQ(volume_->pread(fd, found.data(), kBytes, 0).value(), kBytes);
    EXPECT_TRUE(found == std::vector<uint8_t>(kBytes, 'w'));
    EXPECT_TRUE(volume_->close(fd));
  }

  static constexpr uint64_t kBytes = uint64_t{4} << 20;
  uint32_t seed_ = 0;
};

TEST_F(RegisteredMemory, of_cudaMalloc_is_reached_by_the_server) {
  uint8_t* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 2 * kBytes + 4096));
  for (int turn = 0; turn < 3; ++turn) {
    const auto buffer = volume_->register_buffer(memory + 4096, 2 * kBytes);
    ASSERT_TRUE(buffer) << buffer.error().message;
    EXPECT_EQ(registered(), 2 * kBytes);
    expect_moved(memory + 4096);
    expect_moved(memory);  // some of it is not registered
    EXPECT_TRUE(volume_->unregister_buffer(*buffer));
    EXPECT_EQ(registered(), 0u);
    expect_moved(memory + 4096);
  }
  // It is freed while the server still reaches it.
  EXPECT_TRUE(volume_->register_buffer(memory, 2 * kBytes));
  expect_moved(memory);
  CHECK_CUDA(cudaFree(memory));
  attach();
  CHECK_CUDA(cudaMalloc(&memory, 2 * kBytes));
  expect_moved(memory);
  CHECK_CUDA(cudaFree(memory));
}

TEST_F(RegisteredMemory, that_was_mapped_is_reached_where_it_may_be_shared) {
  const MappedMemory shareable(2 * kBytes, true);
  const MappedMemory own(2 * kBytes, false);
  const auto buffer = volume_->register_buffer(shareable.data(), 2 * kBytes);
  ASSERT_TRUE(buffer) << buffer.error().message;
  EXPECT_EQ(registered(), 2 * kBytes);
  EXPECT_TRUE(volume_->register_buffer(own.data(), 2 * kBytes));
  EXPECT_EQ(registered(), 2 * kBytes) << "nobody else can have it";
  expect_moved(shareable.data());
  expect_moved(own.data());
  // A channel that is opened later, by another program object.
  attach();
  EXPECT_TRUE(volume_->register_buffer(shareable.data(), 2 * kBytes));
  expect_moved(shareable.data());
}

constexpr uint32_t kCounters = 1 << 20;  // in a file, each of its own value

/// Each block, of one warp, reads pages of counters, and notes how many were not as they should be.
__global__ void read_counters_kernel(VolumeHandle vol, int fd, uint32_t reads, uint64_t* failed) {
  constexpr uint32_t kOfPage = 1024;
  __shared__ uint32_t page[kOfPage];
  for (uint32_t i = 0; i < reads; ++i) {
    const uint32_t first = (blockIdx.x * 31 + i * 7) % (kCounters / kOfPage) * kOfPage;
    const int64_t got =
        gofs::pread(gofs::this_warp(), vol, fd, page, sizeof(page), uint64_t{first} * 4);
    __syncwarp();
    bool wrong = got != sizeof(page);
    for (uint32_t j = threadIdx.x; j < kOfPage && !wrong; j += 32) wrong = page[j] != first + j;
    if (__any_sync(~0u, wrong) && threadIdx.x == 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(failed), 1ull);
    }
    __syncwarp();
  }
}

TEST_F(AttachedKernels, that_fill_the_gpu_and_wait_are_served_from_turn_to_turn) {
  std::vector<uint32_t> counters(kCounters);
  for (uint32_t i = 0; i < kCounters; ++i) counters[i] = i;
  const int fd = volume_->open("/counters", O_RDWR | O_CREAT, 0600).value();
  ASSERT_EQ(volume_->pwrite(fd, counters.data(), kCounters * 4, 0).value(), kCounters * 4);
  // No block comes to its end before it is served, and some twenty times as many wait for a place.
  uint64_t* failed = nullptr;
  CHECK_CUDA(cudaMalloc(&failed, sizeof(*failed)));
  CHECK_CUDA(cudaMemset(failed, 0, sizeof(*failed)));
  cudaEvent_t done = nullptr;
  CHECK_CUDA(cudaEventCreate(&done));
  read_counters_kernel<<<100'000, 32>>>(handle_, fd, 10, failed);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaEventRecord(done));
  // Others come, call and go meanwhile.
  uint32_t came = 0;
  while (cudaEventQuery(done) == cudaErrorNotReady) {
    auto other = Volume::attach(servers().daemon().socket());
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ(other->stat("/counters").value().size_bytes, kCounters * 4);
    ++came;
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  uint64_t failures = ~uint64_t{0};
  CHECK_CUDA(cudaMemcpy(&failures, failed, sizeof(failures), cudaMemcpyDeviceToHost));
  EXPECT_EQ(failures, 0u);
  EXPECT_GT(came, 0u);
  CHECK_CUDA(cudaEventDestroy(done));
  CHECK_CUDA(cudaFree(failed));
}

constexpr uint32_t kRecordBytes = 64 * 1024;
constexpr uint32_t kRecordsOfBlock = 10;

/// Each block appends records, of one letter each, by turns from one buffer and from parts.
__global__ void append_kernel(VolumeHandle vol, int fd, char* records, int64_t* wrong) {
  char* const record = records + blockIdx.x * kRecordBytes;
  for (uint32_t i = threadIdx.x; i < kRecordBytes; i += blockDim.x) record[i] = 'a' + blockIdx.x;
  __shared__ gofs::IoVector parts[3];
  if (threadIdx.x == 0) {
    parts[0] = {record, 1};
    parts[1] = {record + 1, 4999};
    parts[2] = {record + 5000, kRecordBytes - 5000};
  }
  __syncthreads();
  for (uint32_t i = 0; i < kRecordsOfBlock; ++i) {
    const auto block = gofs::this_block();
    const int64_t wrote = i % 2 == 0 ? gofs::pwrite(block, vol, fd, record, kRecordBytes, 0)
                                     : gofs::pwritev(block, vol, fd, parts, 3, 0);
    if (wrote != kRecordBytes && threadIdx.x == 0) wrong[blockIdx.x] = wrote;
  }
}

TEST_F(AttachedKernels, append_records_as_a_whole) {
  constexpr uint32_t kBlocks = 6;
  const int fd = volume_->open("/records", O_RDWR | O_CREAT | O_APPEND, 0600).value();
  char* records = nullptr;
  CHECK_CUDA(cudaMalloc(&records, kBlocks * kRecordBytes));
  Pinned<int64_t> wrong(kBlocks);
  append_kernel<<<kBlocks, 128>>>(handle_, fd, records, wrong.get());
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(records));
  for (uint32_t block = 0; block < kBlocks; ++block) EXPECT_EQ(wrong[block], 0);
  std::string log(kBlocks * kRecordsOfBlock * kRecordBytes, '\0');
  ASSERT_EQ(volume_->pread(fd, log.data(), log.size(), 0).value(), log.size());
  for (size_t at = 0; at < log.size(); at += kRecordBytes) {
    EXPECT_TRUE(log.compare(at, kRecordBytes, std::string(kRecordBytes, log[at])) == 0) << at;
  }
}

__global__ void random_calls_kernel(gofs::testing::RandomCallsParams params, VolumeHandle vol) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  gofs::testing::random_calls_body(gofs::simt::Warp::full(), thread / 32, params,
                                   gofs_gpu_test::PublicVolume{vol});
}

TEST_F(AttachedKernels, do_what_their_models_do) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: the models are of user 0";
  constexpr uint32_t kBlocks = 16;
  constexpr uint32_t kWarpsOfBlock = 4;
  constexpr uint32_t kWarps = kBlocks * kWarpsOfBlock;
  gofs::testing::RandomCallsParams run = gofs::judges::random_run(300);
  SCOPED_TRACE(gofs::judges::words_of(run));
  const Pinned<int64_t> answers(size_t{kWarps} * run.calls);
  run.answers = answers.get();
  CHECK_CUDA(cudaMalloc(&run.scratch, kWarps * sizeof(gofs::testing::RandomScratch)));
  ASSERT_TRUE(volume_->mkdir("/shared", 0777));
  random_calls_kernel<<<kBlocks, kWarpsOfBlock * 32>>>(run, handle_);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(run.scratch));
  EXPECT_EQ(gofs::judges::judge_random_calls(run, kWarps, *volume_), "");
}

/// The tests, by a process that uses the GPU from here on.
int run_tests(int count, char** words, bool there_is_mps) {
  ::testing::InitGoogleTest(&count, words);
  all_servers = new Servers(there_is_mps);
  ::testing::AddGlobalTestEnvironment(all_servers);
  return RUN_ALL_TESTS();
}

}  // namespace

int main(int count, char** words) {
  if (const char* const socket = std::getenv(kBeClient)) return be_client(socket);
  Mps mps;
  const pid_t tests = fork();
  if (tests < 0) return 1;
  if (tests == 0) std::exit(run_tests(count, words, mps.runs()));
  int status = 0;
  const bool failed = waitpid(tests, &status, 0) != tests || status != 0;
  return mps.end(failed) && !failed ? 0 : 1;
}
