// SPDX-License-Identifier: Apache-2.0
//
// gofs get VOL PATH HOSTPATH [-r]: copies a file, or with -r everything below a directory, to the
// host. Modes, times and user.* extended attributes are restored, owners and all other attributes
// if root asks; symbolic links, hard links and holes stay what they are, device nodes and FIFOs are
// made where that is permitted. What goes wrong with one object is reported, and the others are
// copied all the same; an attribute that the host does not take is reported and is no failure.
//
// HOSTPATH is the user's own: links in it are followed, and a pipe or device is written to. Below
// it nothing is followed, whatever the volume or the host has there, and nothing goes over what the
// volume lies on. A file takes its place when all of it is there, in an inode of its own; until
// then, and after Ctrl-C, what was there stays.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <vector>

#include "cli/commands.h"
#include "cli/get_target.h"
#include "cli/host_attributes.h"
#include "cli/host_directories.h"
#include "cli/host_entry.h"
#include "cli/interruption.h"
#include "cli/named_path.h"
#include "cli/objects.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "host/messages.h"
#include "host/storage_identity.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

uint32_t type_of(const host::TreeEntry& entry) { return entry.stat->mode & format::kModeTypeMask; }

/// The contents of files of the volume.
class Contents {
 public:
  Contents(Volume& volume, host::Tree& tree)
      : volume_(volume), tree_(tree), chunk_(kCopyChunkBytes) {}

  /// Whether all is there that the file had when it was looked at. Where it has become shorter
  /// meanwhile, as another client of a server may make it, what is left of it is.
  bool copy(const host::TreeEntry& entry, OutputFile& file) {
    const int fd = take_object(tree_.open(entry));
    const struct Closer {
      host::Tree& tree;
      int fd;
      ~Closer() { tree.close(fd); }
    } closer{tree_, fd};
    const uint64_t size = entry.stat->size_bytes;
    uint64_t offset = 0;
    while (offset < size) {
      const uint64_t data = next(fd, offset, SEEK_DATA, size);
      const uint64_t hole = data < size ? next(fd, data, SEEK_HOLE, size) : size;
      copy_range(fd, file, data, hole);
      done_bytes_ += hole - offset;
      offset = hole;
    }
    const uint64_t left = take_object(volume_.fstat(fd)).size_bytes;
    file.finish(std::min(size, left));
    return left >= size;
  }

  void show(Progress* progress) { progress_ = progress; }

 private:
  /// The next data or hole from `offset` on; `size` when there is none.
  uint64_t next(int fd, uint64_t offset, int whence, uint64_t size) {
    const auto found = volume_.lseek(fd, static_cast<int64_t>(offset), whence);
    if (!found && found.error().code == ENXIO) return size;
    return take_object(found);
  }

  void copy_range(int fd, OutputFile& file, uint64_t begin, uint64_t end) {
    const uint64_t start = begin;
    while (begin < end) {
      stop_if_interrupted();
      const uint64_t wanted = std::min(end - begin, kCopyChunkBytes);
      const uint64_t got = take_object(volume_.pread(fd, chunk_.data(), wanted, begin));
      if (got == 0) return;
      file.write(chunk_.data(), got, begin);
      begin += got;
      if (progress_ != nullptr) progress_->update(done_bytes_ + begin - start);
    }
  }

  Volume& volume_;
  host::Tree& tree_;
  std::vector<uint8_t> chunk_;
  uint64_t done_bytes_ = 0;
  Progress* progress_ = nullptr;
};

class Getter {
 public:
  Getter(Session& session, Volume& volume, host::Tree& tree)
      : session_(session),
        storage_(host::any_of(volume).storage_paths()),
        contents_(volume, tree),
        attributes_({[this](const std::string& message) { fail(message); },
                     [this](const std::string& message) { warn(message); }}) {}

  /// Copies what the user named, but not what is in it, to where he said.
  void copy_top(const host::TreeEntry& top, const std::string& host_path) {
    guarded([&] { put_top(top, host_path); });
  }

  /// Copies what is in a directory that was copied. What is in others is passed over: why these
  /// could not be made was reported.
  void copy(const host::TreeEntry& entry) {
    const auto parent = directories_.find(entry.directory);
    if (parent == directories_.end()) return;
    guarded([&] {
      const std::string& name = entry.entry.name;
      if (!is_plain_name(name)) {
        throw ObjectFailure{entry.path + ": no file of the host can have this name"};
      }
      // Names come in order.
      if (entry.directory == last_directory_ && name == last_name_) {
        throw ObjectFailure{entry.path + ": damaged: its directory has this name twice"};
      }
      last_directory_ = entry.directory;
      last_name_ = name;
      put(entry, parent->second, name);
    });
  }

  /// What directories get when nothing is put into them any more.
  void finish() {
    for (auto entry = finished_last_.rbegin(); entry != finished_last_.rend(); ++entry) {
      guarded([&] {
        const HostDirectories::Id id = directories_.at(entry->entry.ino);
        attributes_.restore({host_.descriptor(id), false, host_.is_new(id), host_.path(id)},
                            *entry);
      });
    }
  }

