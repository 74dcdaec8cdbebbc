// SPDX-License-Identifier: Apache-2.0
//
// Stripes of which members are NVMe controllers of QEMU's, for tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "../qemu/machine_for_test.h"
#include "host/striped_for_test.h"
#include "qemu_provider.hpp"

namespace gofs::tests {

using host::expect_whole;
using host::Striped;

/// As little of the machine's memory as several SSDs at once need.
inline constexpr const char* kSmallQueues = "queues=2&depth=16";

class QemuStripeTest : public ::testing::Test {
 protected:
  void SetUp() override { GOFS_NEED_QEMU(); }

  /// A machine that has these members, as qemu:0 and so on.
  static ssd::QemuOptions machine(const Striped& striped, const std::vector<uint32_t>& members) {
    ssd::QemuOptions options = ssd::qemu_for_test();
    for (const uint32_t disk : members) options.disks.emplace_back().image = striped.path(disk);
    return options;
  }
  static ssd::QemuOptions machine(const Striped& striped) {
    std::vector<uint32_t> all(striped.stripe().disks);
    std::iota(all.begin(), all.end(), 0u);
    return machine(striped, all);
  }
  /// "qemu:2+qemu:0+qemu:1?stripe=64K&queues=2&depth=16".
  static std::string spec(const std::vector<uint32_t>& order, const std::string& chunk = "") {
    std::string text;
    for (const uint32_t disk : order) {
      text += (text.empty() ? "qemu:" : "+qemu:") + std::to_string(disk);
    }
    return text + "?" + (chunk.empty() ? "" : "stripe=" + chunk + "&") + kSmallQueues;
  }
  static Error error_of_mount(const std::string& spec) {
    const auto volume = mount(spec, true);
    return volume ? Error{0, "mounted"} : volume.error();
  }

  /// Writes by a mount of `first`, remounts by `again`, and has the images judged without QEMU.
  static void write_and_judge(const Striped& striped, const ssd::QemuOptions& machine,
                              const std::string& first, const std::string& again,
                              const std::string& images) {
    std::vector<uint8_t> text((uint64_t{3} << 20) + 777);
    image::fill_pattern(99, 0, text.data(), text.size());
    const auto expect_text = [&text](Volume& volume) {
      const int fd = volume.open("/fresh").value();
      std::vector<uint8_t> got(text.size() + 1);
      ASSERT_EQ(volume.pread(fd, got.data(), got.size(), 0).value(), text.size());
      got.pop_back();
      EXPECT_TRUE(got == text);
      EXPECT_TRUE(volume.close(fd));
      EXPECT_TRUE(volume.stat("/made/seven"));
    };
    {
      QemuVolumes qemu(machine);
      auto volume = mount(first, false);
      ASSERT_TRUE(volume) << volume.error().message;
      expect_whole(*volume);
      EXPECT_TRUE(volume->unlink("/large"));  // there is not much room
      const int fd = volume->open("/fresh", O_RDWR | O_CREAT, 0644).value();
      ASSERT_EQ(volume->pwrite(fd, text.data(), text.size(), 0).value(), text.size());
      EXPECT_TRUE(volume->fsync(fd));
      EXPECT_TRUE(volume->mkdir("/made", 0755));
      EXPECT_TRUE(volume->rename("/data/file0007", "/made/seven"));
      ASSERT_TRUE(volume->unmount());
      volume = mount(again, true);
      ASSERT_TRUE(volume) << volume.error().message;
      EXPECT_EQ(volume->info().ssd_bytes, format::stripe_bytes(striped.stripe()));
      expect_text(*volume);
    }
    const image::TemporaryPath one;
    striped.gather(one.path());
    EXPECT_TRUE(image::fsck_is_clean(one.path()));
    for (const std::string& other : {images, one.path()}) {
      auto volume = mount(other, true);
      ASSERT_TRUE(volume) << volume.error().message;
      expect_text(*volume);
    }
  }
};

}  // namespace gofs::tests
