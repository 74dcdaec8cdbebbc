// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_target.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gofs::image {
namespace {

class FileTarget final : public ImageTarget {
 public:
  FileTarget(int fd, bool owned, uint64_t size_bytes, std::string name)
      : fd_(fd), owned_(owned), size_bytes_(size_bytes), name_(std::move(name)) {}
  FileTarget(const FileTarget&) = delete;
  FileTarget& operator=(const FileTarget&) = delete;
  ~FileTarget() override {
    if (owned_) close(fd_);
  }

  uint64_t size_bytes() const override { return size_bytes_; }

  Status write(uint64_t offset_bytes, const void* data, size_t bytes) override {
    const auto* from = static_cast<const uint8_t*>(data);
    while (bytes > 0) {
      const ssize_t done = pwrite(fd_, from, bytes, static_cast<off_t>(offset_bytes));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return Status::system_failure(done < 0 ? -errno : -EIO, name_);
      from += done;
      offset_bytes += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
    return {};
  }

  Status read(uint64_t offset_bytes, void* data, size_t bytes) override {
    auto* to = static_cast<uint8_t*>(data);
    while (bytes > 0) {
      const ssize_t done = pread(fd_, to, bytes, static_cast<off_t>(offset_bytes));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return Status::system_failure(done < 0 ? -errno : -EIO, name_);
      to += done;
      offset_bytes += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
    return {};
  }

  Status write_zeros(uint64_t offset_bytes, uint64_t bytes) override {
    if (bytes == 0) return {};
    // A hole is enough, where holes can be made.
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_bytes),
                  static_cast<off_t>(bytes)) == 0) {
      return {};
    }
    const std::vector<uint8_t> zeros(std::min<uint64_t>(bytes, uint64_t{1} << 20));
    while (bytes > 0) {
      const size_t part = std::min<uint64_t>(bytes, zeros.size());
      GOFS_RETURN_IF_FAILED(write(offset_bytes, zeros.data(), part));
      offset_bytes += part;
      bytes -= part;
    }
    return {};
  }

  Status flush() override {
    return fsync(fd_) == 0 ? Status{} : Status::system_failure(-errno, name_);
  }

 private:
  const int fd_;
  const bool owned_;
  const uint64_t size_bytes_;
  const std::string name_;
};

class MemoryTarget final : public ImageTarget {
 public:
  MemoryTarget(void* memory, uint64_t size_bytes)
      : memory_(static_cast<uint8_t*>(memory)), size_bytes_(size_bytes) {}

  uint64_t size_bytes() const override { return size_bytes_; }
  Status write(uint64_t offset_bytes, const void* data, size_t bytes) override {
    std::memcpy(memory_ + offset_bytes, data, bytes);
    return {};
  }
  Status read(uint64_t offset_bytes, void* data, size_t bytes) override {
    std::memcpy(data, memory_ + offset_bytes, bytes);
    return {};
  }
  Status write_zeros(uint64_t offset_bytes, uint64_t bytes) override {
    std::memset(memory_ + offset_bytes, 0, bytes);
    return {};
  }
  Status flush() override { return {}; }

 private:
  uint8_t* const memory_;
  const uint64_t size_bytes_;
};

/// Gives the file or device of `fd` its size, or finds it out.
Status settle_size(int fd, const std::string& name, uint64_t* size_bytes) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Status::system_failure(-errno, name);
  if (S_ISBLK(about.st_mode)) {
    uint64_t device_bytes = 0;
    if (ioctl(fd, BLKGETSIZE64, &device_bytes) != 0) return Status::system_failure(-errno, name);
    if (*size_bytes > device_bytes) {
      return Status::failure(-EINVAL, name + ": the device is smaller than the size asked for");
    }
    if (*size_bytes == 0) *size_bytes = device_bytes;
    return {};
  }
  if (!S_ISREG(about.st_mode)) {
    return Status::failure(S_ISDIR(about.st_mode) ? -EISDIR : -EINVAL,
                           name + ": neither a regular file nor a block device");
  }
  if (*size_bytes == 0) {
    *size_bytes = static_cast<uint64_t>(about.st_size);
  } else if (ftruncate(fd, static_cast<off_t>(*size_bytes)) != 0) {
    return Status::system_failure(-errno, name);
  }
  return {};
}

Status make_file_target(int fd, bool owned, uint64_t size_bytes, const std::string& name,
                        std::unique_ptr<ImageTarget>* target) {
  Status status = settle_size(fd, name, &size_bytes);
  if (status.ok()) {
    *target = std::make_unique<FileTarget>(fd, owned, size_bytes, name);
  } else if (owned) {
    close(fd);
  }
  return status;
}

}  // namespace

Status open_file_target(const std::string& path, uint64_t size_bytes,
                        std::unique_ptr<ImageTarget>* target) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return Status::system_failure(-errno, path);
  return make_file_target(fd, true, size_bytes, path, target);
}

Status open_fd_target(int fd, uint64_t size_bytes, std::unique_ptr<ImageTarget>* target) {
  return make_file_target(fd, false, size_bytes, "descriptor " + std::to_string(fd), target);
}

std::unique_ptr<ImageTarget> make_memory_target(void* memory, uint64_t size_bytes) {
  return std::make_unique<MemoryTarget>(memory, size_bytes);
}

}  // namespace gofs::image
