// SPDX-License-Identifier: Apache-2.0
//
// gofs put VOL HOSTPATH... PATH [-r]: copies files, or with -r everything below a directory, from
// the host into the volume. Modes, times, user.* attributes, symbolic links, hard links and holes
// are kept, owners too if root asks. What goes wrong with one object is told, and the others are
// copied all the same.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "cli/commands.h"
#include "cli/objects.h"
#include "cli/progress.h"
#include "host/messages.h"
#include "host/tree.h"

namespace gofs::cli {
namespace {

/// An object of the host and where it is to go.
struct Source {
  std::string host_path;
  std::string path;
  struct stat status;
};

class SourceFile {
 public:
  explicit SourceFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (descriptor_ < 0) fail_with_errno(path);
  }
  ~SourceFile() { ::close(descriptor_); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  /// Bytes read; 0 at the end.
  uint64_t read(uint8_t* to, uint64_t bytes, uint64_t offset) {
    for (;;) {
      const ssize_t got = ::pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (got >= 0) return static_cast<uint64_t>(got);
      if (errno != EINTR) fail_with_errno(path_);
    }
  }
  /// The next data or hole from `offset` on, or `size`.
  uint64_t next(uint64_t offset, int whence, uint64_t size) {
    const off_t found = ::lseek(descriptor_, static_cast<off_t>(offset), whence);
    if (found >= 0) return std::min(static_cast<uint64_t>(found), size);
    if (errno == ENXIO) return size;
    return whence == SEEK_DATA ? offset : size;  // one that cannot tell
  }

 private:
  const std::string path_;
  const int descriptor_;
};

class Putter {
 public:
  Putter(Session& session, Volume& volume, Progress& progress)
      : session_(session), volume_(volume), progress_(progress), chunk_(kCopyChunkBytes) {}

  void copy(const Source& source) {
    try {
      copy_object(source);
    } catch (const ObjectFailure& failure) {
      progress_.clear();
      report(session_, failure.message);
    }
  }

  /// What directories get when nothing is put into them any more.
  void finish() {
    for (auto source = directories_.rbegin(); source != directories_.rend(); ++source) {
      try {
        restore(*source);
      } catch (const ObjectFailure& failure) {
        progress_.clear();
        report(session_, failure.message);
      }
    }
  }

 private:
  void copy_object(const Source& source) {
    const mode_t type = source.status.st_mode & S_IFMT;
    if (type == S_IFDIR) {
      make_directory(source.path);
      directories_.push_back(source);
      return;
    }
    const auto key = std::pair(source.status.st_dev, source.status.st_ino);
    if (const auto first = linked_.find(key); first != linked_.end()) {
      return put_in_place(
          source.path, [&](const std::string& path) { return volume_.link(first->second, path); });
    }
    if (type == S_IFREG) {
      copy_file(source);
    } else if (type == S_IFLNK) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(source.host_path, error);
      if (error) throw ObjectFailure{host::make_error(error.value(), source.host_path).message};
      put_in_place(source.path,
                   [&](const std::string& path) { return volume_.symlink(target.string(), path); });
    } else {
      const dev_t device = source.status.st_rdev;
      put_in_place(source.path, [&](const std::string& path) {
        return volume_.mknod(path, source.status.st_mode, major(device), minor(device));
      });
    }
    if (source.status.st_nlink > 1) linked_.emplace(key, source.path);
    restore(source);
  }

  /// Has `make` make `path`, in place of what is there, unless that is a directory.
  void put_in_place(const std::string& path,
                    const std::function<Expected<void>(const std::string& path)>& make) {
    const auto made = make(path);
    if (made) return;
    if (made.error().code != EEXIST) throw ObjectFailure{made.error().message};
    const std::string beside = path_beside(path);
    take_object(make(beside));
    const auto moved = volume_.rename(beside, path);
    (void)volume_.unlink(beside);  // also where both were names of one file already
    if (!moved) throw ObjectFailure{host::make_error(moved.error().code, path).message};
  }

  void make_directory(const std::string& path) {
    const auto made = volume_.mkdir(path, 0700);
    if (made) return;
    if (made.error().code != EEXIST) throw ObjectFailure{made.error().message};
    const Stat there = take_object(volume_.lstat(path));
    if (!S_ISDIR(there.mode)) throw ObjectFailure{path + ": exists and is not a directory"};
  }

