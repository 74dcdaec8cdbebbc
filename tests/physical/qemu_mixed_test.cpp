// SPDX-License-Identifier: Apache-2.0
//
// A volume striped over an NVMe controller that is not ours and a file behind host threads, each
// with options of its own: written, remounted, judged by fsck.f2fs, and with either of them gone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "qemu_stripe_rig.hpp"

namespace gofs::tests {
namespace {

class QemuMixedTest : public QemuStripeTest {
 protected:
  /// Member 0 of the volume is qemu:0, member 1 a file.
  static std::string mixed(const Striped& striped, const std::string& of_file) {
    return std::string("qemu:0?") + kSmallQueues + "+" + striped.path(1) + "?media=hosted" +
           (of_file.empty() ? "" : "&" + of_file);
  }
  /// The same with the physical SSD at the end.
  static std::string mixed_last(const Striped& striped, const std::string& of_ssd) {
    return striped.path(0) + "?threads=2&queues=3+qemu:0?" + kSmallQueues +
           (of_ssd.empty() ? "" : "&" + of_ssd);
  }

  struct Counts {
    uint32_t read = 0;
    uint32_t failed = 0;
  };
  /// Reads of blocks of a file that lies on both; each error names the SSD `failing`.
  static Counts read_blocks(Volume& volume, const std::string& failing) {
    Counts counts;
    const int fd = volume.open("/large").value();
    std::vector<uint8_t> block(kBlockBytes);
    for (uint64_t at = 0; at < 32 * kBlockBytes; at += kBlockBytes) {
      const auto got = volume.pread(fd, block.data(), block.size(), at);
      if (got) {
        ++counts.read;
        continue;
      }
      ++counts.failed;
      EXPECT_NE(got.error().message.find(failing), std::string::npos) << got.error().message;
    }
    return counts;
  }
};

TEST_F(QemuMixedTest, a_physical_and_a_hosted_ssd_are_one_volume) {
  const Striped striped(2, 16, false);
  const std::string spec = mixed(striped, "threads=1&stripe=64K");
  write_and_judge(striped, machine(striped, {0}), spec, spec,
                  striped.spec({0, 1}, "?stripe=64K&media=hosted"));
}

TEST_F(QemuMixedTest, a_hosted_ssd_may_come_first) {
  const Striped striped(2, 16, false);
  const std::string spec = mixed_last(striped, "stripe=64K");
  write_and_judge(striped, machine(striped, {1}), spec, spec,
                  striped.spec({0, 1}, "?stripe=64K&media=hosted"));
}

TEST_F(QemuMixedTest, members_of_an_md_array_may_be_swapped) {
  const Striped striped(3, 14, true);
  const std::string spec = "qemu:1?" + std::string(kSmallQueues) + "+" + striped.path(1) +
                           "?media=hosted+qemu:0?" + kSmallQueues;
  const std::string swapped = striped.path(1) + "?media=hosted+qemu:0+qemu:1?" + kSmallQueues;
  write_and_judge(striped, machine(striped, {0, 2}), spec, swapped,
                  striped.spec({2, 1, 0}, "?media=hosted"));
}

TEST_F(QemuMixedTest, info_says_of_each_what_it_is_and_counts_queues_of_all) {
  const Striped striped(2, 16, false);
  QemuVolumes qemu(machine(striped, {1}));
  const auto volume = mount(mixed_last(striped, "stripe=64K"), true);
  ASSERT_TRUE(volume) << volume.error().message;
  const VolumeInfo info = volume->info();
  EXPECT_TRUE(info.ssd.starts_with("2 SSDs: hosted NVMe SSD, ")) << info.ssd;
  EXPECT_NE(info.ssd.find("2 threads; NVMe SSD, qemu:0, "), std::string::npos) << info.ssd;
  EXPECT_NE(info.ssd.find(", chunks of 64 KiB"), std::string::npos) << info.ssd;
  EXPECT_EQ(info.queues, 2u);
  EXPECT_EQ(info.queue_depth, 16u);
  EXPECT_EQ(info.mode, "lfs") << "QEMU's controller does not promise to write blocks wholly";
}

TEST_F(QemuMixedTest, members_that_are_missing_or_swapped_are_named) {
  const Striped striped(2, 16, false);
  QemuVolumes qemu(machine(striped, {0}));
  const std::string queues = kSmallQueues;
  const std::string file = striped.path(1);
  const struct {
    std::string spec;
    int code;
    std::string message;
  } cases[] = {
      {file + "?media=hosted+qemu:0?stripe=64K&" + queues, EINVAL, "not an F2FS volume"},
      {"qemu:3?" + queues + "+" + file + "?media=hosted&stripe=64K", ENODEV, "qemu:3"},
      {"qemu:0?" + queues + "+" + file + ".not?media=hosted&stripe=64K", ENOENT, file + ".not"},
      {"qemu:0+" + file + "?media=hosted&stripe=64K&queues=2&depth=16+qemu:0?" + queues, EINVAL,
       "named twice"},
  };
  for (const auto& one : cases) {
    const Error error = error_of_mount(one.spec);
    EXPECT_EQ(error.code, one.code) << error.message << " instead of " << one.message;
    EXPECT_NE(error.message.find(one.message), std::string::npos)
        << error.message << " instead of " << one.message;
  }
  EXPECT_EQ(error_of_mount(mixed(striped, "stripe=64K")).code, 0);
}

TEST_F(QemuMixedTest, a_hosted_ssd_has_the_lbas_of_the_physical_one) {
  const Striped striped(2, 16, false);
  ssd::QemuOptions options = machine(striped, {0});
  options.disks[0].lba_bytes = 4096;
  QemuVolumes qemu(options);
  auto volume = mount(mixed(striped, "stripe=64K"), true);
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(volume->info().lba_bytes, 4096u);
  expect_whole(*volume);
  EXPECT_TRUE(volume->unmount());
  const Error error = error_of_mount(mixed(striped, "stripe=64K&lba=512"));
  EXPECT_EQ(error.code, EOPNOTSUPP);
  EXPECT_NE(error.message.find(striped.path(1) + ": has LBAs of 512 bytes, and qemu:0"),
            std::string::npos)
      << error.message;
}

TEST_F(QemuMixedTest, a_hosted_ssd_goes_on_after_the_physical_one_has_vanished) {
  const Striped striped(2, 12, false);
  QemuVolumes qemu(machine(striped, {1}));
  auto volume = mount(mixed_last(striped, "stripe=4K&timeout=300ms"), false);
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(read_blocks(*volume, "nothing fails").failed, 0u);
  ASSERT_TRUE(volume->mkdir("/new", 0755));
  qemu.machine().kill();
  const Counts counts = read_blocks(*volume, "qemu:0");
  EXPECT_GE(counts.read, 10u);
  EXPECT_GE(counts.failed, 10u);
  EXPECT_FALSE(volume->unmount());
}

TEST_F(QemuMixedTest, a_physical_ssd_goes_on_after_the_file_of_the_hosted_one_was_cut) {
  const Striped striped(2, 12, false);
  QemuVolumes qemu(machine(striped, {0}));
  auto volume = mount(mixed(striped, "stripe=4K"), false);
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(read_blocks(*volume, "nothing fails").failed, 0u);
  ASSERT_TRUE(volume->mkdir("/new", 0755));
  ASSERT_EQ(::truncate(striped.path(1).c_str(), 65536), 0);
  const Counts counts = read_blocks(*volume, striped.path(1) + "?media=hosted");
  EXPECT_GE(counts.read, 10u);
  EXPECT_GE(counts.failed, 10u);
  EXPECT_FALSE(volume->unmount());
}

}  // namespace
}  // namespace gofs::tests
