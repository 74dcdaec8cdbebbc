// SPDX-License-Identifier: Apache-2.0
//
// Copies a directory tree of the host into a volume that is being built: directories, regular files
// (holes stay holes, hard links stay links), symbolic links and special files, with modes, owners
// and times. Extended attributes are left behind.
#pragma once

#include <cstdint>
#include <string>

#include "host/image/image_builder.h"

namespace gofs::image {

struct HostTreeOptions {
  bool inline_data = false;      // see FileSpec
  bool inline_dentries = false;  // see DirectoryOptions
  FileLayout layout{};
};

struct HostTreeCounts {
  uint64_t directories = 0;  // the top one not included
  uint64_t files = 0;
  uint64_t symlinks = 0;
  uint64_t specials = 0;
  uint64_t hard_links = 0;  // further names of files
  uint64_t bytes = 0;       // sizes of regular files
};

/// Puts what is in the directory `host_path` into `into`, entries in the order of their names, so
/// that equal trees give equal volumes. `into` takes over the attributes of `host_path`. Reading
/// does not follow symbolic links. Errors: those of the host, with the path; those of ImageBuilder.
Status add_host_tree(ImageBuilder& builder, Directory into, const std::string& host_path,
                     const HostTreeOptions& options, HostTreeCounts* counts = nullptr);

}  // namespace gofs::image