  void copy_file(const Source& source) {
    SourceFile file(source.host_path);
    const int fd =
        take_object(volume_.open(source.path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    const struct Closer {
      Volume& volume;
      int fd;
      ~Closer() { (void)volume.close(fd); }
    } closer{volume_, fd};
    const auto size = static_cast<uint64_t>(source.status.st_size);
    uint64_t offset = 0;
    while (offset < size) {
      const uint64_t data = file.next(offset, SEEK_DATA, size);
      const uint64_t hole = data < size ? file.next(data, SEEK_HOLE, size) : size;
      copy_range(file, fd, data, hole);
      done_bytes_ += hole - offset;
      offset = hole;
    }
    take_object(volume_.ftruncate(fd, size));
  }

  void copy_range(SourceFile& file, int fd, uint64_t begin, uint64_t end) {
    while (begin < end) {
      const uint64_t got = file.read(chunk_.data(), std::min(end - begin, kCopyChunkBytes), begin);
      if (got == 0) return;  // it has become shorter
      for (uint64_t done = 0; done < got;) {
        done += take_object(volume_.pwrite(fd, chunk_.data() + done, got - done, begin + done));
      }
      begin += got;
      progress_.update(done_bytes_ + got);
    }
  }

  /// In the order in which they do not undo each other.
  void restore(const Source& source) {
    const struct stat& status = source.status;
    if (::geteuid() == 0) take_object(volume_.lchown(source.path, status.st_uid, status.st_gid));
    if (!S_ISLNK(status.st_mode)) {
      restore_xattrs(source);
      take_object(volume_.chmod(source.path, status.st_mode & 07777));
    }
    const auto time = [](const timespec& stamp) {
      return TimeStamp{stamp.tv_sec, static_cast<uint32_t>(stamp.tv_nsec)};
    };
    take_object(volume_.lutimens(source.path, time(status.st_atim), time(status.st_mtim)));
  }

  void restore_xattrs(const Source& source) {
    const ssize_t bytes = ::llistxattr(source.host_path.c_str(), nullptr, 0);
    if (bytes <= 0) return;  // none, or a host without any
    std::string names(static_cast<size_t>(bytes), '\0');
    const ssize_t listed = ::llistxattr(source.host_path.c_str(), names.data(), names.size());
    if (listed < 0) fail_with_errno(source.host_path);
    names.resize(static_cast<size_t>(listed));
    for (size_t at = 0; at < names.size();) {
      const std::string name = names.c_str() + at;
      at += name.size() + 1;
      if (!name.starts_with("user.")) continue;
      std::string value(vfs::kXattrValueBytesMax, '\0');
      const ssize_t got =
          ::lgetxattr(source.host_path.c_str(), name.c_str(), value.data(), value.size());
      if (got < 0) fail_with_errno(source.host_path);
      value.resize(static_cast<size_t>(got));
      take_object(volume_.lsetxattr(source.path, name, value));
    }
  }

  Session& session_;
  Volume& volume_;
  Progress& progress_;
  std::vector<uint8_t> chunk_;
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;  // where the first name of a file went
  std::vector<Source> directories_;
  uint64_t done_bytes_ = 0;
};

/// Everything that is to be copied, directories before what is in them.
class Gatherer {
 public:
  explicit Gatherer(Session& session) : session_(session) {}

  void add(const std::string& host_path, const std::string& path, bool recursive) {
    Source source{host_path, path, {}};
    if (::lstat(host_path.c_str(), &source.status) != 0) {
      return report(session_, host::make_error(errno, host_path).message);
    }
    if (S_ISLNK(source.status.st_mode) && !recursive &&
        ::stat(host_path.c_str(), &source.status) == 0) {
      // What a user asks for by a link's name is what it leads to.
      source.host_path = std::filesystem::canonical(host_path).string();
    }
    const bool directory = S_ISDIR(source.status.st_mode);
    if (directory && !recursive) {
      return report(session_, host_path + ": is a directory (use -r)");
    }
    if (S_ISREG(source.status.st_mode)) bytes += static_cast<uint64_t>(source.status.st_size);
    sources.push_back(source);
    if (!directory) return;
    std::error_code error;
    std::vector<std::string> names;
    for (auto entry = std::filesystem::directory_iterator(host_path, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) report(session_, host::make_error(error.value(), host_path).message);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      add(host::joined_path(host_path, name), host::joined_path(path, name), true);
    }
  }

  std::vector<Source> sources;
  uint64_t bytes = 0;

 private:
  Session& session_;
};

/// The last name of a path of the host.
std::string name_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

/// Whether it takes the place of what has its name: a directory becomes one with a directory.
bool replaces(const std::string& host_path) {
  struct stat status;
  return ::lstat(host_path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

/// Whether what is put goes into `target`, a directory, else it becomes `target`. Throws where
/// neither can be.
bool goes_into(Volume& volume, const std::string& target, bool several) {
  const auto there = volume.stat(target);
  if (there && S_ISDIR(there->mode)) return true;
  if (there && several) throw Failure{target + ": is no directory"};
  if (there) return false;
  // What this look says is clearer than what making it would: "Is a directory" of a file with a
  // slash behind it. By an empty path what is below a directory would go to the root.
  const bool may_be_made = !several && !target.empty() && there.error().code == ENOENT;
  if (!may_be_made) throw Failure{there.error().message};
  return false;
}

}  // namespace

void run_put(Session& session, const PutOptions& options) {
  if (options.paths.size() < 2) throw Failure{"put: wants a file of the host and a PATH"};
  Volume volume = mount_volume(session, Access::kReadWrite);
  const std::string& target = options.paths.back();
  const bool into = goes_into(volume, target, options.paths.size() > 2);
  Gatherer gatherer(session);
  std::set<std::string> taken;
  for (size_t i = 0; i + 1 < options.paths.size(); ++i) {
    const std::string& from = options.paths[i];
    const std::string name = name_of(from);
    const bool named = into && !name.empty() && name != "." && name != "..";
    const std::string to = named ? host::joined_path(target, name) : target;
    // What the first has become would be lost; whoever means that names the second alone.
    if (replaces(from) && !taken.insert(to).second) {
      report(session, just_created(to, from));
    } else {
      gatherer.add(from, to, options.recursive);
    }
  }
  {
    Progress progress(gatherer.sources.size(), gatherer.bytes);
    Putter putter(session, volume, progress);
    for (const Source& source : gatherer.sources) putter.copy(source);
    putter.finish();
  }
  take(volume.unmount());
}

}  // namespace gofs::cli
