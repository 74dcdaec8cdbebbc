// SPDX-License-Identifier: Apache-2.0
#include "cli/host_directories.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/objects.h"
#include "host/tree.h"

namespace gofs::cli {
namespace {

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

HostDirectories::Id HostDirectories::add(const std::string& path) {
  ssd::Descriptor opened = open_named(path);
  if (!opened.is_open()) fail_with_errno(path);
  return keep(nodes_.size(), path, std::move(opened));
}

HostDirectories::Id HostDirectories::make(Id parent, const std::string& name) {
  const int within = descriptor(parent);
  if (::mkdirat(within, name.c_str(), 0700) != 0 && errno != EEXIST) {
    fail_with_errno(path(parent, name));
  }
  return enter(parent, name);
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
  if (open_.size() <= kOpenMax) return;
  nodes_[open_.front()].open = ssd::Descriptor();
  open_.erase(open_.begin());
}

int HostDirectories::descriptor(Id id) {
  std::vector<Id> way = {id};  // up to the nearest that is open, or to one that was added
  while (!nodes_[way.back()].open.is_open() && nodes_[way.back()].parent != way.back()) {
    way.push_back(nodes_[way.back()].parent);
  }
  ssd::Descriptor opened;
  for (; !way.empty(); way.pop_back()) {
    const Node& next = nodes_[way.back()];
    if (next.open.is_open()) continue;
    const int above = opened.is_open() ? opened.get() : nodes_[next.parent].open.get();
    opened = next.parent == way.back() ? open_named(next.name) : open_in(above, next.name);
    if (!opened.is_open()) fail_to_open(path(way.back()));
    struct stat status;
    if (::fstat(opened.get(), &status) != 0) fail_with_errno(path(way.back()));
    if (status.st_dev != next.device || status.st_ino != next.inode) {
      throw ObjectFailure{path(way.back()) + ": another directory has taken its place"};
    }
  }
  if (opened.is_open()) nodes_[id].open = std::move(opened);
  note_use(id);
  return nodes_[id].open.get();
}

std::vector<std::string> HostDirectories::names(Id id) {
  // A description of its own: the position in it is not shared.
  const int again = ::openat(descriptor(id), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = again < 0 ? nullptr : ::fdopendir(again);
  if (stream == nullptr) fail_with_errno(path(id));
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
