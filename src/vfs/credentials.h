// SPDX-License-Identifier: Apache-2.0
//
// Whether a mode lets who is asking (POSIX.1-2017, section 4.5); with access lists: access_list.h.
#pragma once

#include "f2fs/credentials.h"
#include "f2fs/inode.h"

namespace gofs::vfs {

using gofs::kMayExecute;
using gofs::kMayRead;
using gofs::kMayWrite;

using f2fs::Credentials;

/// 0 or -EACCES. User 0 may read and write everything, search every directory, and execute what
/// some user may execute.
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
