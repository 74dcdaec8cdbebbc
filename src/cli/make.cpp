// SPDX-License-Identifier: Apache-2.0
//
// gofs mkdir, ln and truncate.
#include <cerrno>

#include "cli/commands.h"
#include "format/node.h"

namespace gofs::cli {
namespace {

/// Makes each directory on the way to `path` that is not there, and `path`, which alone gets
/// `mode`.
Expected<void> make_all(Volume& volume, std::string path, uint32_t mode) {
  // A slash at the end would make the last directory one of those on the way.
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const auto made = volume.mkdir(part, end == std::string::npos ? mode : 0755);
    if (!made && made.error().code != EEXIST) return made;
    if (end != std::string::npos) continue;
    const auto there = volume.stat(part);
    if (!there) return there.error();
    return (there->mode & format::kModeTypeMask) == format::kModeDirectory ? Expected<void>()
                                                                           : made;
  }
}

}  // namespace

void run_mkdir(Session& session, const MkdirOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  const uint32_t mode = changed_mode(options.mode, 0777, true).value();
  for (const std::string& path : options.paths) {
    report(session, options.parents ? make_all(volume, path, mode) : volume.mkdir(path, mode));
  }
  close_volume(session, volume);
}

void run_ln(Session& session, const LnOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  report(session, options.symbolic ? volume.symlink(options.target, options.path)
                                   : volume.link(options.target, options.path));
  close_volume(session, volume);
}

void run_truncate(Session& session, const TruncateOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  report(session, volume.truncate(options.path, options.size_bytes));
  close_volume(session, volume);
}

}  // namespace gofs::cli
