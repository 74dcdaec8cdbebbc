// SPDX-License-Identifier: Apache-2.0
//
// Who is asking, and whether a mode lets him (POSIX.1-2017, section 4.5); with access lists:
// access_list.h.
#pragma once

#include "f2fs/inode.h"

namespace gofs::vfs {

using gofs::kMayExecute;
using gofs::kMayRead;
using gofs::kMayWrite;

struct Credentials {
  uint32_t uid;
  uint32_t gid;
  uint32_t group_count;
  uint32_t groups[kGroupsMax];  // supplementary

  GOFS_HD bool in_group(uint32_t group) const {
    if (gid == group) return true;
    for (uint32_t i = 0; i < group_count; ++i) {
      if (groups[i] == group) return true;
    }
    return false;
  }
};

/// 0 or -EACCES. User 0 may read and write everything, search every directory, and execute what
/// anybody may execute.
GOFS_HD inline int check_access(const Credentials& who, const f2fs::Inode& inode, uint32_t wanted) {
  if (who.uid == 0) {
    const bool executable = inode.is_directory() || (inode.mode & 0111) != 0;
    return (wanted & kMayExecute) != 0 && !executable ? -EACCES : 0;
  }
  uint32_t granted = inode.mode & 7u;
  if (who.uid == inode.uid) {
    granted = inode.mode >> 6 & 7u;
  } else if (who.in_group(inode.gid)) {
    granted = inode.mode >> 3 & 7u;
  }
  return (wanted & ~granted) != 0 ? -EACCES : 0;
}

}  // namespace gofs::vfs
