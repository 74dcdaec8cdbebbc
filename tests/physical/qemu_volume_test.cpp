// SPDX-License-Identifier: Apache-2.0
//
// The whole file system on an NVMe controller that is not ours: QEMU's, reached over qtest, with a
// thread that relays the registers, and a part of QEMU's memory for queues and data. What was
// written is read again after a remount, by our own virtual SSD from the image, and judged by
// fsck.f2fs. On a GPU where there is one. GOFS_KEEP_IMAGE names a new folder that gets the image of
// the first test, and its files beside it, for others to judge (judge.py).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../qemu/machine_for_test.h"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/image/pattern.h"
#include "qemu_provider.hpp"

namespace gofs::tests {
namespace {

constexpr uint64_t kVolumeBytes = uint64_t{128} << 20;

struct WrittenFile {
  std::string path;
  uint64_t seed;
  uint64_t bytes;
};

std::vector<uint8_t> contents_of(const WrittenFile& file) {
  std::vector<uint8_t> bytes(file.bytes);
  image::fill_pattern(file.seed, 0, bytes.data(), bytes.size());
  return bytes;
}

class QemuVolumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GOFS_NEED_QEMU();
    if (!image::tool_exists("mkfs.f2fs")) GTEST_SKIP() << "no mkfs.f2fs";
    ASSERT_EQ(::truncate(image_.path().c_str(), kVolumeBytes), 0);
  }

  void make_volume(const std::string& options = "") {
    const auto made = image::run_tool("mkfs.f2fs -f -q " + options + " '" + image_.path() + "'");
    ASSERT_EQ(made.exit_code, 0) << made.output;
  }
  ssd::QemuOptions machine() const {
    ssd::QemuOptions options = ssd::qemu_for_test();
    options.ram_bytes = uint64_t{192} << 20;
    options.disks = {ssd::QemuDisk{}};
    options.disks[0].image = image_.path();
    return options;
  }

