// SPDX-License-Identifier: Apache-2.0
#include "host/default_media.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/backend.h"
#include "simt/available_memory.h"

namespace gofs::host {

namespace {

bool lies_in_memory(const std::string& path) {
  struct statfs system {};
  if (::statfs(path.c_str(), &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

/// What can be written to the holes of an image that a GPU has in memory is as much as this. Of one
/// with more it would be full while the volume has room.
constexpr uint64_t kHolesMax = kernels::kSpareBytes;

MediaKind default_media(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return MediaKind::kHosted;
  if (!lies_in_memory(path)) return MediaKind::kHosted;
  const auto bytes = static_cast<uint64_t>(status.st_size);
  const uint64_t there = static_cast<uint64_t>(status.st_blocks) * S_BLKSIZE;
  if (bytes - std::min(bytes, there) > kHolesMax) return MediaKind::kHosted;
  return bytes <= simt::available_memory_bytes().value_or(0) / 2 ? MediaKind::kMemory
                                                                 : MediaKind::kHosted;
}

}  // namespace

void choose_media(std::vector<VolumeSpec>& members, Lasting lasting) {
  std::vector<VolumeSpec*> open;
  bool hosts = lasting == Lasting::kAlways;
  for (VolumeSpec& member : members) {
    const bool says_nothing = member.media == MediaKind::kAuto && !member.path.empty();
    if (says_nothing) {
      open.push_back(&member);
      member.media = default_media(member.path);
    }
    hosts = hosts || member.is_hosted() || member.is_physical();
  }
  for (VolumeSpec* const member : open) {
    if (hosts) member->media = MediaKind::kHosted;
  }
}

}  // namespace gofs::host
