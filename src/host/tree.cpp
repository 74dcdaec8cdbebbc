// SPDX-License-Identifier: Apache-2.0
#include "host/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "host/messages.h"

namespace gofs::host {

using request::Verb;

namespace {

// Looked at before any of them is visited.
constexpr size_t kEntriesAtOnce = 8192;
constexpr size_t kNamesAtOnce = 2048;

/// What is wrong with where a directory was met, if anything. One that has its place elsewhere is
/// not gone into: who removes a tree would remove what is not part of it.
std::string fault_of_place(const TreeEntry& entry) {
  if (entry.parent == entry.directory) return {};
  if (entry.parent == 0) return fmt::format("directory {} has no '..'", entry.entry.ino);
  return fmt::format("directory {} has its place in directory {}, as its '..' says, not in {}",
                     entry.entry.ino, entry.parent, entry.directory);
}

/// Tells of a time whose fraction is a second or more, which no other file system would take, and
/// takes its fraction away.
void mend_times(TreeEntry& entry, const WalkVisitor& visitor) {
  constexpr uint32_t kSecond = 1'000'000'000;
  bool told = false;
  for (f2fs::TimeStamp* const time :
       {&entry.stat->accessed, &entry.stat->modified, &entry.stat->changed}) {
    if (time->nanoseconds < kSecond) continue;
    if (!std::exchange(told, true)) {
      visitor.error(make_error(EUCLEAN, entry.path,
                               fmt::format("damaged: inode {} has a time with {} nanoseconds",
                                           entry.entry.ino, time->nanoseconds)));
    }
    time->nanoseconds = 0;
  }
}

}  // namespace

std::string joined_path(const std::string& directory, const std::string& name) {
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path = directory;
  if (path.empty() || path.back() != '/') path += '/';
  return path += name;
}

Tree::Tree(AnyVolume& volume)
    : volume_(volume), inodes_(Inodes::of(volume)), raw_names_(kNamesAtOnce) {}

Expected<TreeEntry> Tree::find(const std::string& path, bool link_target) {
  // It must not become the root: a shell variable that is not set would be all of the volume.
  if (path.empty()) return volume_.explain(-ENOENT, path);
  // As the caller wrote it, but absolute, and with one slash where there were several at the end.
  std::string absolute = path.starts_with('/') ? path : "/" + path;
  Stat stat{};
  const auto answer =
      volume_.call({.verb = Verb::kStat, .path = &absolute, .keep_link = true}, stat);
  if (answer.result < 0) return volume_.explain(answer.result, path);
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  TreeEntry found;
  found.name_at = absolute.rfind('/') + 1;
  found.entry.ino = stat.ino;
  found.entry.type = format::file_type_of_mode(static_cast<uint16_t>(stat.mode));
  found.entry.name = absolute.substr(found.name_at);
  found.path = std::move(absolute);
  found.stat = stat;
  if (link_target && found.entry.type == format::kTypeSymlink) {
    std::string target(kPathBytesMax, '\0');
    const auto link = volume_.call({.verb = Verb::kReadlink,
                                    .path = &found.path,
                                    .buffer = target.data(),
                                    .bytes = target.size()});
    if (link.result < 0) return volume_.explain(link.result, path);
    target.resize(static_cast<size_t>(link.result));
    found.link_target = std::move(target);
  }
  return found;
}

Expected<int> Tree::open(const TreeEntry& entry) {
  const auto answer = volume_.call(inodes_->opening(entry));
  if (answer.result < 0) return volume_.explain(answer.result, entry.path, entry.entry.ino);
  const auto descriptor = static_cast<int>(answer.result);
  volume_.name_descriptor(descriptor, entry.path);
  return descriptor;
}

void Tree::close(int descriptor) {
  (void)volume_.call({.verb = Verb::kClose, .descriptor = descriptor});
}

Expected<void> Tree::remove(const TreeEntry& entry) {
  const bool directory = entry.entry.type == format::kTypeDirectory;
  CallRequest request{.verb = directory ? Verb::kRmdir : Verb::kUnlink};
  inodes_->name_in_directory(entry, request);
  const auto answer = volume_.call(request);
  if (answer.result < 0) return volume_.explain(answer.result, entry.path, entry.entry.ino);
  return {};
}

Expected<void> Tree::change(const TreeEntry& entry, CallRequest request) {
  inodes_->name(entry, request);
  const auto answer = volume_.call(request);
  if (answer.result < 0) return volume_.explain(answer.result, entry.path, entry.entry.ino);
  return {};
}

std::vector<Tree::Name> Tree::names_of(const TreeEntry& directory, const WalkVisitor& visitor) {
  const std::string& path = directory.path;
  const uint64_t ino = directory.entry.ino;
  std::vector<Name> names;
  const Expected<int> descriptor = open(directory);
  if (!descriptor) {
    visitor.error(descriptor.error());
    return names;
  }
  bool told = false;
  const auto tell_damage = [&](uint64_t of) {
    for (const std::string& words : volume_.more_damage(of)) {
      visitor.error(make_error(EUCLEAN, path, words));
      told = true;
    }
  };
  for (;;) {
    const auto answer = volume_.call({.verb = Verb::kReaddir,
                                      .descriptor = *descriptor,
                                      .buffer = raw_names_.data(),
                                      .bytes = raw_names_.size() * sizeof(NamedEntry)});
    // While it goes on: the log of what is damaged is soon full.
    tell_damage(ino);
    if (answer.result == -EUCLEAN) tell_damage(0);
    if (answer.result < 0 && !(answer.result == -EUCLEAN && told)) {
      visitor.error(volume_.explain(answer.result, path, ino));
    }
    if (answer.result <= 0) break;
    for (int64_t i = 0; i < answer.result; ++i) {
      const NamedEntry& raw = raw_names_[static_cast<size_t>(i)];
      names.push_back({std::string(raw.name, raw.name_length), raw.ino, raw.type});
    }
  }
  close(*descriptor);
  drop_second_names(directory, names, visitor);
  return names;
}

/// Sorts the names, and keeps of those that are the same the one that stands first, which is what
/// they lead to.
void Tree::drop_second_names(const TreeEntry& directory, std::vector<Name>& names,
                             const WalkVisitor& visitor) {
  std::stable_sort(names.begin(), names.end(),
                   [](const Name& a, const Name& b) { return a.name < b.name; });
  const auto same = [](const Name& a, const Name& b) { return a.name == b.name; };
  for (auto at = names.begin(); at != names.end();) {
    const auto next = std::next(at);
    if (next != names.end() && same(*at, *next)) {
      visitor.error(make_error(EUCLEAN, joined_path(directory.path, next->name),
                               fmt::format("damaged: directory {} has this name twice, for inodes "
                                           "{} and {}",
                                           directory.entry.ino, at->ino, next->ino)));
    }
    at = next;
  }
  names.erase(std::unique(names.begin(), names.end(), same), names.end());
}

void Tree::ask_targets(std::vector<TreeEntry>& entries, const WalkVisitor& visitor) {
  Inodes::Entries links;
  for (TreeEntry& entry : entries) {
    if (entry.stat && (entry.stat->mode & format::kModeTypeMask) == format::kModeSymlink) {
      links.push_back(&entry);
    }
  }
  const Inodes::Answers answers = inodes_->ask_targets(links);
  for (size_t i = 0; i < links.size(); ++i) {
    if (answers[i] >= 0) continue;
    visitor.error(volume_.explain(answers[i], links[i]->path, links[i]->entry.ino));
  }
}

void Tree::ask_xattrs(std::vector<TreeEntry>& entries, const WalkVisitor& visitor) {
  Inodes::Entries known;
  for (TreeEntry& entry : entries) {
    if (entry.stat) known.push_back(&entry);
  }
  const Inodes::Answers answers = inodes_->ask_xattrs(known);
  for (size_t i = 0; i < known.size(); ++i) {
    if (answers[i] >= 0) continue;
    visitor.error(volume_.explain(answers[i], known[i]->path, known[i]->entry.ino));
  }
}

Expected<std::vector<ExtendedAttribute>> Tree::xattrs_of(const TreeEntry& entry) {
  TreeEntry copy = entry;
  const int64_t answer = inodes_->ask_xattrs({&copy}).front();
  if (answer < 0) return volume_.explain(answer, entry.path, entry.entry.ino);
  if (!copy.xattrs) return std::vector<ExtendedAttribute>();
  return std::move(*copy.xattrs);
}

std::vector<TreeEntry> Tree::look_at(const TreeEntry& directory, const std::vector<Name>& names,
                                     size_t first, size_t count, const WalkOptions& options,
                                     const WalkVisitor& visitor) {
  std::vector<TreeEntry> entries(count);
  const size_t name_at = directory.path.size() + (directory.path == "/" ? 0 : 1);
  for (size_t i = 0; i < count; ++i) {
    const Name& name = names[first + i];
    entries[i].path = joined_path(directory.path, name.name);
    entries[i].name_at = name_at;
    entries[i].directory = directory.entry.ino;
    entries[i].entry = DirectoryEntry{name.ino, name.type, name.name};
  }
  if (!options.stat && !options.recursive) return entries;
  Inodes::Entries all;
  for (TreeEntry& entry : entries) all.push_back(&entry);
  const Inodes::Answers answers = inodes_->ask_stats(all, options.recursive);
  for (size_t i = 0; i < count; ++i) {
    TreeEntry& entry = entries[i];
    if (answers[i] < 0) {
      visitor.error(volume_.explain(answers[i], entry.path, entry.entry.ino));
      continue;
    }
    const uint8_t type = format::file_type_of_mode(static_cast<uint16_t>(entry.stat->mode));
    if (type != entry.entry.type) {
      visitor.error(make_error(
          EUCLEAN, entry.path,
          fmt::format("damaged: directory {} has it with file type {}, inode {} is of type {}",
                      directory.entry.ino, entry.entry.type, entry.entry.ino, type)));
    }
    entry.entry.type = type;
    mend_times(entry, visitor);
  }
  if (options.link_targets) ask_targets(entries, visitor);
  if (options.xattrs) ask_xattrs(entries, visitor);
  return entries;
}

void Tree::walk(const TreeEntry& top, const WalkOptions& options, const WalkVisitor& visitor) {
  // Of a directory only its name is kept: in a tree of great depth all paths would be too much.
  struct Pending {
    Name name;
    uint64_t parent;
    size_t parent_bytes;  // of its path
    bool entered;
  };
  TreeEntry at;
  at.path = top.path;
  at.entry.ino = top.entry.ino;
  std::vector<Pending> pending;
  // On a damaged volume a directory may lie below itself.
  std::unordered_set<uint64_t> seen = {top.entry.ino};
  const auto list = [&] {
    visitor.directory(at.path);
    const std::vector<Name> names = names_of(at, visitor);
    const size_t before = pending.size();
    for (size_t first = 0; first < names.size(); first += kEntriesAtOnce) {
      const size_t count = std::min(kEntriesAtOnce, names.size() - first);
      for (TreeEntry& entry : look_at(at, names, first, count, options, visitor)) {
        visitor.entry(entry);
        if (!options.recursive || !entry.stat || entry.entry.type != format::kTypeDirectory) {
          continue;
        }
        const Name name{entry.entry.name, static_cast<uint32_t>(entry.entry.ino), 0};
        const std::string fault = seen.insert(name.ino).second
                                      ? fault_of_place(entry)
                                      : fmt::format("directory {} has a second name", name.ino);
        if (fault.empty()) {
          pending.push_back({name, at.entry.ino, at.path.size(), false});
        } else {
          visitor.error(make_error(EUCLEAN, entry.path, "damaged: " + fault));
        }
      }
    }
    std::reverse(pending.begin() + static_cast<std::ptrdiff_t>(before), pending.end());
  };
  list();
  while (!pending.empty()) {
    Pending& next = pending.back();
    at.path.resize(next.parent_bytes);
    const size_t name_at = at.path.size() + (at.path == "/" ? 0 : 1);
    at.path = joined_path(at.path, next.name.name);
    at.entry.ino = next.name.ino;
    at.directory = next.parent;
    if (!std::exchange(next.entered, true)) {
      list();
      continue;
    }
    TreeEntry left;
    left.path = at.path;
    left.name_at = name_at;
    left.entry = DirectoryEntry{next.name.ino, format::kTypeDirectory, next.name.name};
    left.directory = next.parent;
    pending.pop_back();
    visitor.left(left);
  }
}

}  // namespace gofs::host
