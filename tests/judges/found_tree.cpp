// SPDX-License-Identifier: Apache-2.0
#include "found_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gofs::judges {

namespace {

constexpr uint64_t kReadBytes = 64 * uint64_t{kBlockBytes};

std::string failed(const std::string& path, const char* call, int64_t error) {
  return fmt::format("{}: {} answers {} ({})", path, call, error,
                     std::strerror(static_cast<int>(-error)));
}

/// Holes are left out, so that large files cost no more than they hold.
std::string read_content(Calls& session, const std::string& path, uint64_t size, Content& content) {
  content.resize(size);
  if (size == 0) return {};
  const int fd = session.open(path, vfs::kOpenReadOnly);
  if (fd < 0) return failed(path, "open", fd);
  std::string problem;
  std::string buffer(std::min(kReadBytes, size), '\0');
  for (uint64_t at = 0; at < size && problem.empty();) {
    const int64_t data = session.lseek(fd, static_cast<int64_t>(at), vfs::kSeekData);
    if (data == -ENXIO) break;
    if (data < 0) {
      problem = failed(path, "lseek", data);
      break;
    }
    at = static_cast<uint64_t>(data);
    const uint64_t wanted = std::min(kReadBytes, size - at);
    const int64_t got = session.pread(fd, buffer.data(), wanted, at);
    if (got != static_cast<int64_t>(wanted)) {
      problem = got < 0
                    ? failed(path, "pread", got)
                    : fmt::format("{}: pread gives {} bytes at {}, not {}", path, got, at, wanted);
      break;
    }
    content.write(at, std::string_view(buffer).substr(0, wanted));
    at += wanted;
  }
  (void)session.close(fd);
  return problem;
}

std::string read_object(Calls& session, FoundObject& object) {
  const std::string& path = object.path;
  int error = session.xattrs(path, object.xattrs);
  if (error < 0) return failed(path, "listxattr", error);
  const uint32_t type = object.stat.mode & format::kModeTypeMask;
  if (type == format::kModeRegular) {
    return read_content(session, path, object.stat.size_bytes, object.content);
  }
  if (type == format::kModeSymlink) {
    error = session.readlink(path, object.target);
    if (error < 0) return failed(path, "readlink", error);
  }
  return {};
}

std::string name_in(const std::string& directory, const std::string& name) {
  return (directory == "/" ? directory : directory + "/") + name;
}

/// A directory's entries; those that were not met before are added to `open`.
std::string read_entries(Calls& session, FoundTree& tree, FoundObject& directory,
                         std::vector<uint32_t>& open) {
  Calls::Names names;
  const int error = session.list(directory.path, names);
  if (error < 0) return failed(directory.path, "readdir", error);
  for (const auto& [name, entry] : names) {
    const auto& [ino, type] = entry;
    directory.entries[name] = ino;
    FoundObject object;
    object.path = name_in(directory.path, name);
    const int found = session.stat(object.path, object.stat);
    if (found < 0) return failed(object.path, "lstat", found);
    if (object.stat.ino != ino) {
      return fmt::format("{}: ino {} in the directory, {} looked up", object.path, ino,
                         object.stat.ino);
    }
    if (format::file_type_of_mode(static_cast<uint16_t>(object.stat.mode)) != type) {
      return fmt::format("{}: type {} in the directory, mode {:o}", object.path, int{type},
                         object.stat.mode);
    }
    const auto [place, fresh] = tree.objects.emplace(ino, std::move(object));
    if (fresh) open.push_back(ino);
  }
  return {};
}

class Comparison {
 public:
  Comparison(const FoundTree& tree, const VersionsOf& versions_of)
      : tree_(tree), versions_of_(versions_of) {}

  std::string run(uint32_t root) {
    std::string problem = meet(tree_.root, root);
    while (problem.empty() && !open_.empty()) {
      const auto [ino, id] = open_.back();
      open_.pop_back();
      problem = compare(tree_.objects.at(ino), id);
    }
    if (problem.empty() && ids_.size() != tree_.objects.size()) {
      problem = "there are objects that no name leads to";
    }
    return problem;
  }

