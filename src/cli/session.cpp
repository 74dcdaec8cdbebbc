// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/text.h"

namespace gofs::cli {

bool tell(const std::string& message) {
  return print_error(fmt::format("gofs: {}\n", escaped(message)));
}

void report(Session& session, const std::string& message) {
  (void)tell(message);
  session.exit_status = kExitFailure;
}

void report(Session& session, const Expected<void>& result) {
  if (!result) report(session, result.error().message);
}

void find_xattrs(Session& session, host::Tree& tree, host::TreeEntry& entry) {
  auto xattrs = tree.xattrs_of(entry.entry.ino, entry.path);
  if (xattrs) {
    entry.xattrs = std::move(*xattrs);
  } else {
    report(session, xattrs.error().message);
  }
}

Volume mount_volume(const Session& session, Access access) {
  MountOptions options;
  options.read_only = access == Access::kReadOnly;
  options.backend = session.backend;
  Volume volume = take(Volume::mount(session.volume, options));
  for (const std::string& warning : volume.warnings()) {
    (void)tell(session.volume + ": warning: " + warning);
  }
  return volume;
}

}  // namespace gofs::cli
