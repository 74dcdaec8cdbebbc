// SPDX-License-Identifier: Apache-2.0
//
// A volume in a program that forks: in the child nothing works, waits or reaches the image, and the
// parent notices nothing of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gofs/volume.hpp"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "host/process_mark.h"
#include "simt/platform.h"
#include "testing/in_child.hpp"

namespace gofs {
namespace {

using testing::in_child;

const MountOptions kReading{.backend = "cpu"};
const MountOptions kWriting{.backend = "cpu", .read_only = false};

template <typename T>
bool is_refused(const Expected<T>& result) {
  return !result && result.error().code == ENODEV &&
         result.error().message.find("forked") != std::string::npos;
}

class ForkTest : public ::testing::Test {
 protected:
  ForkTest() {
    image::VolumeOptions options;
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), uint64_t{64} << 20, options).ok());
  }
  Volume mount(const MountOptions& options) {
    return Volume::mount(image_.path(), options).value();
  }
  std::string sum() const { return image::run_tool("sha256sum < " + image_.path()).output; }

  const image::TemporaryPath image_;
};

TEST_F(ForkTest, every_call_fails_in_a_child_and_says_why) {
  Volume volume = mount(kWriting);
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  ASSERT_TRUE(volume.pwrite(fd, "parent", 6, 0));
  ASSERT_TRUE(volume.sync());
  const std::string before = sum();
  const int failed = in_child([&] {
    char bytes[8];
    int number = 0;
    for (const bool refused : {is_refused(volume.open("/file")),
                               is_refused(volume.close(fd)),
                               is_refused(volume.pread(fd, bytes, 4, 0)),
                               is_refused(volume.read(fd, bytes, 4)),
                               is_refused(volume.pwrite(fd, "child", 5, 0)),
                               is_refused(volume.write(fd, "c", 1)),
                               is_refused(volume.stat("/file")),
                               is_refused(volume.fstat(fd)),
                               is_refused(volume.readlink("/file")),
                               is_refused(volume.statfs()),
                               is_refused(volume.opendir("/")),
                               is_refused(volume.readdir(fd)),
                               is_refused(volume.rename("/file", "/child")),
                               is_refused(volume.link("/file", "/c")),
                               is_refused(volume.batch_create("/", {{"child", nullptr, 0}})),
                               is_refused(volume.setxattr("/file", "user.a", "b")),
                               is_refused(volume.listxattr("/file")),
                               is_refused(volume.collect_garbage()),
                               is_refused(volume.memory()),
                               is_refused(volume.register_buffer(bytes, 8)),
                               is_refused(volume.read_ranges({{fd, bytes, 4, 0}})),
                               is_refused(volume.write_ranges({{fd, bytes, 4, 0}})),
                               is_refused(volume.sync()),
                               is_refused(volume.fsync(fd)),
                               is_refused(volume.fdatasync(fd)),
                               is_refused(volume.unmount())}) {
      ++number;
      if (!refused) return number;
    }
    if (volume.warnings().size() != 1) return 90;
    if (volume.cleaning_totals().segments != 0 || volume.clock().looks != 0) return 91;
    return volume.info().spec == image_.path() ? 0 : 92;
  });
  EXPECT_EQ(failed, 0) << "the number of the call that was not refused";
  EXPECT_EQ(sum(), before);
  ASSERT_TRUE(volume.pwrite(fd, "again!", 6, 0));
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

/// A backend that must not be asked for anything in a child, as CUDA: another thread of the parent
/// may have had one of its locks.
class AskedByParentsOnly final : public host::BackendForTest {
 public:
  simt::MemorySpace& memory() override { return asked(), BackendForTest::memory(); }
  simt::MemorySpace& shared_memory() override { return asked(), BackendForTest::shared_memory(); }
  std::string what_else_than_host_memory(const void*) const override { return asked(), ""; }
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    return asked(), BackendForTest::run(body, grid, params);
  }

 private:
  void asked() const {
    if (!process_.is_ours()) ::_exit(77);
  }
  const host::ProcessMark process_ = host::ProcessMark::of_this_process();
};

TEST_F(ForkTest, a_child_does_not_wait_for_ranges) {
  Volume volume = mount(kWriting);
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  ASSERT_TRUE(volume.pwrite(fd, "parent", 6, 0));
  char bytes[6] = {};
  const RangeCall begun = volume.read_ranges({{fd, bytes, sizeof(bytes), 0}}).value();
  EXPECT_EQ(in_child([&] { return begun.is_done() && is_refused(begun.wait()) ? 0 : 1; }), 0);
  EXPECT_EQ(begun.wait().value(), std::vector<int64_t>{6});
  EXPECT_EQ(std::string(bytes, 6), "parent");
}