 private:
  /// Of a name: the same inode each time, and of one object alone.
  std::string meet(uint32_t ino, uint32_t id) {
    const auto [place, fresh] = ids_.emplace(ino, id);
    if (!fresh) {
      return place->second == id ? "" : tree_.objects.at(ino).path + " is two files in one inode";
    }
    if (!inos_.emplace(id, ino).second) {
      return tree_.objects.at(ino).path + " is not the inode that its other name leads to";
    }
    open_.emplace_back(ino, id);
    return {};
  }

  template <typename Field>
  static bool is_one(const Versions& versions, Field same) {
    return std::any_of(versions.begin(), versions.end(),
                       [&](const Object* one) { return same(*one); });
  }

  std::string compare(const FoundObject& found, uint32_t id) {
    const Versions versions = versions_of_(id);
    if (versions.empty()) return found.path + " should not be there";
    std::string problem = compare_attributes(found, versions);
    if (problem.empty()) problem = compare_content(found, versions);
    if (problem.empty()) problem = compare_entries(found, versions);
    return problem;
  }

  std::string compare_attributes(const FoundObject& found, const Versions& versions) {
    const vfs::Stat& stat = found.stat;
    const Object& last = *versions.back();
    const auto wrong = [&](const char* what, auto got, auto wanted) {
      return fmt::format("{}: {} {} instead of {}", found.path, what, got, wanted);
    };
    if (!is_one(versions, [&](const Object& one) { return one.mode == stat.mode; })) {
      return fmt::format("{}: mode {:o} instead of {:o}", found.path, stat.mode, last.mode);
    }
    if (!is_one(versions, [&](const Object& one) { return one.links == stat.links; })) {
      return wrong("links", stat.links, last.links);
    }
    if (!is_one(versions, [&](const Object& one) { return one.uid == stat.uid; })) {
      return wrong("uid", stat.uid, last.uid);
    }
    if (!is_one(versions, [&](const Object& one) { return one.gid == stat.gid; })) {
      return wrong("gid", stat.gid, last.gid);
    }
    if (stat.device_major != last.major || stat.device_minor != last.minor) {
      return wrong("device", stat.device_minor, last.minor);
    }
    if (found.target != last.target) return wrong("target", found.target, last.target);
    if (!is_one(versions, [&](const Object& one) { return one.xattrs == found.xattrs; })) {
      return wrong("extended attributes", found.xattrs.size(), last.xattrs.size());
    }
    const auto later = [](const f2fs::TimeStamp& a, const f2fs::TimeStamp& b) {
      return std::pair(a.seconds, a.nanoseconds) > std::pair(b.seconds, b.nanoseconds);
    };
    // What is gradual sets times again and again.
    const auto time = [&](const char* what, const f2fs::TimeStamp& got,
                          f2fs::TimeStamp Object::*field) -> std::string {
      const auto before = [&](const Object& one) {
        return !one.times_known || !later(one.*field, got);
      };
      const auto after = [&](const Object& one) {
        return !one.times_known || !later(got, one.*field);
      };
      if (is_one(versions, before) && is_one(versions, after)) return {};
      return fmt::format("{}: {} at {}.{:09} instead of {}.{:09}", found.path, what, got.seconds,
                         got.nanoseconds, (last.*field).seconds, (last.*field).nanoseconds);
    };
    if (!tree_.root_has_its_times && stat.ino == tree_.root) return {};
    std::string problem = time("accessed", stat.accessed, &Object::accessed);
    if (problem.empty()) problem = time("modified", stat.modified, &Object::modified);
    if (problem.empty()) problem = time("changed", stat.changed, &Object::changed);
    return problem;
  }

