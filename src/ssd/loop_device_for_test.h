// SPDX-License-Identifier: Apache-2.0
//
// A loop device with a file, where there are such devices and we may have one. For tests only.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::ssd {

class LoopDevice {
 public:
  /// Of the `bytes` at `offset`; 0: all behind it.
  explicit LoopDevice(const std::string& path, uint64_t offset = 0, uint64_t bytes = 0) {
    constexpr int kTries = 20;  // another test may take the same one
    const Descriptor control = Descriptor::open("/dev/loop-control", O_RDWR);
    const Descriptor file = Descriptor::open(path, O_RDWR);
    if (!control.is_open() || !file.is_open()) return;
    for (int left = kTries; left != 0 && !is_there_; --left) {
      const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
      if (number < 0) return;
      path_ = "/dev/loop" + std::to_string(number);
      device_ = Descriptor::open(path_, O_RDWR);
      if (!device_.is_open()) return;
      if (::ioctl(device_.get(), LOOP_SET_FD, file.get()) == 0) {
        is_there_ = true;
      } else if (errno != EBUSY) {
        return;
      }
    }
    loop_info64 info{};
    info.lo_offset = offset;
    info.lo_sizelimit = bytes;
    if (is_there_ && ::ioctl(device_.get(), LOOP_SET_STATUS64, &info) != 0) let_go();
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  ~LoopDevice() { let_go(); }

  bool is_there() const { return is_there_; }
  const std::string& path() const { return path_; }
  /// Others who have it open keep it.
  void let_go() {
    if (is_there_) ::ioctl(device_.get(), LOOP_CLR_FD);
    device_ = Descriptor();
    is_there_ = false;
  }
  /// Has it look how large its file is now.
  bool look_at_size() { return ::ioctl(device_.get(), LOOP_SET_CAPACITY) == 0; }
  bool forbid_writing(bool forbidden) {
    const int value = forbidden ? 1 : 0;
    return ::ioctl(device_.get(), BLKROSET, &value) == 0;
  }

 private:
  std::string path_;
  Descriptor device_;
  bool is_there_ = false;
};

/// What a file takes on its disk.
inline uint64_t bytes_on_disk(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

}  // namespace gofs::ssd
