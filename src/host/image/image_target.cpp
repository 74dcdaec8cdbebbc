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
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "host/image/contents.h"
#include "ssd/claimed_image.h"

namespace gofs::image {
namespace {

Status not_a_target(const std::string& name) {
  return Status::failure(-EINVAL, name + ": neither a regular file nor a block device");
}

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
  if (S_ISDIR(about.st_mode)) return Status::system_failure(-EISDIR, name);
  if (!S_ISREG(about.st_mode)) return not_a_target(name);
  if (*size_bytes == 0) {
    *size_bytes = static_cast<uint64_t>(about.st_size);
  } else if (ftruncate(fd, static_cast<off_t>(*size_bytes)) != 0) {
    return Status::system_failure(-errno, name);
  }
  return {};
}

class FileTarget final : public ImageTarget {
 public:
  FileTarget(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  FileTarget(ssd::ClaimedImage image, std::string name)
      : image_(std::move(image)), fd_(image_.get()), name_(std::move(name)) {}

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

  Status resize(uint64_t size_bytes) override {
    GOFS_RETURN_IF_FAILED(settle_size(fd_, name_, &size_bytes));
    size_bytes_ = size_bytes;
    return {};
  }

  Status find_contents(uint64_t offset, uint64_t bytes, std::string* found) override {
    return image::find_contents(fd_, offset, bytes, found);
  }

 private:
  const ssd::ClaimedImage image_;  // or the descriptor is the caller's
  const int fd_;
  uint64_t size_bytes_ = 0;
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

/// A target of `size_bytes`, or of the size that it has.
Status give_size(std::unique_ptr<FileTarget> opened, uint64_t size_bytes,
                 std::unique_ptr<ImageTarget>* target) {
  GOFS_RETURN_IF_FAILED(opened->resize(size_bytes));
  *target = std::move(opened);
  return {};
}

}  // namespace

Status ImageTarget::resize(uint64_t bytes) {
  return bytes == size_bytes() ? Status{} : Status::failure(-EINVAL, "its size is fixed");
}

Status ImageTarget::find_contents(uint64_t, uint64_t, std::string* found) {
  found->clear();
  return {};
}

Status open_file_target(const std::string& path, uint64_t size_bytes,
                        std::unique_ptr<ImageTarget>* target) {
  target->reset();  // it may have the same image
  try {
    ssd::ClaimedImage image(path, ssd::FileAccess::kReadWrite, ssd::IfMissing::kMake);
    return give_size(std::make_unique<FileTarget>(std::move(image), path), size_bytes, target);
  } catch (const std::system_error& problem) {
    if (problem.code().value() == ENODEV) return not_a_target(path);
    return Status::failure(-problem.code().value(), problem.what());
  }
}

void remove_made(const std::string& path) {
  std::error_code error;
  const std::filesystem::path made = std::filesystem::canonical(path, error);
  if (!error) unlink(made.c_str());
}

Status open_fd_target(int fd, uint64_t size_bytes, std::unique_ptr<ImageTarget>* target) {
  const std::string name = "descriptor " + std::to_string(fd);
  return give_size(std::make_unique<FileTarget>(fd, name), size_bytes, target);
}

std::unique_ptr<ImageTarget> make_memory_target(void* memory, uint64_t size_bytes) {
  return std::make_unique<MemoryTarget>(memory, size_bytes);
}

}  // namespace gofs::image
