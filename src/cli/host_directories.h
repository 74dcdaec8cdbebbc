// SPDX-License-Identifier: Apache-2.0
//
// Directories of the host, each reached by a descriptor of the one that it is in and never by a
// path: a symbolic link below a directory that the user named is not followed, whether it was there
// before or comes meanwhile. Their number and depth have no bound; only some are open at a time,
// fewer where the process may have few files open, and one that is opened again has to be the
// directory that it was.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/descriptor.h"

namespace gofs::cli {

class HostDirectories {
 public:
  using Id = size_t;

  HostDirectories();

  /// The directory that the user names by `path`, where links are followed; the current one, if it
  /// is empty. Throws ObjectFailure, as do the others.
  Id add(const std::string& path);
  /// The directory `name` in `parent`: a new one (0700), or the one that is there.
  Id make(Id parent, const std::string& name);
  /// The directory `name` in `parent`, which is there.
  Id enter(Id parent, const std::string& name);

  /// Of an open directory. The two that were asked for last stay open.
  int descriptor(Id id);
  /// Whether make() has made it.
  bool is_new(Id id) const { return nodes_[id].is_new; }
  /// All names in it but . and .., sorted.
  std::vector<std::string> names(Id id);

  /// For messages.
  std::string path(Id id) const;
  std::string path(Id id, const std::string& name) const;

 private:
  struct Node {
    Id parent;  // itself, if it was added
    std::string name;
    dev_t device;
    ino_t inode;
    ssd::Descriptor open;
    bool is_new = false;
  };

  Id keep(Id parent, const std::string& name, ssd::Descriptor opened);
  ssd::Descriptor open_again(Id id);
  void note_use(Id id);

  const size_t open_max_;
  std::vector<Node> nodes_;
  std::vector<Id> open_;  // that used last is the last
  Id asked_last_ = 0;     // by descriptor()
};

}  // namespace gofs::cli
