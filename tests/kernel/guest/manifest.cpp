// SPDX-License-Identifier: Apache-2.0
#include "manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops.h"
#include "sha256.h"

namespace gofs::judge {
namespace {

constexpr size_t kChunk = 1 << 20;

std::string hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

const char* type_name(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "regular";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFCHR:
      return "character";
    case S_IFBLK:
      return "block";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      die("a mode without a type");
  }
}

class Walker {
 public:
  Walker(std::FILE* out, int64_t whole_max) : out_(out), whole_max_(whole_max), buffer_(kChunk) {}

  void walk(const std::string& root) {
    const Fd top = open_or_die(root, O_RDONLY | O_DIRECTORY);
    check(::fchdir(top.get()), "fchdir");
    object(".", "/");
    descend(top.get(), "");
  }

 private:
  /// Everything below the open directory `fd`, whose path is `path`.
  void descend(int fd, const std::string& path) {
    // fdopendir takes the descriptor over, and the caller still needs his.
    DIR* directory = ::fdopendir(static_cast<int>(check(::dup(fd), "dup")));
    if (directory == nullptr) die("fdopendir " + path);
    std::vector<std::string> below;
    // Names are used relative to the working directory: no path is then too long.
    check(::fchdir(fd), "fchdir");
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (object(name, path + "/" + name)) below.push_back(name);
    }
    ::closedir(directory);
    for (const std::string& name : below) {
      const Fd next(static_cast<int>(
          check(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                "open " + path + "/" + name)));
      descend(next.get(), path + "/" + name);
    }
  }

  /// Prints one object; returns whether it is a directory.
  bool object(const std::string& name, const std::string& path) {
    struct statx info {};
    check(::statx(AT_FDCWD, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                  &info),
          "statx " + path);
    std::fprintf(out_,
                 "{\"path_hex\":\"%s\",\"ino\":%llu,\"type\":\"%s\",\"mode\":%u,\"uid\":%u,"
                 "\"gid\":%u,\"nlink\":%u,\"size\":%llu,\"blocks\":%llu,"
                 "\"atime\":[%lld,%u],\"mtime\":[%lld,%u],\"ctime\":[%lld,%u],\"rdev\":[%u,%u]",
                 hex(path).c_str(), static_cast<unsigned long long>(info.stx_ino),
                 type_name(info.stx_mode), info.stx_mode & 07777, info.stx_uid, info.stx_gid,
                 info.stx_nlink, static_cast<unsigned long long>(info.stx_size),
                 static_cast<unsigned long long>(info.stx_blocks),
                 static_cast<long long>(info.stx_atime.tv_sec), info.stx_atime.tv_nsec,
                 static_cast<long long>(info.stx_mtime.tv_sec), info.stx_mtime.tv_nsec,
                 static_cast<long long>(info.stx_ctime.tv_sec), info.stx_ctime.tv_nsec,
                 info.stx_rdev_major, info.stx_rdev_minor);
    if (info.stx_mask & STATX_BTIME) {
      std::fprintf(out_, ",\"btime\":[%lld,%u]", static_cast<long long>(info.stx_btime.tv_sec),
                   info.stx_btime.tv_nsec);
    }
    // What hangs on the inode is asked for once, also when it has many names.
    std::string& rest = rest_[info.stx_ino];
    if (rest.empty() || info.stx_nlink == 1 || S_ISDIR(info.stx_mode)) rest = inode(name, info);
    std::fprintf(out_, "%s}\n", rest.c_str());
    if (info.stx_nlink == 1 || S_ISDIR(info.stx_mode)) rest_.erase(info.stx_ino);
    return S_ISDIR(info.stx_mode);
  }

  std::string inode(const std::string& name, const struct statx& info) {
    std::string text;
    if (S_ISLNK(info.stx_mode)) {
      char target[PATH_MAX + 1];
      const auto length =
          static_cast<size_t>(check(::readlink(name.c_str(), target, sizeof target), "readlink"));
      text += ",\"target_hex\":\"" + hex({target, length}) + "\"";
    }
    text += extended_attributes(name);
    if (S_ISREG(info.stx_mode)) {
      const int fd = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
      if (fd < 0 && errno == ENOKEY) return text + ",\"encrypted\":true";
      const Fd file(static_cast<int>(check(fd, "open " + name)));
      text += flags(file.get());
      text += digest(file.get(), static_cast<int64_t>(info.stx_size));
    }
    return text;
  }

