// SPDX-License-Identifier: Apache-2.0
#include "host_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace gofs::judges {

namespace {

/// An answer as vfs/ gives it.
int64_t answer(int64_t result) { return result < 0 ? -errno : result; }
int whole(int64_t result) { return static_cast<int>(answer(result)); }

void must(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
}

timespec time_of(const f2fs::TimeStamp& time) {
  return {time.seconds, static_cast<long>(time.nanoseconds)};
}

f2fs::TimeStamp stamp_of(const timespec& time) {
  return {time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

std::vector<iovec> iovecs(const Calls::Buffers& parts) {
  std::vector<iovec> made;
  for (const std::string_view part : parts) {
    made.push_back({const_cast<char*>(part.data()), part.size()});
  }
  return made;
}

/// Whether Linux may refuse to open what somebody else has put there, as a protection of its own:
/// in a sticky directory that all may write to, with O_CREAT. What it protects can be set for files
/// and FIFOs, but it does so for symbolic links as well (may_create_in_sticky()).
bool is_protected_link(const std::string& path) {
  struct stat link {};
  struct stat home {};
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) &&
         ::stat(directory.c_str(), &home) == 0 && (home.st_mode & S_ISVTX) != 0 &&
         (home.st_mode & S_IWOTH) != 0;
}

int at_flags(const About& about) { return about.follow ? 0 : AT_SYMLINK_NOFOLLOW; }

}  // namespace

HostCalls::HostCalls() {
  constexpr const char* kHere = "/tmp";
  must(::unshare(CLONE_NEWNS), "unshare");
  must(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount of /");
  // Times of access stay, as GoFS has it, and devices are not to be had.
  must(::mount("tmpfs", kHere, "tmpfs", MS_NOATIME | MS_NODEV, "mode=755,size=2g"), "mount");
  must(::chroot(kHere), "chroot");
  must(::chdir("/"), "chdir");
  ::umask(0);
}

void HostCalls::become(const Who& who) {
  must(::setresuid(0, 0, 0), "setresuid");
  must(::setgroups(who.groups.size(), who.groups.data()), "setgroups");
  must(::setresgid(who.gid, who.gid, 0), "setresgid");
  must(::setresuid(who.uid, who.uid, 0), "setresuid");
}

int HostCalls::open(const std::string& path, uint32_t flags, uint32_t mode) {
  // What is no file and no directory would wait for somebody, or not be there at all.
  constexpr uint32_t kNew = vfs::kOpenCreate | vfs::kOpenExclusive;
  constexpr uint32_t kPlain = vfs::kOpenDirectory | vfs::kOpenPath;
  struct stat there {};
  const int follow = (flags & vfs::kOpenNoFollow) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  const bool is_new = (flags & kNew) == kNew;
  if ((flags & kPlain) == 0 && !is_new && ::fstatat(AT_FDCWD, path.c_str(), &there, follow) == 0) {
    if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode) && !S_ISLNK(there.st_mode)) {
      const bool writes = vfs::may_write(flags) || (flags & vfs::kOpenTruncate) != 0;
      const int wanted = (vfs::may_read(flags) ? R_OK : 0) | (writes ? W_OK : 0);
      return ::faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) < 0 ? -errno : -ENXIO;
    }
  }
  const int fd =
      whole(::open(path.c_str(), static_cast<int>(flags) | O_NONBLOCK | O_CLOEXEC, mode));
  const bool refused = fd == -EACCES && !is_new && (flags & vfs::kOpenCreate) != 0 &&
                       (flags & vfs::kOpenNoFollow) != 0 && is_protected_link(path);
  return refused ? -ELOOP : fd;  // as POSIX has it
}

int HostCalls::close(int fd) { return whole(::close(fd)); }

int64_t HostCalls::pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  return answer(::pread(fd, buffer, bytes, static_cast<off_t>(offset)));
}

int64_t HostCalls::read(int fd, void* buffer, uint64_t bytes) {
  return answer(::read(fd, buffer, bytes));
}

int64_t HostCalls::pwrite(int fd, std::string_view bytes, uint64_t offset) {
  return answer(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)));
}

int64_t HostCalls::write(int fd, std::string_view bytes) {
  return answer(::write(fd, bytes.data(), bytes.size()));
}

int64_t HostCalls::pwritev(int fd, const Buffers& parts, uint64_t offset) {
  const std::vector<iovec> all = iovecs(parts);
  return answer(
      ::pwritev(fd, all.data(), static_cast<int>(all.size()), static_cast<off_t>(offset)));
}

int64_t HostCalls::writev(int fd, const Buffers& parts) {
  const std::vector<iovec> all = iovecs(parts);
  return answer(::writev(fd, all.data(), static_cast<int>(all.size())));
}

int64_t HostCalls::lseek(int fd, int64_t offset, int whence) {
  return answer(::lseek(fd, offset, whence));
}

int HostCalls::ftruncate(int fd, uint64_t size) {
  return whole(::ftruncate(fd, static_cast<off_t>(size)));
}

int HostCalls::truncate(const std::string& path, uint64_t size) {
  return whole(::truncate(path.c_str(), static_cast<off_t>(size)));
}

int HostCalls::fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  return whole(::fallocate(fd, static_cast<int>(mode), static_cast<off_t>(offset),
                           static_cast<off_t>(bytes)));
}

int64_t HostCalls::copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                                   uint64_t bytes) {
  auto begin = static_cast<off64_t>(from_offset);
  auto target = static_cast<off64_t>(to_offset);
  return answer(::copy_file_range(from, &begin, to, &target, bytes, 0));
}

