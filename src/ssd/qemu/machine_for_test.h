// SPDX-License-Identifier: Apache-2.0
//
// A QEMU machine with an empty disk, for one test. QEMU is the one in PATH, or GOFS_QEMU says
// which; tests are skipped where there is none.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "ssd/qemu/qemu_machine.h"
#include "ssd/qemu/scratch_folder.h"

namespace gofs::ssd {

inline std::string qemu_for_test() {
  const char* const named = std::getenv("GOFS_QEMU");
  return named == nullptr ? QemuOptions{}.binary : named;
}

class QemuTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kDiskBytes = uint64_t{16} << 20;

  void SetUp() override {
    if (find_program(qemu_for_test()).empty()) {
      GTEST_SKIP() << "no " << qemu_for_test() << ": scripts/setup.sh test installs it";
    }
  }

  /// A new image of zeros.
  QemuDisk disk() {
    QemuDisk disk;
    disk.image = folder_.file("disk" + std::to_string(disks_++));
    const int file = ::open(disk.image.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_GE(file, 0);
    EXPECT_EQ(::ftruncate(file, kDiskBytes), 0);
    ::close(file);
    return disk;
  }
  static QemuOptions options(const QemuDisk& disk) {
    QemuOptions options;
    options.binary = qemu_for_test();
    options.ram_bytes = uint64_t{32} << 20;
    options.disks = {disk};
    return options;
  }
  QemuOptions options() { return options(disk()); }

  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  ScratchFolder folder_{::testing::TempDir()};
  int disks_ = 0;
};

}  // namespace gofs::ssd
