// SPDX-License-Identifier: Apache-2.0
//
// A volume on a loop device behind a controller of host threads, by io_uring and by threads that
// wait: what the file below takes after files were removed, and what becomes of a volume whose
// device changes beneath it. Each case is a child of fork(), since a refusal of io_uring lasts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "ssd/hosted/io_engine.h"
#include "ssd/loop_device_for_test.h"
#include "ssd/refused_uring_for_test.h"
#include "ssd/temporary_file_for_test.h"
#include "testing/in_child.hpp"

namespace gofs::host {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kImageBytes = 64 << 20;
const MountOptions kWriting{.backend = "cpu", .read_only = false};

template <typename T>
int code_of(const Expected<T>& result) {
  return result ? 0 : result.error().code;
}

/// Where fdatasync() takes no time.
std::string quick_folder() {
  const std::string memory = "/dev/shm/";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : ::testing::TempDir();
}

/// By engine, "io_uring" or "threads", and by mode.
class HostedDevice : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    if (engine() == "io_uring" && ssd::uring_refusal() != 0) {
      GTEST_SKIP() << "io_uring: " << std::strerror(ssd::uring_refusal());
    }
    MkfsOptions options;
    options.size_bytes = kImageBytes;
    options.overwrite = true;
    ASSERT_TRUE(mkfs(image_.path(), options));
    loop_.emplace(image_.path());
    if (!loop_->is_there()) GTEST_SKIP() << "no loop devices here";
  }
  std::string engine() const { return std::get<0>(GetParam()); }
  std::string spec() const {
    return loop_->path() + "?media=hosted&mode=" + std::get<1>(GetParam());
  }
  Expected<Volume> mount() const { return Volume::mount(spec(), kWriting); }
  void resize(uint64_t bytes) const {
    ASSERT_EQ(::truncate(image_.path().c_str(), static_cast<off_t>(bytes)), 0);
  }

  void in_child(const std::function<void()>& work) const {
    const int failed = testing::in_child([&] {
      if (engine() == "threads" && !ssd::refuse_io_uring()) return 2;
      work();
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(failed, 0);
  }

  ssd::TemporaryFile image_{quick_folder()};
  std::optional<ssd::LoopDevice> loop_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, HostedDevice,
                         ::testing::Combine(::testing::Values("io_uring", "threads"),
                                            ::testing::Values("adaptive", "lfs")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

/// A file of the byte `value`, all of which is durable.
void make_file(Volume& volume, const std::string& path, uint64_t bytes, char value) {
  const auto fd = volume.open(path, kOpenReadWrite | kOpenCreate, 0644);
  ASSERT_TRUE(fd) << fd.error().message;
  const std::vector<char> data(bytes, value);
  const auto wrote = volume.pwrite(*fd, data.data(), bytes, 0);
  ASSERT_TRUE(wrote) << wrote.error().message;
  ASSERT_EQ(*wrote, bytes);
  ASSERT_TRUE(volume.fsync(*fd));
  ASSERT_TRUE(volume.close(*fd));
}

TEST_P(HostedDevice, removed_files_give_their_room_back_to_the_file_below) {
  in_child([this] {
    constexpr uint64_t kBytes = 12 << 20;
    auto volume = mount();
    ASSERT_TRUE(volume) << volume.error().message;
    EXPECT_TRUE(volume->info().ssd.find(engine()) != std::string::npos) << volume->info().ssd;
    make_file(*volume, "/large", kBytes, 'l');
    ASSERT_TRUE(volume->sync());
    const uint64_t full = ssd::bytes_on_disk(image_.path());
    EXPECT_GE(full, kBytes);
    ASSERT_TRUE(volume->unlink("/large"));
    ASSERT_TRUE(volume->sync());
    // A segment that also has something else stays.
    EXPECT_LE(ssd::bytes_on_disk(image_.path()), full - (kBytes - (4 << 20)));
    make_file(*volume, "/after", 1 << 20, 'a');
    ASSERT_TRUE(volume->unmount());
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  });
}

/// Calls until each has failed; each fails soon.
void expect_failures(Volume& volume, int fd) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> bytes(1 << 16, 'x');
  EXPECT_EQ(code_of(volume.pwrite(fd, bytes.data(), bytes.size(), 0)), EIO);
  EXPECT_EQ(code_of(volume.pwrite(fd, bytes.data(), 100, 5)), EIO);
  EXPECT_EQ(code_of(volume.fsync(fd)), EIO);
  EXPECT_EQ(code_of(volume.sync()), EIO);
  EXPECT_EQ(code_of(volume.pread(fd, bytes.data(), bytes.size(), 0)), EIO);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_P(HostedDevice, a_file_that_is_cut_below_it_ends_the_volume_until_it_is_mounted_again) {
  in_child([this] {
    {
      auto volume = mount();
      ASSERT_TRUE(volume) << volume.error().message;
      make_file(*volume, "/before", 2 << 20, 'b');
      ASSERT_TRUE(volume->sync());
      const auto fd = volume->open("/open", kOpenReadWrite | kOpenCreate, 0644);
      ASSERT_TRUE(fd);
      const std::vector<char> bytes(1 << 16, 'o');
      ASSERT_TRUE(volume->pwrite(*fd, bytes.data(), bytes.size(), 0));
      resize(48 << 20);
      expect_failures(*volume, *fd);
      const auto ended = volume->unmount();
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code, EIO);
      EXPECT_NE(ended.error().message.find("shorter than it was"), std::string::npos)
          << ended.error().message;
    }
    resize(kImageBytes);
    auto volume = mount();
    ASSERT_TRUE(volume) << volume.error().message;
    const auto fd = volume->open("/before");
    ASSERT_TRUE(fd) << fd.error().message;
    std::vector<char> bytes(2 << 20);
    EXPECT_EQ(volume->pread(*fd, bytes.data(), bytes.size(), 0).value_or(0), bytes.size());
    make_file(*volume, "/after", 1 << 20, 'a');
    ASSERT_TRUE(volume->unmount());
  });
}

TEST_P(HostedDevice, a_file_that_was_cut_to_anything_is_mounted_again_or_refused) {
  in_child([this] {
    for (const uint64_t left : {1000, 4 << 20, 24 << 20}) {
      MkfsOptions options;
      options.size_bytes = kImageBytes;
      options.overwrite = true;
      ASSERT_TRUE(mkfs(loop_->path(), options));
      {
        auto volume = mount();
        ASSERT_TRUE(volume) << volume.error().message;
        make_file(*volume, "/file", 2 << 20, 'f');
        resize(left);
        EXPECT_FALSE(volume->sync()) << left;
        EXPECT_FALSE(volume->unmount()) << left;
      }
      resize(kImageBytes);
      auto volume = mount();
      if (left < 4096) {
        EXPECT_FALSE(volume) << left;
      }
      if (!volume) continue;
      std::vector<char> bytes(2 << 20);
      if (const auto fd = volume->open("/file")) {
        (void)volume->pread(*fd, bytes.data(), bytes.size(), 0);
      }
      (void)volume->mkdir("/new", 0755);
      (void)volume->unmount();
    }
  });
}

TEST_P(HostedDevice, one_that_becomes_read_only_fails_writes_until_it_may_be_written_again) {
  in_child([this] {
    auto volume = mount();
    ASSERT_TRUE(volume) << volume.error().message;
    make_file(*volume, "/file", 1 << 20, 'f');
    ASSERT_TRUE(loop_->forbid_writing(true));
    const auto fd = volume->open("/file", kOpenReadWrite);
    ASSERT_TRUE(fd);
    std::vector<char> bytes(1 << 16, 'x');
    EXPECT_EQ(code_of(volume->pwrite(*fd, bytes.data(), bytes.size(), 0)), EIO);
    EXPECT_EQ(volume->pread(*fd, bytes.data(), bytes.size(), 0).value_or(0), bytes.size());
    EXPECT_EQ(bytes[0], 'f');
    const auto failed = volume->sync();
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("not permitted"), std::string::npos)
        << failed.error().message;
    ASSERT_TRUE(loop_->forbid_writing(false));
    EXPECT_TRUE(volume->pwrite(*fd, bytes.data(), bytes.size(), 0));
    EXPECT_TRUE(volume->sync());
    EXPECT_TRUE(volume->unmount());
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  });
}

TEST_P(HostedDevice, one_that_is_let_go_of_stays_until_the_volume_is_unmounted) {
  in_child([this] {
    auto volume = mount();
    ASSERT_TRUE(volume) << volume.error().message;
    loop_->let_go();
    make_file(*volume, "/file", 1 << 20, 'f');
    ASSERT_TRUE(volume->unmount());
  });
  loop_->let_go();
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

}  // namespace
}  // namespace gofs::host