int HostCalls::fsync(int fd) { return whole(::fsync(fd)); }

int HostCalls::fdatasync(int fd) { return whole(::fdatasync(fd)); }

int HostCalls::sync() { return 0; }

int HostCalls::mkdir(const std::string& path, uint32_t mode) {
  return whole(::mkdir(path.c_str(), mode));
}

int HostCalls::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  return whole(::mknod(path.c_str(), mode, ::makedev(major, minor)));
}

int HostCalls::symlink(const std::string& target, const std::string& path) {
  return whole(::symlink(target.c_str(), path.c_str()));
}

int HostCalls::link(const std::string& existing, const std::string& path) {
  return whole(::link(existing.c_str(), path.c_str()));
}

int HostCalls::unlink(const std::string& path) { return whole(::unlink(path.c_str())); }

int HostCalls::rmdir(const std::string& path) { return whole(::rmdir(path.c_str())); }

int HostCalls::rename(const std::string& from, const std::string& to, uint32_t flags) {
  return whole(::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags));
}

int HostCalls::chmod(const About& about, uint32_t mode) {
  return whole(about.is_open() ? ::fchmod(about.fd, mode) : ::chmod(about.path.c_str(), mode));
}

int HostCalls::chown(const About& about, uint32_t uid, uint32_t gid) {
  return whole(about.is_open()
                   ? ::fchown(about.fd, uid, gid)
                   : ::fchownat(AT_FDCWD, about.path.c_str(), uid, gid, at_flags(about)));
}

int HostCalls::utimens(const About& about, const f2fs::TimeStamp& accessed,
                       const f2fs::TimeStamp& modified) {
  const timespec times[2] = {time_of(accessed), time_of(modified)};
  return whole(about.is_open() ? ::futimens(about.fd, times)
                               : ::utimensat(AT_FDCWD, about.path.c_str(), times, at_flags(about)));
}

int HostCalls::setxattr(const About& about, const std::string& name, const std::string& value,
                        uint32_t flags) {
  const char* const path = about.path.c_str();
  const auto how = static_cast<int>(flags);
  const void* const from = value.data();
  if (about.is_open()) {
    return whole(::fsetxattr(about.fd, name.c_str(), from, value.size(), how));
  }
  return whole(about.follow ? ::setxattr(path, name.c_str(), from, value.size(), how)
                            : ::lsetxattr(path, name.c_str(), from, value.size(), how));
}

int HostCalls::removexattr(const About& about, const std::string& name) {
  const char* const path = about.path.c_str();
  if (about.is_open()) return whole(::fremovexattr(about.fd, name.c_str()));
  return whole(about.follow ? ::removexattr(path, name.c_str())
                            : ::lremovexattr(path, name.c_str()));
}

int64_t HostCalls::getxattr(const About& about, const std::string& name, void* value,
                            uint64_t bytes) {
  const char* const path = about.path.c_str();
  if (about.is_open()) return answer(::fgetxattr(about.fd, name.c_str(), value, bytes));
  return answer(about.follow ? ::getxattr(path, name.c_str(), value, bytes)
                             : ::lgetxattr(path, name.c_str(), value, bytes));
}

int64_t HostCalls::listxattr(const About& about, char* list, uint64_t bytes) {
  const char* const path = about.path.c_str();
  if (about.is_open()) return answer(::flistxattr(about.fd, list, bytes));
  return answer(about.follow ? ::listxattr(path, list, bytes) : ::llistxattr(path, list, bytes));
}

int HostCalls::stat(const About& about, vfs::Stat& out) {
  struct stat got {};
  const int error =
      whole(about.is_open() ? ::fstat(about.fd, &got)
                            : ::fstatat(AT_FDCWD, about.path.c_str(), &got, at_flags(about)));
  if (error < 0) return error;
  out = {};
  out.ino = got.st_ino;
  out.size_bytes = static_cast<uint64_t>(got.st_size);
  out.blocks_512 = static_cast<uint64_t>(got.st_blocks);
  out.mode = got.st_mode;
  out.links = static_cast<uint32_t>(got.st_nlink);
  out.uid = got.st_uid;
  out.gid = got.st_gid;
  if (S_ISCHR(got.st_mode) || S_ISBLK(got.st_mode)) {
    out.device_major = major(got.st_rdev);
    out.device_minor = minor(got.st_rdev);
  }
  out.accessed = stamp_of(got.st_atim);
  out.modified = stamp_of(got.st_mtim);
  out.changed = stamp_of(got.st_ctim);
  return 0;
}

int HostCalls::access(const std::string& path, uint32_t wanted) {
  return whole(::access(path.c_str(), static_cast<int>(wanted)));
}

int HostCalls::readlink(const std::string& path, std::string& target) {
  target.assign(vfs::kPathBytesMax, '\0');
  const int bytes = whole(::readlink(path.c_str(), target.data(), target.size()));
  target.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return std::min(bytes, 0);
}

int HostCalls::list(const std::string& path, Names& names) {
  names.clear();
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return -errno;
  bool twice = false;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const auto type = format::file_type_of_mode(static_cast<uint16_t>(DTTOIF(entry->d_type)));
    const auto ino = static_cast<uint32_t>(entry->d_ino);
    twice = !names.emplace(name, std::pair(ino, type)).second || twice;
  }
  ::closedir(directory);
  return twice ? -EEXIST : 0;
}

}  // namespace gofs::judges
