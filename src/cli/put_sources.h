// SPDX-License-Identifier: Apache-2.0
//
// What `gofs put` is to copy: what the user names, and with -r all that is below, which is found by
// descriptors, so that no symbolic link is followed there.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/host_directories.h"
#include "cli/session.h"
#include "cli/source_file.h"

namespace gofs::cli {

/// An object of the host and where it is to go.
struct PutSource {
  std::optional<HostDirectories::Id> parent;  // none: the user named it
  std::string name;                           // in `parent`; else the path that the user wrote
  std::string path;                           // on the volume
  struct stat status;
  /// A file, pipe or device that is to be read, whatever it is, and the end of all links.
  bool is_read = false;
  std::optional<HostDirectories::Id> directory{};  // it is one
};

/// Directories come before what is in them.
class PutSources {
 public:
  explicit PutSources(Session& session) : session_(session) {}

  /// What cannot be had is reported. `path` is that on the volume.
  void add(const std::string& host_path, const std::string& path, bool recursive);

  const std::vector<PutSource>& all() const { return all_; }
  uint64_t bytes() const { return bytes_; }

  /// For messages.
  std::string host_path(const PutSource& source) const;
  int descriptor(HostDirectories::Id directory) { return directories_.descriptor(directory); }
  /// The source without regard to what it is (O_PATH), and to the end of links where it `is_read`.
  /// Throws ObjectFailure.
  ssd::Descriptor look(const PutSource& source);
  SourceFile open(const PutSource& source);
  std::string link_target(const PutSource& source);

 private:
  void look_at(PutSource source, std::vector<PutSource>& pending);
  int within(const PutSource& source);
  [[noreturn]] void fail_as_another(const PutSource& source) const;

  Session& session_;
  HostDirectories directories_;
  std::vector<PutSource> all_;
  uint64_t bytes_ = 0;
};

}  // namespace gofs::cli
