// SPDX-License-Identifier: Apache-2.0
//
// gofs get VOL PATH HOSTPATH [-r]: copies a file, or with -r everything below a directory, to the
// host. Modes, times and user.* extended attributes are restored, owners and all other attributes
// if root asks; symbolic links, hard links and holes stay what they are, device nodes and FIFOs are
// made where that is permitted. What goes wrong with one object is told, and the others are copied
// all the same; an attribute that the host does not take is told and is no failure.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <vector>

#include "cli/commands.h"
#include "cli/objects.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "host/messages.h"
#include "host/tree.h"

namespace gofs::cli {
namespace {

class TargetFile {
 public:
  /// Made anew or emptied. A symbolic link in its place is not followed: it may come from the
  /// volume.
  explicit TargetFile(const std::string& path)
      : path_(path),
        descriptor_(
            ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (descriptor_ < 0) fail_with_errno(path);
  }
  ~TargetFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  TargetFile(const TargetFile&) = delete;
  TargetFile& operator=(const TargetFile&) = delete;

  void write(const uint8_t* data, uint64_t bytes, uint64_t offset) {
    while (bytes != 0) {
      const ssize_t written = ::pwrite(descriptor_, data, bytes, static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_with_errno(path_);
      data += written;
      offset += static_cast<uint64_t>(written);
      bytes -= static_cast<uint64_t>(written);
    }
  }
  void resize(uint64_t bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail_with_errno(path_);
  }
  void close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno(path_);
  }

 private:
  const std::string path_;
  int descriptor_;
};

class Getter {
 public:
  Getter(Session& session, Volume& volume, host::Tree& tree)
      : session_(session), volume_(volume), tree_(tree), chunk_(kCopyChunkBytes) {}

  /// Copies one object, but not what is in a directory.
  void copy(const host::TreeEntry& entry, const std::string& host_path) {
    try {
      copy_object(entry, host_path);
    } catch (const ObjectFailure& failure) {
      if (progress_ != nullptr) progress_->clear();
      report(session_, failure.message);
    }
  }

  /// What directories get when nothing is put into them any more.
  void finish() {
    for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
      try {
        restore(directory->second, directory->first);
      } catch (const ObjectFailure& failure) {
        report(session_, failure.message);
      }
    }
  }

  void show(Progress* progress) { progress_ = progress; }

 private:
  void copy_object(const host::TreeEntry& entry, const std::string& host_path) {
    const Stat& stat = *entry.stat;
    const uint32_t type = stat.mode & format::kModeTypeMask;
    if (type == format::kModeDirectory) {
      make_directory(host_path);
      directories_.emplace_back(host_path, entry);
      return;
    }
    if (const auto first = linked_.find(stat.ino); first != linked_.end()) {
      const auto link = [&](const char* path) { return ::link(first->second.c_str(), path); };
      if (put_in_place(host_path, link)) return;  // else the host may have no such links
    }
    if (type == format::kModeRegular) {
      copy_file(entry, host_path);
    } else if (type == format::kModeSymlink) {
      if (!entry.link_target) return;  // told already
      const auto link = [&](const char* path) {
        return ::symlink(entry.link_target->c_str(), path);
      };
      if (!put_in_place(host_path, link)) fail_with_errno(host_path);
    } else {
      const dev_t device = ::makedev(stat.device_major, stat.device_minor);
      const auto make = [&](const char* path) { return ::mknod(path, type | 0600, device); };
      if (!put_in_place(host_path, make)) fail_with_errno(host_path);
    }
    if (stat.links > 1) linked_.emplace(stat.ino, host_path);
    restore(entry, host_path);
  }

  /// Has `make`, which answers as link(2) does, make `host_path`, in place of what is there, unless
  /// that is a directory. False: errno says why.
  template <typename Make>
  static bool put_in_place(const std::string& host_path, const Make& make) {
    if (make(host_path.c_str()) == 0) return true;
    if (errno != EEXIST) return false;
    const std::string beside = path_beside(host_path);
    if (make(beside.c_str()) != 0) return false;
    const int error = ::rename(beside.c_str(), host_path.c_str()) == 0 ? 0 : errno;
    ::unlink(beside.c_str());  // also where both were names of one file already
    errno = error;
    return error == 0;
  }

  void make_directory(const std::string& host_path) {
    if (::mkdir(host_path.c_str(), 0700) == 0) return;
    if (errno != EEXIST) fail_with_errno(host_path);
    struct stat there;
    if (::lstat(host_path.c_str(), &there) != 0) fail_with_errno(host_path);
    if (!S_ISDIR(there.st_mode)) {
      throw ObjectFailure{host_path + ": exists and is not a directory"};
    }
  }

  void copy_file(const host::TreeEntry& entry, const std::string& host_path) {
    const int fd = take_object(tree_.open(entry.entry.ino, entry.path));
    volume_.state().name_descriptor(fd, entry.path);
    const struct Closer {
      host::Tree& tree;
      int fd;
      ~Closer() { tree.close(fd); }
    } closer{tree_, fd};
    TargetFile file(host_path);
    const uint64_t size = entry.stat->size_bytes;
    uint64_t offset = 0;
    while (offset < size) {
      const uint64_t data = next(fd, offset, SEEK_DATA, size);
      const uint64_t hole = data < size ? next(fd, data, SEEK_HOLE, size) : size;
      copy_range(fd, file, data, hole);
      done_bytes_ += hole - offset;
      offset = hole;
    }
    file.resize(size);
    file.close();
  }

