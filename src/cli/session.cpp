// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/text.h"
#include "host/storage_identity.h"
#include "host/volume_spec.h"
#include "ssd/descriptor.h"

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
  auto xattrs = tree.xattrs_of(entry);
  if (xattrs) {
    entry.xattrs = std::move(*xattrs);
  } else {
    report(session, xattrs.error().message);
  }
}

namespace {

/// Whether what is printed there would be written to what `storage` is of.
bool goes_onto(const host::StorageIdentity& storage, int descriptor) {
  struct stat status;
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return false;
  return ::fstat(descriptor, &status) == 0 && storage.has(status);
}

}  // namespace

void refuse_output_onto_volume(const Session& session) {
  std::vector<std::string> paths;
  for (const host::VolumeSpec& spec : take(host::parse_volume_specs(session.volume))) {
    if (!spec.path.empty()) paths.push_back(spec.path);
  }
  const host::StorageIdentity storage(paths);
  if (goes_onto(storage, STDERR_FILENO)) {
    // There is no place for a message.
    const ssd::Descriptor nowhere = ssd::Descriptor::open("/dev/null", O_RDONLY);
    if (!nowhere.is_open() || ::dup2(nowhere.get(), STDERR_FILENO) < 0) ::close(STDERR_FILENO);
    throw Failure{"standard error: the volume lies on it"};
  }
  if (goes_onto(storage, STDOUT_FILENO)) {
    throw Failure{"standard output: the volume lies on it"};
  }
}

namespace {

Volume mount_or_attach(const Session& session, Access access) {
  if (is_socket(session.volume)) return take(Volume::attach(session.volume));
  refuse_output_onto_volume(session);
  MountOptions options;
  options.read_only = access == Access::kReadOnly;
  options.backend = session.backend;
  return take(Volume::mount(session.volume, options));
}

}  // namespace

bool is_socket(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

void refuse_socket(const Session& session) {
  if (!is_socket(session.volume)) return;
  throw Failure{session.volume +
                ": a server has the volume mounted: stop it (gofs ctl), and name what it serves"};
}

Volume open_volume(const Session& session, Access access) {
  Volume volume = mount_or_attach(session, access);
  for (const std::string& warning : volume.warnings()) {
    (void)tell(session.volume + ": warning: " + warning);
  }
  return volume;
}

void close_volume(Session& session, Volume& volume) {
  for (const std::string& warning : volume.warnings()) {
    report(session, session.volume + ": " + warning);
  }
  take(volume.unmount());
}

}  // namespace gofs::cli
