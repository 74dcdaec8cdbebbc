// SPDX-License-Identifier: Apache-2.0
//
// The calls of a file system of the machine that this runs on: a second judge, of the model. The
// process sees nothing but a new and empty tmpfs from then on. By one thread, which is user 0.
#pragma once

#include "calls.h"

namespace gofs::judges {

class HostCalls : public Calls {
 public:
  /// Throws std::runtime_error.
  HostCalls();

  bool is_gofs() const override { return false; }
  void become(const Who& who) override;

  using Calls::open;
  int open(const std::string& path, uint32_t flags, uint32_t mode) override;
  int close(int fd) override;
  int64_t pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) override;
  int64_t read(int fd, void* buffer, uint64_t bytes) override;
  int64_t pwrite(int fd, std::string_view bytes, uint64_t offset) override;
  int64_t write(int fd, std::string_view bytes) override;
  int64_t pwritev(int fd, const Buffers& parts, uint64_t offset) override;
  int64_t writev(int fd, const Buffers& parts) override;
  int64_t lseek(int fd, int64_t offset, int whence) override;
  int ftruncate(int fd, uint64_t size) override;
  int truncate(const std::string& path, uint64_t size) override;
  int fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) override;
  int64_t copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                          uint64_t bytes) override;
  int fsync(int fd) override;
  int fdatasync(int fd) override;
  int sync() override;
  int mkdir(const std::string& path, uint32_t mode) override;
  int mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) override;
  int symlink(const std::string& target, const std::string& path) override;
  int link(const std::string& existing, const std::string& path) override;
  int unlink(const std::string& path) override;
  int rmdir(const std::string& path) override;
  int rename(const std::string& from, const std::string& to, uint32_t flags) override;
  int chmod(const About& about, uint32_t mode) override;
  int chown(const About& about, uint32_t uid, uint32_t gid) override;
  int utimens(const About& about, const f2fs::TimeStamp& accessed,
              const f2fs::TimeStamp& modified) override;
  int setxattr(const About& about, const std::string& name, const std::string& value,
               uint32_t flags) override;
  int removexattr(const About& about, const std::string& name) override;
  int64_t getxattr(const About& about, const std::string& name, void* value,
                   uint64_t bytes) override;
  int64_t listxattr(const About& about, char* list, uint64_t bytes) override;
  int stat(const About& about, vfs::Stat& out) override;
  int access(const std::string& path, uint32_t wanted) override;
  int readlink(const std::string& path, std::string& target) override;
  int list(const std::string& path, Names& names) override;
};

}  // namespace gofs::judges
