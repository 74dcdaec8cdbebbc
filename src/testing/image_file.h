// SPDX-License-Identifier: Apache-2.0
//
// A volume in memory that tools can look at: an anonymous file, mapped. Nothing of it is written to
// a disk, a tool reads it where it is, and copies cost what it holds and not how large it is.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace gofs::testing {

class ImageFile {
 public:
  /// All zeros. `bytes` is a multiple of a page. Throws std::system_error.
  explicit ImageFile(uint64_t bytes) : bytes_(bytes), fd_(memfd_create("gofs-image", MFD_CLOEXEC)) {
    if (fd_ < 0) fail("memfd_create");
    if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail("ftruncate");
    map();
  }
  /// A copy. `other` is not written to meanwhile. Throws std::system_error.
  explicit ImageFile(const ImageFile& other) : ImageFile(other.bytes_) { other.copy_to(fd_); }
  ImageFile(ImageFile&& other) noexcept
      : bytes_(other.bytes_),
        fd_(std::exchange(other.fd_, -1)),
        data_(std::exchange(other.data_, nullptr)) {}
  ImageFile& operator=(const ImageFile&) = delete;
  ~ImageFile() {
    if (data_ != nullptr) ::munmap(data_, bytes_ + kGuardBytes);
    if (fd_ >= 0) ::close(fd_);
  }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  int fd() const { return fd_; }
  /// For other processes, as long as this object is there.
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
  }

  /// Makes this what `other`, of the same size, is. Throws std::system_error.
  void assign(const ImageFile& other) {
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_)) !=
        0) {
      fail("fallocate");
    }
    other.copy_to(fd_);
  }
  /// Makes a range what it is in `other`.
  void assign(const ImageFile& other, uint64_t offset, uint64_t bytes) {
    std::memcpy(data_ + offset, other.data_ + offset, bytes);
  }
  /// Calls `work(offset, bytes)` for each part that is not a hole. Throws std::system_error.
  template <typename Work>
  void for_each_part(const Work& work) const {
    const auto end = static_cast<off_t>(bytes_);
    for (off_t at = 0; at < end;) {
      const off_t begin = lseek(fd_, at, SEEK_DATA);
      if (begin < 0 && errno == ENXIO) return;  // nothing but a hole is left
      if (begin < 0) fail("lseek");
      at = std::min(end, lseek(fd_, begin, SEEK_HOLE));
      work(static_cast<uint64_t>(begin), static_cast<uint64_t>(at - begin));
    }
  }
  /// Makes a file of it at `path`, with the same holes. Throws std::system_error.
  void save(const std::string& path) const {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail("open");
    copy_to(file);
    const bool sized = ftruncate(file, static_cast<off_t>(bytes_)) == 0;
    if (::close(file) != 0 || !sized) fail("close");
  }
  bool operator==(const ImageFile& other) const {
    return bytes_ == other.bytes_ && std::memcmp(data_, other.data_, bytes_) == 0;
  }

 private:
  /// Whoever runs over the end of the volume shall notice.
  static constexpr uint64_t kGuardBytes = 65536;

  [[noreturn]] static void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  void map() {
    void* const room = ::mmap(nullptr, bytes_ + kGuardBytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) fail("mmap");
    if (::mmap(room, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0) ==
        MAP_FAILED) {
      fail("mmap");
    }
    data_ = static_cast<uint8_t*>(room);
  }
  /// Writes what is not a hole into a file that is nothing else.
  void copy_to(int file) const {
    for_each_part([&](uint64_t offset, uint64_t bytes) {
      for (uint64_t done = offset; done < offset + bytes;) {
        const ssize_t written =
            pwrite(file, data_ + done, offset + bytes - done, static_cast<off_t>(done));
        if (written <= 0) fail("pwrite");
        done += static_cast<uint64_t>(written);
      }
    });
  }

  uint64_t bytes_;
  int fd_;
  uint8_t* data_ = nullptr;
};

}  // namespace gofs::testing
