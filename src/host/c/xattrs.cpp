// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: extended attributes.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "host/c/call.h"
#include "host/c/give.h"

namespace gofs::host::c {

namespace {

int64_t give_names(const Expected<std::vector<std::string>>& names, char* buffer, uint64_t bytes) {
  if (!names) return fail(names.error());
  std::string list;
  for (const std::string& name : *names) list.append(name.c_str(), name.size() + 1);
  return give_value(list, buffer, bytes);
}

/// Sets an attribute by `set`, which takes the value.
template <typename Set>
int set_value(const void* value, uint64_t bytes, Set&& set) {
  if (value == nullptr && bytes != 0) return fail(EFAULT, {"the value is null"});
  // Of one that is too long no more is looked at than shows that.
  const uint64_t length = std::min<uint64_t>(bytes, kXattrValueBytesMax + 1);
  return in_c(set(std::string(length != 0 ? static_cast<const char*>(value) : "", length)));
}

}  // namespace

}  // namespace gofs::host::c

using namespace gofs::host::c;

int64_t gofs_getxattr(gofs_volume* volume, const char* path, const char* name, void* buffer,
                      uint64_t bytes) {
  return call({{"volume", volume}, {"path", path}, {"name", name}},
              [&] { return give_value(volume->volume.getxattr(path, name), buffer, bytes); });
}

int64_t gofs_lgetxattr(gofs_volume* volume, const char* path, const char* name, void* buffer,
                       uint64_t bytes) {
  return call({{"volume", volume}, {"path", path}, {"name", name}},
              [&] { return give_value(volume->volume.lgetxattr(path, name), buffer, bytes); });
}

int64_t gofs_fgetxattr(gofs_volume* volume, int fd, const char* name, void* buffer,
                       uint64_t bytes) {
  return call({{"volume", volume}, {"name", name}},
              [&] { return give_value(volume->volume.fgetxattr(fd, name), buffer, bytes); });
}

int64_t gofs_listxattr(gofs_volume* volume, const char* path, char* buffer, uint64_t bytes) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return give_names(volume->volume.listxattr(path), buffer, bytes); });
}

int64_t gofs_llistxattr(gofs_volume* volume, const char* path, char* buffer, uint64_t bytes) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return give_names(volume->volume.llistxattr(path), buffer, bytes); });
}

int64_t gofs_flistxattr(gofs_volume* volume, int fd, char* buffer, uint64_t bytes) {
  return call({{"volume", volume}},
              [&] { return give_names(volume->volume.flistxattr(fd), buffer, bytes); });
}

int gofs_setxattr(gofs_volume* volume, const char* path, const char* name, const void* value,
                  uint64_t bytes, uint32_t flags) {
  return call({{"volume", volume}, {"path", path}, {"name", name}}, [&] {
    return set_value(value, bytes, [&](const std::string& text) {
      return volume->volume.setxattr(path, name, text, flags);
    });
  });
}

int gofs_lsetxattr(gofs_volume* volume, const char* path, const char* name, const void* value,
                   uint64_t bytes, uint32_t flags) {
  return call({{"volume", volume}, {"path", path}, {"name", name}}, [&] {
    return set_value(value, bytes, [&](const std::string& text) {
      return volume->volume.lsetxattr(path, name, text, flags);
    });
  });
}

int gofs_fsetxattr(gofs_volume* volume, int fd, const char* name, const void* value, uint64_t bytes,
                   uint32_t flags) {
  return call({{"volume", volume}, {"name", name}}, [&] {
    return set_value(value, bytes, [&](const std::string& text) {
      return volume->volume.fsetxattr(fd, name, text, flags);
    });
  });
}

int gofs_removexattr(gofs_volume* volume, const char* path, const char* name) {
  return call({{"volume", volume}, {"path", path}, {"name", name}},
              [&] { return volume->volume.removexattr(path, name); });
}

int gofs_lremovexattr(gofs_volume* volume, const char* path, const char* name) {
  return call({{"volume", volume}, {"path", path}, {"name", name}},
              [&] { return volume->volume.lremovexattr(path, name); });
}

int gofs_fremovexattr(gofs_volume* volume, int fd, const char* name) {
  return call({{"volume", volume}, {"name", name}},
              [&] { return volume->volume.fremovexattr(fd, name); });
}