  void show(Progress* progress) {
    progress_ = progress;
    contents_.show(progress);
  }

 private:
  /// The first name that an inode got on the host.
  struct FirstName {
    HostDirectories::Id directory;
    std::string name;
    dev_t device;
    ino_t inode;
  };

  template <typename Step>
  void guarded(const Step& step) {
    step_with_object(step, [this](const std::string& message) { fail(message); });
  }
  void fail(const std::string& message) {
    if (progress_ != nullptr) progress_->clear();
    report(session_, message);
  }
  void fail_as_shorter(const host::TreeEntry& entry) {
    fail(entry.path + ": has become shorter while it was read");
  }
  void warn(const std::string& message) {
    if (progress_ != nullptr) progress_->clear();
    (void)tell(message);
  }

  void put_top(const host::TreeEntry& top, const std::string& host_path) {
    const GetSource source = {top.entry.name, type_of(top) == format::kModeDirectory,
                              type_of(top) == format::kModeRegular};
    GetTarget target = find_get_target(host_path, source, storage_);
    if (target.stream) {
      OutputStream stream(std::move(*target.stream), host_path);
      const bool is_whole = contents_.copy(top, stream);
      if (target.takes_attributes) {
        attributes_.restore({stream.descriptor(), false, false, host_path}, top);
      }
      if (!is_whole) fail_as_shorter(top);
      return;
    }
    const HostDirectories::Id within = host_.add(target.place.directory);
    if (!target.place.name.empty()) return put(top, within, target.place.name);
    directories_.emplace(top.entry.ino, within);
    finished_last_.push_back(top);
  }

  /// Copies one object to `name` in `within`, but not what is in a directory.
  void put(const host::TreeEntry& entry, HostDirectories::Id within, const std::string& name) {
    const uint32_t type = type_of(entry);
    if (type == format::kModeDirectory) {
      directories_.emplace(entry.entry.ino, host_.make(within, name));
      finished_last_.push_back(entry);
      return;
    }
    if (put_link_to_first(entry.stat->ino, within, name)) return;
    if (type == format::kModeRegular) {
      put_file(entry, within, name);
    } else if (type != format::kModeSymlink || entry.link_target) {  // else reported already
      put_special(entry, within, name);
    }
  }

