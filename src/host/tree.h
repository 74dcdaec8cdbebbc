// SPDX-License-Identifier: Apache-2.0
//
// Walking a volume from the host: every name below a path, with what its inode says (inodes.h).
// Names come in the order of their bytes, directories before what is in them, and only the names of
// the directories on the way are kept in memory, so that a million entries are no trouble. What is
// met can be changed and removed as well.
//
// Whatever is left out is reported: entries of directories that cannot be, names that stand twice,
// inodes that cannot be read, directories that have their place elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/inodes.h"

namespace gofs::host {

struct WalkOptions {
  bool recursive = false;
  bool stat = true;  // always so where `recursive` is
  bool link_targets = false;
  bool xattrs = false;
};

/// What a walk tells; each may throw to end it.
struct WalkVisitor {
  /// A directory is about to be listed.
  std::function<void(const std::string& path)> directory = [](const std::string&) {};
  std::function<void(const TreeEntry& entry)> entry = [](const TreeEntry&) {};
  /// Everything below a directory has been visited; its entry has no more than what names it.
  std::function<void(const TreeEntry& entry)> left = [](const TreeEntry&) {};
  /// Something could not be read, and is left out; the walk goes on with the rest. An entry that is
  /// visited without a stat, where that was asked for, is one of those.
  std::function<void(const Error& error)> error = [](const Error&) {};
};

class Tree {
 public:
  /// Throws std::bad_alloc, as do the others.
  explicit Tree(AnyVolume& volume);

  /// The object that `path` names itself; a link is followed only if it is not the last component.
  /// A path need not begin with a slash, but an empty one names nothing (ENOENT).
  Expected<TreeEntry> find(const std::string& path, bool link_target);

  /// Its extended attributes, by name: those that may be read.
  Expected<std::vector<ExtendedAttribute>> xattrs_of(const TreeEntry& entry);

  /// Tells of everything below the directory `top`, but not of itself.
  void walk(const TreeEntry& top, const WalkOptions& options, const WalkVisitor& visitor);

  /// Removes what was met, or found: a directory that is empty, or a name of something else.
  Expected<void> remove(const TreeEntry& entry);
  /// Makes a change, which names nothing yet, of what was met.
  Expected<void> change(const TreeEntry& entry, CallRequest request);

  /// A descriptor of the file or directory, to be closed by the caller.
  Expected<int> open(const TreeEntry& entry);
  void close(int descriptor);

 private:
  struct Name {
    std::string name;
    uint32_t ino;
    uint8_t type;
  };

  std::vector<Name> names_of(const TreeEntry& directory, const WalkVisitor& visitor);
  void drop_second_names(const TreeEntry& directory, std::vector<Name>& names,
                         const WalkVisitor& visitor);
  void ask_targets(std::vector<TreeEntry>& entries, const WalkVisitor& visitor);
  void ask_xattrs(std::vector<TreeEntry>& entries, const WalkVisitor& visitor);
  std::vector<TreeEntry> look_at(const TreeEntry& directory, const std::vector<Name>& names,
                                 size_t first, size_t count, const WalkOptions& options,
                                 const WalkVisitor& visitor);

  AnyVolume& volume_;
  const std::unique_ptr<Inodes> inodes_;
  std::vector<NamedEntry> raw_names_;
};

/// "/a" and "b" make "/a/b".
std::string joined_path(const std::string& directory, const std::string& name);

}  // namespace gofs::host
