// SPDX-License-Identifier: Apache-2.0
#include "cli/host_attributes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/access_mode.h"
#include "cli/objects.h"

namespace gofs::cli {
namespace {

constexpr char kCapabilityName[] = "security.capability";
constexpr char kDefaultListName[] = "system.posix_acl_default";

/// A path by which calls that take no O_PATH descriptor reach what it is of, and a symbolic link
/// itself.
std::string path_of_descriptor(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

int change_owner(const HostObject& object, uint32_t uid, uint32_t gid) {
  return ::fchownat(object.descriptor, "", uid, gid, AT_EMPTY_PATH);
}

int change_mode(const HostObject& object, mode_t mode) {
  if (!object.path_only) return ::fchmod(object.descriptor, mode);
  return ::chmod(path_of_descriptor(object.descriptor).c_str(), mode);
}

int set_xattr(const HostObject& object, const host::ExtendedAttribute& xattr) {
  const char* const name = xattr.name.c_str();
  const std::string& value = xattr.value;
  if (!object.path_only) {
    return ::fsetxattr(object.descriptor, name, value.data(), value.size(), 0);
  }
  const std::string path = path_of_descriptor(object.descriptor);
  return ::setxattr(path.c_str(), name, value.data(), value.size(), 0);
}

/// The host's directory may have given the object a list, by which others could do more than the
/// original let them: its mask will be what the mode says of the group.
void drop_inherited_lists(const HostObject& object) {
  const std::string path = path_of_descriptor(object.descriptor);
  for (const char* const name : {kAccessListName, kDefaultListName}) {
    const int result = object.path_only ? ::removexattr(path.c_str(), name)
                                        : ::fremovexattr(object.descriptor, name);
    if (result == 0 || errno == ENODATA || errno == EOPNOTSUPP) continue;
    fail_with_errno(object.path);
  }
}

int set_times(const HostObject& object, const Stat& stat) {
  const auto time = [](const f2fs::TimeStamp& stamp) {
    return timespec{static_cast<time_t>(stamp.seconds), static_cast<long>(stamp.nanoseconds)};
  };
  const timespec times[2] = {time(stat.accessed), time(stat.modified)};
  if (!object.path_only) return ::futimens(object.descriptor, times);
  const std::string path = path_of_descriptor(object.descriptor);
  return ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

}  // namespace

void HostAttributes::restore(const HostObject& object, const host::TreeEntry& entry) {
  const Stat& stat = *entry.stat;
  const bool is_link = (stat.mode & format::kModeTypeMask) == format::kModeSymlink;
  if (object.is_new && !is_link) drop_inherited_lists(object);
  const bool is_owned = restore_owner(object, stat);
  uint32_t mode = restore_xattrs(object, entry, is_owned) & format::kModePermissionMask;
  if (!is_owned) mode = mode_of_others(mode);
  if (!is_link && change_mode(object, mode) != 0) fail_with_errno(object.path);
  if (set_times(object, stat) == 0) return;
  if (errno != EINVAL) fail_with_errno(object.path);
  listener_.failed(object.path + ": the volume has a time that cannot be");  // else all is there
}

/// Whether owner and group are the original's.
bool HostAttributes::restore_owner(const HostObject& object, const Stat& stat) {
  if (::geteuid() == 0 && change_owner(object, stat.uid, stat.gid) != 0) {
    listener_.failed(host::make_error(errno, object.path + ": owner").message);
  }
  struct stat status;
  if (::fstatat(object.descriptor, "", &status, AT_EMPTY_PATH) != 0) fail_with_errno(object.path);
  return status.st_uid == stat.uid && status.st_gid == stat.gid;
}

/// The mode that is to be set afterwards.
uint32_t HostAttributes::restore_xattrs(const HostObject& object, const host::TreeEntry& entry,
                                        bool is_owned) {
  uint32_t mode = entry.stat->mode;
  // Told already. What they said of the group is not known.
  if (!entry.xattrs) return mode & ~uint32_t{S_IRWXG};
  for (const host::ExtendedAttribute& xattr : *entry.xattrs) {
    bool wanted = ::geteuid() == 0 || xattr.name.starts_with("user.");
    if (xattr.name == kCapabilityName && !is_owned) wanted = false;
    const bool kept = wanted && restore_xattr(object, xattr);
    if (!kept && xattr.name == kAccessListName) mode = mode_without_list(mode, xattr.value);
  }
  return mode;
}

bool HostAttributes::restore_xattr(const HostObject& object, const host::ExtendedAttribute& xattr) {
  if (set_xattr(object, xattr) == 0) return true;
  // A host that has none at all would say so of every file.
  if (errno == EOPNOTSUPP && std::exchange(told_unsupported_, true)) return false;
  listener_.warned(object.path + ": warning: " + xattr.name + ": " + host::errno_words(errno));
  return false;
}

}  // namespace gofs::cli
