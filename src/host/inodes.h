// SPDX-License-Identifier: Apache-2.0
//
// What a walk (tree.h) asks of inodes that it has met. In a volume that is mounted here it asks by
// number and in bulk; of a server it asks by path, as any client may.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/any_volume.h"

namespace gofs::host {

/// As a program gets it: the name with its prefix.
struct ExtendedAttribute {
  std::string name;
  std::string value;
};

struct TreeEntry {
  std::string path;    // absolute
  size_t name_at = 0;  // where the last component begins
  DirectoryEntry entry;
  uint64_t directory = 0;    // the number of the one that it is in; 0: it was found by its path
  uint64_t parent = 0;       // of a directory that a recursive walk met: the number in its `..`
  std::optional<Stat> stat;  // if it was asked for and could be had
  std::optional<std::string> link_target;
  std::optional<std::vector<ExtendedAttribute>> xattrs;  // by name; those that may be read
};

class Inodes {
 public:
  /// What suits the volume. Throws std::bad_alloc.
  static std::unique_ptr<Inodes> of(AnyVolume& volume);

  virtual ~Inodes() = default;
  Inodes(const Inodes&) = delete;
  Inodes& operator=(const Inodes&) = delete;

  // These fill what the entries have for it, and answer for each with 0 or what explain() takes.
  using Answers = std::vector<int64_t>;
  using Entries = std::vector<TreeEntry*>;

  /// `stat`, and with `parents` what a directory's `..` says.
  virtual Answers ask_stats(const Entries& entries, bool parents) = 0;
  /// Of symbolic links.
  virtual Answers ask_targets(const Entries& links) = 0;
  virtual Answers ask_xattrs(const Entries& entries) = 0;

  /// Says what a call is about.
  virtual void name(const TreeEntry& entry, CallRequest& request) = 0;
  /// The same of one that takes a name away.
  virtual void name_in_directory(const TreeEntry& entry, CallRequest& request) = 0;
  /// Its answer is a descriptor.
  virtual CallRequest opening(const TreeEntry& entry) = 0;

 protected:
  Inodes() = default;
};

}  // namespace gofs::host
