// SPDX-License-Identifier: Apache-2.0
//
// Paths of the host that the user names himself: there a symbolic link is followed, and a name may
// be that of a descriptor (/dev/stdout) or of what is written to in place.
#pragma once

#include <optional>
#include <string>

namespace gofs::cli {

struct SplitPath {
  std::string directory;  // empty: the current one
  std::string name;       // the last component; empty for the root
  bool ends_with_slash = false;
};
SplitPath split_path(const std::string& path);

/// Whether something in a directory may be called so.
bool is_plain_name(const std::string& name);

/// The descriptor of this process that `path` stands for: /dev/stdin, /dev/fd/3, /proc/self/fd/1,
/// and links to them.
std::optional<int> own_descriptor(const std::string& path);

/// Where the regular file that `path` leads to has its name, so that another may take its place
/// there. None where it has no such name, or something is mounted on it.
std::optional<SplitPath> place_of_file(const std::string& path);

}  // namespace gofs::cli