  /// Makes `count` files of all sizes by `threads` threads.
  std::vector<WrittenFile> write_files(Volume& volume, uint32_t threads, uint32_t count) {
    std::vector<WrittenFile> files;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sizes[] = {0, 1, 3000, 4096, 100'000, 524'288, 1'100'001};
      files.push_back({"/data/file" + std::to_string(i), i + 1, sizes[i % std::size(sizes)]});
    }
    EXPECT_TRUE(volume.mkdir("/data", 0755));
    std::vector<std::thread> writers;
    for (uint32_t thread = 0; thread < threads; ++thread) {
      writers.emplace_back([&, thread] {
        for (uint32_t i = thread; i < count; i += threads) write_one(volume, files[i]);
      });
    }
    for (std::thread& writer : writers) writer.join();
    return files;
  }
  static void write_one(Volume& volume, const WrittenFile& file) {
    const auto fd = volume.open(file.path, O_CREAT | O_RDWR, 0644);
    ASSERT_TRUE(fd) << fd.error().message;
    const std::vector<uint8_t> bytes = contents_of(file);
    const auto written = volume.pwrite(*fd, bytes.data(), bytes.size(), 0);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(*written, file.bytes);
    const auto synced = volume.fsync(*fd);
    EXPECT_TRUE(synced) << synced.error().message;
    EXPECT_TRUE(volume.close(*fd));
  }
  static void expect_files(Volume& volume, const std::vector<WrittenFile>& files) {
    for (const WrittenFile& file : files) {
      const auto fd = volume.open(file.path, O_RDONLY);
      ASSERT_TRUE(fd) << fd.error().message;
      std::vector<uint8_t> bytes(file.bytes + 1);
      const auto got = volume.pread(*fd, bytes.data(), bytes.size(), 0);
      ASSERT_TRUE(got) << got.error().message;
      bytes.resize(*got);
      EXPECT_TRUE(bytes == contents_of(file)) << file.path;
      EXPECT_TRUE(volume.close(*fd));
    }
  }
  /// By our own controller, and by fsck.f2fs; QEMU has ended.
  void judge_image(const std::vector<WrittenFile>& files) {
    const auto volume = mount(image_.path(), true);
    ASSERT_TRUE(volume) << volume.error().message;
    expect_files(const_cast<Volume&>(*volume), files);
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  }
  /// For others to judge.
  void keep_image(const std::vector<WrittenFile>& files) {
    const char* const folder = std::getenv("GOFS_KEEP_IMAGE");
    if (folder == nullptr) return;
    const std::filesystem::path kept(folder);
    std::filesystem::create_directories(kept / "data");
    std::filesystem::copy_file(image_.path(), kept / "image");
    for (const WrittenFile& file : files) {
      const std::vector<uint8_t> bytes = contents_of(file);
      std::ofstream(kept / file.path.substr(1), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
  }
  void write_and_judge(const ssd::QemuOptions& options, const std::string& spec, uint32_t count,
                       bool keep = false) {
    std::vector<WrittenFile> files;
    {
      QemuVolumes qemu(options);
      auto volume = mount(spec);
      ASSERT_TRUE(volume) << volume.error().message;
      files = write_files(*volume, 4, count);
      expect_files(*volume, files);
      const auto unmounted = volume->unmount();
      ASSERT_TRUE(unmounted) << unmounted.error().message;
      volume = mount(spec, true);
      ASSERT_TRUE(volume) << volume.error().message;
      expect_files(*volume, files);
    }
    judge_image(files);
    if (keep) keep_image(files);
  }

  image::TemporaryPath image_;
};

TEST_F(QemuVolumeTest, files_survive_a_remount_with_lbas_of_512_bytes) {
  make_volume();
  write_and_judge(machine(), "qemu:0", 40, true);
}

TEST_F(QemuVolumeTest, files_survive_a_remount_with_lbas_of_4096_bytes) {
  make_volume();
  ssd::QemuOptions options = machine();
  options.disks[0].lba_bytes = 4096;
  write_and_judge(options, "qemu:0?queues=3&depth=7&staging=8K", 30);
}

TEST_F(QemuVolumeTest, a_controller_with_one_queue_pair_and_small_transfers_will_do) {
  make_volume();
  ssd::QemuOptions options = machine();
  options.disks[0].mdts = 1;
  options.disks[0].max_ioqpairs = 1;
  write_and_judge(options, "qemu:0?depth=2", 12);
}

TEST_F(QemuVolumeTest, the_volume_says_what_it_is_on) {
  make_volume();
  QemuVolumes qemu(machine());
  const auto volume = mount("qemu:0?queues=4", true);
  ASSERT_TRUE(volume) << volume.error().message;
  const VolumeInfo info = volume->info();
  EXPECT_NE(info.ssd.find("NVMe SSD, qemu:0, doorbells by a thread of the host"), std::string::npos)
      << info.ssd;
  EXPECT_EQ(info.queues, 4u);
  EXPECT_EQ(info.queue_depth, 128u);
  EXPECT_EQ(info.ssd_bytes, kVolumeBytes);
  EXPECT_EQ(info.transfer_bytes_max, 32768u);
}

// Memory of the machine itself can be mapped, and the controller then works on it; other memory
// cannot, and goes through staging as before.
TEST_F(QemuVolumeTest, buffers_may_be_registered_whatever_the_controller_reaches) {
  make_volume();
  QemuVolumes qemu(machine());
  auto volume = mount("qemu:0?staging=4K");
  ASSERT_TRUE(volume) << volume.error().message;
  constexpr uint64_t kBytes = uint64_t{1} << 20;
  const ssd::QemuMemory reached(qemu.machine(), kBytes);
  std::vector<uint8_t> other(kBytes + kBlockBytes);
  auto* const aligned = reinterpret_cast<uint8_t*>(
      simt::align_up(reinterpret_cast<uint64_t>(other.data()), kBlockBytes));
  const auto fd = volume->open("/file", O_CREAT | O_RDWR, 0644);
  ASSERT_TRUE(fd) << fd.error().message;
  for (uint8_t* const memory : {reached.base(), aligned}) {
    for (const bool registered : {false, true, false}) {
      std::optional<BufferHandle> handle;
      if (registered) {
        auto made = volume->register_buffer(memory, kBytes);
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_FALSE(volume->register_buffer(memory + 4096, 4096));
        handle = *made;
      }
      const uint64_t seed = registered ? 3 : 4;
      image::fill_pattern(seed, 0, memory, kBytes);
      ASSERT_TRUE(volume->pwrite(*fd, memory, kBytes, 0));
      std::fill(memory, memory + kBytes, 0);
      const auto got = volume->pread(*fd, memory, kBytes, 0);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*got, kBytes);
      std::vector<uint8_t> wanted(kBytes);
      image::fill_pattern(seed, 0, wanted.data(), kBytes);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), memory));
      if (handle) {
        EXPECT_TRUE(volume->unregister_buffer(*handle));
      }
    }
  }
}

