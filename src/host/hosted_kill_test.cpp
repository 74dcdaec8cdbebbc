// SPDX-License-Identifier: Apache-2.0
//
// A process that writes to a hosted SSD and is killed at any moment: what fsync had made durable is
// there, and the volume is sound. The writer is a child of fork(), before this process has threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"

namespace gofs {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kWriters = 3;

/// What writer `writer` has put into its file `number`.
std::vector<char> contents_of(uint32_t writer, uint32_t number) {
  std::vector<char> bytes(1000 + number * 7919 % 60000);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(writer * 31 + number * 7 + i * 3);
  }
  return bytes;
}

std::string path_of(uint32_t writer, uint32_t number) {
  return "/w" + std::to_string(writer) + "_" + std::to_string(number);
}

struct Made {
  uint32_t writer;
  uint32_t number;
};

/// Makes files until it is killed, and tells of each that is durable. Every fourth one it writes
/// over, and some it removes again.
void write_files(Volume& volume, uint32_t writer, uint32_t first, int tell) {
  for (uint32_t number = first;; ++number) {
    const std::vector<char> bytes = contents_of(writer, number);
    const auto fd = volume.open(path_of(writer, number), kOpenReadWrite | kOpenCreate, 0644);
    if (!fd) _exit(2);
    if (number % 4 == 0 && !volume.pwrite(*fd, std::vector<char>(3000, 'o').data(), 3000, 0)) {
      _exit(3);
    }
    const auto wrote = volume.pwrite(*fd, bytes.data(), bytes.size(), 0);
    if (!wrote || *wrote != bytes.size()) _exit(4);
    if (!volume.ftruncate(*fd, bytes.size()) || !volume.fsync(*fd) || !volume.close(*fd)) _exit(5);
    const Made made{writer, number};
    if (::write(tell, &made, sizeof(made)) != sizeof(made)) _exit(6);
    const std::string gone = "/t" + std::to_string(writer);
    const auto other = volume.open(gone, kOpenReadWrite | kOpenCreate, 0644);
    if (!other || !volume.close(*other) || !volume.unlink(gone)) _exit(7);
  }
}

[[noreturn]] void be_killed(const std::string& spec, uint32_t first, int tell) {
  auto volume = Volume::mount(spec, {.backend = "cpu", .read_only = false});
  if (!volume) _exit(1);
  std::vector<std::thread> threads;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] { write_files(*volume, writer, first, tell); });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(8);
}

void expect_there(const std::string& spec, const std::vector<Made>& all) {
  auto volume = Volume::mount(spec, {.backend = "cpu", .read_only = false});
  ASSERT_TRUE(volume) << volume.error().message;
  for (const Made& made : all) {
    const std::vector<char> wanted = contents_of(made.writer, made.number);
    const auto fd = volume->open(path_of(made.writer, made.number));
    ASSERT_TRUE(fd) << fd.error().message;
    std::vector<char> bytes(wanted.size() + 1);
    const auto got = volume->pread(*fd, bytes.data(), bytes.size(), 0);
    ASSERT_TRUE(got);
    ASSERT_EQ(*got, wanted.size()) << path_of(made.writer, made.number);
    bytes.resize(wanted.size());
    ASSERT_TRUE(bytes == wanted) << path_of(made.writer, made.number);
    ASSERT_TRUE(volume->close(*fd));
  }
  ASSERT_TRUE(volume->unmount());
}

class HostedKill : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, HostedKill, ::testing::Values("adaptive", "lfs"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HostedKill, what_fsync_has_made_durable_is_there_whenever_the_process_is_killed) {
  const image::TemporaryPath image;
  MkfsOptions options;
  options.size_bytes = uint64_t{200} << 20;
  options.overwrite = true;
  ASSERT_TRUE(mkfs(image.path(), options));
  const std::string spec = image.path() + "?media=hosted&mode=" + GetParam();
  std::mt19937 random(11);
  std::vector<Made> all;
  for (uint32_t round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t writer = ::fork();
    if (writer == 0) {
      ::close(ends[0]);
      ::alarm(60);
      be_killed(spec, round * 10000, ends[1]);
    }
    ::close(ends[1]);
    Made made{};
    // Some while after it has begun.
    for (uint64_t left = 1 + random() % 12; left != 0; --left) {
      ASSERT_EQ(::read(ends[0], &made, sizeof(made)), static_cast<ssize_t>(sizeof(made)));
      all.push_back(made);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ASSERT_EQ(::kill(writer, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    while (::read(ends[0], &made, sizeof(made)) == static_cast<ssize_t>(sizeof(made))) {
      all.push_back(made);
    }
    ::close(ends[0]);
    expect_there(spec, all);
    EXPECT_TRUE(image::fsck_is_clean(image.path())) << round;
  }
}

}  // namespace
}  // namespace gofs
