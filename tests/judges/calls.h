// SPDX-License-Identifier: Apache-2.0
//
// The calls that the judges make, of a volume (session.h) or of a file system of the machine
// (host_calls.h). Answers are those of vfs/: a result or a negative errno.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vfs/fallocate.h"
#include "vfs/metadata.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"

namespace gofs::judges {

/// What a call is about: a path, of which a symbolic link at the end is followed or stands for
/// itself, or an open file: its descriptor, and the object of the model.
struct About {
  About(std::string path_, bool follow_ = false) : path(std::move(path_)), follow(follow_) {}
  About(const char* path_) : path(path_) {}
  About(int fd_, uint32_t id_) : fd(fd_), id(id_) {}

  bool is_open() const { return fd >= 0; }

  std::string path;
  bool follow = false;
  int fd = -1;
  uint32_t id = 0;
};

/// Who makes a call. User 0 may do everything.
struct Who {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;  // others

  bool in_group(uint32_t group) const {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

/// A file that is made or written to together with others.
struct BatchItem {
  std::string name;  // or, of files that are there, nothing: all of the directory
  std::string bytes;
  int error = 0;
};

class Calls {
 public:
  virtual ~Calls() = default;

  /// False: of another file system, which judges the model; what only GoFS has is not there.
  virtual bool is_gofs() const = 0;
  /// Who makes the calls from now on. Nobody makes one meanwhile.
  virtual void become(const Who& who) = 0;

  virtual int open(const std::string& path, uint32_t flags, uint32_t mode) = 0;
  int open(const std::string& path, uint32_t flags) { return open(path, flags, 0644); }
  virtual int close(int fd) = 0;
  virtual int64_t pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) = 0;
  virtual int64_t read(int fd, void* buffer, uint64_t bytes) = 0;
  virtual int64_t pwrite(int fd, std::string_view bytes, uint64_t offset) = 0;
  virtual int64_t write(int fd, std::string_view bytes) = 0;
  using Buffers = std::vector<std::string_view>;
  virtual int64_t pwritev(int fd, const Buffers& parts, uint64_t offset) = 0;
  virtual int64_t writev(int fd, const Buffers& parts) = 0;
  virtual int64_t lseek(int fd, int64_t offset, int whence) = 0;
  virtual int ftruncate(int fd, uint64_t size) = 0;
  virtual int truncate(const std::string& path, uint64_t size) = 0;
  virtual int fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) = 0;
  virtual int64_t copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                                  uint64_t bytes) = 0;
  virtual int fsync(int fd) = 0;
  virtual int fdatasync(int fd) = 0;
  virtual int sync() = 0;

  virtual int mkdir(const std::string& path, uint32_t mode) = 0;
  virtual int mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) = 0;
  virtual int symlink(const std::string& target, const std::string& path) = 0;
  virtual int link(const std::string& existing, const std::string& path) = 0;
  virtual int unlink(const std::string& path) = 0;
  virtual int rmdir(const std::string& path) = 0;
  virtual int rename(const std::string& from, const std::string& to, uint32_t flags) = 0;

  /// Of a path: links are followed.
  virtual int chmod(const About& about, uint32_t mode) = 0;
  virtual int chown(const About& about, uint32_t uid, uint32_t gid) = 0;
  virtual int utimens(const About& about, const f2fs::TimeStamp& accessed,
                      const f2fs::TimeStamp& modified) = 0;
  virtual int setxattr(const About& about, const std::string& name, const std::string& value,
                       uint32_t flags) = 0;
  virtual int removexattr(const About& about, const std::string& name) = 0;
  virtual int64_t getxattr(const About& about, const std::string& name, void* value,
                           uint64_t bytes) = 0;
  virtual int64_t listxattr(const About& about, char* list, uint64_t bytes) = 0;

  virtual int stat(const About& about, vfs::Stat& out) = 0;
  virtual int access(const std::string& path, uint32_t wanted) = 0;
  virtual int readlink(const std::string& path, std::string& target) = 0;
  /// Name -> (ino, F2FS's type of file). -EEXIST where a name comes twice.
  using Names = std::map<std::string, std::pair<uint32_t, uint8_t>>;
  virtual int list(const std::string& path, Names& names) = 0;

  using Xattrs = std::map<std::string, std::string>;
  int xattrs(const About& about, Xattrs& values);
};

}  // namespace gofs::judges