TEST_F(QemuVolumeTest, registers_that_cannot_be_mapped_are_not_the_gpus) {
  make_volume();
  QemuVolumes qemu(machine());
  const auto volume = mount("qemu:0?doorbell=gpu");
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().code, EOPNOTSUPP);
  EXPECT_NE(volume.error().message.find("doorbell=gpu"), std::string::npos);
}

TEST_F(QemuVolumeTest, a_write_that_the_disk_fails_is_eio_and_says_where) {
  make_volume();
  ssd::QemuOptions options = machine();
  ssd::InjectedError broken;
  broken.operation = "write";
  options.disks[0].errors = {broken};
  QemuVolumes qemu(options);
  auto volume = mount("qemu:0");
  ASSERT_TRUE(volume) << volume.error().message;
  const auto fd = volume->open("/file", O_CREAT | O_RDWR, 0644);
  ASSERT_TRUE(fd) << fd.error().message;
  const std::vector<uint8_t> bytes(100'000, 1);
  const auto written = volume->pwrite(*fd, bytes.data(), bytes.size(), 0);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, EIO);
  EXPECT_NE(written.error().message.find("rite"), std::string::npos) << written.error().message;
}

// As when the power fails: fsync has returned for some files, and one more is being written.
TEST_F(QemuVolumeTest, what_was_synced_is_there_after_the_device_has_vanished) {
  make_volume();
  std::vector<WrittenFile> files;
  {
    QemuVolumes qemu(machine());
    auto volume = mount("qemu:0?timeout=3s");
    ASSERT_TRUE(volume) << volume.error().message;
    files = write_files(*volume, 2, 14);
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      qemu.machine().kill();
    });
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<uint8_t> bytes(400'000, 7);
    const auto fd = volume->open("/more", O_CREAT | O_RDWR, 0644);
    Expected<uint64_t> written = uint64_t{0};
    for (uint64_t i = 0; fd && i < 100'000; ++i) {
      written = volume->pwrite(*fd, bytes.data(), bytes.size(), i % 10 * bytes.size());
      if (!written) break;
    }
    killer.join();
    EXPECT_TRUE(!fd || !written);
    if (fd) {
      EXPECT_EQ(written.error().code, EIO) << written.error().message;
    }
    EXPECT_FALSE(volume->sync());
    EXPECT_FALSE(volume->unmount());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(2));
  }
  // Another machine with the same disk: our recovery is part of the mount.
  {
    QemuVolumes qemu(machine());
    auto volume = mount("qemu:0");
    ASSERT_TRUE(volume) << volume.error().message;
    expect_files(*volume, files);
    EXPECT_TRUE(volume->unmount());
  }
  judge_image(files);
}

}  // namespace
}  // namespace gofs::tests