  static std::string compare_content(const FoundObject& found, const Versions& versions) {
    const Object& last = *versions.back();
    if (last.is_symlink() && found.stat.size_bytes != last.target.size()) {
      return fmt::format("{}: a link of {} bytes", found.path, found.stat.size_bytes);
    }
    if (!last.is_regular()) return {};
    if (is_one(versions, [&](const Object& one) { return one.content == found.content; }))
      return {};
    const auto different = [&](uint64_t byte) {
      const std::string there = found.content.read(byte, 1);
      return fmt::format(
          "{}: {} bytes, wrong from byte {} on, which is {}; {} bytes are wanted", found.path,
          found.content.size(), byte,
          there.empty() ? "none" : fmt::format("{:#04x}", static_cast<uint8_t>(there[0])),
          last.content.size());
    };
    if (versions.size() == 1) return different(found.content.first_difference(last.content));
    return compare_mixture(found, versions, different);
  }

  /// A size between those of the versions; each unit as one of them has it, as far as the file
  /// goes.
  template <typename Different>
  static std::string compare_mixture(const FoundObject& found, const Versions& versions,
                                     Different different) {
    const uint64_t size = found.content.size();
    uint64_t unit = kBlockBytes;
    for (const Object* one : versions) unit = std::min(unit, one->unit_bytes);
    if (unit == 0) {
      for (const Object* one : versions) {
        if (one->content.size() == size)
          return different(found.content.first_difference(one->content));
      }
      return fmt::format("{}: {} bytes, as none of {} versions", found.path, size, versions.size());
    }
    const auto smaller = [&](const Object& one) { return one.content.size() <= size; };
    const auto larger = [&](const Object& one) { return one.content.size() >= size; };
    if (!is_one(versions, smaller) || !is_one(versions, larger)) {
      return fmt::format("{}: {} bytes, before and after which there were none", found.path, size);
    }
    if (!ends_well(found.content, versions)) {
      return fmt::format("{}: {} bytes, where no write had come to an end", found.path, size);
    }
    std::set<uint64_t> blocks;
    for (const auto& [block, bytes] : found.content.blocks()) blocks.insert(block);
    for (const Object* one : versions) {
      for (const auto& [block, bytes] : one->content.blocks()) blocks.insert(block);
    }
    for (const uint64_t block : blocks) {
      const uint64_t begin = block * kBlockBytes;
      const uint64_t end = std::min(begin + kBlockBytes, size);
      if (begin >= end || is_one_as(versions, found, begin, end - begin)) continue;
      for (uint64_t at = begin; at < end; at += unit) {
        if (!is_one_as(versions, found, at, std::min(unit, end - at))) return different(at);
      }
    }
    return {};
  }

  /// As Sizes has it.
  static bool ends_well(const Content& found, const Versions& versions) {
    const Object& last = *versions.back();
    const uint64_t size = found.size();
    const auto is_so_long = [&](const Object& one) { return one.content.size() == size; };
    if (last.sizes == Sizes::kBetween || is_one(versions, is_so_long)) return true;
    if (last.sizes == Sizes::kTheirs) return false;
    const std::string end = found.read(size - 1, 1);
    return end[0] != 0 && last.content.read(size - 1, 1) == end;
  }

  /// Whether one of the versions has the same bytes there.
  static bool is_one_as(const Versions& versions, const FoundObject& found, uint64_t at,
                        uint64_t bytes) {
    const std::string got = found.content.read(at, bytes);
    return is_one(versions, [&](const Object& one) {
      std::string wanted = one.content.read(at, bytes);
      wanted.resize(bytes, '\0');
      return got == wanted;
    });
  }

