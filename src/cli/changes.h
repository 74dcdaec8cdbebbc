// SPDX-License-Identifier: Apache-2.0
//
// What the commands that change files have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/session.h"

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

/// A change of what `path` names; `stat` is of that itself. The first of its errors that is told
/// about a path.
using Change = std::function<Expected<void>(const std::string& path, const Stat& stat)>;

/// Mounts session.volume for writing, makes the change of each path, with `recursive` of all below
/// it as well (but of no symbolic link's target), and unmounts, which makes it durable. What fails
/// is reported, the rest goes on.
void change_paths(Session& session, const ChangeOptions& options,
                  const std::function<Change(Volume& volume)>& change_of);

}  // namespace gofs::cli
