// SPDX-License-Identifier: Apache-2.0
//
// What the commands that change files have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "host/tree.h"

namespace gofs::cli {

/// What becomes of a path that names nothing.
enum class Missing {
  kRefuse,
  kCreate,  // a regular file is made
  kLeave,   // it is passed over
};

struct ChangeOptions {
  std::vector<std::string> paths;
  bool recursive = false;
  Missing missing = Missing::kRefuse;  // other than this, symbolic links are followed
};

/// What is to be changed: what a path names that was given, or what a walk has met below it.
struct ChangeTarget {
  const std::string& path;
  const Stat& stat;            // of that itself
  const host::TreeEntry* met;  // null: the path was given
};

/// A change of one of them. The first of its errors is reported.
using Change = std::function<Expected<void>(const ChangeTarget& target)>;

/// Mounts session.volume for writing, makes the change of each path, with `recursive` of all below
/// it as well (but of no symbolic link's target), and unmounts, which makes it durable. What fails
/// is reported, the rest goes on.
void change_paths(Session& session, const ChangeOptions& options,
                  const std::function<Change(Volume& volume, host::Tree& tree)>& change_of);

}  // namespace gofs::cli