  /// The next data or hole from `offset` on; `size` when there is none.
  uint64_t next(int fd, uint64_t offset, int whence, uint64_t size) {
    const auto found = volume_.lseek(fd, static_cast<int64_t>(offset), whence);
    if (!found && found.error().code == ENXIO) return size;
    return take_object(found);
  }

  void copy_range(int fd, TargetFile& file, uint64_t begin, uint64_t end) {
    while (begin < end) {
      const uint64_t wanted = std::min(end - begin, kCopyChunkBytes);
      const uint64_t got = take_object(volume_.pread(fd, chunk_.data(), wanted, begin));
      if (got == 0) return;
      file.write(chunk_.data(), got, begin);
      begin += got;
      if (progress_ != nullptr) progress_->update(done_bytes_ + got);
    }
  }

  /// Owner (as root), attributes, mode and times, in the order in which they do not undo each
  /// other: a new owner costs a file its capabilities, and an ACL its mode.
  void restore(const host::TreeEntry& entry, const std::string& host_path) {
    const Stat& stat = *entry.stat;
    const bool link = (stat.mode & format::kModeTypeMask) == format::kModeSymlink;
    if (::geteuid() == 0 && ::lchown(host_path.c_str(), stat.uid, stat.gid) != 0) {
      fail_with_errno(host_path);
    }
    restore_xattrs(entry, host_path);
    if (!link && ::chmod(host_path.c_str(), stat.mode & format::kModePermissionMask) != 0) {
      fail_with_errno(host_path);
    }
    const auto time = [](const f2fs::TimeStamp& stamp) {
      return timespec{static_cast<time_t>(stamp.seconds), static_cast<long>(stamp.nanoseconds)};
    };
    const timespec times[2] = {time(stat.accessed), time(stat.modified)};
    if (::utimensat(AT_FDCWD, host_path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
      fail_with_errno(host_path);
    }
  }

  void restore_xattrs(const host::TreeEntry& entry, const std::string& host_path) {
    if (!entry.xattrs) return;  // told already
    for (const host::ExtendedAttribute& xattr : *entry.xattrs) {
      if (::geteuid() != 0 && !xattr.name.starts_with("user.")) continue;
      if (::lsetxattr(host_path.c_str(), xattr.name.c_str(), xattr.value.data(), xattr.value.size(),
                      0) == 0) {
        continue;
      }
      // A host that has none at all would say so of every file.
      if (errno == EOPNOTSUPP && std::exchange(told_unsupported_, true)) continue;
      if (progress_ != nullptr) progress_->clear();
      fmt::print(stderr, "gofs: {}: warning: {}: {}\n", escaped(host_path), escaped(xattr.name),
                 host::errno_words(errno));
    }
  }

  Session& session_;
  Volume& volume_;
  host::Tree& tree_;
  std::vector<uint8_t> chunk_;
  std::unordered_map<uint64_t, std::string> linked_;  // where the first name of an inode went
  std::vector<std::pair<std::string, host::TreeEntry>> directories_;
  bool told_unsupported_ = false;
  uint64_t done_bytes_ = 0;
  Progress* progress_ = nullptr;
};

/// Where `name` goes if the user said `host_path`: into it, if it is a directory that exists.
std::string target_path(const std::string& host_path, const std::string& name) {
  struct stat there;
  const bool into = ::stat(host_path.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
  return into && !name.empty() ? host::joined_path(host_path, name) : host_path;
}

}  // namespace

void run_get(Session& session, const GetOptions& options) {
  // What is below a directory would go to the host's root.
  if (options.host_path.empty()) throw Failure{host::make_error(ENOENT, "").message};
  Volume volume = mount_volume(session);
  host::Tree tree(volume.state());
  host::TreeEntry top = take(tree.find(options.path, true));
  if (top.entry.type == format::kTypeSymlink && !options.recursive) {
    // What a user asks for by a link's name is what it leads to.
    top.stat = take(volume.stat(options.path));
    top.entry.ino = top.stat->ino;
    top.entry.type = format::file_type_of_mode(static_cast<uint16_t>(top.stat->mode));
  }
  find_xattrs(session, tree, top);
  const bool directory = top.entry.type == format::kTypeDirectory;
  if (directory && !options.recursive) throw Failure{options.path + ": is a directory (use -r)"};
  const std::string target = target_path(options.host_path, top.entry.name);

  Getter getter(session, volume, tree);
  if (!directory) {
    Progress progress(1, top.stat->size_bytes);
    getter.show(&progress);
    getter.copy(top, target);
    getter.show(nullptr);
    return;
  }
  // The whole list first: progress needs the sums, and a walk that goes on meanwhile would keep
  // more.
  std::vector<host::TreeEntry> entries;
  uint64_t bytes = 0;
  host::WalkVisitor visitor;
  visitor.entry = [&](const host::TreeEntry& entry) {
    if (!entry.stat) return;
    if (entry.entry.type == format::kTypeRegular) bytes += entry.stat->size_bytes;
    entries.push_back(entry);
  };
  visitor.error = [&](const Error& error) { report(session, error.message); };
  tree.walk(top, {.recursive = true, .link_targets = true, .xattrs = true}, visitor);

  Progress progress(entries.size(), bytes);
  getter.show(&progress);
  getter.copy(top, target);
  const size_t below = top.path.size() + (top.path == "/" ? 0 : 1);
  for (const host::TreeEntry& entry : entries) {
    getter.copy(entry, host::joined_path(target, entry.path.substr(below)));
  }
  getter.finish();
  getter.show(nullptr);
}

}  // namespace gofs::cli
