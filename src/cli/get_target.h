// SPDX-License-Identifier: Apache-2.0
//
// Where `gofs get` puts what it was asked for, by the path of the host that the user wrote: as cp
// has it, but that a regular file that the user may write to is replaced by another one and not
// written over, as long as its directory admits that.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "cli/named_path.h"
#include "host/storage_identity.h"
#include "ssd/descriptor.h"

namespace gofs::cli {

struct GetTarget {
  /// A name in a directory, from which on no link is followed; no name: the directory itself, which
  /// is there.
  SplitPath place{};
  /// Or what is written to in place: a pipe, a device, a descriptor of this process, or a file that
  /// none may take the place of, which is empty then.
  std::optional<ssd::Descriptor> stream{};
  bool takes_attributes = false;  // the stream is that of a file of this user
};

struct GetSource {
  std::string name;  // on the volume
  bool is_directory;
  bool is_file;  // a regular one
};

/// Throws ObjectFailure, also where the volume lies on what is named.
GetTarget find_get_target(const std::string& host_path, const GetSource& source,
                          const host::StorageIdentity& storage);

/// Throws ObjectFailure if the volume lies on what `status` is of.
void refuse_storage(const host::StorageIdentity& storage, const struct stat& status,
                    const std::string& path);

}  // namespace gofs::cli