  static std::string extended_attributes(const std::string& name) {
    char names[65536];
    const ssize_t size = ::llistxattr(name.c_str(), names, sizeof names);
    if (size < 0 && errno == EOPNOTSUPP) return {};
    check(size, "listxattr " + name);
    if (size == 0) return {};
    std::vector<std::string> sorted;
    for (const char* at = names; at < names + size; at += std::strlen(at) + 1) sorted.push_back(at);
    std::sort(sorted.begin(), sorted.end());
    std::string text = ",\"xattrs\":[";
    for (const std::string& attribute : sorted) {
      char value[65536];
      const auto length = static_cast<size_t>(
          check(::lgetxattr(name.c_str(), attribute.c_str(), value, sizeof value),
                "getxattr " + attribute));
      if (text.back() == ']') text += ",";
      text += "[\"" + hex(attribute) + "\",\"" + hex({value, length}) + "\"]";
    }
    return text + "]";
  }

  static std::string flags(int fd) {
    std::string text;
    int value = 0;
    if (::ioctl(fd, FS_IOC_GETFLAGS, &value) == 0 && value != 0) {
      text += ",\"flags\":" + std::to_string(static_cast<unsigned>(value));
    }
    fsxattr attributes{};
    if (::ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0 && attributes.fsx_projid != 0) {
      text += ",\"project\":" + std::to_string(attributes.fsx_projid);
    }
    return text;
  }

  std::string digest(int fd, int64_t size) {
    if (size > whole_max_) return probes(fd, size);
    return ",\"sha256\":\"" + range(fd, 0, size) + "\"";
  }

  std::string range(int fd, int64_t offset, int64_t length) {
    Sha256 hash;
    while (length > 0) {
      const auto want = static_cast<size_t>(std::min<int64_t>(length, kChunk));
      const ssize_t got = check(::pread(fd, buffer_.data(), want, offset), "read");
      if (got == 0) break;  // the end of the file: the probe reached over it
      hash.update(buffer_.data(), static_cast<size_t>(got));
      offset += got;
      length -= got;
    }
    return hash.finish();
  }

  std::string probes(int fd, int64_t size) {
    std::vector<std::pair<int64_t, int64_t>> places;
    const auto probe = [&](int64_t offset, int64_t length) {
      offset = std::max<int64_t>(offset, 0);
      if (offset < size) places.emplace_back(offset, length);
    };
    int64_t at = 0;
    while (at < size && places.size() < kProbesMax) {
      const int64_t data = ::lseek(fd, at, SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;
      check(data, "seek data");
      const int64_t hole = check(::lseek(fd, data, SEEK_HOLE), "seek hole");
      // All of the run, and a little more on both sides, in pieces of a bearable size.
      int64_t piece = data - 600;
      for (; piece < hole + 600; piece += kChunk) {
        probe(piece, std::min<int64_t>(kChunk, hole + 600 - piece));
      }
      at = hole;
    }
    // Places where there is most likely nothing, the first and the last bytes, and over the end.
    Random random(static_cast<uint64_t>(size));
    for (int i = 0; i < 3; ++i) {
      probe(static_cast<int64_t>(random.below(static_cast<uint64_t>(size))), 5000);
    }
    probe(0, 5000);
    probe(size - 5000, 10000);
    std::sort(places.begin(), places.end());
    std::string text = ",\"probes\":[";
    for (const auto& [offset, length] : places) {
      if (text.back() == ']') text += ",";
      text += "[" + std::to_string(offset) + "," + std::to_string(length) + ",\"" +
              range(fd, offset, length) + "\"]";
    }
    return text + "]";
  }

  static constexpr size_t kProbesMax = 100000;

  std::FILE* out_;
  int64_t whole_max_;
  std::vector<char> buffer_;
  std::map<uint64_t, std::string> rest_;  // by inode number, of those with several names
};

}  // namespace

void write_manifest(const std::string& root, const std::string& out, int64_t whole_max) {
  std::FILE* file = std::fopen(out.c_str(), "w");
  if (file == nullptr) die("open " + out);
  struct statfs fs {};
  check(::statfs(root.c_str(), &fs), "statfs");
  utsname system{};
  check(::uname(&system), "uname");
  std::fprintf(
      file,
      "{\"kernel\":\"%s\",\"statfs\":{\"blocks\":%llu,\"bfree\":%llu,\"bavail\":%llu,"
      "\"files\":%llu,\"ffree\":%llu,\"bsize\":%ld,\"namelen\":%ld}}\n",
      system.release, static_cast<unsigned long long>(fs.f_blocks),
      static_cast<unsigned long long>(fs.f_bfree), static_cast<unsigned long long>(fs.f_bavail),
      static_cast<unsigned long long>(fs.f_files), static_cast<unsigned long long>(fs.f_ffree),
      static_cast<long>(fs.f_bsize), static_cast<long>(fs.f_namelen));
  Walker(file, whole_max).walk(root);
  if (std::fclose(file) != 0) die("write " + out);
}

}  // namespace gofs::judge