  /// Whether what has `name` may be replaced, by a regular file or by something else; throws if
  /// not.
  void look_at_place(HostDirectories::Id within, const std::string& name, bool by_file) {
    struct stat there;
    if (::fstatat(host_.descriptor(within), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;
      fail_with_errno(host_.path(within, name));
    }
    refuse_storage(storage_, there, host_.path(within, name));
    if (!by_file) return;
    if (S_ISREG(there.st_mode)) return look_at_rights(within, name);
    errno = S_ISDIR(there.st_mode) ? EISDIR : ELOOP;
    if (S_ISDIR(there.st_mode) || S_ISLNK(there.st_mode)) {
      fail_with_errno(host_.path(within, name));
    }
    throw ObjectFailure{host_.path(within, name) + ": exists and is not a regular file"};
  }

  /// Another file could take the place of one by the rights of the directory alone. But who may not
  /// write to it may not have it changed, as with cp.
  void look_at_rights(HostDirectories::Id within, const std::string& name) {
    constexpr int kFlags = AT_EACCESS | AT_SYMLINK_NOFOLLOW;
    if (::faccessat(host_.descriptor(within), name.c_str(), W_OK, kFlags) == 0) return;
    if (errno != ENOENT) fail_with_errno(host_.path(within, name));
  }

  void put_file(const host::TreeEntry& entry, HostDirectories::Id within, const std::string& name) {
    look_at_place(within, name, true);
    const std::string path = host_.path(within, name);
    NewHostFile file(host_.descriptor(within), path);
    if (!file.make()) fail_with_errno(path);
    const bool is_whole = contents_.copy(entry, file);
    attributes_.restore({file.descriptor(), false, true, path}, entry);
    note_first(entry, within, name, file.descriptor());
    look_at_place(within, name, true);
    file.place(name);
    if (!is_whole) fail_as_shorter(entry);
  }

  /// A symbolic link, a device or a FIFO.
  void put_special(const host::TreeEntry& entry, HostDirectories::Id within,
                   const std::string& name) {
    look_at_place(within, name, false);
    const Stat& stat = *entry.stat;
    const mode_t type = type_of(entry);
    const dev_t device = ::makedev(stat.device_major, stat.device_minor);
    const std::string path = host_.path(within, name);
    HiddenEntry made(host_.descriptor(within));
    const bool is_made = made.make([&](int directory, const char* as) {
      return type == format::kModeSymlink ? ::symlinkat(entry.link_target->c_str(), directory, as)
                                          : ::mknodat(directory, as, type | 0600, device);
    });
    if (!is_made) fail_with_errno(path);
    const ssd::Descriptor object = made.look();
    struct stat status;
    if (!object.is_open() || ::fstat(object.get(), &status) != 0) fail_with_errno(path);
    if ((status.st_mode & S_IFMT) != type || status.st_nlink != 1) {
      throw ObjectFailure{path + ": something has taken the place of what was made"};
    }
    attributes_.restore({object.get(), true, true, path}, entry);
    note_first(entry, within, name, object.get());
    if (!made.place(name)) fail_with_errno(path);
  }

  /// Remembers where the first name of an inode with several goes.
  void note_first(const host::TreeEntry& entry, HostDirectories::Id within, const std::string& name,
                  int descriptor) {
    if (entry.stat->links < 2) return;
    struct stat status;
    if (::fstat(descriptor, &status) != 0) return;
    first_names_.insert_or_assign(entry.stat->ino,
                                  FirstName{within, name, status.st_dev, status.st_ino});
  }

  /// Makes another name of what inode `ino` of the volume has become. False: it is to be copied
  /// (again), as the host may have no such links, or the name is no longer that of the copy.
  bool put_link_to_first(uint64_t ino, HostDirectories::Id within, const std::string& name) {
    const auto first = first_names_.find(ino);
    if (first == first_names_.end()) return false;
    look_at_place(within, name, false);
    const int from = host_.descriptor(first->second.directory);
    HiddenEntry link(host_.descriptor(within));
    const bool is_made = link.make([&](int directory, const char* as) {
      return ::linkat(from, first->second.name.c_str(), directory, as, 0);
    });
    if (!is_made) return false;
    const ssd::Descriptor object = link.look();
    struct stat status;
    if (!object.is_open() || ::fstat(object.get(), &status) != 0 ||
        status.st_dev != first->second.device || status.st_ino != first->second.inode) {
      return false;
    }
    if (!link.place(name)) fail_with_errno(host_.path(within, name));
    return true;
  }

  Session& session_;
  const host::StorageIdentity storage_;
  Contents contents_;
  HostAttributes attributes_;
  HostDirectories host_;
  std::unordered_map<uint64_t, HostDirectories::Id> directories_;  // by their number on the volume
  std::vector<host::TreeEntry> finished_last_;
  std::unordered_map<uint64_t, FirstName> first_names_;
  uint64_t last_directory_ = 0;
  std::string last_name_;
  Progress* progress_ = nullptr;
};

/// All that is below `top`, with the sum of its bytes: progress needs that, and a walk that goes on
/// meanwhile would keep more.
struct Listing {
  std::vector<host::TreeEntry> entries;
  uint64_t bytes = 0;
};
Listing list_below(Session& session, host::Tree& tree, const host::TreeEntry& top) {
  Listing listing;
  host::WalkVisitor visitor;
  visitor.entry = [&](const host::TreeEntry& entry) {
    stop_if_interrupted();
    if (!entry.stat) return;
    if (entry.entry.type == format::kTypeRegular) listing.bytes += entry.stat->size_bytes;
    listing.entries.push_back(entry);
  };
  visitor.error = [&](const Error& error) { report(session, error.message); };
  tree.walk(top, {.recursive = true, .link_targets = true, .xattrs = true}, visitor);
  return listing;
}

void get(Session& session, Volume& volume, const GetOptions& options) {
  host::Tree tree(host::any_of(volume));
  host::TreeEntry top = take(tree.find(options.path, true));
  if (top.entry.type == format::kTypeSymlink && !options.recursive) {
    // What a user asks for by a link's name is what it leads to.
    top.stat = take(volume.stat(options.path));
    top.entry.ino = top.stat->ino;
    top.entry.type = format::file_type_of_mode(static_cast<uint16_t>(top.stat->mode));
  }
  find_xattrs(session, tree, top);
  const bool is_directory = top.entry.type == format::kTypeDirectory;
  if (is_directory && !options.recursive) throw Failure{options.path + ": is a directory (use -r)"};

  const Listing listing = is_directory ? list_below(session, tree, top) : Listing{};
  const uint64_t bytes = is_directory ? listing.bytes : top.stat->size_bytes;
  Progress progress(is_directory ? listing.entries.size() : 1, bytes);
  Getter getter(session, volume, tree);
  getter.show(&progress);
  getter.copy_top(top, options.host_path);
  for (const host::TreeEntry& entry : listing.entries) getter.copy(entry);
  getter.finish();
}

}  // namespace

void run_get(Session& session, const GetOptions& options) {
  // What is below a directory would go to the host's root.
  if (options.host_path.empty()) throw Failure{host::make_error(ENOENT, "").message};
  Volume volume = open_volume(session);
  const InterruptionScope interruption;
  try {
    get(session, volume, options);
  } catch (const Interrupted& interrupted) {
    session.exit_status = interrupted.exit_status();
  }
}

}  // namespace gofs::cli
