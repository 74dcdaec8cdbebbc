// SPDX-License-Identifier: Apache-2.0
//
// gofs put VOL HOSTPATH... PATH [-r]: copies files, or with -r everything below a directory, from
// the host into the volume. Modes, times, user.* attributes, symbolic links, hard links and holes
// are kept, owners too if root asks. What goes wrong with one object is reported, and the others
// are copied all the same.
//
// What the user names may be a link, a pipe or a device, which is read to its end without -r; and
// PATH may be a link inside the volume. Below these no link is followed. A file takes its place
// when all of it is there, in an inode of its own; until then, and after Ctrl-C, what was there
// stays.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cli/access_mode.h"
#include "cli/commands.h"
#include "cli/interruption.h"
#include "cli/named_path.h"
#include "cli/objects.h"
#include "cli/progress.h"
#include "cli/put_sources.h"
#include "cli/volume_entry.h"
#include "host/messages.h"
#include "host/storage_identity.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

/// An attribute of an open object of the host; none where it has no such one, or its file system
/// has none at all.
std::optional<std::string> host_xattr(int descriptor, const std::string& name,
                                      const std::string& path) {
  std::string value(kXattrValueBytesMax, '\0');
  const ssize_t got = ::fgetxattr(descriptor, name.c_str(), value.data(), value.size());
  if (got < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return std::nullopt;
  if (got < 0) fail_with_errno(path + ": " + name);
  value.resize(static_cast<size_t>(got));
  return value;
}

/// The permissions of an open object of the host. Its access list does not come along.
uint32_t permissions_of(int descriptor, const struct stat& status, const std::string& path) {
  const uint32_t mode = status.st_mode & 07777;
  const auto list = host_xattr(descriptor, kAccessListName, path);
  return list ? mode_without_list(mode, *list) : mode;
}

/// The same of what cannot be opened for reading without regard to what it is.
uint32_t permissions_of_special(PutSources& sources, const PutSource& source) {
  const ssd::Descriptor object = sources.look(source);
  const std::string path = "/proc/self/fd/" + std::to_string(object.get());
  std::string list(kXattrValueBytesMax, '\0');
  const uint32_t mode = source.status.st_mode & 07777;
  const ssize_t got = ::getxattr(path.c_str(), kAccessListName, list.data(), list.size());
  if (got < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return mode;
  // What the group may do is not known.
  list.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return mode_without_list(mode, list);
}

TimeStamp time_stamp(const timespec& time) {
  return {time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

class Putter {
 public:
  /// `named_path` is one that the user gave a file itself, where a link is followed.
  Putter(Session& session, Volume& volume, PutSources& sources, std::string named_path,
         Progress& progress)
      : session_(session),
        volume_(volume),
        sources_(sources),
        named_path_(std::move(named_path)),
        progress_(progress),
        storage_(host::any_of(volume).storage_paths()),
        chunk_(kCopyChunkBytes) {}

  /// What is in a directory that could not be made is passed over: the error was reported.
  void copy(const PutSource& source) {
    if (source.parent && !made_.contains(*source.parent)) return;
    guarded([&] { copy_object(source); });
  }

  /// What directories get when nothing is put into them any more.
  void finish() {
    for (auto source = finished_last_.rbegin(); source != finished_last_.rend(); ++source) {
      guarded([&] { finish_directory(**source); });
    }
  }

 private:
  /// The first name that a file of the host got on the volume.
  struct FirstName {
    std::string path;
    uint64_t ino;
  };
  using HostFile = std::pair<dev_t, ino_t>;

  template <typename Step>
  void guarded(const Step& step) {
    step_with_object(step, [this](const std::string& message) { tell(message); });
  }
  void tell(const std::string& message) {
    progress_.clear();
    report(session_, message);
  }

  void copy_object(const PutSource& source) {
    if (S_ISDIR(source.status.st_mode)) return make_directory(source);
    if (split_path(source.path).ends_with_slash) {
      throw ObjectFailure{host::make_error(ENOTDIR, source.path).message};
    }
    if (source.is_read) return copy_file(source);
    if (put_link_to_first(source.status, source.path)) return;
    const mode_t type = source.status.st_mode & S_IFMT;
    if (S_ISLNK(type)) {
      const std::string target = sources_.link_target(source);
      make_in_place(volume_, source.path,
                    [&](const std::string& path) { return volume_.symlink(target, path); });
    } else {
      const dev_t device = source.status.st_rdev;
      make_in_place(volume_, source.path, [&](const std::string& path) {
        return volume_.mknod(path, type | 0600, major(device), minor(device));
      });
    }
    note_first(source.status, source.path, take_object(volume_.lstat(source.path)).ino);
    const bool is_owned = restore_owner(source);
    if (!S_ISLNK(type)) restore_mode(source, permissions_of_special(sources_, source), is_owned);
    restore_times(source);
  }

  void make_directory(const PutSource& source) {
    const auto made = volume_.mkdir(source.path, 0700);
    if (!made && made.error().code != EEXIST) throw ObjectFailure{made.error().message};
    if (!made && !S_ISDIR(take_object(volume_.lstat(source.path)).mode)) {
      throw ObjectFailure{source.path + ": exists and is not a directory"};
    }
    finished_last_.push_back(&source);
    if (source.directory) made_.insert(*source.directory);
  }

  void finish_directory(const PutSource& source) {
    const bool is_owned = restore_owner(source);
    uint32_t mode = source.status.st_mode & 07777;
    if (source.directory) {
      const int descriptor = sources_.descriptor(*source.directory);
      const std::string host_path = sources_.host_path(source);
      restore_xattrs(descriptor, host_path, source.path, [&](const auto& name, const auto& value) {
        return volume_.lsetxattr(source.path, name, value);
      });
      mode = permissions_of(descriptor, source.status, host_path);
    } else {
      mode = mode_without_list(mode, "");  // it could not be opened: what it has is not known
    }
    restore_mode(source, mode, is_owned);
    restore_times(source);
  }

  void copy_file(const PutSource& source) {
    SourceFile file = sources_.open(source);
    const struct stat& status = file.status();
    if (storage_.has(status)) throw ObjectFailure{file.path() + ": the volume lies on it"};
    const bool is_named = !source.parent && source.path == named_path_;
    const std::string path = is_named ? end_of_links(volume_, source.path) : source.path;
    if (put_link_to_first(status, path)) return;
    look_at_place_of_file(volume_, path);
    NewVolumeFile made(volume_, path);
    copy_contents(file, made);
    restore_file(file, path, made.descriptor());
    const uint64_t ino = take_object(volume_.fstat(made.descriptor())).ino;
    made.place();
    note_first(status, path, ino);
    if (file.has_become_shorter()) tell(file.path() + ": has become shorter while it was read");
  }

  void copy_contents(SourceFile& file, NewVolumeFile& made) {
    while (const uint64_t got = file.read(chunk_.data(), chunk_.size())) {
      made.write(chunk_.data(), got, file.offset());
      done_bytes_ += got;
      progress_.update(done_bytes_);
    }
    made.finish(file.size());
  }

  /// In the order in which they do not undo each other.
  void restore_file(const SourceFile& file, const std::string& path, int fd) {
    const struct stat& status = file.status();
    if (::geteuid() == 0) take_object(volume_.fchown(fd, status.st_uid, status.st_gid));
    restore_xattrs(file.descriptor(), file.path(), path, [&](const auto& name, const auto& value) {
      return volume_.fsetxattr(fd, name, value);
    });
    uint32_t mode = permissions_of(file.descriptor(), status, file.path());
    if (!is_owned_alike(status, take_object(volume_.fstat(fd)))) mode = mode_of_others(mode);
    take_object(volume_.fchmod(fd, mode));
    take_object(volume_.futimens(fd, time_stamp(status.st_atim), time_stamp(status.st_mtim)));
  }

  /// Whether owner and group are those on the host.
  bool restore_owner(const PutSource& source) {
    const struct stat& status = source.status;
    if (::geteuid() == 0) take_object(volume_.lchown(source.path, status.st_uid, status.st_gid));
    return is_owned_alike(status, take_object(volume_.lstat(source.path)));
  }
  static bool is_owned_alike(const struct stat& status, const Stat& there) {
    return there.uid == status.st_uid && there.gid == status.st_gid;
  }
  void restore_mode(const PutSource& source, uint32_t mode, bool is_owned) {
    take_object(volume_.chmod(source.path, is_owned ? mode : mode_of_others(mode)));
  }
  void restore_times(const PutSource& source) {
    take_object(volume_.lutimens(source.path, time_stamp(source.status.st_atim),
                                 time_stamp(source.status.st_mtim)));
  }

  /// Gives the object `path` of the volume, by `set`, the user.* attributes of an open object of
  /// the host. One that cannot be read or does not fit is reported, and all else is kept.
  template <typename Set>
  void restore_xattrs(int descriptor, const std::string& host_path, const std::string& path,
                      const Set& set) {
    for (const std::string& name : user_xattr_names(descriptor, host_path)) {
      try {
        const auto value = host_xattr(descriptor, name, host_path);
        const auto kept = value ? set(name, *value) : Expected<void>();
        if (!kept) tell(path + ": " + name + ": " + host::errno_words(kept.error().code));
      } catch (const ObjectFailure& failure) {
        tell(failure.message);
      }
    }
  }

  static std::vector<std::string> user_xattr_names(int descriptor, const std::string& host_path) {
    std::vector<std::string> found;
    const ssize_t bytes = ::flistxattr(descriptor, nullptr, 0);
    if (bytes <= 0) return found;  // none, or a host without any
    std::string names(static_cast<size_t>(bytes), '\0');
    const ssize_t listed = ::flistxattr(descriptor, names.data(), names.size());
    if (listed < 0) fail_with_errno(host_path);
    names.resize(static_cast<size_t>(listed));
    for (size_t at = 0; at < names.size();) {
      const std::string name = names.c_str() + at;
      at += name.size() + 1;
      if (name.starts_with("user.")) found.push_back(name);
    }
    return found;
  }

  void note_first(const struct stat& status, const std::string& path, uint64_t ino) {
    if (status.st_nlink < 2) return;
    first_names_.insert_or_assign(HostFile(status.st_dev, status.st_ino), FirstName{path, ino});
  }

  /// Makes another name of what a file of the host has become. False: it is to be copied (again),
  /// as the name may no longer be that of the copy.
  bool put_link_to_first(const struct stat& status, const std::string& path) {
    const auto first = first_names_.find(HostFile(status.st_dev, status.st_ino));
    if (first == first_names_.end()) return false;
    const auto there = volume_.lstat(first->second.path);
    if (!there || there->ino != first->second.ino) return false;
    make_in_place(volume_, path,
                  [&](const std::string& as) { return volume_.link(first->second.path, as); });
    return true;
  }

  Session& session_;
  Volume& volume_;
  PutSources& sources_;
  const std::string named_path_;
  Progress& progress_;
  const host::StorageIdentity storage_;
  std::vector<uint8_t> chunk_;
  std::map<HostFile, FirstName> first_names_;
  std::set<HostDirectories::Id> made_;
  std::vector<const PutSource*> finished_last_;  // directories
  uint64_t done_bytes_ = 0;
};

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

/// The directory that `target` leads to: what goes into it by no name of its own ("folder/.") is
/// not put by a link.
std::string directory_itself(Volume& volume, const std::string& target) {
  try {
    return end_of_links(volume, target);
  } catch (const ObjectFailure& failure) {
    throw Failure{failure.message};
  }
}

void put(Session& session, Volume& volume, const PutOptions& options) {
  const std::string& target = options.paths.back();
  const bool into = goes_into(volume, target, options.paths.size() > 2);
  const std::string target_itself = into ? directory_itself(volume, target) : target;
  PutSources sources(session);
  std::set<std::string> taken;
  for (size_t i = 0; i + 1 < options.paths.size(); ++i) {
    const std::string& from = options.paths[i];
    const std::string name = split_path(from).name;
    const std::string to =
        into && is_plain_name(name) ? host::joined_path(target, name) : target_itself;
    // What the first has become would be lost; whoever means that names the second alone.
    if (replaces(from) && !taken.insert(to).second) {
      report(session, just_created(to, from));
    } else {
      sources.add(from, to, options.recursive);
    }
  }
  Progress progress(sources.all().size(), sources.bytes());
  Putter putter(session, volume, sources, into ? "" : target, progress);
  for (const PutSource& source : sources.all()) putter.copy(source);
  putter.finish();
}

}  // namespace

void run_put(Session& session, const PutOptions& options) {
  if (options.paths.size() < 2) throw Failure{"put: wants a file of the host and a PATH"};
  Volume volume = open_volume(session, Access::kReadWrite);
  {
    const InterruptionScope interruption;
    try {
      put(session, volume, options);
    } catch (const Interrupted& interrupted) {
      session.exit_status = interrupted.exit_status();
    }
  }
  close_volume(session, volume);
}

}  // namespace gofs::cli
