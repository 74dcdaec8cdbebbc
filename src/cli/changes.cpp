// SPDX-License-Identifier: Apache-2.0
#include "cli/changes.h"

namespace gofs::cli {

void change_paths(Session& session, const ChangeOptions& options,
                  const std::function<Change(Volume& volume)>& change_of) {
  Volume volume = mount_volume(session, Access::kReadWrite);
  const Change change = change_of(volume);
  host::Tree tree(volume.state());
  const auto make = [&](const std::string& path, const Stat& stat) {
    report(session, change(path, stat));
  };
  for (const std::string& path : options.paths) {
    const auto found = tree.find(path, false);
    if (!found) {
      report(session, found.error().message);
      continue;
    }
    make(path, *found->stat);
    if (!options.recursive || found->entry.type != format::kTypeDirectory) continue;
    // A directory that can no longer be searched is gone through all the same: by its number.
    host::WalkVisitor visitor;
    visitor.entry = [&](const host::TreeEntry& entry) {
      if (entry.stat) make(entry.path, *entry.stat);
    };
    visitor.error = [&](const Error& error) { report(session, error.message); };
    tree.walk(*found, {.recursive = true}, visitor);
  }
  take(volume.unmount());
}

}  // namespace gofs::cli
