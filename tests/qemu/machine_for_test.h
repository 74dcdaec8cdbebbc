// SPDX-License-Identifier: Apache-2.0
//
// A QEMU machine with an empty disk, for one test. QEMU is the one in PATH, or the one in the
// folder GOFS_QEMU_BUNDLE; tests are skipped where there is none.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "qemu_machine.h"
#include "scratch_folder.h"

namespace gofs::ssd {

/// Options that say which QEMU it is, and no more.
inline QemuOptions qemu_for_test() {
  QemuOptions options;
  const char* const folder = std::getenv("GOFS_QEMU_BUNDLE");
  if (folder != nullptr) use_qemu_bundle(options, folder);
  return options;
}

/// Begins what needs it.
#define GOFS_NEED_QEMU()                                                      \
  if (::gofs::ssd::find_program(::gofs::ssd::qemu_for_test().binary).empty()) \
  GTEST_SKIP() << "no " << ::gofs::ssd::qemu_for_test().binary                \
               << ": scripts/setup.sh test installs it, or GOFS_QEMU_BUNDLE names a folder"

class QemuTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kDiskBytes = uint64_t{16} << 20;

  void SetUp() override { GOFS_NEED_QEMU(); }

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
    QemuOptions options = qemu_for_test();
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
