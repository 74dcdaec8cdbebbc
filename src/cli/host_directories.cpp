// SPDX-License-Identifier: Apache-2.0
#include "cli/host_directories.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/objects.h"
#include "host/tree.h"

namespace gofs::cli {
namespace {

/// How many directories are open at a time. Others of the process's files need room as well.
size_t open_directories_max() {
  constexpr size_t kMin = 3;  // two that are in use, and the next on the way to another
  constexpr size_t kMax = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMin;
  return std::clamp<size_t>(limit.rlim_cur / 4, kMin, kMax);
}

ssd::Descriptor open_in(int parent, const std::string& name) {
  return ssd::Descriptor(
      ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

ssd::Descriptor open_named(const std::string& path) {
  return ssd::Descriptor::open(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
}

/// As a user would write it.
std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : host::joined_path(directory, name);
}

[[noreturn]] void fail_to_open(const std::string& path) {
  if (errno != ENOTDIR && errno != ELOOP) fail_with_errno(path);
  throw ObjectFailure{path + ": exists and is not a directory"};
}

}  // namespace

HostDirectories::HostDirectories() : open_max_(open_directories_max()) {}

HostDirectories::Id HostDirectories::add(const std::string& path) {
  ssd::Descriptor opened = open_named(path);
  if (!opened.is_open()) fail_with_errno(path);
  return keep(nodes_.size(), path, std::move(opened));
}

HostDirectories::Id HostDirectories::make(Id parent, const std::string& name) {
  const int within = descriptor(parent);
  const bool is_made = ::mkdirat(within, name.c_str(), 0700) == 0;
  if (!is_made && errno != EEXIST) fail_with_errno(path(parent, name));
  const Id id = enter(parent, name);
  nodes_[id].is_new = is_made;
  return id;
}

HostDirectories::Id HostDirectories::enter(Id parent, const std::string& name) {
  ssd::Descriptor opened = open_in(descriptor(parent), name);
  if (!opened.is_open()) fail_to_open(path(parent, name));
  return keep(parent, name, std::move(opened));
}

HostDirectories::Id HostDirectories::keep(Id parent, const std::string& name,
                                          ssd::Descriptor opened) {
  struct stat status;
  const Id id = nodes_.size();
  if (::fstat(opened.get(), &status) != 0)
    fail_with_errno(parent == id ? name : path(parent, name));
  nodes_.push_back({parent, name, status.st_dev, status.st_ino, std::move(opened)});
  note_use(id);
  return id;
}

void HostDirectories::note_use(Id id) {
  const auto known = std::find(open_.begin(), open_.end(), id);
  if (known != open_.end()) open_.erase(known);
  open_.push_back(id);
  if (open_.size() <= open_max_) return;
  const auto oldest = open_.begin() + (open_.front() == asked_last_ ? 1 : 0);
  nodes_[*oldest].open = ssd::Descriptor();
  open_.erase(oldest);
}

int HostDirectories::descriptor(Id id) {
  std::vector<Id> way = {id};  // up to the nearest that is open, or to one that was added
  while (!nodes_[way.back()].open.is_open() && nodes_[way.back()].parent != way.back()) {
    way.push_back(nodes_[way.back()].parent);
  }
  // The last of them stay open: a walk that comes back asks for them next.
  for (; !way.empty(); way.pop_back()) {
    const Id next = way.back();
    if (!nodes_[next].open.is_open()) nodes_[next].open = open_again(next);
    note_use(next);
  }
  asked_last_ = id;
  return nodes_[id].open.get();
}

/// One whose parent is open.
ssd::Descriptor HostDirectories::open_again(Id id) {
  const Node& node = nodes_[id];
  ssd::Descriptor opened = node.parent == id ? open_named(node.name)
                                             : open_in(nodes_[node.parent].open.get(), node.name);
  if (!opened.is_open()) fail_to_open(path(id));
  struct stat status;
  if (::fstat(opened.get(), &status) != 0) fail_with_errno(path(id));
  if (status.st_dev != node.device || status.st_ino != node.inode) {
    throw ObjectFailure{path(id) + ": another directory has taken its place"};
  }
  return opened;
}

std::vector<std::string> HostDirectories::names(Id id) {
  // A description of its own: the position in it is not shared.
  ssd::Descriptor again(::openat(descriptor(id), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const stream = again.is_open() ? ::fdopendir(again.get()) : nullptr;
  if (stream == nullptr) fail_with_errno(path(id));
  (void)again.release();  // it is the stream's now
  std::vector<std::string> names;
  const dirent* entry = nullptr;
  for (errno = 0; (entry = ::readdir(stream)) != nullptr; errno = 0) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int error = errno;
  ::closedir(stream);
  if (error != 0) throw ObjectFailure{host::make_error(error, path(id)).message};
  std::sort(names.begin(), names.end());
  return names;
}

std::string HostDirectories::path(Id id) const {
  std::vector<Id> way;
  Id at = id;
  for (; nodes_[at].parent != at; at = nodes_[at].parent) way.push_back(at);
  std::string text = nodes_[at].name;
  for (; !way.empty(); way.pop_back()) text = joined(text, nodes_[way.back()].name);
  return text;
}

std::string HostDirectories::path(Id id, const std::string& name) const {
  return joined(path(id), name);
}

}  // namespace gofs::cli