TEST_F(ForkTest, nothing_is_asked_of_the_backend_in_a_child) {
  Volume volume =
      host::VolumeForTest::mount(image_.path(), kWriting, [](const std::string&, std::string&) {
        return std::make_unique<AskedByParentsOnly>();
      }).value();
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  EXPECT_EQ(in_child([&] {
              char bytes[8] = {};
              const bool refused =
                  is_refused(volume.pread(fd, bytes, 4, 0)) &&
                  is_refused(volume.read(fd, bytes, 4)) &&
                  is_refused(volume.pwrite(fd, bytes, 4, 0)) &&
                  is_refused(volume.write(fd, bytes, 4)) &&
                  is_refused(volume.batch_create("/", {{"child", bytes, 4}})) &&
                  is_refused(volume.stat("/file")) && is_refused(volume.statfs()) &&
                  is_refused(volume.setxattr("/file", "user.a", "b")) &&
                  is_refused(volume.collect_garbage()) && is_refused(volume.memory()) &&
                  is_refused(volume.register_buffer(bytes, 8)) && is_refused(volume.sync()) &&
                  is_refused(volume.unmount());
              (void)volume.info();
              (void)volume.clock();
              (void)volume.cleaning_totals();
              (void)volume.warnings();
              const Volume gone = std::move(volume);
              return refused ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(volume.unmount());
}

TEST_F(ForkTest, a_child_that_destroys_a_volume_or_exits_waits_for_nothing) {
  for (const MountOptions& options : {kReading, kWriting}) {
    auto volume = std::make_unique<Volume>(mount(options));
    const std::string before = sum();
    EXPECT_EQ(in_child([&] {
                volume.reset();
                return 0;
              }),
              0);
    EXPECT_EQ(in_child([&] {
                Volume other = std::move(*volume);
                Volume& itself = other;
                other = std::move(itself);
                return 0;
              }),
              0);
    EXPECT_EQ(sum(), before);
    EXPECT_TRUE(volume->stat("/"));
  }
}

TEST_F(ForkTest, the_claim_stays_with_the_parent) {
  auto volume = std::make_unique<Volume>(mount(kWriting));
  EXPECT_EQ(in_child([] { return 0; }), 0);
  EXPECT_EQ(Volume::mount(image_.path(), kReading).error().code, EBUSY) << "a child has ended";
  EXPECT_EQ(in_child([&] { return Volume::mount(image_.path(), kReading) ? 1 : 0; }), 0);
  // A child that lives on has the descriptor still, and no claim by it.
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  volume.reset();
  EXPECT_TRUE(Volume::mount(image_.path(), kWriting));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(ForkTest, a_child_mounts_volumes_of_its_own) {
  Volume volume = mount(kReading);
  EXPECT_EQ(in_child([&] {
              auto own = Volume::mount(image_.path(), kReading);
              if (!own || !own->stat("/")) return 1;
              if (!is_refused(volume.stat("/"))) return 2;
              return own->unmount() ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(volume.stat("/"));
}

TEST_F(ForkTest, calls_of_other_threads_may_be_under_way) {
#if defined(GOFS_ADDRESS_SANITIZER)
  // Before LLVM 16 fork() does not wait for ASan's allocator, and a child that finds it locked by a
  // thread of its parent waits for ever. glibc's and TSan's are unlocked in the child.
  GTEST_SKIP() << "memory may be locked in a child by ASan";
#endif
  Volume volume = mount(kWriting);
  std::atomic<bool> ending{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const std::string path = "/file" + std::to_string(i);
      while (!ending.load()) {
        const auto fd = volume.open(path, O_RDWR | O_CREAT);
        (void)volume.pwrite(*fd, path.data(), path.size(), 0);
        (void)volume.stat("/nosuch");
        (void)volume.close(*fd);
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(in_child([&] {
                const bool refused = is_refused(volume.stat("/")) && is_refused(volume.unmount());
                const Volume gone = std::move(volume);
                return refused ? 0 : 1;
              }),
              0);
  }
  ending.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

TEST_F(ForkTest, programs_that_are_started_leave_the_volume_as_it_was) {
  Volume volume = mount(kWriting);
  EXPECT_EQ(std::system("true"), 0);  // vfork() or posix_spawn()
  EXPECT_EQ(image::run_tool("true").exit_code, 0);
  EXPECT_TRUE(volume.mkdir("/made"));
  EXPECT_TRUE(volume.unmount());
}

TEST(ProcessMark, is_ours_in_the_process_that_made_it) {
  const auto mark = host::ProcessMark::of_this_process();
  EXPECT_TRUE(mark.is_ours());
  EXPECT_TRUE(host::ProcessMark::of_this_process().is_ours());
  EXPECT_EQ(in_child([&] {
              if (mark.is_ours()) return 1;
              const auto own = host::ProcessMark::of_this_process();
              // Nor is that of a child taken for a parent's, or the other way about.
              if (!own.is_ours() || mark.is_ours()) return 2;
              return in_child([&] { return own.is_ours() || mark.is_ours() ? 1 : 0; });
            }),
            0);
  EXPECT_TRUE(mark.is_ours());
}

}  // namespace
}  // namespace gofs
