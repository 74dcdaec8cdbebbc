// SPDX-License-Identifier: Apache-2.0
#include "cli/changes.h"

#include <fcntl.h>

#include <cerrno>

#include "host/volume_access.h"

namespace gofs::cli {
namespace {

/// Also where a symbolic link leads to nothing.
bool is_missing(Volume& volume, const std::string& path) {
  const auto stat = volume.stat(path);
  return !stat && stat.error().code == ENOENT;
}

Expected<void> create_file(Volume& volume, const std::string& path) {
  const auto fd = volume.open(path, O_WRONLY | O_CREAT, 0644);
  return fd ? volume.close(*fd) : fd.error();
}

}  // namespace

void change_paths(Session& session, const ChangeOptions& options,
                  const std::function<Change(Volume& volume, host::Tree& tree)>& change_of) {
  Volume volume = open_volume(session, Access::kReadWrite);
  host::Tree tree(host::any_of(volume));
  const Change change = change_of(volume, tree);
  for (const std::string& path : options.paths) {
    if (options.missing != Missing::kRefuse && is_missing(volume, path)) {
      if (options.missing == Missing::kLeave) continue;
      if (const auto created = create_file(volume, path); !created) {
        report(session, created);
        continue;
      }
    }
    const auto found = tree.find(path, false);
    if (!found) {
      report(session, found.error().message);
      continue;
    }
    report(session, change({path, *found->stat, nullptr}));
    if (!options.recursive || found->entry.type != format::kTypeDirectory) continue;
    // A directory that can no longer be searched is gone through all the same: by its number.
    host::WalkVisitor visitor;
    visitor.entry = [&](const host::TreeEntry& entry) {
      if (entry.stat) report(session, change({entry.path, *entry.stat, &entry}));
    };
    visitor.error = [&](const Error& error) { report(session, error.message); };
    tree.walk(*found, {.recursive = true}, visitor);
  }
  close_volume(session, volume);
}

}  // namespace gofs::cli
