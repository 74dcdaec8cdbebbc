// SPDX-License-Identifier: Apache-2.0
//
// gofs rm, rmdir and mv.
#include <cerrno>
#include <set>

#include "cli/commands.h"
#include "cli/objects.h"
#include "host/messages.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

uint64_t root_ino(host::Tree& tree) { return take(tree.find("/", false)).entry.ino; }

bool is_directory(const host::TreeEntry& entry) {
  return entry.entry.type == format::kTypeDirectory;
}

/// Removes a directory with all that is below it; what cannot be removed is reported, and so are
/// the directories that it is in.
void remove_tree(Session& session, host::Tree& tree, const host::TreeEntry& top) {
  host::WalkVisitor visitor;
  visitor.entry = [&](const host::TreeEntry& entry) {
    if (entry.stat && !is_directory(entry)) report(session, tree.remove(entry));
  };
  visitor.left = [&](const host::TreeEntry& entry) { report(session, tree.remove(entry)); };
  visitor.error = [&](const Error& error) { report(session, error.message); };
  tree.walk(top, {.recursive = true, .link_targets = true}, visitor);
  report(session, tree.remove(top));
}

/// The last component of a path; empty for the root.
std::string last_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "";
  const size_t slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

/// Removes what one operand names. As POSIX has it, the root and what ends with . or .. stay, and
/// so does all that is below them.
void remove_operand(Session& session, Volume& volume, host::Tree& tree, const RmOptions& options,
                    const std::string& path) {
  const std::string name = last_name(path);
  if (name == "." || name == "..") {
    return report(session, path + ": rm takes no path that ends with . or ..");
  }
  const auto found = tree.find(path, false);
  if (!found) {
    const bool missing = found.error().code == ENOENT || found.error().code == ENOTDIR;
    if (!options.force || !missing) report(session, found.error().message);
  } else if (!options.recursive || !is_directory(*found)) {
    report(session, volume.unlink(path));
  } else if (found->entry.ino == root_ino(tree)) {
    // By its number: it may be named by a symbolic link with a slash behind it.
    report(session, path + ": rm does not remove the root directory");
  } else {
    remove_tree(session, tree, *found);
  }
}

}  // namespace

void run_rm(Session& session, const RmOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  host::Tree tree(host::any_of(volume));
  for (const std::string& path : options.paths) {
    remove_operand(session, volume, tree, options, path);
  }
  close_volume(session, volume);
}

void run_rmdir(Session& session, const RmdirOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  for (const std::string& path : options.paths) report(session, volume.rmdir(path));
  close_volume(session, volume);
}

void run_mv(Session& session, const MvOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  const std::string& target = options.paths.back();
  const uint32_t flags = options.exchange     ? kRenameExchange
                         : options.no_clobber ? kRenameNoReplace
                                              : 0;
  const auto there = volume.stat(target);
  const bool into =
      !options.exchange && there && (there->mode & format::kModeTypeMask) == format::kModeDirectory;
  if (!into && options.paths.size() > 2) {
    report(session, host::make_error(there ? ENOTDIR : there.error().code, target).message);
  } else {
    std::set<std::string> taken;
    for (size_t i = 0; i + 1 < options.paths.size(); ++i) {
      const std::string& from = options.paths[i];
      const std::string to = into ? host::joined_path(target, last_name(from)) : target;
      if (taken.contains(to)) {
        report(session, just_created(to, from));
        continue;
      }
      const auto moved = volume.rename(from, to, flags);
      if (moved) taken.insert(to);
      report(session, moved);
    }
  }
  close_volume(session, volume);
}

}  // namespace gofs::cli
