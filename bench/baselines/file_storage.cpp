// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "bench/volume.hpp"
#include "host/messages.h"
#include "options.hpp"
#include "simt/platform.h"
#include "storage.hpp"

namespace gofs::bench {
namespace {

/// An open file.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~OpenFile() {
    if (fd_ >= 0) (void)::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

int outcome(ssize_t moved, uint64_t bytes) {
  if (moved < 0) return -errno;
  return static_cast<uint64_t>(moved) == bytes ? 0 : -EIO;
}

class FileStorage final : public Storage {
 public:
  FileStorage(const StampedFile& file, const SmallFiles& small, int flags)
      : file_(file), small_(small), flags_(flags), open_(file.path(), O_RDWR | flags) {}
  bool is_open() const { return open_.fd() >= 0; }

  std::string describe() const override {
    return (flags_ & O_DIRECT) != 0 ? "files of the host, O_DIRECT" : "files of the host";
  }
  uint64_t read_bytes() const override { return file_.bytes(); }
  uint64_t written_bytes() const override { return file_.bytes(); }
  uint32_t small_files() const override { return small_.count(); }
  int read(void* buffer, uint64_t bytes, uint64_t offset) override {
    return outcome(::pread(open_.fd(), buffer, bytes, static_cast<off_t>(offset)), bytes);
  }
  int write(const void* buffer, uint64_t bytes, uint64_t offset) override {
    return outcome(::pwrite(open_.fd(), buffer, bytes, static_cast<off_t>(offset)), bytes);
  }
  int read_file(uint32_t index, void* buffer) override {
    const OpenFile file(small_.path_of(index), O_RDONLY | flags_);
    if (file.fd() < 0) return -errno;
    return outcome(::pread(file.fd(), buffer, kSmallFileBytes, 0), kSmallFileBytes);
  }
  int read_back(void* buffer, uint64_t bytes, uint64_t offset) override {
    return read(buffer, bytes, offset);
  }

 private:
  const StampedFile& file_;
  const SmallFiles& small_;
  const int flags_;
  const OpenFile open_;
};

int fill_file(int fd, uint64_t bytes) {
  constexpr uint64_t kFilledBytes = uint64_t{4} << 20;
  std::vector<uint8_t> piece(std::min(bytes, kFilledBytes), 0x5a);
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    const uint64_t length = std::min<uint64_t>(piece.size(), bytes - at);
    for (uint64_t in_piece = 0; in_piece < length; in_piece += kBlockBytes) {
      const uint64_t index = (at + in_piece) / kBlockBytes;
      std::memcpy(piece.data() + in_piece, &index, sizeof(index));
    }
    const int error = outcome(::pwrite(fd, piece.data(), length, static_cast<off_t>(at)), length);
    if (error != 0) return error;
  }
  return ::fsync(fd) == 0 ? 0 : -errno;
}

}  // namespace

Expected<std::unique_ptr<StampedFile>> StampedFile::make(const std::string& path, uint64_t bytes) {
  const OpenFile file(path, O_RDWR | O_CREAT | O_EXCL);
  if (file.fd() < 0) return host::make_error(errno, path);
  std::unique_ptr<StampedFile> made(new StampedFile(path, bytes));
  const int error = fill_file(file.fd(), bytes);
  if (error != 0) return host::make_error(error, path);
  return made;
}

StampedFile::~StampedFile() { (void)::unlink(path_.c_str()); }

Expected<std::unique_ptr<SmallFiles>> SmallFiles::make(const std::string& path, uint32_t count) {
  std::unique_ptr<SmallFiles> made(new SmallFiles(path, count));
  if (count == 0) return made;
  std::error_code problem;
  // As in a volume: /small below it.
  std::filesystem::create_directories(path + "/small", problem);
  if (problem) return host::make_error(problem.value(), path);
  for (uint32_t i = 0; i < count; ++i) {
    const OpenFile file(made->path_of(i), O_RDWR | O_CREAT | O_EXCL);
    const int error = file.fd() < 0 ? -errno : fill_file(file.fd(), kSmallFileBytes);
    if (error != 0) return host::make_error(error, made->path_of(i));
  }
  return made;
}

SmallFiles::~SmallFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string SmallFiles::path_of(uint32_t index) const { return path_ + small_file_path(index); }

Expected<std::unique_ptr<Storage>> open_file_storage(const StampedFile& file,
                                                     const SmallFiles& small, bool direct) {
  auto storage = std::make_unique<FileStorage>(file, small, direct ? O_DIRECT : 0);
  if (direct && !storage->is_open() && errno == EINVAL) {
    storage = std::make_unique<FileStorage>(file, small, 0);
  }
  if (!storage->is_open()) return host::make_error(errno, file.path());
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace gofs::bench