  std::string compare_entries(const FoundObject& found, const Versions& versions) {
    const auto id_in = [](const Object& one, const std::string& name) {
      const auto entry = one.entries.find(name);
      return entry == one.entries.end() ? 0 : entry->second;
    };
    for (const Object* version : versions) {
      for (const auto& [name, id] : version->entries) {
        if (found.entries.count(name) != 0) continue;
        if (!is_one(versions, [&](const Object& one) { return id_in(one, name) == 0; })) {
          return name_in(found.path, name) + " is missing";
        }
      }
    }
    for (const auto& [name, ino] : found.entries) {
      // Of several objects that had the name the latest is meant, if nothing else is known.
      uint32_t id = 0;
      const auto known = ids_.find(ino);
      for (const Object* version : versions) {
        const uint32_t one = id_in(*version, name);
        if (one != 0 && (known == ids_.end() || known->second == one || id == 0)) id = one;
      }
      if (id == 0) return name_in(found.path, name) + " should not be there";
      const std::string problem = meet(ino, id);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  const FoundTree& tree_;
  const VersionsOf& versions_of_;
  std::map<uint32_t, uint32_t> ids_;   // ino -> id
  std::map<uint32_t, uint32_t> inos_;  // id -> ino
  std::vector<std::pair<uint32_t, uint32_t>> open_;
};

}  // namespace

std::string read_tree(Calls& session, const std::string& path, FoundTree& tree) {
  FoundObject root;
  root.path = path;
  const int error = session.stat(path, root.stat);
  if (error < 0) return failed(path, "lstat", error);
  tree.root = static_cast<uint32_t>(root.stat.ino);
  tree.objects.clear();
  tree.objects.emplace(tree.root, std::move(root));
  std::vector<uint32_t> open{tree.root};
  while (!open.empty()) {
    FoundObject& object = tree.objects.at(open.back());
    open.pop_back();
    std::string problem = read_object(session, object);
    const bool directory = (object.stat.mode & format::kModeTypeMask) == format::kModeDirectory;
    if (problem.empty() && directory) problem = read_entries(session, tree, object, open);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string difference(const FoundTree& tree, uint32_t root, const VersionsOf& versions_of) {
  return Comparison(tree, versions_of).run(root);
}

namespace {

/// What the last call has set to the present is later than what was there, as far as the clock has
/// moved on; all else is as it was.
std::string observe_times(bool is_f2fs, bool clock_moved, const std::string& path,
                          const vfs::Stat& stat, Object& object) {
  const auto nanoseconds = [](const f2fs::TimeStamp& time) {
    return time.seconds * 1'000'000'000 + time.nanoseconds;
  };
  const int64_t last = nanoseconds(object.changed);
  std::string problem;
  const auto look = [&](const char* what, uint32_t bit, const f2fs::TimeStamp& got,
                        f2fs::TimeStamp& known) {
    const bool renewed = ((object.renewed | (is_f2fs ? object.renewed_by_f2fs : 0)) & bit) != 0;
    const bool as_it_was = nanoseconds(got) == nanoseconds(known);
    const bool later = clock_moved ? nanoseconds(got) > last : nanoseconds(got) >= last;
    const bool either = !is_f2fs && (object.renewed_by_f2fs & bit) != 0;
    if (object.times_known && !(renewed ? later : as_it_was || (either && later))) {
      problem = fmt::format("{}: {} at {}, before at {}, changed at {}", path, what,
                            nanoseconds(got), nanoseconds(known), last);
    }
    known = got;
  };
  look("accessed", kAccessed, stat.accessed, object.accessed);
  look("modified", kModified, stat.modified, object.modified);
  look("changed", kChanged, stat.changed, object.changed);
  object.times_known = true;
  object.renewed = 0;
  object.renewed_by_f2fs = 0;
  return problem;
}

}  // namespace

std::string observe(Calls& session, Model& model, const std::set<uint32_t>& touched,
                    bool clock_moved) {
  for (const uint32_t id : touched) {
    Object& object = model.at(id);
    if (id != Model::kRoot && object.names.empty()) continue;  // it cannot be looked at
    const std::string path = model.path_of(id);
    vfs::Stat stat{};
    const int error = session.stat(path, stat);
    if (error < 0) return failed(path, "lstat", error);
    if (stat.mode != object.mode || stat.links != object.links || stat.uid != object.uid ||
        stat.gid != object.gid) {
      return fmt::format("{}: mode {:o}, {} links, owner {}:{} instead of {:o}, {}, {}:{}", path,
                         stat.mode, stat.links, stat.uid, stat.gid, object.mode, object.links,
                         object.uid, object.gid);
    }
    if (object.is_regular() && stat.size_bytes != object.content.size()) {
      return fmt::format("{}: {} bytes instead of {}", path, stat.size_bytes,
                         object.content.size());
    }
    const std::string problem = observe_times(session.is_gofs(), clock_moved, path, stat, object);
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace gofs::judges
